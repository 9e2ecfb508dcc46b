//! The schedule of events.
//!
//! Few things need a place here: each link in transmission, the head of each
//! delay line, each armed timer. Events at the same picosecond happen in the
//! order of [`Class`], then of the index within the class: a total order that
//! does not depend on when an event was scheduled, so it survives refactoring.
//!
//! Links and lines, which make nearly all events, have at most one event each
//! and stand in a tournament tree: a change costs a fixed number of comparisons
//! without a branch to mispredict. A second tree holds the releases of paced
//! senders, at most one each: nearly every packet of theirs sets one. Everything
//! else is in a calendar, which the hot path only peeks at. All were chosen by
//! measurement (docs/performance-log.md).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use redtail_core::{Span, Time};

use crate::lookahead::Lookahead;

/// The classes of events, in the order in which simultaneous ones happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// The measurement period, or a phase of it, begins: it includes everything at that instant.
    Measure = 0,
    /// A sample for time series: shows the state before that instant's events.
    Sample = 1,
    /// A link finished a transmission: room appears before arrivals claim it.
    LinkFree = 2,
    /// A wire releases packets that it held: they reach their line as those do that are transmitted now.
    Wire = 3,
    /// The head of a delay line arrives.
    Arrival = 4,
    /// A queue discipline asked to be woken.
    QueueWakeup = 5,
    /// A receiver's delayed acknowledgement.
    ReceiverTimer = 6,
    /// A sender's retransmission timer: after arrivals that may cancel it.
    SenderTimer = 7,
    /// A timer of either side of a user's connection, or a response that is ready.
    Connection = 8,
    /// A flow starts, a UDP source or a call sends, or a user acts.
    Source = 9,
}

/// The classes by number, filled up to a power of two.
const CLASSES: [Class; 16] = [
    Class::Measure,
    Class::Sample,
    Class::LinkFree,
    Class::Wire,
    Class::Arrival,
    Class::QueueWakeup,
    Class::ReceiverTimer,
    Class::SenderTimer,
    Class::Connection,
    Class::Source,
    Class::Source,
    Class::Source,
    Class::Source,
    Class::Source,
    Class::Source,
    Class::Source,
];

/// An event: when, of what class, and which of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    at: Time,
    class: Class,
    index: u32,
}

impl Event {
    /// An event of `class` for component `index` at `at`.
    #[inline]
    pub fn new(at: Time, class: Class, index: u32) -> Self {
        Self { at, class, index }
    }

    /// The time of the event.
    #[inline]
    pub fn at(self) -> Time {
        self.at
    }

    /// The class of the event.
    #[inline]
    pub fn class(self) -> Class {
        self.class
    }

    /// The index of its component.
    #[inline]
    pub fn index(self) -> u32 {
        self.index
    }
}

/// An event in half the memory. Comparing two of them is comparing two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packed(u128);

impl Packed {
    #[inline]
    fn new(event: Event) -> Self {
        let Event { at, class, index } = event;
        Self(u128::from(at.as_ps()) << 64 | u128::from(class as u8) << 32 | u128::from(index))
    }

    #[inline]
    fn at(self) -> Time {
        Time::from_ps((self.0 >> 64) as u64)
    }

    #[inline]
    fn event(self) -> Event {
        let class = CLASSES[(self.0 >> 32) as usize & 15];
        Event::new(self.at(), class, self.0 as u32)
    }
}

/// The next events of a fixed set of components, at most one each.
///
/// A winner tree: the root is the least of all leaves. It is made of [`Group`]s: up to 2^`LEVELS` components are the
/// leaves of one; of more, groups are the leaves of others.
#[derive(Debug)]
struct Tournament<const LEVELS: u32> {
    /// The group with the root.
    top: Group<LEVELS>,
    /// The groups below it, by level: those of the components first.
    below: Vec<Vec<Group<LEVELS>>>,
}

/// A winner tree of 2^`LEVELS` leaves, so that a change is a constant number of steps. Node 1 is the root; node i has
/// the children 2i and 2i + 1; the leaves come last. Each inner node is the lesser of its two children.
///
/// A node holds a time and, in its lowest bits, the leaf that it comes from: one number, so that a node costs a
/// comparison and no branch, and of equal times that of the first leaf is the least.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Group<const LEVELS: u32> {
    nodes: [u64; 2 << MOST_LEVELS],
    form: Form,
}

/// The most levels of a group.
const MOST_LEVELS: u32 = 6;

/// How nodes divide their bits: with 6 for the leaf they have room for times up to 3.3 days. In longer runs fewer
/// are left, and groups are smaller.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// The bits for the leaf.
    bits: u32,
    /// The time of a component without an event: the latest that a node can hold.
    never: u64,
    /// The bits of a node that are the leaf.
    leaf: u64,
}

impl Form {
    /// For events before `end`; later ones never happen.
    fn until(end: Time) -> Self {
        let bits = (end.as_ps() + 1).leading_zeros().min(MOST_LEVELS);
        assert!(bits > 0, "a run of {end:?} is too long");
        let never = u64::MAX >> bits;
        Self {
            bits,
            never,
            leaf: (1 << bits) - 1,
        }
    }

    /// The most leaves of a group with so many levels.
    #[inline]
    fn leaves(self, levels: u32) -> usize {
        1 << self.bits.min(levels)
    }
}

impl<const LEVELS: u32> Group<LEVELS> {
    const LEAVES: usize = 1 << LEVELS;

    /// A group without events.
    fn new(form: Form) -> Self {
        let mut group = Self {
            nodes: [u64::MAX; 2 << MOST_LEVELS],
            form,
        };
        for leaf in 0..form.leaves(LEVELS) {
            group.set(leaf, form.never);
        }
        group
    }

    /// Sets the time of a leaf.
    #[inline]
    fn set(&mut self, leaf: usize, time: u64) {
        let nodes = &mut self.nodes;
        // The remainder spares the checks of indexes.
        let mut node = Self::LEAVES + leaf % Self::LEAVES;
        let mut winner = time.min(self.form.never) << self.form.bits | leaf as u64;
        nodes[node] = winner;
        for _ in 0..LEVELS {
            winner = winner.min(nodes[node ^ 1]);
            node >>= 1;
            nodes[node] = winner;
        }
    }

    /// The least time and its leaf.
    #[inline]
    fn first(&self) -> (u64, usize) {
        let winner = self.nodes[1];
        let Form { bits, leaf, .. } = self.form;
        (winner >> bits, (winner & leaf) as usize)
    }

    /// The time of a leaf.
    #[inline]
    fn time(&self, leaf: usize) -> u64 {
        self.nodes[Self::LEAVES + leaf] >> self.form.bits
    }
}

impl<const LEVELS: u32> Tournament<LEVELS> {
    /// For events of so many components before `end`.
    fn new(components: usize, form: Form) -> Self {
        let most = form.leaves(LEVELS);
        let mut below = Vec::new();
        let mut leaves = components;
        while leaves > most {
            leaves = leaves.div_ceil(most);
            below.push(vec![Group::new(form); leaves]);
        }
        Self {
            top: Group::new(form),
            below,
        }
    }

    #[inline]
    fn set(&mut self, component: u32, time: u64) {
        if self.below.is_empty() {
            self.top.set(component as usize, time);
        } else {
            self.set_below(component as usize, time);
        }
    }

    fn set_below(&mut self, mut leaf: usize, mut time: u64) {
        let most = self.top.form.leaves(LEVELS);
        for level in &mut self.below {
            let group = &mut level[leaf / most];
            group.set(leaf % most, time);
            (time, _) = group.first();
            leaf /= most;
        }
        self.top.set(leaf, time);
    }

    /// The least time and its component.
    #[inline]
    fn first(&self) -> (u64, u32) {
        let (time, mut leaf) = self.top.first();
        for level in self.below.iter().rev() {
            leaf = leaf * self.top.form.leaves(LEVELS) + level[leaf].first().1;
        }
        (time, leaf as u32)
    }

    /// The time of a component's event; [`Form::never`] if it has none.
    #[inline]
    fn time(&self, component: u32) -> u64 {
        let component = component as usize;
        let most = self.top.form.leaves(LEVELS);
        match self.below.first() {
            Some(level) => level[component / most].time(component % most),
            None => self.top.time(component),
        }
    }

    /// The earliest time of a component with what `further` adds to it; `until` if none is earlier.
    fn first_with(&self, further: &[Span], until: u64) -> u64 {
        (0..)
            .zip(further)
            .fold(until, |until, (component, further)| {
                until.min(self.time(component).saturating_add(further.as_ps()))
            })
    }
}

/// Any number of events: a calendar of days, each an unsorted list, which is sorted when its day begins.
///
/// Thousands of timers are in the lists, to which one is added by an append. What is added to the present
/// day itself is in a heap, which stays small.
#[derive(Debug)]
struct Calendar {
    /// The events of the present day that were known when it began, the earliest last.
    present: Vec<Packed>,
    /// Events of the present day that were added later. It and `present` are both empty only if everything
    /// is.
    added: BinaryHeap<Reverse<Packed>>,
    today: u64,
    /// Day d, if within a year after today, is at index d modulo the length.
    days: Vec<Vec<Packed>>,
    /// Events in `days`.
    in_days: usize,
    /// Events later than that.
    beyond: BinaryHeap<Reverse<Packed>>,
    /// Days that were the present one before an event of an earlier day was added, the earliest last.
    suspended: Vec<Suspended>,
}

/// What was known of a day when it ceased to be the present one. It is kept as it is: a day may have the timers of
/// a million flows, and cease to be the present one for each event of one source.
#[derive(Debug)]
struct Suspended {
    day: u64,
    present: Vec<Packed>,
    added: BinaryHeap<Reverse<Packed>>,
}

/// A day has 2^33 ps, 8.6 ms; a year has 512 days, 4.4 s: most timers fit in.
const DAY_BITS: u32 = 33;
const DAYS: u64 = 512;

impl Calendar {
    fn new() -> Self {
        Self {
            present: Vec::new(),
            added: BinaryHeap::new(),
            today: 0,
            days: vec![Vec::new(); DAYS as usize],
            in_days: 0,
            beyond: BinaryHeap::new(),
            suspended: Vec::new(),
        }
    }

    fn day(event: Packed) -> u64 {
        event.at().as_ps() >> DAY_BITS
    }

    fn add(&mut self, event: Packed) {
        let day = Self::day(event);
        let ahead = day.wrapping_sub(self.today);
        if (1..DAYS).contains(&ahead) && !self.present.is_empty() {
            self.put_in_days(day, event);
        } else {
            self.add_otherwise(day, event);
        }
    }

    /// Puts an event in the list of its day, which is within a year after today.
    #[inline]
    fn put_in_days(&mut self, day: u64, event: Packed) {
        self.days[(day % DAYS) as usize].push(event);
        self.in_days += 1;
    }

    /// As [`add`](Self::add), for any day.
    #[inline(never)] // most events are added to a day to come
    fn add_otherwise(&mut self, day: u64, event: Packed) {
        if day < self.today {
            self.go_back(day);
        }
        if day == self.today {
            self.added.push(Reverse(event));
        } else if day - self.today < DAYS {
            self.put_in_days(day, event);
        } else {
            self.beyond.push(Reverse(event));
        }
        self.find_present();
    }

    /// Makes an earlier day the present one: nothing was known before `today` until now.
    fn go_back(&mut self, day: u64) {
        for late in self.today.max(day + DAYS - 1) + 1..self.today + DAYS {
            let late = &mut self.days[(late % DAYS) as usize];
            self.in_days -= late.len();
            self.beyond.extend(late.drain(..).map(Reverse));
        }
        self.suspended.push(Suspended {
            day: self.today,
            present: std::mem::take(&mut self.present),
            added: std::mem::take(&mut self.added),
        });
        self.today = day;
    }

    /// The earliest event; [`LAST`] if there is none.
    #[inline]
    fn first(&self) -> Packed {
        let known = self.present.last().copied().unwrap_or(LAST);
        self.added.peek().map_or(known, |added| known.min(added.0))
    }

    /// Removes the earliest event. Returns whether there was one.
    #[inline]
    fn pop(&mut self) -> bool {
        let popped = match self.added.is_empty() {
            true => self.present.pop().is_some(),
            false => self.pop_either(),
        };
        self.find_present();
        popped
    }

    /// As [`pop`](Self::pop), if events were added to the present day.
    #[inline(never)] // mostly there are none
    fn pop_either(&mut self) -> bool {
        let known = self.present.last().copied().unwrap_or(LAST);
        match self.added.peek() {
            Some(added) if added.0 < known => self.added.pop().is_some(),
            _ => self.present.pop().is_some(),
        }
    }

    /// Moves on to the next day with events, if the present one has none left.
    #[inline]
    fn find_present(&mut self) {
        if self.present.is_empty() && self.added.is_empty() {
            self.find_next();
        }
    }

    /// Moves on to the next day with events.
    #[inline(never)] // mostly the present day has events left
    fn find_next(&mut self) {
        while self.present.is_empty() && self.added.is_empty() {
            self.today = match self.in_days {
                0 => match self.next_far_day() {
                    Some(day) => day,
                    None => return,
                },
                _ => self.today + 1,
            };
            if let Some(day) = self.suspended.pop_if(|it| it.day == self.today) {
                (self.present, self.added) = (day.present, day.added);
            }
            let known = self.present.len();
            let day = &mut self.days[(self.today % DAYS) as usize];
            self.in_days -= day.len();
            self.present.append(day);
            while let Some(event) = self.beyond.peek().filter(|e| Self::day(e.0) <= self.today) {
                self.present.push(event.0);
                self.beyond.pop();
            }
            if self.present.len() > known {
                self.present.sort_unstable_by(|one, other| other.cmp(one));
            }
        }
    }

    /// The earliest day of the events beyond the year and of the suspended days.
    fn next_far_day(&self) -> Option<u64> {
        let beyond = self.beyond.peek().map(|event| Self::day(event.0));
        let suspended = self.suspended.last().map(|suspended| suspended.day);
        [beyond, suspended].into_iter().flatten().min()
    }
}

/// The events to come.
#[derive(Debug)]
pub struct Scheduler {
    /// Links first, then lines: the order of their classes.
    wires: Tournament<5>,
    links: u32,
    form: Form,
    /// The releases of paced senders, by sender.
    releases: Tournament<6>,
    /// The earliest event in `releases`; at [`Form::never`] if there is none. It is stored because each timer asks
    /// for it.
    next_release: Packed,
    timers: Calendar,
    /// The earliest event in `timers` for changes of releases, of which many follow each other; `None` once `timers`
    /// has changed.
    first_in_calendar: Option<Packed>,
    /// The earliest event in `timers` and `releases`; [`LAST`] or one at [`Form::never`] if there is none.
    next_timer: Packed,
}

/// An event later than all others.
const LAST: Packed = Packed(u128::MAX);

impl Scheduler {
    /// An empty schedule for a network of `links` links and `lines` delay lines, and for events before `end`: at
    /// most 106 days.
    ///
    /// # Panics
    /// When `end` is later.
    pub fn new(links: usize, lines: usize, end: Time) -> Self {
        let form = Form::until(end);
        Self {
            wires: Tournament::new(links + lines, form),
            links: links as u32,
            form,
            releases: Tournament::new(0, form),
            next_release: Packed::new(Event::new(Time::from_ps(form.never), Class::SenderTimer, 0)),
            timers: Calendar::new(),
            first_in_calendar: None,
            next_timer: LAST,
        }
    }

    /// Makes room for the releases of `senders` senders, of which none waits for one yet.
    pub fn pace(&mut self, senders: usize) {
        self.releases = Tournament::new(senders, self.form);
    }

    /// `link` will have finished its transmission by `at`; [`Time::MAX`] if it is idle.
    #[inline]
    pub fn set_link(&mut self, link: u32, at: Time) {
        self.wires.set(link, at.as_ps());
    }

    /// The head of `line` will arrive at `at`; `None` if the line is empty.
    #[inline]
    pub fn set_line(&mut self, line: u32, at: Option<Time>) {
        self.wires
            .set(self.links + line, at.map_or(self.form.never, Time::as_ps));
    }

    /// Pacing holds back a segment of `sender` until `at`; `None` if it holds back none. The event is of
    /// class [`Class::SenderTimer`].
    #[inline]
    pub fn set_release(&mut self, sender: u32, at: Option<Time>) {
        let at = at.map_or(self.form.never, Time::as_ps);
        if self.releases.time(sender) != at {
            self.releases.set(sender, at);
            let (time, sender) = self.releases.first();
            self.next_release =
                Packed::new(Event::new(Time::from_ps(time), Class::SenderTimer, sender));
            let timers = &self.timers;
            let first = *self.first_in_calendar.get_or_insert_with(|| timers.first());
            self.next_timer = first.min(self.next_release);
        }
    }

    /// Adds an event of any other class. There may be several for a component;
    /// the component recognises those that are out of date.
    pub fn add(&mut self, event: Event) {
        debug_assert!(!matches!(event.class(), Class::LinkFree | Class::Arrival));
        let event = Packed::new(event);
        self.timers.add(event);
        self.first_in_calendar = None;
        self.next_timer = self.next_timer.min(event);
    }

    /// The next event, which stays where it is.
    #[inline]
    pub fn first(&self) -> Option<Event> {
        let wire = self.first_wire();
        let first = match self.wire_is_first(wire) {
            true => wire,
            false => self.next_timer.event(),
        };
        (first.at().as_ps() < self.form.never).then_some(first)
    }

    /// The next event that is neither of a link nor of a line; at a time that no run reaches if there is none.
    #[inline]
    pub fn first_timer(&self) -> Event {
        self.next_timer.event()
    }

    /// Until when no host gets a packet, unless hosts send ([`Lookahead::of_network`]): the network may lag behind until
    /// then, as long as its events are carried out in their order and before anything is sent.
    pub fn horizon(&self, lookahead: &Lookahead) -> Time {
        let others = self.next_timer.at() + lookahead.others;
        Time::from_ps(self.wires.first_with(&lookahead.wires, others.as_ps()))
    }

    /// The next event of a link or a line; at [`Form::never`] if there is none.
    #[inline]
    fn first_wire(&self) -> Event {
        let (time, leaf) = self.wires.first();
        if leaf < self.links {
            Event::new(Time::from_ps(time), Class::LinkFree, leaf)
        } else {
            Event::new(Time::from_ps(time), Class::Arrival, leaf - self.links)
        }
    }

    /// Whether `wire` comes before the earliest event of timers and releases. Mostly their times tell.
    #[inline]
    fn wire_is_first(&self, wire: Event) -> bool {
        wire.at() < self.next_timer.at()
            || wire.at() == self.next_timer.at() && Packed::new(wire) < self.next_timer
    }

    /// The next event. That of a link, line or release stays until it is set anew.
    #[inline]
    pub fn take_next(&mut self) -> Option<Event> {
        let wire = self.first_wire();
        if self.wire_is_first(wire) {
            return (wire.at().as_ps() < self.form.never).then_some(wire);
        }
        let timer = self.next_timer;
        if timer != self.next_release {
            if !self.timers.pop() {
                return None;
            }
            self.first_in_calendar = None;
            self.next_timer = self.timers.first().min(self.next_release);
        }
        Some(timer.event())
    }
}

/// A component's timer, re-armed lazily: a deadline that moved back leaves the
/// event where it is, and the component, woken too early, arms again.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    /// When it is armed for; [`Time::MAX`] if it is off, which takes half the memory of an option.
    at: Time,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { at: Time::MAX }
    }
}

impl Alarm {
    /// When it is armed for; `None` if it is off.
    #[inline]
    pub fn armed(self) -> Option<Time> {
        (self.at < Time::MAX).then_some(self.at)
    }

    /// Ensures that there is an event no later than `deadline`.
    #[inline]
    pub fn arm(
        &mut self,
        deadline: Option<Time>,
        class: Class,
        index: u32,
        scheduler: &mut Scheduler,
    ) {
        if let Some(at) = deadline
            && at < self.at
        {
            self.at = at;
            scheduler.add(Event::new(at, class, index));
        }
    }

    /// Whether an event at `now` is the one armed last, and not one that an
    /// earlier deadline replaced; the alarm is then off.
    #[inline]
    pub fn rings(&mut self, now: Time) -> bool {
        let rings = self.at == now;
        if rings {
            self.at = Time::MAX;
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// One component of one class, as the model keeps it.
    type Key = (u64, Class, u32);

    /// A step's class beyond those of [`Class`]: a release of a sender.
    const RELEASE: usize = 9;

    proptest! {
        #[test]
        fn a_tournament_of_any_size_finds_the_least_time_and_its_first_component(
            components in prop_oneof![1usize..40, 1000usize..1100],
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u64..60, 0u32..60), 1..100),
            bits in 1u32..=MOST_LEVELS,
        ) {
            let never = u64::MAX >> bits;
            let mut tournament = Tournament::<5>::new(components, Form { bits, never, leaf: (1 << bits) - 1 });
            let mut times = vec![never; components];
            for (component, time, scale) in changes {
                let component = component.index(components);
                // Times that no node can hold are those of events that never happen.
                let time = time << scale;
                tournament.set(component as u32, time);
                times[component] = time.min(never);
                let expected = times.iter().zip(0u32..).min().map(|(&time, component)| (time, component));
                let (time, first) = tournament.first();
                prop_assert_eq!(Some(time), expected.map(|(time, _)| time));
                if time < never {
                    prop_assert_eq!(Some(first), expected.map(|(_, component)| component));
                }
                prop_assert_eq!(tournament.time(component as u32), times[component]);
            }
        }

        #[test]
        fn events_come_in_order_of_time_class_and_index(
            steps in proptest::collection::vec(
                (0u64..50, 0u32..45, 0..=RELEASE, 0u32..5, any::<bool>()),
                1..300,
            ),
            wires in proptest::collection::vec(0u64..1000, 10),
            others in 0u64..1000,
        ) {
            let mut scheduler = Scheduler::new(5, 5, Time::from_ps(1 << 58));
            scheduler.pace(5);
            let wires_ahead = wires.into_iter().map(Span::from_ps).collect();
            let lookahead = Lookahead { wires: wires_ahead, others: Span::from_ps(others) };
            // The pending events: wires by component, timers in the order in which they were added.
            let mut wires: BTreeMap<(Class, u32), u64> = BTreeMap::new();
            let mut timers: Vec<Key> = Vec::new();
            let mut releases: BTreeMap<u32, u64> = BTreeMap::new();
            for (ps, scale, class, index, take) in steps {
                // From ties within a day to times beyond the calendar's year.
                let ps = ps << scale;
                let at = Time::from_ps(ps);
                match CLASSES[class] {
                    _ if class == RELEASE => {
                        scheduler.set_release(index, Some(at));
                        releases.insert(index, ps);
                    }
                    Class::LinkFree => {
                        scheduler.set_link(index, at);
                        wires.insert((Class::LinkFree, index), ps);
                    }
                    Class::Arrival => {
                        scheduler.set_line(index, Some(at));
                        wires.insert((Class::Arrival, index), ps);
                    }
                    class => {
                        scheduler.add(Event::new(at, class, index));
                        timers.push((ps, class, index));
                    }
                }
                if !take {
                    continue;
                }
                let wire = wires.iter().map(|(&(class, index), &ps)| (ps, class, index));
                let release = releases.iter().map(|(&index, &ps)| (ps, Class::SenderTimer, index));
                let others: Vec<Key> = release.chain(timers.iter().copied()).collect();
                let expected = wire.chain(others.iter().copied()).min();
                let first = scheduler.first().map(|e| (e.at().as_ps(), e.class(), e.index()));
                prop_assert_eq!(first, expected);
                let effects = wires.iter().map(|(&(class, index), &ps)| {
                    ps + lookahead.wires[(index + 5 * u32::from(class == Class::Arrival)) as usize].as_ps()
                });
                let others = others.iter().map(|&(ps, ..)| ps + lookahead.others.as_ps());
                let effect = effects.chain(others).min();
                prop_assert_eq!(Some(scheduler.horizon(&lookahead).as_ps()), effect);
                let got = scheduler.take_next().map(|e| (e.at().as_ps(), e.class(), e.index()));
                prop_assert_eq!(got, expected);
                match got.expect("something is pending") {
                    (_, Class::LinkFree, link) => {
                        scheduler.set_link(link, Time::MAX);
                        wires.remove(&(Class::LinkFree, link));
                    }
                    (_, Class::Arrival, line) => {
                        scheduler.set_line(line, None);
                        wires.remove(&(Class::Arrival, line));
                    }
                    (ps, Class::SenderTimer, sender) if releases.get(&sender) == Some(&ps) => {
                        scheduler.set_release(sender, None);
                        releases.remove(&sender);
                    }
                    key => {
                        let i = timers.iter().position(|&timer| timer == key).expect("it was added");
                        timers.swap_remove(i);
                    }
                }
            }
        }
    }
}
