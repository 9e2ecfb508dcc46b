//! REM: random exponential marking by a price.
//!
//! Source: S. Athuraliya, V. H. Li, S. H. Low and Q. Yin, "REM: Active Queue Management",
//! IEEE Network 15(3), 2001; details after ns-2.35, queue/rem.cc: ECN-capable packets are
//! marked when they leave, others dropped when they arrive.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | b, b* | backlog and its target | packets |
//! | x | arrivals in one interval | packets |
//! | c | packets that the link can send in one interval | packets |
//! | price | price of the link for its load | 1 |
//! | alpha, gamma, phi | weight of the backlog, step of the price, base | 1 |
//!
//! ```text
//! every T:  price <- max(0, price + gamma (alpha (b - b*) + x - c))
//! p = 1 - phi^-price
//! ```
//!
//! The price is constant when x = c and b = b*: in equilibrium it depends on the load, not on the backlog.

use redtail_core::{
    Bytes, Ecn, Packet, ParamError, ParamWarning, QueueSize, Sampling, Span, Stream, Time, params,
};

use crate::fifo::Fifo;
use crate::gauge::{self, Gauge};
use crate::refuse;
use crate::signal::Ticks;
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// Random exponential marking (Athuraliya, Li, Low and Yin 2001).
    pub struct RemParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Backlog to hold, in packets, bytes or time at the link's rate.
        target: QueueSize = QueueSize::Packets(20), "ns-2.35, ns-default.tcl (`pbo_` 20).";
        /// Step of the price.
        gamma: f64 = 0.001, "Athuraliya et al. 2001; ns-2.35 (`gamma_`).";
        /// Weight of the backlog's deviation relative to that of the rate.
        alpha: f64 = 0.1, "Athuraliya et al. 2001; ns-2.35, queue/rem.cc (0.1).";
        /// Base phi of the probability 1 - phi^-price.
        phi: f64 = 1.001, "Athuraliya et al. 2001; ns-2.35 (`phi_`).";
        /// How often the price is updated: a frequency or the time between updates.
        sampling: Sampling = Sampling::Interval(Span::from_ms(2)), "ns-2.35, ns-default.tcl (`pupdtime_`).";
        /// Typical packet size, to express the link's rate in packets. Without it, the largest packet that is known to cross the link, else 1500 B.
        mean_packet: Option<Bytes>;
        /// Mark ECN-capable packets as they leave instead of dropping them as they arrive.
        ecn: bool = false, "off as in ns-2.35 (`markpkts_`).";
    }
}

impl QueueKind for RemParams {
    type Queue<P: Packet> = Rem<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets"
target = "20 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_some_size("target", self.target)?;
        refuse::unless_positive("gamma", self.gamma)?;
        refuse::unless_positive("alpha", self.alpha)?;
        if !(self.phi > 1.0 && self.phi.is_finite()) {
            let problem = "is not above 1, so a price would mean nothing";
            return Err(ParamError::new("phi", problem, "a number above 1"));
        }
        refuse::unless_some_sampling("sampling", self.sampling)?;
        refuse::unless_some_packet("mean_packet", self.mean_packet)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        gauge::out_of_reach("target", self.target, self.limit, link.rate)
            .into_iter()
            .collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Rem<P> {
        let packet = gauge::packet_size(self.mean_packet, &context.link);
        let gauge = Gauge::like(self.target, packet);
        let interval = self.sampling.interval().expect("checked: it has one");
        Rem {
            limit: self.limit.at(context.rate),
            gauge,
            target: gauge.of(self.target, context.rate),
            gamma: self.gamma,
            alpha: self.alpha,
            phi: self.phi,
            capacity: context.rate.bytes_in(interval) / packet.as_u64() as f64,
            ecn: self.ecn,
            arrived: 0.0,
            price: 0.0,
            probability: 0.0,
            ticks: Ticks::every(interval),
            stream: context.stream,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Rem<P> {
    limit: Limit,
    gauge: Gauge,
    target: f64,
    gamma: f64,
    alpha: f64,
    phi: f64,
    /// The capacity c of one interval, in packets.
    capacity: f64,
    ecn: bool,
    /// The arrivals x so far in this interval, in packets.
    arrived: f64,
    price: f64,
    probability: f64,
    ticks: Ticks,
    stream: Stream,
    fifo: Fifo<P>,
}

impl<P: Packet> Rem<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let backlog = self.gauge.read(self.fifo.backlog());
        while self.ticks.due(now).is_some() {
            let arrived = std::mem::take(&mut self.arrived);
            let excess = self.alpha * (backlog - self.target) + arrived - self.capacity;
            self.price = (self.price + self.gamma * excess).max(0.0);
            self.probability = 1.0 - libm::pow(self.phi, -self.price);
            if self.price == 0.0 && self.alpha * (backlog - self.target) <= self.capacity {
                self.ticks.skip(now);
            }
        }
    }

    #[inline]
    fn picks(&mut self) -> bool {
        self.probability > 0.0 && self.stream.uniform() < self.probability
    }
}

impl<P: Packet> QueueDiscipline<P> for Rem<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        self.arrived += self.gauge.one(packet.size());
        let to_be_marked = self.ecn && packet.ecn() != Ecn::NotEct;
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
        } else if !to_be_marked && self.picks() {
            sink.dropped(packet, DropReason::Early, now);
        } else {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        let mut packet = self.fifo.pop()?;
        let to_be_marked = self.ecn && packet.ecn() != Ecn::NotEct;
        if to_be_marked && self.picks() && packet.mark_ce() {
            sink.marked(&packet, now);
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the price.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.price),
            probability: Some(self.probability),
        }
    }
}
