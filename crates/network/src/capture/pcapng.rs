//! The four blocks of the pcapng format that a capture needs.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 3.5 (options), 4.1 (section header), 4.2
//! (interface description), 4.3 (enhanced packet) and 4.6 (interface statistics). Always
//! little-endian, so that the same run gives the same bytes on every machine.

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;

const COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const EPB_DROPCOUNT: u16 = 4;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
const END_OF_OPTIONS: u16 = 0;

/// Timestamps are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// What the packets of a file begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum LinkType {
    /// An Ethernet header (LINKTYPE_ETHERNET).
    Ethernet = 1,
    /// An IP header (LINKTYPE_RAW).
    Ip = 101,
}

/// A packet as it is written.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The interface.
    pub interface: u32,
    /// Nanoseconds since the start.
    pub ns: u64,
    /// Its first bytes.
    pub captured: Vec<u8>,
    /// How many bytes it had.
    pub original: u32,
    /// Packets that the interface has dropped since the one before on this interface.
    pub dropped_before: u64,
    /// What is told of it.
    pub comments: Vec<String>,
}

/// A pcapng file with one section.
pub struct Writer<W: Write> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self {
            out,
            block: Vec::with_capacity(256),
        };
        writer.begin(SECTION_HEADER);
        writer.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        writer.put(&1u16.to_le_bytes()); // version 1.0
        writer.put(&0u16.to_le_bytes());
        writer.put(&SECTION_LENGTH_UNKNOWN.to_le_bytes());
        let program = concat!("redtail ", env!("CARGO_PKG_VERSION"));
        writer.option(SHB_USERAPPL, program.as_bytes());
        writer.option(END_OF_OPTIONS, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Describes the next interface; they are numbered from 0. At most `snap` bytes of a packet are
    /// kept; `speed` is in bit/s.
    pub fn interface(
        &mut self,
        link: LinkType,
        snap: u32,
        name: &str,
        description: &str,
        speed: u64,
    ) -> io::Result<()> {
        self.begin(INTERFACE_DESCRIPTION);
        self.put(&(link as u16).to_le_bytes());
        self.put(&0u16.to_le_bytes());
        self.put(&snap.to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_DESCRIPTION, description.as_bytes());
        self.option(IF_SPEED, &speed.to_le_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    /// A packet.
    pub fn packet(&mut self, record: &Record) -> io::Result<()> {
        self.begin(ENHANCED_PACKET);
        self.put(&record.interface.to_le_bytes());
        self.time(record.ns);
        self.put(&(record.captured.len() as u32).to_le_bytes());
        self.put(&record.original.to_le_bytes());
        self.put(&record.captured);
        self.pad();
        for comment in &record.comments {
            self.option(COMMENT, comment.as_bytes());
        }
        if record.dropped_before > 0 {
            self.option(EPB_DROPCOUNT, &record.dropped_before.to_le_bytes());
        }
        if !record.comments.is_empty() || record.dropped_before > 0 {
            self.option(END_OF_OPTIONS, &[]);
        }
        self.end()
    }

    /// What an interface has counted until `ns` nanoseconds after the start: packets that it received, and those that it
    /// dropped for lack of resources.
    pub fn statistics(
        &mut self,
        interface: u32,
        ns: u64,
        received: u64,
        dropped: u64,
    ) -> io::Result<()> {
        self.begin(INTERFACE_STATISTICS);
        self.put(&interface.to_le_bytes());
        self.time(ns);
        self.option(ISB_IFRECV, &received.to_le_bytes());
        self.option(ISB_IFDROP, &dropped.to_le_bytes());
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    /// Flushes the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&0u32.to_le_bytes()); // the length, known at the end
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    /// A time stamp, whose upper half comes first.
    fn time(&mut self, ns: u64) {
        self.put(&((ns >> 32) as u32).to_le_bytes());
        self.put(&(ns as u32).to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// Ends a block, which has its length at both ends.
    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.put(&length);
        self.out.write_all(&self.block)
    }
}
