//! Queue disciplines.
//!
//! A discipline gets the arriving packets and is asked for the departing ones. It must not know clocks (time
//! is an argument), links, TCP, or who measures. It does no I/O, and cannot tell a simulation from real traffic.
//!
//! - `laws`: control laws. They decide from the state of a queue whether a packet passes, is marked or is
//!   dropped, and know no packets.
//! - `queues`: the disciplines, a file each. They hold packets and use a law.
//! - `fq`: what queues by flow share; `class` and `classify`: what queues of classes share; `signal`: marking or
//!   dropping, and periodic updates; `fifo`: stores of packets; `gauge`: backlog in packets or bytes
//! - `limit` and `refuse`: limits of queues, and checks of parameters; `link_layer`: what a link adds to packets;
//!   `follow`: shapers that follow their link
//! - `facts`: what a discipline can know about its link and the flows that cross it; `header`: what it finds in
//!   TCP headers, for which it asks the `sink`
//! - `figures`: how a queue reports its own metrics
//! - `bottleneck`: a queue at work in another program, behind `Duration` and `Instant`; `datagram`: a packet for it
//! - `policer`: what stands in front of a queue and drops or remarks packets above a rate
//! - `plugin`: queues of users; `advise`: parameters for a queue on a link
//!
//! A link calls `AnyQueue::arrive` and `AnyQueue::depart`, which dispatch once for each packet, by enum and not
//! by boxed objects. Queues of users (`kind = "plugin"`) alone are boxed. The trait `QueueDiscipline` has no
//! methods for speed alone.
//!
//! CONTRIBUTING.md says how to add a discipline: a file in `queues`, two lines, and a page.
//!
//! # For other projects
//!
//! [`Bottleneck`] is what a program with a protocol of its own needs; docs/how-to/use-the-crates.md has examples, also of a
//! queue without the link and of a law without packets. The features `serde` and `schema` are off by default.

// What the attributes of serde's and schemars' derives name, where `redtail-core` has these without effect.
#![cfg_attr(not(feature = "schema"), allow(unused_imports))]

pub mod advise;
pub mod bottleneck;
pub mod class;
pub mod classify;
pub mod datagram;
pub mod facts;
pub mod fifo;
pub mod figures;
pub mod follow;
pub mod fq;
pub mod gauge;
pub mod header;
pub mod laws;
pub mod limit;
pub mod link_layer;
pub mod plugin;
pub mod policer;
pub mod queues;
mod refuse;
pub mod shaping;
pub mod signal;

pub use bottleneck::{Bottleneck, Path};
pub use datagram::Datagram;
pub use facts::{FlowFacts, FlowRun, FlowTable, GroupFacts, GroupTraffic, LinkFacts, Protocol};
pub use figures::{FigureNames, Report};
pub use header::TcpHeader;
pub use limit::Limit;
pub use plugin::Plugins;
pub use policer::PolicerParams;
use std::sync::Arc;

use redtail_core::{Metric, Packet, ParamError, ParamWarning, Rate, Stream, Time, kinded};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// The packet would have exceeded the queue's limit.
    Limit,
    /// A control law chose the packet, below the point at which it drops every packet.
    Early,
    /// A control law drops every packet (RED with its average above max_th).
    Forced,
    /// A later acknowledgement makes this one redundant (CAKE's ACK filter).
    Redundant,
    /// A policer in front of the queue dropped it.
    Policer,
}

/// The receiver of the packets that a queue drops and of the reports of marks; it also knows the headers of
/// packets.
///
/// Together with `enqueue`, `dequeue` and `backlog` it allows a test of conservation: packets in = packets
/// out + dropped + backlog.
pub trait Sink<P> {
    /// The queue dropped `packet`.
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time);
    /// The queue set CE on `packet`, which it keeps or is about to deliver.
    fn marked(&mut self, packet: &P, now: Time);
    /// Returns the TCP header of `packet`, which has joined the queue. `None` if it has none, or if headers
    /// are not known.
    fn tcp_header(&self, _packet: &P) -> Option<TcpHeader> {
        None
    }
}

/// The waiting packets of a queue. The packet in transmission has left the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of waiting packets.
    pub packets: u64,
    /// The total size of the packets on the link, in bytes.
    pub bytes: u64,
}

/// The state of a queue after a packet has arrived or left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Number of waiting packets.
    pub packets: u64,
    /// The time at which `on_wakeup` is to be called next; [`Time::MAX`] if it need not be called. So this is two
    /// words, which a function returns in registers.
    pub wakeup: Time,
}

/// When a queue is to be called although no packet arrives or leaves: the earlier, the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wakeup {
    /// At this time.
    At(Time),
    /// Not before a packet arrives or leaves.
    NotNow,
    /// Never in its life.
    Never,
}

impl Wakeup {
    /// The time, if there is one now.
    #[inline]
    pub fn time(self) -> Option<Time> {
        match self {
            Self::At(at) => Some(at),
            Self::NotNow | Self::Never => None,
        }
    }

    /// The time; [`Time::MAX`] if there is none now.
    #[inline]
    pub fn time_or_max(self) -> Time {
        self.time().unwrap_or(Time::MAX)
    }

    /// Whether the time has come at `now`.
    #[inline]
    pub fn is_due(self, now: Time) -> bool {
        self.time().is_some_and(|at| at <= now)
    }
}

impl From<Option<Time>> for Wakeup {
    /// That of a queue which may have a time; `None` if it has none now.
    #[inline]
    fn from(time: Option<Time>) -> Self {
        time.map_or(Self::NotNow, Self::At)
    }
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
    /// Queues `packet`, or hands it to `sink` as dropped. Another packet can be dropped in its place.
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>);

    /// Removes and returns the next packet to transmit. `None` means that no packet may leave now; the link
    /// then stays idle until the next arrival or `next_wakeup`.
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P>;

    /// When `on_wakeup` is to be called next. A queue answers [`Wakeup::Never`] always or not at all. The calls of one that
    /// does may lag behind the other events of a simulation; each has the time at which it was due as `now`, and they
    /// come in the order of these times.
    fn next_wakeup(&self) -> Wakeup {
        Wakeup::Never
    }

    /// Called at the time `next_wakeup` gave.
    fn on_wakeup(&mut self, _now: Time) {}

    /// Returns the packet that `dequeue` will return next, independently of later arrivals and of the time
    /// of the call; `None` if this is not certain. With it, a queue that holds this one can see the size of
    /// the packet without removing it.
    fn front(&self) -> Option<&P> {
        None
    }

    /// Returns the present backlog.
    fn backlog(&self) -> Backlog;

    /// Returns how many packets the queue has lost without knowing yet which they are: they do not count as
    /// waiting, and are not dropped before they are known. Only a queue that others serve has such packets.
    fn missing(&self) -> u64 {
        0
    }

    /// Returns the control law's state, for time series.
    fn internals(&self) -> Internals {
        Internals::default()
    }

    /// The measurement period begins: [`report`](Self::report) covers the time from now on.
    fn start_measuring(&mut self, _now: Time) {}

    /// Reports the discipline's own metrics ([`QueueKind::METRICS`]), in SI units, for the time since the
    /// measurement began; they appear as metrics `queue.NAME`.
    fn report(&self, _now: Time, _report: &mut Report<'_>) {}
}

/// The surroundings for which a discipline is built.
#[derive(Clone, Debug)]
pub struct QueueContext {
    /// Rate of the link behind the queue.
    pub rate: Rate,
    /// The discipline's own random stream.
    pub stream: Stream,
    /// The link, and the flows that cross it.
    pub link: Arc<LinkFacts>,
    /// The queues of kind `plugin`, by name.
    pub plugins: Plugins,
}

impl QueueContext {
    /// Before a link of this rate of which nothing else is known, and with a stream of random numbers that `seed`
    /// decides.
    pub fn simple(rate: Rate, seed: u64) -> Self {
        Self {
            rate,
            stream: Stream::named(seed, 0, "queue"),
            link: Arc::new(LinkFacts::of_rate(rate)),
            plugins: Plugins::new(),
        }
    }

    /// Returns the context of a queue called `name` within this one: it has its own random stream and
    /// shares the rest.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self {
            stream: self.stream.child(name),
            ..self.clone()
        }
    }
}

impl QueueParams {
    /// Builds the queue when its parameters can be run on the link of `context`.
    ///
    /// ```
    /// use redtail_core::Rate;
    /// use redtail_qdisc::queues::tail_drop::TailDropParams;
    /// use redtail_qdisc::{AnyQueue, Datagram, Limit, QueueContext, QueueParams};
    ///
    /// let context = QueueContext::simple(Rate::from_bps(1_000_000), 1);
    /// let queue = |packets| QueueParams::TailDrop(TailDropParams::new(Limit::packets(packets)));
    /// let built: AnyQueue<Datagram<()>> = queue(10).try_build(context.clone())?;
    ///
    /// let refused = queue(0).try_build::<Datagram<()>>(context).unwrap_err();
    /// assert_eq!(refused.key, "limit");
    /// # Ok::<(), redtail_core::ParamError>(())
    /// ```
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted; the key is `rate` when the link has none.
    pub fn try_build<P: Packet>(&self, context: QueueContext) -> Result<AnyQueue<P>, ParamError> {
        if context.rate == Rate::from_bps(0) {
            return Err(ParamError::new(
                "rate",
                "is zero",
                "a rate such as 10 Mbit/s",
            ));
        }
        self.check()?;
        self.check_at(&context.link)?;
        Ok(self.build(context))
    }
}

/// A visitor of the queues within another: it gets the key, the parameters, and the link as the inner queue
/// sees it.
pub type InnerVisitor<'a> = dyn FnMut(&str, &QueueParams, &LinkFacts) + 'a;

/// A kind of queue: what its parameters in the experiment file can do.
pub trait QueueKind {
    /// The discipline these parameters describe.
    type Queue<P: Packet>: QueueDiscipline<P>;

    /// The discipline's own metrics, as lists, so that related disciplines can share one.
    const METRICS: &'static [&'static [&'static Metric]] = &[];

    /// The keys of a small queue besides `kind`, one per line as in the experiment file. Tests, the
    /// cost benchmark and the load step of the documentation run it.
    ///
    /// It has a `limit` if the queue has this key without a default. A queue with classes has the classes
    /// `always` and `step`, with rules for the traffic groups of these names, and the link has 10 Mbit/s.
    fn example() -> &'static str;

    /// Refuses values that cannot be run anywhere.
    fn check(&self) -> Result<(), ParamError>;

    /// Refuses values that cannot be run on this link; called after `check`.
    fn check_at(&self, _link: &LinkFacts) -> Result<(), ParamError> {
        Ok(())
    }

    /// Warns of values that can be run but are probably a mistake.
    fn warnings(&self, _link: &LinkFacts) -> Vec<ParamWarning> {
        Vec::new()
    }

    /// Returns the limit above which the queue must drop, if it has one.
    fn limit(&self) -> Option<Limit>;

    /// Whether it shares the link among hosts: the packets of a host are then limited together.
    fn counts_hosts(&self) -> bool {
        false
    }

    /// Calls `visit` for each queue that this one holds directly, with its key relative to this one's table
    /// and the link as it sees it. Parameters must have passed `check` and `check_at`.
    fn inner(&self, _link: &LinkFacts, _visit: &mut InnerVisitor<'_>) {}

    /// Calls `visit` for each plug-in among this queue and the queues that it holds; `key` is the key of
    /// its table.
    ///
    /// # Errors
    /// The error that `visit` returned.
    fn plugins(
        &mut self,
        _key: &str,
        _visit: &mut plugin::PluginVisitor<'_>,
    ) -> Result<(), ParamError> {
        Ok(())
    }

    /// Adds the names of the metrics that the queue will report, including those of the queues that it
    /// holds.
    fn figures(&self, names: &mut FigureNames) {
        Self::METRICS.iter().for_each(|list| names.add(list));
    }

    /// Builds the queue. Parameters must have passed `check` and `check_at`.
    fn build<P: Packet>(&self, context: QueueContext) -> Self::Queue<P>;
}

/// Returns the present state of a queue.
#[inline(always)]
fn outlook<P: Packet>(queue: &impl QueueDiscipline<P>) -> Outlook {
    Outlook {
        packets: queue.backlog().packets,
        wakeup: queue.next_wakeup().time_or_max(),
    }
}

/// The calls for every packet, with one function for each discipline. If the compiler inlined them, all
/// disciplines would share one function with the frame and the saved registers of the most demanding one,
/// and simple disciplines would be slower.
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
        next: &mut Option<P>,
    ) -> Outlook {
        *next = queue.dequeue(now, sink);
        outlook(queue)
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

/// Generates from one list the enum of the experiment file, the enum of running queues and the dispatch
/// between them. The dispatch is static, because it is called for every packet.
///
/// `arrive` and `depart` choose the discipline once for all questions of a caller about a packet. The
/// disciplines called `inlined` are tested first and become part of the caller; the others share a function
/// that only jumps to them, so that its frame costs them nothing.
macro_rules! disciplines {
    (inlined $($inlined:ident),+; $($(#[$doc:meta])* $kind:literal => $variant:ident($params:ty),)+) => {
        kinded! {
            /// A queue discipline with its parameters, chosen by `kind`.
            #[schemars(rename = "QueueSpec")]
            #[non_exhaustive]
            pub enum QueueParams { $($(#[$doc])* $kind => $variant($params),)+ }
        }

        impl QueueParams {
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

            /// Warns of values that can be run but are probably a mistake.
            pub fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
                match self { $(Self::$variant(params) => params.warnings(link),)+ }
            }

            /// Returns the limit above which the queue must drop, if it has one.
            pub fn limit(&self) -> Option<Limit> {
                match self { $(Self::$variant(params) => params.limit(),)+ }
            }

            /// Whether it shares the link among hosts.
            pub fn counts_hosts(&self) -> bool {
                match self { $(Self::$variant(params) => params.counts_hosts(),)+ }
            }

            /// Calls `visit` for each queue that this one holds directly, with its key relative to this
            /// one's table and the link as it sees it. The parameters must have passed
            /// [`check`](Self::check) and [`check_at`](Self::check_at).
            pub fn inner(&self, link: &LinkFacts, visit: &mut InnerVisitor<'_>) {
                match self { $(Self::$variant(params) => params.inner(link, visit),)+ }
            }

            /// Calls `visit` for each plug-in among this queue and the queues that it holds; `key` is the
            /// key of its table.
            ///
            /// # Errors
            /// The error that `visit` returned.
            pub fn plugins(
                &mut self,
                key: &str,
                visit: &mut plugin::PluginVisitor<'_>,
            ) -> Result<(), ParamError> {
                match self { $(Self::$variant(params) => params.plugins(key, visit),)+ }
            }

            /// The own metrics of each kind.
            pub const METRICS: &'static [(&'static str, &'static [&'static [&'static Metric]])] =
                &[$(($kind, <$params as QueueKind>::METRICS)),+];

            /// Every `kind` with the keys of a small queue of it, as the experiment file has them.
            pub fn examples() -> Vec<(&'static str, &'static str)> {
                vec![$(($kind, <$params as QueueKind>::example()),)+]
            }

            /// Adds the names of the metrics that the queue will report.
            pub fn figures(&self, names: &mut FigureNames) {
                match self { $(Self::$variant(params) => params.figures(names),)+ }
            }

            /// Builds the queue. The parameters must have passed [`check`](Self::check) and
            /// [`check_at`](Self::check_at).
            pub fn build<P: Packet>(&self, context: QueueContext) -> AnyQueue<P> {
                match self { $(Self::$variant(params) => AnyQueue::$variant(Box::new(params.build(context))),)+ }
            }
        }

        /// Any of the disciplines, dispatched statically. They are behind pointers, so that the tag is a
        /// field of its own. Otherwise the compiler would store the tag in unused values of the largest
        /// discipline, and reading it would cost more than following the pointer.
        #[derive(Debug)]
        #[allow(missing_docs)] // the variants are documented in QueueParams
        #[non_exhaustive]
        pub enum AnyQueue<P: Packet> {
            $($variant(Box<<$params as QueueKind>::Queue<P>>),)+
            /// Any of them behind a policer.
            Policed(Box<policer::Policed<P>>),
        }

        impl<P: Packet> AnyQueue<P> {
            /// Passes `packet` to the queue and returns the state of the queue afterwards.
            #[inline(always)]
            pub fn arrive(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) -> Outlook {
                $(if let Self::$inlined(queue) = self {
                    queue.enqueue(packet, now, sink);
                    return outlook(&**queue);
                })+
                self.arrive_apart(packet, now, sink)
            }

            /// Asks the queue for the next packet to transmit, which it writes to `next`; `None` means that no
            /// packet may leave now. Returns the state of the queue afterwards. `sink` makes the sink, which not
            /// every discipline uses.
            #[inline(always)]
            pub fn depart<S: Sink<P>>(
                &mut self,
                now: Time,
                sink: impl FnOnce() -> S,
                next: &mut Option<P>,
            ) -> Outlook {
                $(if let Self::$inlined(queue) = self {
                    *next = queue.dequeue(now, &mut sink());
                    return outlook(&**queue);
                })+
                self.depart_apart(now, &mut sink(), next)
            }

            #[inline(never)]
            fn arrive_apart(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) -> Outlook {
                match self {
                    $(Self::$variant(queue) => apart::arrive(&mut **queue, packet, now, sink),)+
                    Self::Policed(queue) => apart::arrive(&mut **queue, packet, now, sink),
                }
            }
            #[inline(never)]
            fn depart_apart(&mut self, now: Time, sink: &mut impl Sink<P>, next: &mut Option<P>) -> Outlook {
                match self {
                    $(Self::$variant(queue) => apart::depart(&mut **queue, now, sink, next),)+
                    Self::Policed(queue) => apart::depart(&mut **queue, now, sink, next),
                }
            }
        }

        impl<P: Packet> QueueDiscipline<P> for AnyQueue<P> {
            #[inline(always)]
            fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
                match self {
                    $(Self::$variant(queue) => apart::enqueue(&mut **queue, packet, now, sink),)+
                    Self::Policed(queue) => apart::enqueue(&mut **queue, packet, now, sink),
                }
            }
            #[inline(always)]
            fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
                match self {
                    $(Self::$variant(queue) => apart::dequeue(&mut **queue, now, sink),)+
                    Self::Policed(queue) => apart::dequeue(&mut **queue, now, sink),
                }
            }
            #[inline(always)]
            fn next_wakeup(&self) -> Wakeup {
                match self {
                    $(Self::$variant(queue) => queue.next_wakeup(),)+
                    Self::Policed(queue) => queue.next_wakeup(),
                }
            }
            fn on_wakeup(&mut self, now: Time) {
                match self {
                    $(Self::$variant(queue) => queue.on_wakeup(now),)+
                    Self::Policed(queue) => queue.on_wakeup(now),
                }
            }
            fn front(&self) -> Option<&P> {
                match self {
                    $(Self::$variant(queue) => queue.front(),)+
                    Self::Policed(queue) => queue.front(),
                }
            }
            #[inline(always)]
            fn backlog(&self) -> Backlog {
                match self {
                    $(Self::$variant(queue) => queue.backlog(),)+
                    Self::Policed(queue) => queue.backlog(),
                }
            }
            fn missing(&self) -> u64 {
                match self {
                    $(Self::$variant(queue) => queue.missing(),)+
                    Self::Policed(queue) => queue.missing(),
                }
            }
            fn internals(&self) -> Internals {
                match self {
                    $(Self::$variant(queue) => queue.internals(),)+
                    Self::Policed(queue) => queue.internals(),
                }
            }
            fn start_measuring(&mut self, now: Time) {
                match self {
                    $(Self::$variant(queue) => queue.start_measuring(now),)+
                    Self::Policed(queue) => queue.start_measuring(now),
                }
            }
            fn report(&self, now: Time, report: &mut Report<'_>) {
                match self {
                    $(Self::$variant(queue) => queue.report(now, report),)+
                    Self::Policed(queue) => queue.report(now, report),
                }
            }
        }
    };
}

disciplines! {
    inlined TailDrop, Red;

    /// First-in first-out; an arrival that does not fit is dropped.
    "tail-drop" => TailDrop(queues::tail_drop::TailDropParams),
    /// Random Early Detection (Floyd and Jacobson 1993), with gentle, byte mode and ECN.
    "red" => Red(queues::red::RedParams),
    /// RED that adapts max_p to keep the average between the thresholds (Floyd, Gummadi, Shenker 2001); keys that are left out are computed from the link.
    "adaptive-red" => AdaptiveRed(queues::adaptive_red::AdaptiveRedParams),
    /// RED that changes max_p when the average leaves the range between the thresholds (Feng, Kandlur, Saha, Shin 1999).
    "self-configuring-red" => SelfConfiguringRed(queues::self_configuring_red::SelfConfiguringRedParams),
    /// RED that moves its thresholds to keep the drop probability within bounds (Jou and Baras 2003).
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
    /// PI2 holds the queueing delay at a target; the drop probability of classic senders is the square of the controlled probability (De Schepper et al. 2016).
    "pi2" => Pi2(queues::pi2::Pi2Params),
    /// DualPI2: a low-latency queue for L4S senders, coupled to a classic one (RFC 9332).
    "dualpi2" => DualPi2(queues::dualpi2::DualPi2Params),
    /// First-in first-out; for an arrival that does not fit, the oldest packets are dropped.
    "head-drop" => HeadDrop(queues::head_drop::HeadDropParams),
    /// Marks every ECN-capable packet above a threshold, the simple AQM of L4S and DCTCP.
    "step" => Step(queues::step::StepParams),
    /// REM marks with a probability that depends exponentially on a price for the load (Athuraliya, Li, Low and Yin 2001).
    "rem" => Rem(queues::rem::RemParams),
    /// BLUE raises its probability at a loss and lowers it while the link is idle (Feng, Shin, Kandlur and Saha 2002).
    "blue" => Blue(queues::blue::BlueParams),
    /// Stabilised RED estimates the number of flows from a list of recently seen packets (Ott, Lakshman and Wong 1999).
    "sred" => Sred(queues::sred::SredParams),
    /// AVQ marks the packets that overflow a virtual queue slower than the link (Kunniyur and Srikant 2001).
    "avq" => Avq(queues::avq::AvqParams),
    /// CHOKe: RED that drops an arrival with a waiting packet of its own flow (Pan, Prabhakar and Psounis 2000).
    "choke" => Choke(queues::choke::ChokeParams),
    /// GSP drops one packet each time a threshold is crossed (Lautenschlaeger 2014).
    "gsp" => Gsp(queues::gsp::GspParams),
    /// Controlled Delay (RFC 8289): signals while the queueing delay stays above a target.
    "codel" => Codel(queues::codel::CodelParams),
    /// Flow queueing with CoDel (RFC 8290).
    "fq-codel" => FqCodel(queues::fq_codel::FqCodelParams),
    /// Linux's fq: flows served in turn with preference for new ones, a limit for each flow, and pacing.
    "fq" => Fq(queues::fq::FqParams),
    /// Stochastic Fairness Queueing (McKenney 1990).
    "sfq" => Sfq(queues::sfq::SfqParams),
    /// The combination of CoDel and BLUE that CAKE uses.
    "cobalt" => Cobalt(queues::cobalt::CobaltParams),
    /// A shaper with flow queueing that is fair to hosts, with classes by DSCP and the law COBALT.
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
    /// Token bucket: limits the rate and the bursts at which a queue of any kind sends.
    "tbf" => Tbf(queues::tbf::TbfParams),
    /// Hierarchical token bucket: a tree of classes with rates, ceilings and borrowing, after Linux.
    "htb" => Htb(queues::htb::HtbParams),
    /// A queue written by the user, in Python or Rust.
    "plugin" => Plugin(plugin::PluginParams),
}

/// The examples of README.md are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
