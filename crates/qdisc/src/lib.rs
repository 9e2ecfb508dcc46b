//! Queue disciplines.
//!
//! A discipline is told of arrivals and asked for departures; it never reads a
//! clock, never does I/O, and does not know whether it is simulated or live.
//! Control laws (`laws`) turn what a queue observes into pass, mark or drop;
//! queues (`queues`) hold packets and consult a law.
//!
//! Adding a discipline: one file in `queues`, one line in the `disciplines!`
//! list below, one line in the conformance list (`tests/it/conformance.rs`), one
//! page in `docs/queues`.

pub mod advise;
pub mod class;
pub mod classify;
pub mod facts;
pub mod fifo;
pub mod figures;
pub mod fq;
pub mod gauge;
pub mod header;
pub mod laws;
pub mod limit;
pub mod plugin;
pub mod queues;
mod refuse;
pub mod signal;

pub use facts::{FlowFacts, FlowTable, GroupFacts, GroupTraffic, LinkFacts, Protocol};
pub use figures::{FigureNames, Report};
pub use header::TcpHeader;
pub use limit::Limit;
pub use plugin::Plugins;
use std::sync::Arc;

use redtail_core::{Metric, Packet, ParamError, ParamWarning, Rate, Stream, Time, kinded};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The packet would have exceeded the queue's limit.
    Limit,
    /// A control law chose it, below the point where it drops everything.
    Early,
    /// A control law drops everything (RED with its average above max_th).
    Forced,
    /// A later acknowledgement says what this one says (CAKE's ACK filter).
    Redundant,
}

/// Where a queue hands what it refuses and reports what it marks, and asks what its packets
/// carry.
///
/// Together with `enqueue`, `dequeue` and `backlog` this makes conservation
/// checkable: packets in = packets out + dropped + backlog.
pub trait Sink<P> {
    /// The queue dropped `packet`.
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time);
    /// The queue set CE on `packet`, which it keeps or is about to deliver.
    fn marked(&mut self, packet: &P, now: Time);
    /// The TCP header of `packet`, which has joined the queue. `None` if it has none, or where
    /// headers are not known.
    fn tcp_header(&self, _packet: &P) -> Option<TcpHeader> {
        None
    }
}

/// What waits in a queue. The packet in transmission has left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Waiting packets.
    pub packets: u64,
    /// Their total size on the link, in bytes.
    pub bytes: u64,
}

/// How a queue stands after a packet has come or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// What waits.
    pub backlog: Backlog,
    /// When `on_wakeup` is to be called next, if at all.
    pub wakeup: Option<Time>,
}

/// A control law's state, for time series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Internals {
    /// The average the law acts on, in the unit of its thresholds
    /// (packets or bytes); `None` for a law without one.
    pub average: Option<f64>,
    /// Its current drop or mark probability; `None` for a law without one.
    pub probability: Option<f64>,
}

/// A queue discipline. Calls come with non-decreasing `now`.
pub trait QueueDiscipline<P: Packet> {
    /// Takes `packet`: it is queued, or handed to `sink` as dropped. Another
    /// packet may be dropped in its place.
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>);

    /// The next packet to transmit. `None` means that nothing may leave now;
    /// the link then stays idle until the next arrival or `next_wakeup`.
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P>;

    /// When `on_wakeup` is to be called next, if at all.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Called at the time `next_wakeup` gave.
    fn on_wakeup(&mut self, _now: Time) {}

    /// The packet that `dequeue` will give next, whatever comes meanwhile and whenever it
    /// is called; `None` where that is not certain. A queue around this one then need not
    /// take the packet out to see its size.
    fn front(&self) -> Option<&P> {
        None
    }

    /// What waits now.
    fn backlog(&self) -> Backlog;

    /// The control law's state, for time series.
    fn internals(&self) -> Internals {
        Internals::default()
    }

    /// The measurement period begins: what [`report`](Self::report) will tell starts from here.
    fn start_measuring(&mut self, _now: Time) {}

    /// Tells the metrics of the discipline's own ([`QueueParams::METRICS`]), in SI units, for the
    /// time since the measurement began; they appear as metrics `queue.NAME`.
    fn report(&self, _now: Time, _report: &mut Report<'_>) {}
}

/// What a discipline is told about the place where it is built.
#[derive(Clone, Debug)]
pub struct QueueContext {
    /// Rate of the link it feeds.
    pub rate: Rate,
    /// The discipline's own random stream.
    pub stream: Stream,
    /// The link and what crosses it.
    pub link: Arc<LinkFacts>,
    /// What queues of kind `plugin` are.
    pub plugins: Plugins,
}

impl QueueContext {
    /// The context of a queue within this one, which is called `name`: a random stream
    /// of its own, the rest in common.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self {
            stream: self.stream.child(name),
            ..self.clone()
        }
    }
}

/// Is shown a queue within another: its key, its parameters, and the link as it sees it.
pub type InnerVisitor<'a> = dyn FnMut(&str, &QueueSpec, &LinkFacts) + 'a;

/// Parameters of a discipline, as given in the experiment file.
pub trait QueueParams {
    /// The discipline these parameters describe.
    type Queue<P: Packet>: QueueDiscipline<P>;

    /// The metrics that the discipline tells of itself, as lists so that related disciplines can
    /// share one.
    const METRICS: &'static [&'static [&'static Metric]] = &[];

    /// Refuses values that cannot be run anywhere.
    fn check(&self) -> Result<(), ParamError>;

    /// Refuses values that cannot be run on this link; called after `check`.
    fn check_at(&self, _link: &LinkFacts) -> Result<(), ParamError> {
        Ok(())
    }

    /// Values that can be run but hardly mean what their author wants.
    fn warnings(&self, _link: &LinkFacts) -> Vec<ParamWarning> {
        Vec::new()
    }

    /// The limit beyond which the queue must drop, if it has one.
    fn limit(&self) -> Option<Limit>;

    /// Shows `visit` the queues that this one holds directly, each with its key from this
    /// one's table on and the link as it sees it. Parameters must have passed `check` and
    /// `check_at`.
    fn inner(&self, _link: &LinkFacts, _visit: &mut InnerVisitor<'_>) {}

    /// Shows `visit` the plug-ins among the queues that this one holds, itself included; `key`
    /// is that of its table.
    ///
    /// # Errors
    /// What `visit` returned.
    fn plugins(
        &mut self,
        _key: &str,
        _visit: &mut plugin::PluginVisitor<'_>,
    ) -> Result<(), ParamError> {
        Ok(())
    }

    /// Adds the names of the metrics that the queue will tell, those of the queues that it holds
    /// included.
    fn figures(&self, names: &mut FigureNames) {
        Self::METRICS.iter().for_each(|list| names.add(list));
    }

    /// Builds the queue. Parameters must have passed `check` and `check_at`.
    fn build<P: Packet>(&self, context: QueueContext) -> Self::Queue<P>;
}

/// How a queue stands now.
#[inline(always)]
fn outlook<P: Packet>(queue: &impl QueueDiscipline<P>) -> Outlook {
    Outlook {
        backlog: queue.backlog(),
        wakeup: queue.next_wakeup(),
    }
}

/// The calls made for every packet, one function for each discipline. Left to inlining, all
/// disciplines would share one function whose frame and saved registers are those of the most
/// demanding, and a simple one would pay for them.
mod apart {
    use super::{Outlook, Packet, QueueDiscipline, Sink, Time, outlook};

    #[inline(never)]
    pub fn arrive<P: Packet, Q: QueueDiscipline<P>>(
        queue: &mut Q,
        packet: P,
        now: Time,
        sink: &mut impl Sink<P>,
    ) -> Outlook {
        queue.enqueue(packet, now, sink);
        outlook(queue)
    }

    #[inline(never)]
    pub fn depart<P: Packet, Q: QueueDiscipline<P>>(
        queue: &mut Q,
        now: Time,
        sink: &mut impl Sink<P>,
        after: &mut Outlook,
    ) -> Option<P> {
        let packet = queue.dequeue(now, sink);
        *after = outlook(queue);
        packet
    }

    #[inline(never)]
    pub fn enqueue<P: Packet, Q: QueueDiscipline<P>>(
        queue: &mut Q,
        packet: P,
        now: Time,
        sink: &mut impl Sink<P>,
    ) {
        queue.enqueue(packet, now, sink);
    }

    #[inline(never)]
    pub fn dequeue<P: Packet, Q: QueueDiscipline<P>>(
        queue: &mut Q,
        now: Time,
        sink: &mut impl Sink<P>,
    ) -> Option<P> {
        queue.dequeue(now, sink)
    }
}

/// One list makes the file's enum, the running queue's enum and the dispatch
/// between them; static, since it is called for every packet.
///
/// `arrive` and `depart` choose among the disciplines once for all that a caller asks about
/// a packet. The one called `inlined` is asked for first and becomes part of its caller; the
/// others share a function that only jumps on, so that they do not pay for its frame.
macro_rules! disciplines {
    (inlined $inlined:ident; $($(#[$doc:meta])* $kind:literal => $variant:ident($params:ty),)+) => {
        kinded! {
            /// A queue discipline with its parameters, chosen by `kind`.
            pub enum QueueSpec { $($(#[$doc])* $kind => $variant($params),)+ }
        }

        impl QueueSpec {
            /// Refuses values that cannot be run anywhere.
            ///
            /// # Errors
            /// [`ParamError`] names the key, the problem and what is accepted.
            pub fn check(&self) -> Result<(), ParamError> {
                match self { $(Self::$variant(params) => params.check(),)+ }
            }

            /// Refuses values that cannot be run on this link. The parameters must have
            /// passed [`check`](Self::check).
            ///
            /// # Errors
            /// [`ParamError`] names the key, the problem and what is accepted.
            pub fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
                match self { $(Self::$variant(params) => params.check_at(link),)+ }
            }

            /// Values that can be run but hardly mean what their author wants.
            pub fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
                match self { $(Self::$variant(params) => params.warnings(link),)+ }
            }

            /// The limit beyond which the queue must drop, if it has one.
            pub fn limit(&self) -> Option<Limit> {
                match self { $(Self::$variant(params) => params.limit(),)+ }
            }

            /// Shows `visit` the queues that it holds directly, each with its key from this
            /// one's table on and the link as it sees it. The parameters must have passed
            /// [`check`](Self::check) and [`check_at`](Self::check_at).
            pub fn inner(&self, link: &LinkFacts, visit: &mut InnerVisitor<'_>) {
                match self { $(Self::$variant(params) => params.inner(link, visit),)+ }
            }

            /// Shows `visit` the plug-ins in it: itself, or among the queues that it holds;
            /// `key` is that of its table.
            ///
            /// # Errors
            /// What `visit` returned.
            pub fn plugins(
                &mut self,
                key: &str,
                visit: &mut plugin::PluginVisitor<'_>,
            ) -> Result<(), ParamError> {
                match self { $(Self::$variant(params) => params.plugins(key, visit),)+ }
            }

            /// The metrics that each kind tells of itself.
            pub const METRICS: &'static [(&'static str, &'static [&'static [&'static Metric]])] =
                &[$(($kind, <$params as QueueParams>::METRICS)),+];

            /// Adds the names of the metrics that the queue will tell.
            pub fn figures(&self, names: &mut FigureNames) {
                match self { $(Self::$variant(params) => params.figures(names),)+ }
            }

            /// Builds the queue. The parameters must have passed [`check`](Self::check) and
            /// [`check_at`](Self::check_at).
            pub fn build<P: Packet>(&self, context: QueueContext) -> AnyQueue<P> {
                match self { $(Self::$variant(params) => AnyQueue::$variant(Box::new(params.build(context))),)+ }
            }
        }

        /// Any of the disciplines, dispatched statically. They lie behind pointers: the tag
        /// is then a field of its own, where the compiler would otherwise hide it in unused
        /// values of the largest discipline and spend more on reading it than on following
        /// the pointer.
        #[derive(Debug)]
        #[allow(missing_docs)] // the variants are documented in QueueSpec
        pub enum AnyQueue<P: Packet> {
            $($variant(Box<<$params as QueueParams>::Queue<P>>),)+
        }

        impl<P: Packet> AnyQueue<P> {
            /// Gives it `packet`, and tells how it stands then.
            #[inline(always)]
            pub fn arrive(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) -> Outlook {
                if let Self::$inlined(queue) = self {
                    queue.enqueue(packet, now, sink);
                    return outlook(&**queue);
                }
                self.arrive_apart(packet, now, sink)
            }

            /// Asks it for the next packet to transmit, and tells how it stands then. The packet is
            /// passed to `sent` instead of returned, because a return would copy it once more.
            ///
            /// # Errors
            /// How it stands, if nothing may leave now.
            #[inline(always)]
            pub fn depart<R>(
                &mut self,
                now: Time,
                sink: &mut impl Sink<P>,
                sent: impl FnOnce(P, Outlook) -> R,
            ) -> Result<R, Outlook> {
                if let Self::$inlined(queue) = self {
                    return queue.depart(now, sent);
                }
                let mut after = Outlook::default();
                match self.depart_apart(now, sink, &mut after) {
                    Some(packet) => Ok(sent(packet, after)),
                    None => Err(after),
                }
            }

            #[inline(never)]
            fn arrive_apart(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) -> Outlook {
                match self { $(Self::$variant(queue) => apart::arrive(&mut **queue, packet, now, sink),)+ }
            }
            #[inline(never)]
            fn depart_apart(&mut self, now: Time, sink: &mut impl Sink<P>, after: &mut Outlook) -> Option<P> {
                match self { $(Self::$variant(queue) => apart::depart(&mut **queue, now, sink, after),)+ }
            }
        }

        impl<P: Packet> QueueDiscipline<P> for AnyQueue<P> {
            #[inline(always)]
            fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
                match self { $(Self::$variant(queue) => apart::enqueue(&mut **queue, packet, now, sink),)+ }
            }
            #[inline(always)]
            fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
                match self { $(Self::$variant(queue) => apart::dequeue(&mut **queue, now, sink),)+ }
            }
            #[inline(always)]
            fn next_wakeup(&self) -> Option<Time> {
                match self { $(Self::$variant(queue) => queue.next_wakeup(),)+ }
            }
            fn on_wakeup(&mut self, now: Time) {
                match self { $(Self::$variant(queue) => queue.on_wakeup(now),)+ }
            }
            fn front(&self) -> Option<&P> {
                match self { $(Self::$variant(queue) => queue.front(),)+ }
            }
            #[inline(always)]
            fn backlog(&self) -> Backlog {
                match self { $(Self::$variant(queue) => queue.backlog(),)+ }
            }
            fn internals(&self) -> Internals {
                match self { $(Self::$variant(queue) => queue.internals(),)+ }
            }
            fn start_measuring(&mut self, now: Time) {
                match self { $(Self::$variant(queue) => queue.start_measuring(now),)+ }
            }
            fn report(&self, now: Time, report: &mut Report<'_>) {
                match self { $(Self::$variant(queue) => queue.report(now, report),)+ }
            }
        }
    };
}

disciplines! {
    inlined Red;

    /// First-in first-out; an arrival that does not fit is dropped.
    "tail-drop" => TailDrop(queues::tail_drop::TailDropParams),
    /// Random Early Detection (Floyd and Jacobson 1993), with gentle, byte mode and ECN.
    "red" => Red(queues::red::RedParams),
    /// RED whose max_p keeps the average between the thresholds (Floyd, Gummadi, Shenker 2001); computes what is left out from the link.
    "adaptive-red" => AdaptiveRed(queues::adaptive_red::AdaptiveRedParams),
    /// RED whose max_p changes when the average leaves the thresholds (Feng, Kandlur, Saha, Shin 1999).
    "self-configuring-red" => SelfConfiguringRed(queues::self_configuring_red::SelfConfiguringRedParams),
    /// RED whose thresholds move to keep the drop probability within bounds (Jou and Baras 2003).
    "dynamic-threshold-red" => DynamicThresholdRed(queues::dynamic_threshold_red::DynamicThresholdRedParams),
    /// RED+Tail: a drop-tail queue for short flows and UDP beside an Adaptive RED for long ones, in one buffer (Jou and Baras 2003).
    "red-tail" => RedTail(queues::red_tail::RedTailParams),
    /// RED with thresholds for each drop precedence: WRED, RIO (Clark and Fang 1998), Linux's gred.
    "wred" => Wred(queues::wred::WredParams),
    /// The PI controller holds the length at a reference (Hollot, Misra, Towsley and Gong 2001).
    "pi" => Pi(queues::pi::PiParams),
    /// PIE holds the queueing delay at a target (RFC 8033).
    "pie" => Pie(queues::pie::PieParams),
    /// PIE for DOCSIS cable modems, with the modem's shaper (RFC 8034).
    "docsis-pie" => DocsisPie(queues::docsis_pie::DocsisPieParams),
    /// PI2 holds the queueing delay at a target; classic senders meet the square of what it controls (De Schepper et al. 2016).
    "pi2" => Pi2(queues::pi2::Pi2Params),
    /// DualPI2: a low-latency queue for L4S senders, coupled to a classic one (RFC 9332).
    "dualpi2" => DualPi2(queues::dualpi2::DualPi2Params),
    /// First-in first-out; an arrival that does not fit costs the oldest packets.
    "head-drop" => HeadDrop(queues::head_drop::HeadDropParams),
    /// Marks every ECN-capable packet beyond a threshold, the plain AQM of L4S and DCTCP.
    "step" => Step(queues::step::StepParams),
    /// REM marks exponentially in a price for the load (Athuraliya, Li, Low and Yin 2001).
    "rem" => Rem(queues::rem::RemParams),
    /// BLUE raises its probability at a loss and lowers it while the link is idle (Feng, Shin, Kandlur and Saha 2002).
    "blue" => Blue(queues::blue::BlueParams),
    /// Stabilised RED estimates the number of flows by those seen lately (Ott, Lakshman and Wong 1999).
    "sred" => Sred(queues::sred::SredParams),
    /// AVQ marks what overflows a virtual queue that is slower than the link (Kunniyur and Srikant 2001).
    "avq" => Avq(queues::avq::AvqParams),
    /// CHOKe: RED that drops an arrival with a waiting packet of its own flow (Pan, Prabhakar and Psounis 2000).
    "choke" => Choke(queues::choke::ChokeParams),
    /// GSP drops one packet each time a threshold is crossed (Lautenschlaeger 2014).
    "gsp" => Gsp(queues::gsp::GspParams),
    /// Controlled Delay (RFC 8289): signals while the queueing delay stays above a target.
    "codel" => Codel(queues::codel::CodelParams),
    /// Flow queueing with CoDel (RFC 8290).
    "fq-codel" => FqCodel(queues::fq_codel::FqCodelParams),
    /// Linux's fq: flows with turns that favour new ones, a limit for each, and pacing.
    "fq" => Fq(queues::fq::FqParams),
    /// Stochastic Fairness Queueing (McKenney 1990).
    "sfq" => Sfq(queues::sfq::SfqParams),
    /// CoDel and BLUE together, as CAKE has them.
    "cobalt" => Cobalt(queues::cobalt::CobaltParams),
    /// A shaper with flow queueing that is fair to hosts, classes by DSCP and COBALT.
    "cake" => Cake(queues::cake::CakeParams),
    /// Stochastic Fair BLUE (Feng et al. 2001).
    "sfb" => Sfb(queues::sfb::SfbParams),
    /// Flow queueing with PIE.
    "fq-pie" => FqPie(queues::fq_pie::FqPieParams),
    /// Linux's pfifo_fast: three first-in first-out bands in strict priority, by the TOS octet.
    "pfifo-fast" => PfifoFast(queues::pfifo_fast::PfifoFastParams),
    /// Strict priority between classes, each with a queue of any kind.
    "prio" => Prio(queues::prio::PrioParams),
    /// Deficit round robin (Shreedhar and Varghese 1996) between classes, each with a queue of any kind.
    "drr" => Drr(queues::drr::DrrParams),
    /// Weighted fair queueing between classes, as WF2Q+ (Bennett and Zhang 1997), each with a queue of any kind.
    "wfq" => Wfq(queues::wfq::WfqParams),
    /// Token bucket: lets a queue of any kind send at a rate and in bursts, and no more.
    "tbf" => Tbf(queues::tbf::TbfParams),
    /// Hierarchical token bucket: a tree of classes with rates, ceilings and borrowing, after Linux.
    "htb" => Htb(queues::htb::HtbParams),
    /// A queue of your own, in Python or Rust.
    "plugin" => Plugin(plugin::PluginParams),
}
