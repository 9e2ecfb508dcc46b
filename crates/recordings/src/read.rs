//! Blocks of a file to rows.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, PcapHeader, create_reader};

use crate::decode;
use crate::link::{self, NoIp};
use crate::packets::{Capture, Conversations, Interface};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// The largest block that is accepted: libpcap's limit of a packet is 2^18 bytes, and other blocks
/// that are larger are damage.
const LARGEST_BLOCK: usize = 1 << 26;

/// The latest time stamp that is accepted, in nanoseconds: a clock that begins in 1970 shows it in 2116.
const LATEST: i64 = 1 << 62;

/// Why a file cannot be read as a capture at all.
#[derive(Debug)]
pub enum ReadError {
    /// The system does not let it be read.
    Io(io::Error),
    /// The file is no capture, or holds nothing.
    Form(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(out, "{error}"),
            ReadError::Form(text) => write!(out, "{text}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reads a capture. What stands before a damaged place is kept; `Capture::damage` says where and
/// what it is.
pub fn read(path: &Path) -> Result<Capture, ReadError> {
    let file = File::open(path).map_err(ReadError::Io)?;
    let length = file.metadata().map_err(ReadError::Io)?.len();
    let mut reader = create_reader(BUFFER, file).map_err(|error| {
        ReadError::Form(match error {
            PcapError::Eof => "the file is empty".to_owned(),
            PcapError::Incomplete(_) => {
                format!("the file ends within its header, at byte {length}")
            }
            _ => format!("the header of the file, of {length} bytes, is damaged or cut short"),
        })
    })?;
    let mut capacity = BUFFER;
    let most = usize::try_from(length).unwrap_or(usize::MAX);
    let mut rows = Rows::default();
    let mut starved = false;
    loop {
        let problem = match reader.next() {
            Ok((size, block)) => {
                let taken = rows.block(block);
                starved = false;
                match taken {
                    Ok(()) => {
                        reader.consume(size);
                        continue;
                    }
                    Err(problem) => problem,
                }
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) if !starved => {
                // A block may need more than one read, but each has to bring something.
                let before = reader.data().len();
                if reader.refill().is_err() {
                    return Err(ReadError::Io(io::Error::last_os_error()));
                }
                starved = reader.data().len() == before && reader.reader_exhausted();
                continue;
            }
            // What a block claims to need is given up to what the file has.
            Err(PcapError::BufferTooSmall) if capacity < LARGEST_BLOCK && capacity < most => {
                capacity *= 2;
                reader.grow(capacity);
                if reader.refill().is_err() {
                    return Err(ReadError::Io(io::Error::last_os_error()));
                }
                continue;
            }
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => {
                "the file ends within a packet or block".to_owned()
            }
            Err(PcapError::BufferTooSmall) => {
                "a block claims to be larger than any, or than the file".to_owned()
            }
            Err(_) => "this is no packet or block".to_owned(),
        };
        rows.capture.damage = Some(format!(
            "at byte {} of {length}, after {} packets: {problem}",
            reader.consumed(),
            rows.seen,
        ));
        break;
    }
    Ok(rows.capture)
}

/// How an interface stamps packets.
#[derive(Debug, Clone, Copy)]
struct Clock {
    link: Linktype,
    /// Index among the interfaces of the capture.
    index: u32,
    /// Units in a second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
}

#[derive(Default)]
struct Rows {
    capture: Capture,
    conversations: Conversations,
    /// Interfaces of the present section.
    clocks: Vec<Clock>,
    /// Interfaces that packets name themselves, by the interface of the file and their number.
    named: BTreeMap<(u32, u32), u32>,
    /// Packets so far, whatever they are.
    seen: u64,
}

impl Rows {
    fn block(&mut self, block: PcapBlockOwned<'_>) -> Result<(), String> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units = if header.is_nanosecond_precision() {
                    1_000_000_000
                } else {
                    1_000_000
                };
                self.interface(link_type(&header), String::new(), units, 0);
            }
            PcapBlockOwned::Legacy(packet) => {
                let units = self.clocks[0].resolution;
                let ticks = u64::from(packet.ts_sec) * units + u64::from(packet.ts_usec);
                let kept = packet
                    .data
                    .get(..packet.caplen as usize)
                    .unwrap_or(packet.data);
                self.packet(0, ticks, kept, packet.origlen)?;
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.clocks.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(about)) => {
                let name = about.if_name().and_then(Result::ok).unwrap_or_default();
                let units = about
                    .ts_resolution()
                    .filter(|&units| units > 0)
                    .ok_or("the interface has a resolution of time that no clock has")?;
                self.interface(about.linktype, name.to_owned(), units, about.if_tsoffset);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let interface = packet.if_id as usize;
                if interface >= self.clocks.len() {
                    let known = self.clocks.len();
                    return Err(format!(
                        "the packet names interface {interface}, and {known} are described"
                    ));
                }
                self.packet(interface, ticks, packet.packet_data(), packet.origlen)?;
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                return Err("the packet has no time stamp (a simple packet block)".to_owned());
            }
            PcapBlockOwned::NG(_) => {}
        }
        Ok(())
    }

    fn interface(&mut self, link: Linktype, name: String, resolution: u64, offset: i64) {
        let index = self.capture.interfaces.len() as u32;
        self.clocks.push(Clock {
            link,
            index,
            resolution,
            offset,
        });
        self.capture.interfaces.push(Interface {
            name,
            link_type: link.0,
        });
    }

    fn packet(
        &mut self,
        interface: usize,
        ticks: u64,
        data: &[u8],
        original: u32,
    ) -> Result<(), String> {
        self.seen += 1;
        let clock = self.clocks[interface];
        let at_ns = nanoseconds(ticks, clock.resolution, clock.offset).ok_or_else(|| {
            format!(
                "the packet's time stamp is outside of 0 to {} s",
                LATEST / 1_000_000_000
            )
        })?;
        let capture = &mut self.capture;
        if !link::is_known(clock.link) {
            capture.left.unknown_link += 1;
            *capture.unknown_links.entry(clock.link.0).or_default() += 1;
            return Ok(());
        }
        let offset = match link::ip_offset(clock.link, data) {
            Ok(offset) if offset < data.len() => offset,
            Err(NoIp::Encrypted) => {
                capture.left.encrypted += 1;
                return Ok(());
            }
            _ => {
                capture.left.not_ip += 1;
                return Ok(());
            }
        };
        let length = (original as usize).saturating_sub(offset);
        let Some(headers) = decode::headers(&data[offset..], length, &mut capture.left) else {
            return Ok(());
        };
        let index = match link::interface_index(clock.link, data) {
            None => clock.index,
            Some(number) => *self.named.entry((clock.index, number)).or_insert_with(|| {
                capture.interfaces.push(Interface {
                    name: format!("interface {number}"),
                    link_type: clock.link.0,
                });
                capture.interfaces.len() as u32 - 1
            }),
        };
        let place = self
            .conversations
            .place(&headers, &mut capture.conversations);
        capture.packets.push(at_ns, index, place, &headers);
        Ok(())
    }
}

/// The link type; the upper half of the field has other uses.
fn link_type(header: &PcapHeader) -> Linktype {
    Linktype(header.network.0 & 0xffff)
}

/// A time stamp in nanoseconds; `None` if no clock shows it.
fn nanoseconds(ticks: u64, resolution: u64, offset: i64) -> Option<i64> {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(resolution);
    let shifted = i128::try_from(ns).ok()? + i128::from(offset) * 1_000_000_000;
    i64::try_from(shifted)
        .ok()
        .filter(|at| (0..=LATEST).contains(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_of_any_resolution_become_nanoseconds() {
        assert_eq!(nanoseconds(1_500_000, 1_000_000, 0), Some(1_500_000_000));
        assert_eq!(nanoseconds(3, 1 << 1, 10), Some(11_500_000_000));
        assert_eq!(nanoseconds(5, 1_000_000_000, 0), Some(5));
    }

    #[test]
    fn time_stamps_that_no_clock_shows_are_none() {
        assert_eq!(nanoseconds(1, 1_000_000, -1), None);
        assert_eq!(nanoseconds(u64::MAX, 1, 0), None);
        assert_eq!(nanoseconds(0, 1, i64::MAX), None);
        assert_eq!(nanoseconds(0, 1, i64::MIN), None);
    }
}
