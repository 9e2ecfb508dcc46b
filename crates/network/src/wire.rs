//! The wire behind a link's transmitter: what happens to a packet from the end of its transmission until it has crossed the
//! link's propagation delay.
//!
//! The table `wire` of the experiment file (`redtail_spec::WireParams`) says what, and in which order. For each packet it is
//! decided here at the end of its transmission whether it is lost, goes at once, or is held until a time. The line behind the link
//! has the shortest propagation delay that the link ever has; all that a packet takes more, the wire holds it. Packets that
//! are held are in a heap by the time of their release and the order of their entry, and the schedule has one event for
//! the first of them (`Class::Wire`). A wire that only loses, duplicates or limits holds nothing, and costs no event.
//!
//! | symbol | is |
//! |---|---|
//! | t | the end of the transmission |
//! | b(t) | the next release of `batches` at t or later; t without |
//! | g(t) | the end of the `gap` in which t lies; t outside of one |
//! | d(t) | the propagation delay at t |
//! | j | the draw of `jitter` |
//! | x | the draw of `reorder.by` for a packet that is chosen; 0 for others |
//!
//! A packet arrives at a + x with a = g(b(t)) + d(b(t)) + j, or, where the order is kept, with a the largest of this and of the a of
//! all packets before it. So nobody waits for a packet that is chosen.
//!
//! Reordered is a packet that leaves the wire after one that entered it later (RFC 4737, section 3.3, with the packets of the link as
//! the stream and the order of entry as the sequence numbers; copies are not counted, as the section asks).

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use redtail_core::{Metric, Places, Span, Stream, Time};
use redtail_spec::{
    BatchesParams, DelayChanges, EventKind, GilbertElliottParams, LinkParams, Loss, Order,
    WireParams,
};
use redtail_traffic::Dist;

use crate::events::PacketEvent;
use crate::link::Ends;
use crate::metrics::{WIRE_DELAY_MAX, WIRE_DELAY_MEAN, WIRE_DUPLICATES, WIRE_LOSS, WIRE_REORDERED};
use crate::packet::SimPacket;
use crate::paths::Paths;
use crate::scheduler::{Class, Event, Scheduler};

const PS_PER_S: f64 = 1e12;

/// What a draw of a random time counts at most: the longest delay that a link may have.
const LONGEST: Span = Span::from_s(3600);

/// The wire of a link.
#[derive(Debug)]
pub struct Wire {
    /// The number of the link.
    link: u32,
    /// Its shortest propagation delay, which packets have before them when they leave the wire.
    delay: Span,
    losses: Option<Losses>,
    duplicates: Option<Chance>,
    limit: Option<Limit>,
    /// What holds packets; `None` if nothing does.
    hold: Option<Hold>,
    /// Whether packets may overtake each other.
    reorders: bool,
    /// Packets that are held.
    held: BinaryHeap<Reverse<Held>>,
    /// When the schedule has an event for the first of them; [`Time::MAX`] if there is none.
    due: Time,
    /// Packets that have entered, copies not counted: the number of the next.
    entered: u64,
    /// The number of the packet that has left and entered last; RFC 4737 has one more, `NextExp`.
    latest: Option<u64>,
    /// Packets over the whole run.
    pub passed: WirePassed,
    /// Packets in the measurement period.
    pub counted: WireCounted,
}

/// Packets that passed a wire, over the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub struct WirePassed {
    /// Packets that the transmitter sent.
    pub transmitted: u64,
    /// Packets lost, and dropped because the delay line was full.
    pub lost: u64,
    /// Copies made.
    pub copies: u64,
    /// Packets sent on.
    pub left: u64,
}

/// What happened on a wire in the measurement period.
#[derive(Clone, Copy, Debug, Default)]
pub struct WireCounted {
    /// Packets that the transmitter sent.
    pub transmitted: u64,
    /// Packets lost, copies among them.
    pub lost: u64,
    /// Copies made.
    pub copies: u64,
    /// Packets and copies that entered the delay line, and the sum of their times on it in picoseconds.
    pub delays: (u64, u128),
    /// The longest of these times.
    pub longest: Span,
    /// Packets that left, copies not counted.
    pub left: u64,
    /// Packets of these that were reordered.
    pub reordered: u64,
}

/// A draw that comes true with a probability.
#[derive(Debug)]
struct Chance {
    probability: f64,
    stream: Stream,
}

impl Chance {
    /// It draws each time, so that with the same random numbers a higher probability chooses the same packets and others.
    fn draw(&mut self) -> bool {
        self.stream.uniform() < self.probability
    }
}

/// Which packets are lost.
#[derive(Debug)]
enum Losses {
    Independent(Chance),
    GilbertElliott {
        model: GilbertElliottParams,
        bad: bool,
        stream: Stream,
    },
}

impl Losses {
    fn new(loss: &Loss, mut stream: Stream) -> Self {
        match loss {
            &Loss::Independent(probability) => Self::Independent(Chance {
                probability,
                stream,
            }),
            Loss::GilbertElliott(model) => Self::GilbertElliott {
                bad: stream.uniform() < model.bad(),
                model: model.clone(),
                stream,
            },
        }
    }

    /// Whether the packet that is transmitted now is lost.
    fn loses(&mut self) -> bool {
        match self {
            Self::Independent(chance) => chance.draw(),
            Self::GilbertElliott { model, bad, stream } => {
                let [lost, changes] = match bad {
                    true => [1.0 - model.h, model.r],
                    false => [1.0 - model.k, model.p],
                };
                let lost = stream.uniform() < lost;
                *bad ^= stream.uniform() < changes;
                lost
            }
        }
    }
}

/// The most packets on the delay line.
#[derive(Debug)]
struct Limit {
    most: u64,
    /// When the packets arrive that have left the wire and are on the line.
    arrivals: VecDeque<Time>,
}

/// What holds packets.
#[derive(Debug)]
struct Hold {
    batches: Option<Batches>,
    delays: Option<Delays>,
    jitter: Option<(Dist<Span>, Stream)>,
    reorder: Option<(Chance, Dist<Span>, Stream)>,
    /// Where the order is kept: before this time no packet is released.
    not_before: Option<Time>,
}

/// Releases at the multiples of a span.
#[derive(Debug)]
struct Batches {
    every: Span,
    most: u64,
    /// The number of the latest release for which a packet waits, and how many do.
    latest: (u64, u64),
}

impl Batches {
    fn new(params: &BatchesParams) -> Self {
        Self {
            every: params.every,
            most: params.packets.unwrap_or(u64::MAX),
            latest: (0, 0),
        }
    }

    /// When the packet that is transmitted at `now` is released.
    fn release(&mut self, now: Time) -> Time {
        let (release, count) = &mut self.latest;
        let first = now.as_ps().div_ceil(self.every.as_ps());
        if first > *release {
            (*release, *count) = (first, 0);
        }
        if *count >= self.most {
            *release += 1;
            *count = 0;
        }
        *count += 1;
        Time::from_ps(*release * self.every.as_ps())
    }
}

/// A propagation delay that changes, less the shortest.
#[derive(Debug)]
enum Delays {
    /// The times of the changes, each with the end of its gap and the delay from then on; the first is the start of the run.
    Steps(Vec<(Time, Time, Span)>),
    Handovers {
        first: Span,
        least: Span,
        every: Span,
        gap: Span,
        law: Dist<Span>,
        places: Places,
    },
}

impl Delays {
    /// Those of a link, if its delay changes.
    fn of(link: &LinkParams, wire: &WireParams, stream: impl Fn(&str) -> Stream) -> Option<Self> {
        let least = link.least_delay();
        let at = |span: Span| Time::ZERO + span;
        let mut steps = vec![(Time::ZERO, Time::ZERO, link.delay - least)];
        match (&wire.delay_changes, &wire.delay_trace) {
            (Some(DelayChanges::Handovers(law)), _) => {
                return Some(Self::Handovers {
                    first: link.delay - least,
                    least,
                    every: law.every,
                    gap: law.gap.unwrap_or_default(),
                    law: law.delay.clone(),
                    places: stream("handovers").places(),
                });
            }
            (Some(DelayChanges::Steps(changes)), _) => {
                steps.extend(changes.iter().map(|it| {
                    let open = at(it.at + it.gap.unwrap_or_default());
                    (at(it.at), open, it.delay - least)
                }));
            }
            (None, Some(trace)) => {
                let changes = trace.steps().iter();
                steps.extend(changes.map(|&(time, delay)| (at(time), at(time), delay - least)));
            }
            (None, None) => return None,
        }
        Some(Self::Steps(steps))
    }

    /// When a packet is released that enters the delay line at `now`.
    fn release(&self, now: Time) -> Time {
        match self {
            Self::Steps(steps) => {
                let next = steps.partition_point(|step| step.0 <= now);
                let (_, open, delay) = steps[next - 1];
                now.max(open) + delay
            }
            Self::Handovers {
                first,
                least,
                every,
                gap,
                law,
                places,
            } => {
                let number = now.as_ps() / every.as_ps();
                if number == 0 {
                    return now + *first;
                }
                let open = Time::from_ps(number * every.as_ps()) + *gap;
                let delay = law.quantile(places.uniform([number, 0]));
                now.max(open) + delay.saturating_sub(*least)
            }
        }
    }
}

impl Hold {
    /// When a packet is released that is transmitted at `now`.
    fn release(&mut self, now: Time) -> Time {
        let mut at = now;
        if let Some(batches) = &mut self.batches {
            at = batches.release(at);
        }
        if let Some(delays) = &self.delays {
            at = delays.release(at);
        }
        if let Some((law, stream)) = &mut self.jitter {
            at += law.draw(stream).min(LONGEST);
        }
        if let Some(not_before) = &mut self.not_before {
            at = at.max(*not_before);
            *not_before = at;
        }
        if let Some((share, by, stream)) = &mut self.reorder {
            let by = by.draw(stream).min(LONGEST);
            if share.draw() {
                at += by;
            }
        }
        at
    }
}

/// A packet that is held.
#[derive(Debug)]
struct Held {
    until: Time,
    /// Its number among those that entered, which a copy has from its packet.
    number: u64,
    copy: bool,
    packet: SimPacket,
}

impl Held {
    fn key(&self) -> (Time, u64, bool) {
        (self.until, self.number, self.copy)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Wire {
    /// That of a link, the `number`-th of its network; `None` if packets only cross its delay. `stream` makes the streams of
    /// random numbers by their names.
    pub(crate) fn of(
        link: &LinkParams,
        number: u32,
        stream: impl Fn(&str) -> Stream,
    ) -> Option<Box<Self>> {
        let wire = link.wire.as_ref()?;
        let chance = |probability: f64, name: &str| Chance {
            probability,
            stream: stream(name),
        };
        let hold = wire.holds().then(|| Hold {
            batches: wire.batches.as_ref().map(Batches::new),
            delays: Delays::of(link, wire, &stream),
            jitter: (wire.jitter.clone()).map(|law| (law, stream("wire.jitter"))),
            reorder: wire.reorder.as_ref().map(|it| {
                let share = chance(it.share, "wire.reorder");
                (share, it.by.clone(), stream("wire.reorder.by"))
            }),
            not_before: (wire.order != Some(Order::Free)).then_some(Time::ZERO),
        });
        Some(Box::new(Self {
            link: number,
            delay: link.least_delay(),
            losses: (wire.loss.as_ref()).map(|loss| Losses::new(loss, stream("loss"))),
            duplicates: wire.duplicate.map(|p| chance(p, "wire.duplicate")),
            limit: wire.limit.map(|most| Limit {
                most,
                arrivals: VecDeque::new(),
            }),
            hold,
            reorders: wire.reorders(),
            held: BinaryHeap::new(),
            due: Time::MAX,
            entered: 0,
            latest: None,
            passed: WirePassed::default(),
            counted: WireCounted::default(),
        }))
    }

    /// Whether it may hold packets: then its link works in time, and never lags behind the schedule.
    pub(crate) fn holds(&self) -> bool {
        self.hold.is_some()
    }

    /// The packets that it holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = &SimPacket> {
        self.held.iter().map(|held| &held.0.packet)
    }

    /// A packet has been transmitted. `measuring` is whether the measurement period has begun.
    #[cold] // most links have no wire
    #[inline(never)]
    pub(crate) fn carry<E: Ends>(
        &mut self,
        packet: &SimPacket,
        measuring: bool,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        self.passed.transmitted += 1;
        self.counted.transmitted += u64::from(measuring);
        let is_copied = self.duplicates.as_mut().is_some_and(Chance::draw);
        if self.losses.as_mut().is_some_and(Losses::loses) {
            return self.lose(packet, None, measuring, now, ends);
        }
        // Before the packet enters: it may be dropped there, and its content with it.
        let copy = is_copied.then(|| SimPacket {
            content: ends.duplicate(packet),
            ..*packet
        });
        let number = self.entered;
        self.entered += 1;
        let each = std::iter::once((packet, false)).chain(copy.iter().map(|copy| (copy, true)));
        for (packet, copy) in each {
            self.passed.copies += u64::from(copy);
            self.counted.copies += u64::from(copy && measuring);
            if self.is_full(now) {
                self.lose(packet, Some("limit"), measuring, now, ends);
                continue;
            }
            let until = self.hold.as_mut().map_or(now, |hold| hold.release(now));
            if measuring {
                let takes = until.since(now) + self.delay;
                let (count, sum) = &mut self.counted.delays;
                *count += 1;
                *sum += u128::from(takes.as_ps());
                self.counted.longest = self.counted.longest.max(takes);
            }
            let held = Held {
                until,
                number,
                copy,
                packet: *packet,
            };
            if until <= now && self.due > now {
                self.leave(&held, measuring, now, paths, scheduler);
            } else {
                self.held.push(Reverse(held));
                self.arm(scheduler);
            }
        }
    }

    /// The packets whose time has come leave the wire.
    pub(crate) fn release(
        &mut self,
        measuring: bool,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
    ) {
        if self.due != now {
            return; // of a packet that was the first until another came
        }
        while self.held.peek().is_some_and(|first| first.0.until <= now) {
            if let Some(Reverse(held)) = self.held.pop() {
                self.leave(&held, measuring, now, paths, scheduler);
            }
        }
        self.due = Time::MAX;
        self.arm(scheduler);
    }

    /// Schedules the release of the first packet that is held.
    fn arm(&mut self, scheduler: &mut Scheduler) {
        let first = self.held.peek().map_or(Time::MAX, |held| held.0.until);
        if first < self.due {
            self.due = first;
            scheduler.add(Event::new(first, Class::Wire, self.link));
        }
    }

    fn leave(
        &mut self,
        held: &Held,
        measuring: bool,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
    ) {
        self.passed.left += 1;
        if !held.copy {
            let is_late = self.latest.is_some_and(|latest| held.number < latest);
            self.latest = self.latest.max(Some(held.number));
            self.counted.left += u64::from(measuring);
            self.counted.reordered += u64::from(is_late && measuring);
        }
        if let Some(limit) = &mut self.limit {
            limit.arrivals.push_back(now + self.delay);
        }
        paths.send(&held.packet, now, scheduler);
    }

    /// Whether the delay line has no room for another packet.
    fn is_full(&mut self, now: Time) -> bool {
        let Some(limit) = &mut self.limit else {
            return false;
        };
        while limit.arrivals.front().is_some_and(|at| *at <= now) {
            limit.arrivals.pop_front();
        }
        (limit.arrivals.len() + self.held.len()) as u64 >= limit.most
    }

    fn lose<E: Ends>(
        &mut self,
        packet: &SimPacket,
        reason: Option<&'static str>,
        measuring: bool,
        now: Time,
        ends: &mut E,
    ) {
        self.passed.lost += 1;
        self.counted.lost += u64::from(measuring);
        ends.tell(PacketEvent {
            kind: EventKind::WireLoss,
            reason,
            link: self.link,
            packet,
            since: None,
            now,
        });
        ends.lost(packet);
    }

    /// The metrics of the measurement period that are defined.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = (&'static Metric, f64)> {
        let WireCounted {
            transmitted,
            lost,
            copies,
            delays: (on_line, sum),
            longest,
            left,
            reordered,
        } = self.counted;
        let ratio = |wanted: bool, part: u64, whole: u64| {
            (wanted && whole > 0).then(|| part as f64 / whole as f64)
        };
        let loses = self.losses.is_some() || self.limit.is_some();
        let copied = self.duplicates.is_some();
        let delays = self.hold.is_some() && on_line > 0;
        let seconds = |ps: f64| ps / PS_PER_S;
        let values = [
            (WIRE_LOSS, ratio(loses, lost, transmitted + copies)),
            (WIRE_DUPLICATES, ratio(copied, copies, transmitted)),
            (WIRE_REORDERED, ratio(self.reorders, reordered, left)),
            (
                WIRE_DELAY_MEAN,
                delays.then(|| seconds(sum as f64 / on_line as f64)),
            ),
            (WIRE_DELAY_MAX, delays.then(|| longest.as_secs_f64())),
        ];
        let defined = |(metric, value): (&'static Metric, Option<f64>)| Some((metric, value?));
        values.into_iter().filter_map(defined)
    }

    /// Checks that it has neither made nor lost packets.
    ///
    /// # Panics
    /// When the counters do not balance: a fault of redtail.
    pub(crate) fn check_conservation(&self, name: &str) {
        let passed = self.passed;
        let held = self.held.len() as u64;
        assert_eq!(
            passed.transmitted + passed.copies,
            passed.lost + passed.left + held,
            "packets on the wire of {name} do not add up: {passed:?}, {held} held"
        );
    }
}
