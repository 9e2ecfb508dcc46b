//! A file whose packets are written when their fate is known.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use super::pcapng::{Record, Writer};
use crate::packet::ContentId;

/// A packet at a link, for as long as it is there.
pub type Key = (u32, ContentId);

/// Most bytes of packets that wait for their fate. The first is then written without.
const MOST_BYTES: usize = 64 << 20;

/// What is told of a packet whose fate was not known when it had to be written.
const TOO_LATE: &str = "written before its fate was known: too many packets wait";

/// What a record takes beside its bytes, about.
const PER_RECORD: usize = 128;

/// A packet of which something is told.
#[derive(Debug, Default)]
struct Open {
    /// The numbers of its records, the first one being that of its arrival.
    records: Vec<u64>,
    /// What was told before.
    comments: Vec<String>,
}

/// A file, and the records that wait to be written.
pub struct Pending<W: Write> {
    writer: Writer<W>,
    /// In the order of time, each with whether its fate is known.
    records: VecDeque<(bool, Record)>,
    /// Bytes of these records, about.
    bytes: usize,
    /// Number of the first of these records.
    first: u64,
    open: BTreeMap<Key, Open>,
}

impl<W: Write> Pending<W> {
    /// A file without packets.
    pub fn new(writer: Writer<W>) -> Self {
        Self {
            writer,
            records: VecDeque::new(),
            bytes: 0,
            first: 0,
            open: BTreeMap::new(),
        }
    }

    /// The next packet. What was told of it at this link before, as when it was marked, is told again.
    pub fn push(&mut self, key: Key, mut record: Record) {
        let open = self.open.entry(key).or_default();
        record.comments.clone_from(&open.comments);
        open.records.push(self.first + self.records.len() as u64);
        self.bytes += record.captured.len() + PER_RECORD;
        self.records.push_back((false, record));
    }

    /// Adds a comment to a packet at a link.
    pub fn tell(&mut self, key: Key, comment: &str) {
        let open = self.open.entry(key).or_default();
        open.comments.push(comment.to_owned());
        for number in &open.records {
            // A record that had to be written early is before the first.
            let index = number.checked_sub(self.first);
            if let Some((_, record)) = index.and_then(|at| self.records.get_mut(at as usize)) {
                record.comments.push(comment.to_owned());
            }
        }
    }

    /// The fate of a packet at a link is known.
    pub fn settle(&mut self, key: Key) {
        for number in self.open.remove(&key).unwrap_or_default().records {
            let index = number.checked_sub(self.first);
            if let Some((known, _)) = index.and_then(|at| self.records.get_mut(at as usize)) {
                *known = true;
            }
        }
    }

    /// Writes what need not wait.
    pub fn write_settled(&mut self) -> io::Result<()> {
        while let Some((known, record)) = self.records.front_mut() {
            if !*known && self.bytes <= MOST_BYTES {
                return Ok(());
            }
            if !*known {
                record.comments.push(TOO_LATE.to_owned());
            }
            self.write_first()?;
        }
        Ok(())
    }

    /// Writes the rest, and what each interface has counted until `ns`: packets received, and dropped for lack of room.
    pub fn finish(mut self, ns: u64, counted: &[(u32, u64, u64)]) -> io::Result<()> {
        while !self.records.is_empty() {
            self.write_first()?;
        }
        for &(interface, received, dropped) in counted {
            self.writer.statistics(interface, ns, received, dropped)?;
        }
        self.writer.finish()
    }

    fn write_first(&mut self) -> io::Result<()> {
        if let Some((_, record)) = self.records.pop_front() {
            self.first += 1;
            self.bytes -= record.captured.len() + PER_RECORD;
            self.writer.packet(&record)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packets of a file, as their first byte and their comments; and what its interfaces have counted.
    fn read(mut file: &[u8]) -> (Vec<(u8, Vec<String>)>, usize) {
        let word = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().expect("four bytes")) as usize;
        let half = |at: &[u8]| u16::from_le_bytes(at[..2].try_into().expect("two bytes")) as usize;
        let (mut packets, mut counted) = (Vec::new(), 0);
        while !file.is_empty() {
            let (block, rest) = file.split_at(word(&file[4..]));
            file = rest;
            counted += usize::from(word(block) == 5);
            if word(block) != 6 {
                continue;
            }
            let length = word(&block[20..]);
            let mut options = &block[28 + length.next_multiple_of(4)..block.len() - 4];
            let mut comments = Vec::new();
            while !options.is_empty() && half(options) > 0 {
                let size = half(&options[2..]);
                if half(options) == 1 {
                    comments.push(String::from_utf8_lossy(&options[4..4 + size]).into_owned());
                }
                options = &options[4 + size.next_multiple_of(4)..];
            }
            packets.push((block[28], comments));
        }
        (packets, counted)
    }

    fn record(name: u8) -> Record {
        Record {
            captured: vec![name],
            original: 1,
            ..Record::default()
        }
    }

    #[test]
    fn a_packet_is_written_in_the_order_of_time_with_what_became_of_it_later() {
        let mut bytes = Vec::new();
        let mut file = Pending::new(Writer::new(&mut bytes).expect("a vector"));
        let key = |packet| (0, ContentId(packet));
        for packet in 1..=3 {
            file.push(key(packet), record(packet as u8));
        }
        file.tell(key(3), "dropped");
        file.settle(key(3));
        file.tell(key(1), "marked");
        file.write_settled().expect("a vector");
        assert_eq!(file.records.len(), 3, "they wait for the first");
        // The same packet leaves the link: its second record tells the same.
        file.push(key(1), record(4));
        file.tell(key(1), "lost");
        file.settle(key(1));
        file.write_settled().expect("a vector");
        assert_eq!(file.records.len(), 3, "they wait for the second");
        file.finish(9, &[(0, 4, 1)]).expect("a vector");
        let (packets, counted) = read(&bytes);
        let told: Vec<(u8, String)> = packets.into_iter().map(|(n, c)| (n, c.join(" "))).collect();
        let expected = [
            (1, "marked lost"),
            (2, ""),
            (3, "dropped"),
            (4, "marked lost"),
        ];
        assert_eq!(told, expected.map(|(n, c)| (n, c.to_owned())));
        assert_eq!(counted, 1);
    }

    #[test]
    fn packets_that_wait_take_a_bounded_room() {
        let mut bytes = Vec::new();
        let mut file = Pending::new(Writer::new(&mut bytes).expect("a vector"));
        let large = Record {
            captured: vec![7; MOST_BYTES / 2],
            ..Record::default()
        };
        file.push((0, ContentId(0)), large.clone());
        file.push((0, ContentId(1)), large);
        file.write_settled().expect("a vector");
        assert_eq!(file.records.len(), 1);
        // What is told too late is told nowhere.
        file.tell((0, ContentId(0)), "dropped");
        file.finish(0, &[]).expect("a vector");
        let (packets, _) = read(&bytes);
        assert_eq!(packets[0].1, [TOO_LATE]);
        assert!(packets[1].1.is_empty());
    }
}
