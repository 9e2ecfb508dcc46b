//! Reads captures of packets: pcap and pcapng files, of whatever program.
//!
//! It must not know what captures say of a line (that is worked out in Python, by `redtail.lines`), the
//! engine, or the experiment file.
//!
//! - `read`: from the blocks of a file to rows, by `pcap-parser`
//! - `link`: where the IP header begins; `decode`: what the headers above the link say, by `etherparse`
//! - `packets`: what a capture becomes: columns with a row for each IP packet, and a table of conversations

mod decode;
mod link;
mod packets;
mod read;

pub use packets::{Capture, Conversation, Interface, Left, Packets};
pub use read::{ReadError, read};
