//! A packet that can be told from all others, and a sink that keeps what it hears.

#![allow(dead_code)] // each test program uses its own part of this

use redtail_core::{Bytes, Ecn, FlowId, Packet, Rate, Stream, Time};
use redtail_qdisc::queues::red::RedParams;
use redtail_qdisc::{AnyQueue, DropReason, QueueContext, QueueSpec, Sink};

/// A packet with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub id: u64,
    pub size: u64,
    pub flow: u32,
    pub ecn: Ecn,
    pub enqueued: Time,
}

impl Probe {
    pub fn new(id: u64, size: u64, ecn: Ecn) -> Self {
        Self {
            id,
            size,
            flow: 0,
            ecn,
            enqueued: Time::MAX,
        }
    }
}

impl Packet for Probe {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
}

/// Keeps what a queue reports.
#[derive(Debug, Default)]
pub struct Heard {
    pub dropped: Vec<(Probe, DropReason, Time)>,
    pub marked: Vec<(Probe, Time)>,
}

impl Sink<Probe> for Heard {
    fn dropped(&mut self, packet: Probe, reason: DropReason, now: Time) {
        self.dropped.push((packet, reason, now));
    }
    fn marked(&mut self, packet: &Probe, now: Time) {
        self.marked.push((*packet, now));
    }
}

/// The queue that `spec` describes, before a link of 1 Mbit/s.
pub fn build(spec: &QueueSpec) -> AnyQueue<Probe> {
    spec.check().expect("the parameters can be run");
    spec.build(QueueContext {
        rate: Rate::from_bps(1_000_000),
        stream: Stream::named(1, 0, "queue"),
    })
}

/// The RED queue that `params` describe, before a link of 1 Mbit/s.
pub fn build_red(params: RedParams) -> AnyQueue<Probe> {
    build(&QueueSpec::Red(params))
}
