//! Reads captures of packets: pcap and pcapng files, of whatever program.
//!
//! A capture becomes columns with a row for each IP packet, and a table of conversations. What
//! they say of the line is worked out in Python (`redtail.recordings`). The formats are read by
//! `pcap-parser`, the headers above the link by `etherparse`.

mod decode;
mod link;
mod packets;
mod read;

pub use packets::{Capture, Conversation, Interface, Left, Packets};
pub use read::{ReadError, read};
