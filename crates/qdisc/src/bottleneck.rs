//! A queue at work in another program: the queue, a transmitter of constant rate, and a delay.
//!
//! Programs that test a transport protocol without sockets each need this part. [`Link`] has times of this crate,
//! [`Bottleneck`] is a link whose times are those of the standard library, and [`Path`] is one for each direction. None
//! reads a clock: who calls says what time it is, real or virtual. So a run with the same calls and the same seed
//! is the same, to the bit.
//!
//! A packet waits in the queue until the transmitter is free, takes its size divided by the rate to send, and arrives
//! after the delay. This is what `redtail run` simulates for `[bottleneck]`, with the same order of what happens at the
//! same time: transmissions end, packets arrive, and then queues are woken.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use redtail_core::{Packet, ParamError, Rate, Span, Time};

use crate::{AnyQueue, Backlog, DropReason, QueueContext, QueueDiscipline, QueueParams, Sink};

/// How many packets went where, since the link was made.
///
/// `sent = delivered + dropped + inside` at all times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Packets that were given to it.
    pub sent: u64,
    /// Packets that it has given back.
    pub delivered: u64,
    /// Packets that its queue has dropped.
    pub dropped: u64,
    /// Packets that its queue has marked: among those delivered and inside, and dropped afterwards if a queue does that.
    pub marked: u64,
}

impl Counts {
    /// Packets that wait, are transmitted or travel.
    pub fn inside(&self) -> u64 {
        self.sent - self.delivered - self.dropped
    }
}

/// What is called with each packet that the queue drops.
type OnDrop<P> = Box<dyn FnMut(P, DropReason, Time) + Send>;

/// A queue, a transmitter and a delay, in times of this crate.
///
/// ```
/// use redtail_core::{Bytes, Rate, Span, Time};
/// use redtail_qdisc::bottleneck::Link;
/// use redtail_qdisc::queues::tail_drop::TailDropParams;
/// use redtail_qdisc::{Datagram, Limit, QueueParams};
///
/// let queue = QueueParams::TailDrop(TailDropParams::new(Limit::packets(10)));
/// let mut link = Link::new(&queue, Rate::from_bps(12_000_000), Span::from_ms(5), 1)?;
/// link.send(Datagram::new("hello", Bytes::new(1500)), Time::ZERO);
///
/// // 1 ms of transmission and 5 ms of delay.
/// let arrives = link.next_event().unwrap();
/// assert_eq!(arrives, Time::ZERO + Span::from_ms(6));
/// assert!(link.receive(Time::ZERO + Span::from_ms(5)).is_none());
/// assert_eq!(link.receive(arrives).unwrap().into_payload(), "hello");
/// # Ok::<(), redtail_core::ParamError>(())
/// ```
pub struct Link<P: Packet> {
    queue: AnyQueue<P>,
    rate: Rate,
    delay: Span,
    /// When the present transmission ends; `None` while the transmitter has nothing to send.
    free_at: Option<Time>,
    /// The packets whose transmission has begun, each with the time at which it arrives.
    travelling: VecDeque<(Time, P)>,
    /// The latest time that a call has named.
    latest: Time,
    counts: Counts,
    on_drop: Option<OnDrop<P>>,
}

/// Hears of drops and marks during one call of the queue.
struct Events<'a, P> {
    counts: &'a mut Counts,
    on_drop: &'a mut Option<OnDrop<P>>,
}

impl<P> Sink<P> for Events<'_, P> {
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time) {
        self.counts.dropped += 1;
        if let Some(on_drop) = self.on_drop {
            on_drop(packet, reason, now);
        }
    }

    fn marked(&mut self, _packet: &P, _now: Time) {
        self.counts.marked += 1;
    }
}

impl<P: Packet> Link<P> {
    /// A link with this queue. `seed` decides what the queue draws at random.
    ///
    /// # Errors
    /// [`ParamError`] when a parameter of the queue cannot be run, or not at this rate, when the rate is zero, and for a
    /// queue of kind `plugin`, which [`with_context`](Self::with_context) accepts.
    pub fn new(
        queue: &QueueParams,
        rate: Rate,
        delay: Span,
        seed: u64,
    ) -> Result<Self, ParamError> {
        queue.clone().plugins("queue", &mut |_, _, plugin| {
            Err(ParamError::new(
                "class",
                format!(
                    "is {:?}, a queue of one's own that this link does not have",
                    plugin.class
                ),
                "another kind, or a context with this queue",
            ))
        })?;
        Self::with_context(queue, QueueContext::simple(rate, seed), delay)
    }

    /// A link with this queue in surroundings of which more is known: groups and flows, by which classes tell packets,
    /// or queues of one's own.
    ///
    /// # Errors
    /// [`ParamError`] when a parameter of the queue cannot be run, or not on this link, and when the rate is zero.
    ///
    /// # Panics
    /// When a queue of one's own fails, here and in the other calls; see [`plugin`](crate::plugin).
    pub fn with_context(
        queue: &QueueParams,
        context: QueueContext,
        delay: Span,
    ) -> Result<Self, ParamError> {
        let rate = context.rate;
        Ok(Self {
            queue: queue.try_build(context)?,
            rate,
            delay,
            free_at: None,
            travelling: VecDeque::new(),
            latest: Time::ZERO,
            counts: Counts::default(),
            on_drop: None,
        })
    }

    /// Calls `on_drop` with each packet that the queue drops from now on, with the reason and the time. Without it a
    /// dropped packet is only counted.
    pub fn on_drop(&mut self, on_drop: impl FnMut(P, DropReason, Time) + Send + 'static) {
        self.on_drop = Some(Box::new(on_drop));
    }

    /// A packet arrives at the queue. A time before that of an earlier call counts as that.
    pub fn send(&mut self, packet: P, now: Time) {
        let now = self.advance(now, false);
        self.counts.sent += 1;
        let (queue, mut events) = self.queue();
        queue.enqueue(packet, now, &mut events);
        if self.free_at.is_none() {
            self.transmit(now);
        }
    }

    /// The next packet that has arrived at the other end until `now`; `None` if there is none now. Call it until it
    /// returns `None`.
    pub fn receive(&mut self, now: Time) -> Option<P> {
        let now = self.advance(now, true);
        let (arrives, _) = self.travelling.front()?;
        if *arrives > now {
            return None;
        }
        self.counts.delivered += 1;
        self.travelling.pop_front().map(|(_, packet)| packet)
    }

    /// When [`receive`](Self::receive) is to be called next, if nothing is sent before; `None` if nothing will happen.
    /// Where a queue holds packets back, nothing may have arrived then, and the next time is to be asked for.
    pub fn next_event(&self) -> Option<Time> {
        match self.travelling.front() {
            Some((arrives, _)) => Some(*arrives),
            None if self.backlog().packets > 0 => self.queue.next_wakeup().time(),
            None => None,
        }
    }

    /// How many packets went where.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What waits in the queue, as of the latest call.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// The queue, to look at.
    pub fn discipline(&self) -> &AnyQueue<P> {
        &self.queue
    }

    /// The queue, and what hears of its drops and marks.
    fn queue(&mut self) -> (&mut AnyQueue<P>, Events<'_, P>) {
        let events = Events {
            counts: &mut self.counts,
            on_drop: &mut self.on_drop,
        };
        (&mut self.queue, events)
    }

    /// Does what was due before `now`, and of what is due at this time the ends of transmissions, and the wakeups if
    /// `wakeups` says so. Returns the time, which does not go back.
    fn advance(&mut self, now: Time, wakeups: bool) -> Time {
        self.latest = self.latest.max(now);
        let now = self.latest;
        loop {
            let end = self.free_at.unwrap_or(Time::MAX);
            let wakeup = self.queue.next_wakeup().time_or_max();
            let due = end.min(wakeup);
            if due > now || due == Time::MAX || (due == now && end > now && !wakeups) {
                return now;
            }
            if end > wakeup {
                self.queue.on_wakeup(due);
            }
            if end <= wakeup || self.free_at.is_none() {
                self.transmit(due);
            }
        }
    }

    /// The transmitter asks for a packet, and begins to send it.
    fn transmit(&mut self, now: Time) {
        let (queue, mut events) = self.queue();
        let packet = queue.dequeue(now, &mut events);
        self.free_at = packet.map(|packet| {
            let end = now + self.rate.tx_time(packet.size());
            self.travelling.push_back((end + self.delay, packet));
            end
        });
    }
}

impl<P: Packet> fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("rate", &self.rate)
            .field("delay", &self.delay)
            .field("backlog", &self.backlog())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// A [`Link`] in times of the standard library: for a program whose protocol takes an [`Instant`].
///
/// The time of the first call is that at which the link begins to exist. Times are exact to the nanosecond, and for 213
/// days from then on.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use redtail_core::{Bytes, Rate};
/// use redtail_qdisc::queues::fq_codel::FqCodelParams;
/// use redtail_qdisc::{Bottleneck, Datagram, QueueParams};
///
/// let queue = QueueParams::FqCodel(FqCodelParams::default());
/// let rate = Rate::from_bps(10_000_000);
/// let mut bottleneck = Bottleneck::new(&queue, rate, Duration::from_millis(20), 1)?;
///
/// # #[allow(clippy::disallowed_methods)]
/// let start = Instant::now();
/// bottleneck.send(Datagram::new(vec![7; 1200], Bytes::new(1228)), start);
/// let mut arrived = Vec::new();
/// while let Some(now) = bottleneck.next_event() {
///     arrived.extend(bottleneck.receive(now).map(|datagram| (now - start, datagram.into_payload())));
/// }
/// assert_eq!(arrived, [(Duration::from_nanos(20_982_400), vec![7; 1200])]);
/// # Ok::<(), redtail_core::ParamError>(())
/// ```
#[derive(Debug)]
pub struct Bottleneck<P: Packet> {
    link: Link<P>,
    start: Option<Instant>,
}

impl<P: Packet> Bottleneck<P> {
    /// A bottleneck with this queue. `seed` decides what the queue draws at random.
    ///
    /// # Errors
    /// As [`Link::new`].
    pub fn new(
        queue: &QueueParams,
        rate: Rate,
        delay: Duration,
        seed: u64,
    ) -> Result<Self, ParamError> {
        Link::new(queue, rate, delay.into(), seed).map(Self::from)
    }

    /// Calls `on_drop` with each packet that the queue drops from now on, and the reason.
    pub fn on_drop(&mut self, mut on_drop: impl FnMut(P, DropReason) + Send + 'static) {
        self.link
            .on_drop(move |packet, reason, _| on_drop(packet, reason));
    }

    /// A packet arrives at the queue. A time before that of an earlier call counts as that.
    pub fn send(&mut self, packet: P, now: Instant) {
        let now = self.time(now);
        self.link.send(packet, now);
    }

    /// The next packet that has arrived at the other end until `now`; `None` if there is none now. Call it until it
    /// returns `None`.
    pub fn receive(&mut self, now: Instant) -> Option<P> {
        let now = self.time(now);
        self.link.receive(now)
    }

    /// When [`receive`](Self::receive) is to be called next, if nothing is sent before; `None` if nothing will happen.
    /// Where a queue holds packets back, nothing may have arrived then, and the next time is to be asked for.
    pub fn next_event(&self) -> Option<Instant> {
        let after = self.link.next_event()? - Time::ZERO;
        self.start?.checked_add(after.into())
    }

    /// The link with its counters and its queue.
    pub fn link(&self) -> &Link<P> {
        &self.link
    }

    /// The time in the link.
    fn time(&mut self, now: Instant) -> Time {
        let start = *self.start.get_or_insert(now);
        Time::ZERO + now.saturating_duration_since(start).into()
    }
}

impl<P: Packet> From<Link<P>> for Bottleneck<P> {
    /// The link begins to exist with the first call.
    fn from(link: Link<P>) -> Self {
        Self { link, start: None }
    }
}

/// A bottleneck for each direction.
#[derive(Debug)]
pub struct Path<P: Packet> {
    /// From the client to the server.
    pub up: Bottleneck<P>,
    /// From the server to the client.
    pub down: Bottleneck<P>,
}

impl<P: Packet> Path<P> {
    /// When `receive` is to be called next for one of the directions, if nothing is sent before.
    pub fn next_event(&self) -> Option<Instant> {
        let events = [self.up.next_event(), self.down.next_event()];
        events.into_iter().flatten().min()
    }
}
