//! Measurements at the queues, in the measurement period only.
//!
//! They count arrivals, drops, marks, departures and transmissions at each link, for each group, from the
//! instant the measurement begins, and once more for the present phase if there are phases. Lengths are
//! integrated over time, delays go into a `histogram`, and `congestion` tells which flows lose together. At the
//! end `histograms` turns distributions into bins that are the same in every run, and `flow_rows` makes the
//! table of flows of what endpoints have counted since the measurement began. docs/explanation/metrics.md has
//! the definitions.
//!
//! Measurements never change a run: the engine does not read them.

use std::iter;

use redtail_core::{Span, Time, as_f64};

use crate::capacity::Capacity;
use crate::congestion::{CongestionEvents, CongestionSummary};
use crate::histogram::{ThreeDigits, TwoDigits};

/// A quantity that is constant between changes. Its statistics weight each value by its duration.
#[derive(Clone, Debug)]
pub struct TimeWeighted {
    since: Time,
    value: f64,
    area: f64,
    area_of_squares: f64,
}

impl TimeWeighted {
    /// The quantity has `value` from `now` on.
    pub fn new(now: Time, value: f64) -> Self {
        Self {
            since: now,
            value,
            area: 0.0,
            area_of_squares: 0.0,
        }
    }

    /// Sets the quantity to `value` from `now` on.
    #[inline]
    pub fn set(&mut self, value: f64, now: Time) {
        let held = now.since(self.since).as_ps_f64();
        let weighted = self.value * held;
        self.area += weighted;
        self.area_of_squares += weighted * self.value;
        self.value = value;
        self.since = now;
    }

    /// Adds `change` to the quantity from `now` on.
    pub fn add(&mut self, change: f64, now: Time) {
        self.set(self.value + change, now);
    }

    /// Forgets the values before `now`.
    pub fn restart(&mut self, now: Time) {
        *self = Self::new(now, self.value);
    }

    /// Mean and standard deviation over `period`, which ends now.
    pub fn finish(mut self, now: Time, period: Span) -> (f64, f64) {
        self.set(self.value, now);
        let period = period.as_ps_f64();
        let mean = self.area / period;
        let variance = self.area_of_squares / period - mean * mean;
        (mean, variance.max(0.0).sqrt())
    }
}

/// A distribution of times, in memory that does not depend on their number.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// In nanoseconds; `None` before the first.
    histogram: Option<Box<ThreeDigits>>,
    /// In picoseconds. A whole number, so that it does not depend on the order of the times.
    sum: u128,
}

impl Delays {
    /// Records a time.
    #[inline]
    pub fn record(&mut self, took: Span) {
        self.sum += u128::from(took.as_ps());
        let histogram = self.histogram.get_or_insert_default();
        histogram.record(took.as_ps() / 1000);
    }

    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        match (&mut self.histogram, &other.histogram) {
            (Some(all), Some(more)) => all.add(more),
            (none @ None, more) => none.clone_from(more),
            (Some(_), None) => {}
        }
    }

    /// Mean in seconds.
    pub fn mean(&self) -> Option<f64> {
        let count = self.histogram.as_ref()?.len();
        Some(self.sum as f64 * 1e-12 / count as f64)
    }

    /// Mean in seconds of how much the times are above `least`, which none is below.
    pub fn mean_above(&self, least: Span) -> Option<f64> {
        let count = self.histogram.as_ref()?.len();
        let above = self.sum - u128::from(least.as_ps()) * u128::from(count);
        Some(above as f64 * 1e-12 / count as f64)
    }

    /// The histogram, which counts nanoseconds; `None` before the first time.
    pub fn histogram(&self) -> Option<&ThreeDigits> {
        self.histogram.as_deref()
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |all| all.len())
    }

    /// The time in seconds that the share `q` does not exceed.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref()?;
        Some(histogram.value_at_quantile(q) as f64 * 1e-9)
    }
}

/// What happened to the packets of one group (or all) at one queue.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Packets that arrived.
    pub arrivals: u64,
    /// Packets dropped, including those that arrived before the measurement.
    drops: u64,
    /// Packets that arrived in the measurement and were dropped.
    pub lost: u64,
    /// Packets that arrived in the measurement and were marked.
    pub marks: u64,
    /// The capacity of the link that was used: picoseconds, or the unit of [`Capacity::between`].
    used: u128,
    /// Queueing delays in nanoseconds.
    delays: ThreeDigits,
    /// In picoseconds.
    delay_sum: f64,
    delay_sum_of_squares: f64,
    waiting: TimeWeighted,
    /// Packets lost in the present loss event.
    losing: u64,
    /// Loss events by their number of packets, from 1.
    pub loss_events: Vec<u64>,
    gaps: LossGaps,
}

/// The times from one drop to the next.
#[derive(Clone, Debug, Default)]
struct LossGaps {
    latest: Option<Time>,
    /// In nanoseconds; `None` before the second drop.
    histogram: Option<Box<TwoDigits>>,
}

impl LossGaps {
    fn on_drop(&mut self, now: Time) {
        if let Some(before) = self.latest.replace(now) {
            let histogram = self.histogram.get_or_insert_default();
            histogram.record((now - before).as_ps() / 1000);
        }
    }
}

/// The distributions of a [`Tally`], in nanoseconds.
#[derive(Clone, Debug)]
pub struct TallyDistributions {
    /// Of the queueing delay.
    pub delays: ThreeDigits,
    /// Of the time from one drop to the next; `None` with fewer than two drops.
    pub loss_gaps: Option<Box<TwoDigits>>,
}

/// Summary of a [`Tally`], in SI units and fractions; `None` where nothing happened.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the names are the metrics' names in results
pub struct TallySummary {
    pub arrivals: u64,
    pub lost: u64,
    pub utilization: Option<f64>,
    pub loss: Option<f64>,
    pub mark: Option<f64>,
    pub queue_length_mean: f64,
    pub queue_length_std: f64,
    pub queue_delay_mean: Option<f64>,
    pub queue_delay_std: Option<f64>,
    pub queue_delay_p50: Option<f64>,
    pub queue_delay_p95: Option<f64>,
    pub queue_delay_p99: Option<f64>,
    pub consecutive_loss_mean: Option<f64>,
}

impl Tally {
    fn new(now: Time, waiting: u64) -> Self {
        Self {
            arrivals: 0,
            drops: 0,
            lost: 0,
            marks: 0,
            used: 0,
            delays: ThreeDigits::default(),
            delay_sum: 0.0,
            delay_sum_of_squares: 0.0,
            waiting: TimeWeighted::new(now, waiting as f64),
            losing: 0,
            loss_events: Vec::new(),
            gaps: LossGaps::default(),
        }
    }

    #[inline]
    fn on_delay(&mut self, delay: Span) {
        let ps = delay.as_ps_f64();
        self.delay_sum += ps;
        self.delay_sum_of_squares += ps * ps;
        self.delays.record(delay.as_ps() / 1000);
    }

    /// A loss event begins with a drop and ends with the next admitted arrival.
    #[inline]
    fn end_loss_event(&mut self) {
        if self.losing > 0 {
            let index = self.losing as usize - 1;
            if self.loss_events.len() <= index {
                self.loss_events.resize(index + 1, 0);
            }
            self.loss_events[index] += 1;
            self.losing = 0;
        }
    }

    /// The summary of a tally that ends now, over `period`, in which the link could carry
    /// `capacity`; the loss events and the distributions.
    fn finish(
        mut self,
        now: Time,
        period: Span,
        capacity: u128,
    ) -> (TallySummary, Vec<u64>, TallyDistributions) {
        self.end_loss_event();
        let ratio = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        let (queue_length_mean, queue_length_std) = self.waiting.clone().finish(now, period);
        let delayed = self.delays.len();
        let mean = ratio(self.delay_sum, delayed);
        let std = mean.map(|mean| {
            let variance = self.delay_sum_of_squares / delayed as f64 - mean * mean;
            variance.max(0.0).sqrt()
        });
        let quantile =
            |q: f64| (delayed > 0).then(|| self.delays.value_at_quantile(q) as f64 * 1e-9);
        let events: u64 = self.loss_events.iter().sum();
        let summary = TallySummary {
            arrivals: self.arrivals,
            lost: self.lost,
            utilization: (capacity > 0).then(|| self.used as f64 / capacity as f64),
            loss: ratio(self.lost as f64, self.arrivals),
            mark: ratio(self.marks as f64, self.arrivals),
            queue_length_mean,
            queue_length_std,
            queue_delay_mean: mean.map(|ps| ps * 1e-12),
            queue_delay_std: std.map(|ps| ps * 1e-12),
            queue_delay_p50: quantile(0.5),
            queue_delay_p95: quantile(0.95),
            queue_delay_p99: quantile(0.99),
            consecutive_loss_mean: ratio(self.drops as f64, events),
        };
        let distributions = TallyDistributions {
            delays: self.delays,
            loss_gaps: self.gaps.histogram,
        };
        (summary, self.loss_events, distributions)
    }
}

/// Everything measured at one link: for each group, and for all together.
#[derive(Debug)]
pub struct LinkStatistics {
    begin: Time,
    /// `None` if the tally of the only group is that of all.
    all: Option<Tally>,
    groups: Vec<Tally>,
    congestion: CongestionEvents,
    /// Queueing delay of the packet that left last.
    last_delay: Span,
}

/// The summary of [`LinkStatistics`].
#[derive(Debug)]
pub struct LinkSummary {
    /// All groups together.
    pub all: TallySummary,
    /// Loss events by their number of packets, from 1.
    pub loss_events: Vec<u64>,
    /// By group.
    pub groups: Vec<TallySummary>,
    /// The distributions of all groups together.
    pub distributions: TallyDistributions,
    /// The distributions by group.
    pub group_distributions: Vec<TallyDistributions>,
    /// How flows lose together.
    pub congestion: CongestionSummary,
}

impl LinkStatistics {
    /// Statistics that begin at `now`, with `waiting[g]` packets of group g in the queue.
    /// `round_trip` is the mean round trip of the flows at this link, without queueing. `counts_all` is whether the
    /// number of packets in the queue may be another one than that of all groups together, because others serve it.
    pub fn new(now: Time, waiting: &[u64], round_trip: Option<Span>, counts_all: bool) -> Self {
        let counts_all = counts_all || waiting.len() != 1;
        Self {
            congestion: CongestionEvents::new(round_trip),
            last_delay: Span::ZERO,
            begin: now,
            all: counts_all.then(|| Tally::new(now, waiting.iter().sum())),
            groups: waiting
                .iter()
                .map(|&count| Tally::new(now, count))
                .collect(),
        }
    }

    /// A packet of `owner` arrived; it was `admitted` or dropped. The queue now holds `packets`.
    #[inline(always)] // into the engine, next to the call for a phase
    fn on_arrival(&mut self, owner: PacketOwner, admitted: bool, packets: u64, now: Time) {
        let tally = &mut self.groups[owner.group];
        tally.arrivals += 1;
        if admitted {
            tally.end_loss_event();
            tally.waiting.set(tally.waiting.value + 1.0, now);
            match &mut self.all {
                Some(all) => {
                    all.end_loss_event();
                    all.waiting.set(as_f64(packets), now);
                }
                None => debug_assert!(tally.waiting.value == as_f64(packets)),
            }
        }
        self.congestion.on_arrival(owner.flow, now);
    }

    fn on_drop(&mut self, owner: PacketOwner, waited: Option<Time>, now: Time) {
        // A packet that arrived before the beginning counts neither as an arrival nor in a rate.
        let counts = waited.is_none_or(|since| since >= self.begin);
        for tally in iter::once(&mut self.groups[owner.group]).chain(&mut self.all) {
            tally.drops += 1;
            tally.lost += u64::from(counts);
            tally.losing += 1;
            tally.gaps.on_drop(now);
            if waited.is_some() {
                tally.waiting.set(tally.waiting.value - 1.0, now);
            }
        }
        self.congestion.on_drop(owner.flow, self.last_delay, now);
    }

    fn on_mark(&mut self, group: usize, waited: Option<Time>) -> bool {
        let counts = waited.is_none_or(|since| since >= self.begin);
        self.groups[group].marks += u64::from(counts);
        counts
    }

    #[inline(always)]
    fn on_departure(&mut self, group: usize, delay: Span, packets: u64, now: Time) {
        let tally = &mut self.groups[group];
        tally.on_delay(delay);
        tally.waiting.set(tally.waiting.value - 1.0, now);
        match &mut self.all {
            Some(all) => all.waiting.set(as_f64(packets), now),
            None => debug_assert!(tally.waiting.value == as_f64(packets)),
        }
        self.last_delay = delay;
    }

    /// The link transmitted a packet of `group` from `since` to now.
    #[inline(always)]
    pub fn on_transmitted(
        &mut self,
        group: usize,
        since: Time,
        now: Time,
        capacity: Option<&Capacity>,
    ) {
        let since = since.max(self.begin);
        self.groups[group].used += match capacity {
            None => u128::from(now.since(since).as_ps()),
            Some(capacity) => capacity.taken(since, now),
        };
    }

    /// When it began.
    pub fn begin(&self) -> Time {
        self.begin
    }

    /// Ends the measurement.
    pub fn finish(self, now: Time, capacity: Option<&Capacity>) -> LinkSummary {
        let period = now - self.begin;
        let capacity = match capacity {
            None => u128::from(period.as_ps()),
            Some(capacity) => capacity.between(self.begin, now),
        };
        let all = match self.all {
            Some(mut all) => {
                for group in &self.groups {
                    all.arrivals += group.arrivals;
                    all.marks += group.marks;
                    all.used += group.used;
                    all.delay_sum += group.delay_sum;
                    all.delay_sum_of_squares += group.delay_sum_of_squares;
                    all.delays.add(&group.delays);
                }
                all
            }
            None => self.groups[0].clone(),
        };
        let (all, loss_events, distributions) = all.finish(now, period, capacity);
        let groups = self.groups.into_iter();
        let groups = groups.map(|tally| tally.finish(now, period, capacity));
        let (groups, group_distributions) = groups
            .map(|(summary, _, distributions)| (summary, distributions))
            .unzip();
        LinkSummary {
            all,
            loss_events,
            groups,
            distributions,
            group_distributions,
            congestion: self.congestion.finish(now),
        }
    }
}

/// The traffic group and the flow of a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketOwner {
    /// Index of the traffic group.
    pub group: usize,
    /// Number of the flow.
    pub flow: u32,
}

/// The measurements at one link over the whole period, and over the present phase if there are
/// phases. They are separate, so that phases do not change the whole.
#[derive(Debug)]
pub struct Measured {
    /// From the beginning of the measurement period.
    pub whole: LinkStatistics,
    /// From the beginning of the phase.
    pub phase: Option<Box<LinkStatistics>>,
}

impl Measured {
    /// A packet arrived; it was `admitted` or dropped. The queue now holds `packets`.
    #[inline(always)]
    pub fn on_arrival(&mut self, owner: PacketOwner, admitted: bool, packets: u64, now: Time) {
        self.whole.on_arrival(owner, admitted, packets, now);
        if let Some(phase) = &mut self.phase {
            out_of_line(move || phase.on_arrival(owner, admitted, packets, now));
        }
    }

    /// A packet was dropped. `waited` is when it was admitted, if it was.
    pub fn on_drop(&mut self, owner: PacketOwner, waited: Option<Time>, now: Time) {
        self.whole.on_drop(owner, waited, now);
        if let Some(phase) = &mut self.phase {
            out_of_line(move || phase.on_drop(owner, waited, now));
        }
    }

    /// A packet of `group` was marked. `waited` is when it was admitted, if it is not arriving now.
    /// Returns whether it counts: whether it arrived in the measurement period.
    pub fn on_mark(&mut self, group: usize, waited: Option<Time>) -> bool {
        if let Some(phase) = &mut self.phase {
            out_of_line(move || {
                phase.on_mark(group, waited);
            });
        }
        self.whole.on_mark(group, waited)
    }

    /// A packet of `group` left the queue after `delay`. The queue now holds `packets`.
    #[inline(always)]
    pub fn on_departure(&mut self, group: usize, delay: Span, packets: u64, now: Time) {
        self.whole.on_departure(group, delay, packets, now);
        if let Some(phase) = &mut self.phase {
            out_of_line(move || phase.on_departure(group, delay, packets, now));
        }
    }

    /// The link transmitted a packet of `group` from `since` to now.
    #[inline(always)]
    pub fn on_transmitted(
        &mut self,
        group: usize,
        since: Time,
        now: Time,
        capacity: Option<&Capacity>,
    ) {
        self.whole.on_transmitted(group, since, now, capacity);
        if let Some(phase) = &mut self.phase {
            out_of_line(move || phase.on_transmitted(group, since, now, capacity));
        }
    }

    /// An opportunity of a trace carried `bytes` of a packet of `group`.
    pub fn on_delivered(&mut self, group: usize, bytes: u64) {
        self.whole.groups[group].used += u128::from(bytes);
        if let Some(phase) = &mut self.phase {
            out_of_line(move || phase.groups[group].used += u128::from(bytes));
        }
    }
}

/// Calls `does` out of line: few runs have phases, so their code is kept out of the main path. What it captures is moved
/// into it, so that the main path does not keep it in memory.
#[cold]
#[inline(never)]
fn out_of_line(does: impl FnOnce()) {
    does();
}

/// Jain's fairness index of `shares`: 1 when all are equal, 1/n when one has
/// everything; `None` without shares or when all are zero.
///
/// Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and
/// Discrimination", DEC TR-301, 1984.
pub fn jain(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut all = Shares::default();
    shares.into_iter().for_each(|share| all.add(share));
    all.fairness()
}

/// What [`jain`] needs of the shares, in memory that does not depend on their number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Shares {
    /// Adds a share.
    pub fn add(&mut self, share: f64) {
        self.count += 1.0;
        self.sum += share;
        self.squares += share * share;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    /// All together.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The index of [`jain`].
    pub fn fairness(&self) -> Option<f64> {
        let Self {
            count,
            sum,
            squares,
        } = self;
        (*squares > 0.0).then(|| sum * sum / (count * squares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_s(s)
    }

    #[test]
    fn a_time_weighted_mean_weighs_by_time_not_by_change() {
        let mut value = TimeWeighted::new(at(0), 2.0);
        value.set(10.0, at(9));
        let (mean, std) = value.finish(at(10), Span::from_s(10));
        assert!((mean - 2.8).abs() < 1e-12);
        assert!((std - 2.4).abs() < 1e-9); // E[x^2] = 13.6, 13.6 - 2.8^2 = 2.4^2
    }

    #[test]
    fn loss_events_are_runs_of_drops_between_admitted_arrivals() {
        let mut link = LinkStatistics::new(at(0), &[0, 0], None, true);
        let owner = PacketOwner { group: 0, flow: 0 };
        for dropped in [true, true, false, false, true, false, true] {
            link.on_arrival(owner, !dropped, 0, at(1));
            if dropped {
                link.on_drop(owner, None, at(1));
            }
        }
        let LinkSummary {
            all,
            loss_events,
            groups,
            ..
        } = link.finish(at(2), None);
        assert_eq!(loss_events, [2, 1]);
        assert_eq!(all.consecutive_loss_mean, Some(4.0 / 3.0));
        assert_eq!(groups[0].loss, Some(4.0 / 7.0));
        assert_eq!(groups[1].loss, None);
    }

    #[test]
    fn jain_is_one_for_equals_and_one_over_n_for_a_monopoly() {
        assert_eq!(jain([3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain([5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain([0.0, 0.0]), None);
    }
}
