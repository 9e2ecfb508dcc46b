//! A packet that can be told from all others, and a sink that keeps what it is given.

pub mod examples;

use std::collections::VecDeque;
use std::sync::Arc;

use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, Rate, Span, Stream, Time};
use redtail_qdisc::plugin::{
    Actions, PacketId, PacketView, PluginContext, PluginError, PluginQueue,
};
use redtail_qdisc::queues::red::RedParams;
use redtail_qdisc::{
    AnyQueue, DropReason, FlowFacts, FlowTable, LinkFacts, Plugins, Protocol, QueueContext,
    QueueDiscipline, QueueParams, Sink, TcpHeader,
};

/// A packet with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub id: u64,
    pub size: u64,
    pub flow: u32,
    pub ecn: Ecn,
    pub dscp: Dscp,
    pub enqueued: Time,
}

impl Probe {
    pub fn new(id: u64, size: u64, ecn: Ecn) -> Self {
        Self {
            id,
            size,
            flow: 0,
            ecn,
            dscp: Dscp::BEST_EFFORT,
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
    fn dscp(&self) -> Dscp {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
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

/// Keeps what a queue reports. It is the only sink of the tests: the compiler makes all queues anew for each.
#[derive(Debug, Default)]
pub struct Heard {
    pub dropped: Vec<(Probe, DropReason, Time)>,
    pub marked: Vec<(Probe, Time)>,
    /// The header of each packet, by its number.
    pub headers: Option<Vec<Option<TcpHeader>>>,
}

impl Sink<Probe> for Heard {
    fn dropped(&mut self, packet: Probe, reason: DropReason, now: Time) {
        self.dropped.push((packet, reason, now));
    }
    fn marked(&mut self, packet: &Probe, now: Time) {
        self.marked.push((*packet, now));
    }
    /// Without other headers, packets of 40 B are acknowledgements, of all that came before, and so are those of flow 0.
    fn tcp_header(&self, packet: &Probe) -> Option<TcpHeader> {
        if let Some(headers) = &self.headers {
            return headers[packet.id as usize];
        }
        (packet.size == 40 || packet.flow == 0).then(|| TcpHeader {
            tuple: u64::from(packet.flow),
            flags: TcpHeader::ACK,
            ack: packet.id,
            ..TcpHeader::default()
        })
    }
}

/// The queue that `spec` describes, before a link of 1 Mbit/s.
pub fn build(spec: &QueueParams) -> AnyQueue<Probe> {
    build_on(spec, LinkFacts::of_rate(Rate::from_bps(1_000_000)))
}

/// The queue that `spec` describes, before this link.
pub fn build_on(spec: &QueueParams, link: LinkFacts) -> AnyQueue<Probe> {
    spec.check().expect("the parameters can be run");
    spec.check_at(&link).expect("they can be run on this link");
    spec.build(QueueContext {
        rate: link.rate,
        stream: Stream::named(1, 0, "queue"),
        link: Arc::new(link),
        plugins: plugins(),
    })
}

/// The RED queue that `params` describe, before a link of 1 Mbit/s.
pub fn build_red(params: RedParams) -> AnyQueue<Probe> {
    build(&QueueParams::Red(params))
}

/// A link that four flows cross: flow i of group "a", "b", "c" or "d", from port 1000 + i, the
/// odd ones UDP.
pub fn link_of_four(rate: Rate) -> LinkFacts {
    link_of_groups(["a", "b", "c", "d"], rate)
}

/// The same link with other names of the groups.
pub fn link_of_groups(names: [&str; 4], rate: Rate) -> LinkFacts {
    let flows = (0..4).map(|i| FlowFacts {
        group: i,
        protocol: match i % 2 {
            0 => Protocol::Tcp,
            _ => Protocol::Udp,
        },
        port: 1000 + i as u16,
        ..FlowFacts::default()
    });
    LinkFacts {
        flows: Arc::new(FlowTable::new(
            names.map(str::to_owned).to_vec(),
            flows.collect(),
        )),
        ..LinkFacts::of_rate(rate)
    }
}

/// What left, with the time at which its transmission began.
pub type Departures = Vec<(Time, Probe)>;

/// Puts `queue` before a link of this rate and lets `arrivals` come, in the engine's order
/// of simultaneous events, until `until`.
pub fn serve(
    queue: &mut AnyQueue<Probe>,
    arrivals: &[(Time, Probe)],
    rate: Rate,
    until: Time,
) -> Departures {
    let (mut sent, mut heard) = (Departures::new(), Heard::default());
    let mut arrivals = arrivals.iter().peekable();
    let mut free: Option<Time> = None;
    loop {
        let wakeup = queue.next_wakeup().time();
        let coming = arrivals.peek().map(|(at, _)| *at);
        let Some(now) = [free, coming, wakeup].into_iter().flatten().min() else {
            break;
        };
        if now > until {
            break;
        }
        if free == Some(now) {
            free = None;
        } else if coming == Some(now) {
            let (_, packet) = arrivals.next().expect("it was there");
            queue.enqueue(*packet, now, &mut heard);
        } else {
            queue.on_wakeup(now);
            let again = queue.next_wakeup().time();
            assert!(again.is_none_or(|at| at > now), "woken in vain");
        }
        if free.is_none()
            && let Some(packet) = queue.dequeue(now, &mut heard)
        {
            free = Some(now + rate.tx_time(packet.size()));
            sent.push((now, packet));
        }
    }
    assert!(
        heard.dropped.is_empty(),
        "the test's queues are large enough"
    );
    sent
}

/// The plug-ins that tests can name: a first-in first-out queue that keeps to its limit,
/// and the same as a shaper (`rate`), marking (`mark`), or dropping the oldest (`head`).
pub fn plugins() -> Plugins {
    Plugins::new().with("fifo", |params, context| {
        let param = |key: &str| params.params.get(key).and_then(|value| value.as_f64());
        Ok(Box::new(OwnFifo {
            context,
            waiting: VecDeque::new(),
            rate: param("rate"),
            mark: param("mark").is_some(),
            head: param("head").is_some(),
            free: Time::ZERO,
        }))
    })
}

struct OwnFifo {
    context: PluginContext,
    waiting: VecDeque<(PacketId, Bytes)>,
    rate: Option<f64>,
    mark: bool,
    head: bool,
    /// When the shaper may send again.
    free: Time,
}

impl PluginQueue for OwnFifo {
    fn enqueue(
        &mut self,
        packet: PacketView,
        _now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        let fits = |actions: &dyn Actions| {
            let limit = self.context.limit;
            limit.is_none_or(|limit| limit.admits(actions.backlog(), packet.size))
        };
        while self.head && !fits(actions) {
            let Some((oldest, _)) = self.waiting.pop_front() else {
                break;
            };
            actions.drop(oldest, DropReason::Limit)?;
        }
        if !fits(actions) {
            return actions.drop(packet.id, DropReason::Limit);
        }
        self.waiting.push_back((packet.id, packet.size));
        if self.mark {
            actions.mark(packet.id)?;
        }
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        if now < self.free {
            return Ok(None);
        }
        let next = self.waiting.pop_front();
        if let (Some(rate), Some((_, size))) = (self.rate, next) {
            self.free = now + Span::from_secs_f64(size.bits() as f64 / rate);
        }
        Ok(next.map(|(id, _)| id))
    }

    fn next_wakeup(&self, _now: Time) -> Result<Option<Time>, PluginError> {
        let waits = self.rate.is_some() && !self.waiting.is_empty();
        Ok(waits.then_some(self.free))
    }
}
