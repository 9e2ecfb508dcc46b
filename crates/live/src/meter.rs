//! What passes the links, second by second, for those who watch a run.

use std::fmt;
use std::sync::mpsc::Sender;

use redtail_core::{Span, Time};
use redtail_network::{End, Links, SimPacket};
use redtail_qdisc::QueueDiscipline;

/// Time between two readings.
const INTERVAL: Span = Span::from_s(1);

/// The state of a link over the last second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The name of the link in results.
    pub link: String,
    /// Bits that it sent, divided by the time.
    pub rate_bps: f64,
    /// Packets waiting now.
    pub waiting: u64,
    /// Mean time from a packet's arrival at the queue to the end of its transmission; `None` if no
    /// packet was sent.
    pub delay_s: Option<f64>,
    /// Packets that its queue dropped.
    pub drops: u64,
    /// Packets that it marked.
    pub marks: u64,
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbps = self.rate_bps * 1e-6;
        write!(
            f,
            "{}: {mbps:.2} Mbit/s, {} packets waiting, ",
            self.link, self.waiting
        )?;
        match self.delay_s {
            Some(delay) => write!(f, "delay {:.1} ms, ", delay * 1e3)?,
            None => f.write_str("delay -, ")?,
        }
        write!(f, "{} drops, {} marks", self.drops, self.marks)
    }
}

/// What has passed a link since the last reading.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    bits: u64,
    packets: u64,
    delays: Span,
    marks: u64,
}

/// Reads the links each second.
#[derive(Debug)]
pub struct Meter {
    /// When the next reading is due.
    pub next: Time,
    last: Time,
    links: Vec<Passed>,
    /// Packets that each queue had dropped at the last reading.
    dropped: Vec<u64>,
    readings: Sender<Vec<Reading>>,
}

impl Meter {
    /// A meter for so many links, which sends its readings there.
    pub fn new(links: usize, readings: Sender<Vec<Reading>>) -> Self {
        Self {
            next: Time::ZERO + INTERVAL,
            last: Time::ZERO,
            links: vec![Passed::default(); links],
            dropped: vec![0; links],
            readings,
        }
    }

    /// A packet passes an end of a link, which has `marked` it.
    pub fn pass(&mut self, link: u32, end: End, packet: &SimPacket, marked: bool, now: Time) {
        if end == End::Out {
            let passed = &mut self.links[link as usize];
            passed.bits += u64::from(packet.size) * 8;
            passed.packets += 1;
            passed.delays += now - packet.stamp;
            passed.marks += u64::from(marked);
        }
    }

    /// Sends a reading of all links.
    pub fn read(&mut self, links: &Links, now: Time) {
        let seconds = (now - self.last).as_secs_f64().max(1e-9);
        let each = links.network.links.iter().enumerate();
        let readings = each.map(|(i, link)| {
            let passed = std::mem::take(&mut self.links[i]);
            let dropped = link.counters.passed.dropped - self.dropped[i];
            self.dropped[i] = link.counters.passed.dropped;
            let mean = passed.delays.as_secs_f64() / passed.packets as f64;
            Reading {
                link: link.name.clone(),
                rate_bps: passed.bits as f64 / seconds,
                waiting: link.queue.backlog().packets,
                delay_s: (passed.packets > 0).then_some(mean),
                drops: dropped,
                marks: passed.marks,
            }
        });
        // Nobody may be watching any more.
        let _ = self.readings.send(readings.collect());
        (self.last, self.next) = (now, now + INTERVAL);
    }
}
