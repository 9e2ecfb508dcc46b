//! PI2: the controller of [`crate::laws::pi`] sets p', and the probability for classic senders is its
//! square.
//!
//! Source: K. De Schepper, O. Bondarenko, I.-J. Tsang and B. Briscoe, "PI2: A Linearized
//! AQM for both Classic and Scalable TCP", ACM CoNEXT 2016; the gains after RFC 9332,
//! appendix A.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | d, d_old | delay of the packet at the head, at this update and at the one before | s |
//! | p' | probability of the controller | 1 |
//! | k | coupling of scalable senders | 1 |
//!
//! ```text
//! every T = min(target, RTT_max / 3):  p' <- p' + alpha (d - target) + beta (d - d_old)
//! alpha = 0.1 T / RTT_max^2,  beta = 0.3 / RTT_max
//! classic arrival:  drop or mark with p'^2: if the greater of two random numbers is below p'
//! scalable arrival (ECT(1) or CE, if k is given):  mark with min(1, k p')
//! ```
//!
//! A classic window is in proportion to 1/sqrt(p). So the square makes the loop linear in p', and one pair
//! of gains is enough for all loads, without PIE's auto-tuning.

use redtail_core::{Ecn, Packet, ParamError, ParamWarning, Span, Stream, Time, params};

use super::pie::short_target;
use crate::fifo::Fifo;
use crate::laws::pi::{PiConfig, PiLaw};
use crate::refuse;
use crate::signal::{Ticks, mark_or_drop};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// PI with a squared output (De Schepper et al. 2016).
    pub struct Pi2Params {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Queueing delay to hold.
        target: Span = Span::from_ms(15), "RFC 9332, appendix A.1.";
        /// Longest round-trip time for which the loop must be stable: `update`, `alpha` and `beta` are computed from it.
        rtt_max: Span = RTT_MAX, "RFC 9332, appendix A.1.";
        /// Time between updates, at least "1 us". Without it the smaller of `target` and a third of `rtt_max` (RFC 9332, appendix A.1).
        update: Option<Span>;
        /// Gain of the deviation from the target, in 1/s. Without it 0.1 `update` divided by the square of `rtt_max` (RFC 9332, appendix A.1).
        alpha: Option<f64>;
        /// Gain of the delay's change, in 1/s. Without it 0.3 divided by `rtt_max` (RFC 9332, appendix A.1).
        beta: Option<f64>;
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = false, "De Schepper et al. 2016, section 5; off as everywhere here.";
        /// With `ecn`, mark ECT(1) packets with p' times this factor, for scalable senders; without this key ECT(1) packets are treated as classic.
        coupling: Option<f64>;
    }
}

/// The value of `rtt_max` if it is not given.
pub(super) const RTT_MAX: Span = Span::from_ms(100);

/// Returns the time between updates and the gains; values that are not given are computed as in RFC 9332,
/// appendix A.1.
pub(super) fn derived(
    target: Span,
    rtt_max: Span,
    update: Option<Span>,
    alpha: Option<f64>,
    beta: Option<f64>,
) -> (Span, PiConfig) {
    let update = update.unwrap_or_else(|| target.min(rtt_max / 3));
    let rtt = rtt_max.as_secs_f64();
    let config = PiConfig {
        reference: target.as_secs_f64(),
        integral: alpha.unwrap_or_else(|| 0.1 * update.as_secs_f64() / (rtt * rtt)),
        proportional: beta.unwrap_or(0.3 / rtt),
    };
    (update, config)
}

/// Refuses values with which [`derived`] cannot compute.
pub(super) fn check_derived(
    target: Span,
    rtt_max: Span,
    update: Option<Span>,
    alpha: Option<f64>,
    beta: Option<f64>,
) -> Result<(), ParamError> {
    refuse::unless_some_time("target", target)?;
    refuse::unless_some_time("rtt_max", rtt_max)?;
    if let Some(update) = update {
        refuse::unless_some_interval("update", update)?;
    } else {
        let (update, _) = derived(target, rtt_max, None, alpha, beta);
        let key = if update == target {
            "target"
        } else {
            "rtt_max"
        };
        refuse::unless_some_interval(key, update)?;
    }
    if let Some(alpha) = alpha {
        refuse::unless_positive("alpha", alpha)?;
    }
    if let Some(beta) = beta {
        refuse::unless_positive("beta", beta)?;
    }
    Ok(())
}

impl QueueKind for Pi2Params {
    type Queue<P: Packet> = Pi2<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_derived(
            self.target,
            self.rtt_max,
            self.update,
            self.alpha,
            self.beta,
        )?;
        if let Some(coupling) = self.coupling {
            refuse::unless_positive("coupling", coupling)?;
            if !self.ecn {
                let problem = "is for marks, and ecn is off";
                return Err(ParamError::new("coupling", problem, "ecn = true with it"));
            }
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        short_target(self.target, link).into_iter().collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Pi2<P> {
        let (update, config) = derived(
            self.target,
            self.rtt_max,
            self.update,
            self.alpha,
            self.beta,
        );
        Pi2 {
            limit: self.limit.at(context.rate),
            ecn: self.ecn,
            coupling: self.coupling,
            law: PiLaw::new(config),
            ticks: Ticks::every(update),
            stream: context.stream,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Pi2<P> {
    limit: Limit,
    ecn: bool,
    coupling: Option<f64>,
    /// The controller of p'.
    law: PiLaw,
    ticks: Ticks,
    stream: Stream,
    fifo: Fifo<P>,
}

impl<P: Packet> Pi2<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while let Some(tick) = self.ticks.due(now) {
            let delay = self.fifo.sojourn(tick).as_secs_f64();
            self.law.update(delay);
            if self.fifo.front().is_none() && self.law.rests_at(0.0) {
                self.ticks.skip(now);
            }
        }
    }

    /// Whether the arrival is to be marked or dropped.
    #[inline]
    fn picks(&mut self, packet: &P) -> bool {
        // The packet in transmission is not in the queue: with one waiting packet there are two.
        if self.fifo.front().is_none() {
            return false;
        }
        let base = self.law.probability();
        if base == 0.0 {
            return false;
        }
        match (self.coupling, packet.ecn()) {
            (Some(coupling), Ecn::Ect1 | Ecn::Ce) => self.stream.uniform() < coupling * base,
            _ => self.stream.uniform() < base && self.stream.uniform() < base,
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Pi2<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let packet = if self.picks(&packet) {
            mark_or_drop(packet, self.ecn, DropReason::Early, now, sink)
        } else {
            Some(packet)
        };
        if let Some(packet) = packet {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the delay of the latest update, in seconds; `probability` is that of a classic packet,
    /// p'^2.
    fn internals(&self) -> Internals {
        let base = self.law.probability();
        Internals {
            average: Some(self.law.old()),
            probability: Some(base * base),
        }
    }
}
