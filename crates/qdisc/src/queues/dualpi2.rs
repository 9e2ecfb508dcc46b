//! DualPI2: a low-latency queue for scalable senders and a queue for classic senders, with coupled
//! probabilities.
//!
//! Source: K. De Schepper, B. Briscoe and G. White, "Dual-Queue Coupled Active Queue
//! Management (AQM) for Low Latency, Low Loss, and Scalable Throughput (L4S)", RFC 9332:
//! section 2 and the pseudo-code of appendix A (A.1; overload: A.2). With `flavour = "linux"`,
//! net/sched/sch_dualpi2.c of Linux (6.17; read at commit 92b9c2b7a88c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | L, C | the low-latency queue (ECT(1), CE) and the classic one (not-ECT, ECT(0)) | |
//! | d | the longer delay of the packets at the heads of L and C | s |
//! | p' | the probability of the controller of [`crate::laws::pi`] | 1 |
//! | k | coupling | 1 |
//! | p_C | classic drop or mark probability: p'^2 | 1 |
//! | p_CL | coupled mark probability of L: k p' | 1 |
//! | p'_L | L's own mark probability: a ramp over the delay of its packet | 1 |
//!
//! ```text
//! every T = min(target, RTT_max / 3):  p' <- p' + alpha (d - target) + beta (d - d_old)
//! a packet leaves L:  p'_L = 0 up to min_th, or if it leaves alone (Th_len); 1 from
//!                     min_th + range on; linear in between; marked with max(p'_L, p_CL)
//! a packet leaves C:  marked, or dropped if not-ECT, with p_C
//! overload: from p_C >= p_Cmax = min(1, 1/k^2) on, C drops ECT as well; from p_CL >= 1
//!           on, L drops with p_C and marks what is left with p_CL
//! recur:    "with p" is not random: p is summed over packets; a packet with which the sum exceeds 1
//!           is chosen, and 1 is subtracted from the sum
//! ```
//!
//! | | RFC 9332 | Linux |
//! |---|---|---|
//! | T, alpha, beta | from target and RTT_max: 15 ms, 0.15 /s, 3 /s | 16 ms, 41/256 /s, 819/256 /s |
//! | "with p" | `recur` | a random number for each packet, two for p'^2 |
//! | coupling | as above | none while less than two full packets stay in both queues |
//! | L's own marks | max(p'_L, p_CL), a ramp from 0.8 to 1.2 ms | in addition to p_CL, for packets with a
//! delay of more than 1 ms |
//! | a packet that leaves alone | not marked by p'_L | marked (`min_qlen_step` is 0) |
//! | overload | from p_CL = 1 on | above it |
//! | weight of C | 1/16 | 1/10; dropped packets do not use a turn |
//! | limit | 250 ms | 10,000 packets |
//!
//! **The scheduler** (the RFC does not specify one): with `"wrr"`, L has priority, but C gets at least
//! `classic_share` of the bytes while packets wait in both queues. With `"time-shifted"`, the packet that
//! has waited longer is next, and `time_shift` is added to the delay of packets in L.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Ecn, Metric, Packet, ParamError, ParamWarning, Span, Stream, Time, metrics, params, schemars,
    serde,
};

use super::pi2::{RTT_MAX, check_derived, derived};
use super::pie::short_target;
use crate::fifo::Fifo;
use crate::gauge;
use crate::laws::pi::{PiConfig, PiLaw};
use crate::laws::pie::Flavour;
use crate::refuse;
use crate::signal::{Ticks, mark_or_drop};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Report, Sink,
};

params! {
    /// Dual-queue coupled AQM with PI2 (RFC 9332).
    pub struct DualPi2Params {
        /// Which implementation's details and defaults apply where RFC 9332 and Linux differ: those of the RFC or those of Linux.
        flavour: Flavour = Flavour::Rfc, "RFC 9332; Linux's for comparisons with it.";
        /// Limit on the waiting packets of both queues together: in packets, in bytes, in time at the link's rate, or a list of these. Without it 250 ms (RFC 9332, appendix A.1), 10,000 packets in Linux.
        limit: Option<Limit>;
        /// Queueing delay to hold in the classic queue.
        target: Span = Span::from_ms(15), "RFC 9332, appendix A.1.";
        /// Longest round-trip time for which the loop must be stable: `update`, `alpha` and `beta` are computed from it. Without it 100 ms (RFC 9332, appendix A.1); Linux has none.
        rtt_max: Option<Span>;
        /// Time between updates, at least "1 us". Without it the smaller of `target` and a third of `rtt_max` (RFC 9332, appendix A.1), 16 ms in Linux.
        update: Option<Span>;
        /// Gain of the deviation from the target, in 1/s. Without it 0.1 `update` divided by the square of `rtt_max` (RFC 9332, appendix A.1), 41/256 in Linux.
        alpha: Option<f64>;
        /// Gain of the delay's change, in 1/s. Without it 0.3 divided by `rtt_max` (RFC 9332, appendix A.1), 819/256 in Linux.
        beta: Option<f64>;
        /// Mark probability of the low-latency queue divided by the square root of the classic drop probability.
        coupling: f64 = 2.0, "RFC 9332, appendix A.1 (k).";
        /// Queueing delay above which the low-latency queue marks packets by its own ramp. Without it 800 us (RFC 9332, appendix A.1, minTh), 1 ms in Linux (`step_thresh`).
        min_th: Option<Span>;
        /// Width of the ramp above `min_th`, over which the mark probability of the low-latency queue rises to 1; "0 s" makes a step. Without it 400 us (RFC 9332, appendix A.1, range), a step in Linux.
        range: Option<Span>;
        /// The ramp marks no packet while the low-latency queue has no more than this number of packets, the leaving one included. Without it 1 (RFC 9332, appendix A.1, Th_len), 0 in Linux (`min_qlen_step`).
        th_len: Option<u64>;
        /// Which queue is served next while packets wait in both.
        scheduler: DualScheduler = DualScheduler::Wrr, "Linux (`sch_dualpi2`); RFC 9332 leaves it open.";
        /// For `scheduler = "wrr"`: smallest share of the bytes for the classic queue while packets wait in both. Without it 1/16 (RFC 9332, its example of a weighted round robin), 0.1 in Linux (`c_protection_wc`).
        classic_share: Option<f64>;
        /// For `scheduler = "time-shifted"`: time that is added to the queueing delay of the low-latency queue. Without it twice `target`, as in the first implementation for Linux.
        time_shift: Option<Span>;
    }
}

/// Which queue is served next while packets wait in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum DualScheduler {
    /// Weighted round robin: the low-latency queue, except for the classic queue's share of the bytes.
    #[default]
    Wrr,
    /// The queue whose packet has waited longer; `time_shift` is added to the time of the low-latency queue.
    TimeShifted,
}

/// Linux's defaults (`dualpi2_reset_default`); alpha and beta are in its units of 1/256 Hz.
const LINUX_UPDATE: Span = Span::from_ms(16);
const LINUX_ALPHA: f64 = 41.0 / 256.0;
const LINUX_BETA: f64 = 819.0 / 256.0;

/// The defaults of a flavour.
struct Defaults {
    limit: Limit,
    min_th: Span,
    range: Span,
    th_len: u64,
    classic_share: f64,
}

impl DualPi2Params {
    fn defaults(&self) -> Defaults {
        match self.flavour {
            Flavour::Rfc => Defaults {
                limit: Limit {
                    packets: None,
                    bytes: None,
                    time: Some(Span::from_ms(250)),
                },
                min_th: Span::from_us(800),
                range: Span::from_us(400),
                th_len: 1,
                classic_share: 1.0 / 16.0,
            },
            Flavour::Linux => Defaults {
                limit: Limit::packets(10_000),
                min_th: Span::from_ms(1),
                range: Span::ZERO,
                th_len: 0,
                classic_share: 0.1,
            },
        }
    }

    fn effective_limit(&self) -> Limit {
        self.limit.unwrap_or_else(|| self.defaults().limit)
    }

    fn min_th(&self) -> Span {
        self.min_th.unwrap_or_else(|| self.defaults().min_th)
    }

    fn range(&self) -> Span {
        self.range.unwrap_or_else(|| self.defaults().range)
    }

    fn classic_share(&self) -> f64 {
        let given = self.classic_share;
        given.unwrap_or_else(|| self.defaults().classic_share)
    }

    /// Returns the time between updates, and the parameters of the controller.
    fn controller(&self) -> (Span, PiConfig) {
        let (update, alpha, beta) = match self.flavour {
            Flavour::Rfc => (self.update, self.alpha, self.beta),
            Flavour::Linux => (
                self.update.or(Some(LINUX_UPDATE)),
                self.alpha.or(Some(LINUX_ALPHA)),
                self.beta.or(Some(LINUX_BETA)),
            ),
        };
        let rtt_max = self.rtt_max.unwrap_or(RTT_MAX);
        derived(self.target, rtt_max, update, alpha, beta)
    }

    /// Refuses parameters that `sch_dualpi2` does not have.
    fn check_linux(&self) -> Result<(), ParamError> {
        let refuse = |key: &'static str, accepted: &str| {
            let problem = "is not in Linux, whose details were asked for";
            Err(ParamError::new(key, problem, accepted))
        };
        if self.rtt_max.is_some() {
            return refuse("rtt_max", "update, alpha and beta");
        }
        if self.range.is_some_and(|range| range > Span::ZERO) {
            return refuse("range", "\"0 s\"");
        }
        // The kernel compares with the queue that a packet finds.
        if self.th_len.is_some_and(|packets| packets > 0) {
            return refuse("th_len", "0");
        }
        if self.scheduler != DualScheduler::Wrr {
            return refuse("scheduler", "\"wrr\"");
        }
        Ok(())
    }
}

metrics! {
    /// The metrics of the L queue, in the order of `Tally::report`.
    pub const OF_L_QUEUE of Queue;

    /// Mean queueing delay of the packets that left the L queue in the period.
    L_DELAY_MEAN = "l_delay_mean", Delay, "Mean queueing delay, L queue", "L delay";
    /// Longest queueing delay of a packet that left the L queue in the period.
    L_DELAY_MAX = "l_delay_max", Delay, "Longest queueing delay, L queue", "L delay max";
    /// Packets that the L queue marked, divided by its departures.
    L_MARK = "l_mark", Fraction, "Packets marked, L queue", "L marked";
    /// Packets that the L queue dropped, divided by the sum of its departures and drops.
    L_LOSS = "l_loss", Fraction, "Packets lost, L queue", "L loss";
}

metrics! {
    /// The metrics of the C queue, in the order of `Tally::report`.
    pub const OF_C_QUEUE of Queue;

    /// Mean queueing delay of the packets that left the C queue in the period.
    C_DELAY_MEAN = "c_delay_mean", Delay, "Mean queueing delay, C queue", "C delay";
    /// Longest queueing delay of a packet that left the C queue in the period.
    C_DELAY_MAX = "c_delay_max", Delay, "Longest queueing delay, C queue", "C delay max";
    /// Packets that the C queue marked, divided by its departures.
    C_MARK = "c_mark", Fraction, "Packets marked, C queue", "C marked";
    /// Packets that the C queue dropped, divided by the sum of its departures and drops.
    C_LOSS = "c_loss", Fraction, "Packets lost, C queue", "C loss";
}

impl QueueKind for DualPi2Params {
    type Queue<P: Packet> = DualPi2<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_L_QUEUE, OF_C_QUEUE];

    fn example() -> &'static str {
        ""
    }

    fn check(&self) -> Result<(), ParamError> {
        self.effective_limit().check()?;
        check_derived(
            self.target,
            self.rtt_max.unwrap_or(RTT_MAX),
            self.update,
            self.alpha,
            self.beta,
        )?;
        if self.flavour == Flavour::Linux {
            self.check_linux()?;
        }
        refuse::unless_positive("coupling", self.coupling)?;
        if !(self.classic_share() > 0.0 && self.classic_share() < 1.0) {
            let accepted = "a number above 0 and below 1";
            let problem = "would starve one of the queues";
            return Err(ParamError::new("classic_share", problem, accepted));
        }
        if self.scheduler == DualScheduler::Wrr && self.time_shift.is_some() {
            let problem = "is for scheduler = \"time-shifted\"";
            return Err(ParamError::new(
                "time_shift",
                problem,
                "scheduler = \"time-shifted\"",
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.effective_limit())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings: Vec<_> = short_target(self.target, link).into_iter().collect();
        if self.min_th() + self.range() >= self.target {
            let clause = "and range let the low-latency queue wait as long as the classic one";
            warnings.push(ParamWarning::new("min_th", clause));
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> DualPi2<P> {
        let (update, config) = self.controller();
        let linux = self.flavour == Flavour::Linux;
        let full_packet = gauge::packet_size(None, &context.link).as_u64();
        let packet = full_packet as f64;
        let scheduler = match self.scheduler {
            DualScheduler::Wrr => Scheduler::Wrr {
                share: self.classic_share(),
                start: packet * (2.0 * self.classic_share() - 1.0),
                credit: packet * (2.0 * self.classic_share() - 1.0),
            },
            DualScheduler::TimeShifted => {
                Scheduler::TimeShifted(self.time_shift.unwrap_or(self.target * 2))
            }
        };
        DualPi2 {
            limit: self.effective_limit().at(context.rate),
            coupling: self.coupling,
            min_th: self.min_th(),
            range: self.range(),
            th_len: self.th_len.unwrap_or_else(|| self.defaults().th_len),
            chance: linux.then_some(context.stream),
            least: 2 * full_packet,
            scheduler,
            owed: 0.0,
            law: PiLaw::new(config),
            ticks: Ticks::every(update),
            low: Half::default(),
            classic: Half::default(),
        }
    }
}

/// The sum of likelihoods of `recur` (RFC 9332, appendix A.1).
#[derive(Clone, Copy, Debug, Default)]
struct Recur(f64);

impl Recur {
    #[inline]
    fn with(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let chosen = self.0 > 1.0;
        if chosen {
            self.0 -= 1.0;
        }
        chosen
    }
}

/// Counters of the packets of one queue since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    departures: u64,
    waited: f64,
    longest: Span,
    marks: u64,
    drops: u64,
}

impl Tally {
    fn report(&self, metrics: &[&'static Metric], report: &mut Report<'_>) {
        let &[mean, longest, mark, drop] = metrics else {
            unreachable!("each queue has four metrics");
        };
        let left = self.departures as f64;
        if self.departures > 0 {
            report.tell(mean, self.waited / left);
            report.tell(longest, self.longest.as_secs_f64());
            report.tell(mark, self.marks as f64 / left);
        }
        if self.departures + self.drops > 0 {
            report.tell(drop, self.drops as f64 / (left + self.drops as f64));
        }
    }
}

/// One of the two queues.
#[derive(Debug)]
struct Half<P> {
    fifo: Fifo<P>,
    mark: Recur,
    drop: Recur,
    tally: Tally,
}

impl<P: Packet> Default for Half<P> {
    fn default() -> Self {
        Self {
            fifo: Fifo::new(),
            mark: Recur::default(),
            drop: Recur::default(),
            tally: Tally::default(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Scheduler {
    Wrr {
        share: f64,
        /// The credit at a time when both queues were empty.
        start: f64,
        /// The bytes that the classic queue should have sent and has not, by weight.
        credit: f64,
    },
    TimeShifted(Span),
}

/// The decision about a leaving packet.
enum Fate {
    Pass,
    Mark,
    Drop,
}

/// The running queues.
#[derive(Debug)]
pub struct DualPi2<P> {
    limit: Limit,
    coupling: f64,
    min_th: Span,
    range: Span,
    th_len: u64,
    /// The random stream for Linux's decisions; the RFC sums likelihoods instead.
    chance: Option<Stream>,
    /// Linux does not couple the queues while fewer bytes than this stay in both.
    least: u64,
    scheduler: Scheduler,
    /// The change of the scheduler's credit by the latest choice.
    owed: f64,
    /// The controller of p'.
    law: PiLaw,
    ticks: Ticks,
    low: Half<P>,
    classic: Half<P>,
}

impl<P: Packet> DualPi2<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while let Some(tick) = self.ticks.due(now) {
            let delay = self
                .low
                .fifo
                .sojourn(tick)
                .max(self.classic.fifo.sojourn(tick));
            self.law.update(delay.as_secs_f64());
            let empty = self.low.fifo.front().is_none() && self.classic.fifo.front().is_none();
            if empty && self.law.rests_at(0.0) {
                self.ticks.skip(now);
            }
        }
    }

    /// Returns p_C, the classic probability.
    #[inline]
    fn classic_probability(&self) -> f64 {
        let base = self.law.probability();
        base * base
    }

    /// Chooses the queue of the next packet: whether it is the low-latency queue. `None` if both are empty.
    #[inline]
    fn low_is_next(&mut self, now: Time) -> Option<bool> {
        self.owed = 0.0;
        let (low, classic) = (self.low.fifo.front(), self.classic.fifo.front());
        let (Some(low), Some(classic)) = (low, classic) else {
            if let (None, None, Scheduler::Wrr { start, credit, .. }) =
                (low, classic, &mut self.scheduler)
            {
                *credit = *start;
                return None;
            }
            return (low.is_some() || classic.is_some()).then_some(low.is_some());
        };
        Some(match &mut self.scheduler {
            Scheduler::Wrr { share, credit, .. } => {
                let low_next = *credit <= 0.0;
                self.owed = if low_next {
                    *share * low.size().as_u64() as f64
                } else {
                    (*share - 1.0) * classic.size().as_u64() as f64
                };
                *credit += self.owed;
                low_next
            }
            Scheduler::TimeShifted(shift) => {
                self.low.fifo.sojourn(now) + *shift >= self.classic.fifo.sojourn(now)
            }
        })
    }

    /// Decides about a packet that has been removed from either queue, as Linux does
    /// (`dualpi2_qdisc_dequeue`, `must_drop` and `do_step_aqm`).
    fn linux_fate(&mut self, low: bool, wait: Span) -> Fate {
        let left = self.low.fifo.backlog().bytes + self.classic.fifo.backlog().bytes;
        let stream = self.chance.as_mut().expect("only Linux asks");
        let base = self.law.probability();
        let mut roll = |p: f64| stream.uniform() < p;
        let mut fate = Fate::Pass;
        if left >= self.least {
            let coupled = self.coupling * base;
            let overload = coupled > 1.0;
            fate = match low {
                false if roll(base) && roll(base) => match overload {
                    true => Fate::Drop,
                    false => Fate::Mark,
                },
                false => Fate::Pass,
                true if overload && roll(base) && roll(base) => Fate::Drop,
                true if overload || roll(coupled) => Fate::Mark,
                true => Fate::Pass,
            };
        }
        match fate {
            Fate::Pass if low && wait > self.min_th => Fate::Mark,
            fate => fate,
        }
    }

    /// Decides about a packet that leaves L with a delay of `wait` (appendix A.1 and A.2).
    #[inline]
    fn low_fate(&mut self, wait: Span) -> Fate {
        let coupled = self.coupling * self.law.probability();
        if coupled < 1.0 {
            // The packet has been removed from the store, but still belongs to the queue.
            let alone = self.low.fifo.backlog().packets < self.th_len;
            let native = if alone || wait <= self.min_th {
                0.0
            } else if wait >= self.min_th + self.range {
                1.0
            } else {
                (wait - self.min_th).as_secs_f64() / self.range.as_secs_f64()
            };
            return if self.low.mark.with(native.max(coupled)) {
                Fate::Mark
            } else {
                Fate::Pass
            };
        }
        let classic = self.classic_probability();
        if self.low.drop.with(classic) {
            Fate::Drop
        } else if self.low.mark.with(1.0) {
            Fate::Mark
        } else {
            Fate::Pass
        }
    }

    /// Decides about a packet that leaves C (appendix A.1 and A.2).
    #[inline]
    fn classic_fate(&mut self) -> Fate {
        let probability = self.classic_probability();
        let most = (1.0 / (self.coupling * self.coupling)).min(1.0);
        match self.classic.drop.with(probability) {
            false => Fate::Pass,
            true if probability >= most => Fate::Drop,
            true => Fate::Mark,
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for DualPi2<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        let half = match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::NotEct | Ecn::Ect0 => false,
        };
        let fits = self.limit.admits(self.backlog(), packet.size());
        let half = if half {
            &mut self.low
        } else {
            &mut self.classic
        };
        if fits {
            half.fifo.push(packet, now);
        } else {
            half.tally.drops += 1;
            sink.dropped(packet, DropReason::Limit, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        while let Some(low) = self.low_is_next(now) {
            let half = if low {
                &mut self.low
            } else {
                &mut self.classic
            };
            let packet = half.fifo.pop()?;
            let wait = now - packet.enqueued();
            let fate = if self.chance.is_some() {
                self.linux_fate(low, wait)
            } else if low {
                self.low_fate(wait)
            } else {
                self.classic_fate()
            };
            let half = if low {
                &mut self.low
            } else {
                &mut self.classic
            };
            let packet = match fate {
                Fate::Pass => Some(packet),
                Fate::Drop => {
                    sink.dropped(packet, DropReason::Early, now);
                    None
                }
                Fate::Mark => {
                    let packet = mark_or_drop(packet, true, DropReason::Early, now, sink);
                    half.tally.marks += u64::from(packet.is_some());
                    packet
                }
            };
            let Some(packet) = packet else {
                half.tally.drops += 1;
                if let (Some(_), Scheduler::Wrr { credit, .. }) =
                    (&self.chance, &mut self.scheduler)
                {
                    *credit -= self.owed;
                }
                continue;
            };
            half.tally.departures += 1;
            half.tally.waited += wait.as_secs_f64();
            half.tally.longest = half.tally.longest.max(wait);
            return Some(packet);
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (low, classic) = (self.low.fifo.backlog(), self.classic.fifo.backlog());
        Backlog {
            packets: low.packets + classic.packets,
            bytes: low.bytes + classic.bytes,
        }
    }

    /// `average` is the delay of the latest update, in seconds; `probability` is p_C.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.law.old()),
            probability: Some(self.classic_probability()),
        }
    }

    fn start_measuring(&mut self, _now: Time) {
        self.low.tally = Tally::default();
        self.classic.tally = Tally::default();
    }

    fn report(&self, _now: Time, report: &mut Report<'_>) {
        self.low.tally.report(OF_L_QUEUE, report);
        self.classic.tally.report(OF_C_QUEUE, report);
    }
}
