//! The capacity of links whose rate is not constant.
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | r_i | rate from the i-th change on | bit/s |
//! | W(a, b) | capacity from a to b: the integral of the rate | bit * ps/s |
//! | t_1 <= ... <= t_n | opportunities of one round of a trace, each for 1500 bytes | ps |
//!
//! A transmission that begins at a ends at the time b for which W(a, b) is its number of bits: when
//! the rate changes, the remainder is sent at the new rate. Changes are known in advance, so the
//! end is known when a transmission begins, and a change needs no event. During an outage the rate is
//! 0 bit/s; a transmission that never ends has [`Time::MAX`] as its end.
//!
//! An opportunity of a trace carries up to 1500 bytes from the head of the queue. The remainder of
//! the last packet waits for the next opportunity. Unused bytes of an opportunity are lost. Source:
//! manual page mm-link(1) of mahimahi.
//!
//! A link with an overhead has a capacity too: sizes are then those that packets have on the link.

use std::sync::Arc;

use redtail_core::{Bytes, Rate, Span, Time};
use redtail_qdisc::follow::{LinkCourse, RateCourse};
use redtail_qdisc::link_layer::LinkLayerParams;
use redtail_spec::{LinkParams, OPPORTUNITY, RateTrace};

use crate::airtime::Airtime;

const PS_PER_S: u128 = 1_000_000_000_000;
const PS_PER_MS: u64 = 1_000_000_000;

/// The time over which shapers that follow a trace know its mean rate: that of its largest rate.
const WINDOW: u64 = 100 * PS_PER_MS;

/// The capacity of a link whose rate is not constant, or which adds to packets.
#[derive(Debug)]
pub enum Capacity {
    /// The rate changes at times, or never.
    Steps(Steps),
    /// There are opportunities to deliver.
    Trace(Deliveries),
    /// Packets are sent in frames.
    Airtime(Airtime),
}

impl Capacity {
    /// The capacity of `link`; `None` for a constant rate without overhead. `steps` are the rates of a link without a
    /// trace.
    pub fn of(link: &LinkParams, steps: impl FnOnce() -> Vec<(Time, Rate)>) -> Option<Box<Self>> {
        let layer = link.overhead.clone().map(|overhead| overhead.0);
        let capacity = match &link.rate_trace {
            Some(trace) => Capacity::Trace(Deliveries::new(trace, layer.unwrap_or_default())),
            None if link.rate_changes.is_empty() && layer.is_none() => return None,
            None => Capacity::Steps(Steps {
                rates: steps().into(),
                layer: layer.unwrap_or_default(),
            }),
        };
        Some(Box::new(capacity))
    }

    /// How the rate changes, for the queue of a link with this rate.
    pub fn course(&self, rate: Rate) -> LinkCourse {
        let course: Arc<dyn RateCourse> = match self {
            Capacity::Steps(steps) => Arc::new(Given(Arc::clone(&steps.rates))),
            Capacity::Trace(deliveries) => Arc::new(Means(Arc::clone(&deliveries.round))),
            Capacity::Airtime(_) => unreachable!("links get frames after their courses are known"),
        };
        LinkCourse { rate, course }
    }

    /// The capacity that a transmission from `from` to `to` uses; 0 for a trace, for which
    /// delivered bytes are counted instead.
    pub fn taken(&self, from: Time, to: Time) -> u128 {
        match self {
            Capacity::Steps(steps) => steps.between(from, to),
            Capacity::Trace(_) => 0,
            Capacity::Airtime(_) => u128::from((to - from).as_ps()),
        }
    }

    /// The capacity from `from` (included) to `to` (excluded): in bit * ps/s for steps, in bytes
    /// for a trace, in picoseconds for frames.
    pub fn between(&self, from: Time, to: Time) -> u128 {
        match self {
            Capacity::Steps(steps) => steps.between(from, to),
            Capacity::Trace(deliveries) => deliveries.between(from, to),
            Capacity::Airtime(_) => u128::from((to - from).as_ps()),
        }
    }
}

/// A rate that changes at given times.
#[derive(Debug)]
pub struct Steps {
    /// The rates, each with the time from which it applies; the first from the start of the run.
    rates: Arc<[(Time, Rate)]>,
    /// What the link adds to packets.
    layer: LinkLayerParams,
}

impl Steps {
    /// Each rate that applies after `from`, with the time at which it ends.
    fn after(&self, from: Time) -> impl Iterator<Item = (Rate, Time)> {
        let next = self.rates.partition_point(|&(since, _)| since <= from);
        let ends = self.rates[next..].iter().map(|&(since, _)| since);
        let rates = self.rates[next - 1..].iter().map(|&(_, rate)| rate);
        rates.zip(ends.chain(std::iter::once(Time::MAX)))
    }

    /// When the transmission of a packet of `size` bytes that begins at `start` ends, to the nearest
    /// picosecond, halves upwards.
    pub fn end(&self, start: Time, size: u32) -> Time {
        let size = self.layer.size(Bytes::new(u64::from(size)));
        let mut left = u128::from(size.bits()) * PS_PER_S;
        let mut now = start;
        for (rate, until) in self.after(start) {
            let rate = u128::from(rate.as_bps());
            let room = rate * u128::from((until - now).as_ps());
            // A packet has bits, so an outage has no room for it.
            if left <= room {
                let ps = (left + rate / 2) / rate;
                return now + Span::from_ps(ps as u64);
            }
            left -= room;
            now = until;
        }
        Time::MAX
    }

    /// The rate that applies at this time.
    pub fn rate(&self, now: Time) -> Rate {
        let later = self.rates.partition_point(|&(since, _)| since <= now);
        self.rates[later - 1].1
    }

    fn between(&self, from: Time, to: Time) -> u128 {
        let mut sum = 0;
        let mut now = from;
        for (rate, until) in self.after(from) {
            let end = until.min(to);
            sum += u128::from(rate.as_bps()) * u128::from((end - now).as_ps());
            if until >= to {
                break;
            }
            now = until;
        }
        sum
    }
}

/// Rates, each with the time from which it applies.
#[derive(Debug)]
struct Given(Arc<[(Time, Rate)]>);

impl RateCourse for Given {
    fn step(&self, number: u64) -> Option<(Time, Rate)> {
        self.0.get(usize::try_from(number).ok()?).copied()
    }
}

/// The mean rates of a trace, each over a [`WINDOW`], from the end of the window on.
#[derive(Debug)]
struct Means(Arc<Round>);

impl RateCourse for Means {
    fn step(&self, number: u64) -> Option<(Time, Rate)> {
        let from = Time::from_ps(number.checked_mul(WINDOW)?);
        let to = Time::from_ps(from.as_ps().checked_add(WINDOW)?);
        let bits = self.0.between(from, to) * 8;
        let rate = bits * PS_PER_S / u128::from(WINDOW);
        Some((to, Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))))
    }
}

/// The opportunities of a trace.
#[derive(Debug)]
struct Round {
    /// The times of one round, from its beginning; the next round begins at the last one.
    times: Vec<u64>,
    length: u64,
}

/// The opportunities of a trace, and the remainder of the packet being delivered.
#[derive(Debug)]
pub struct Deliveries {
    round: Arc<Round>,
    /// What the link adds to packets.
    layer: LinkLayerParams,
    /// Bytes of the packet being delivered that no opportunity has carried yet.
    pub left: u32,
}

impl Deliveries {
    fn new(trace: &RateTrace, layer: LinkLayerParams) -> Self {
        let times = trace.opportunities_ms().iter().map(|ms| ms * PS_PER_MS);
        let round = Round {
            times: times.collect(),
            length: trace.length_ms() * PS_PER_MS,
        };
        Self {
            round: Arc::new(round),
            layer,
            left: 0,
        }
    }

    /// The delivery of a packet of this size begins.
    pub fn begin(&mut self, size: u32) {
        let size = self.layer.size(Bytes::new(u64::from(size)));
        self.left = size.as_u64() as u32;
    }

    /// The next opportunity after `now`.
    pub fn next_after(&self, now: Time) -> Time {
        self.round.next_after(now)
    }

    fn between(&self, from: Time, to: Time) -> u128 {
        self.round.between(from, to)
    }

    /// Bytes that can be carried at `now`.
    pub fn room(&self, now: Time) -> u64 {
        self.between(now, now + Span::from_ps(1)) as u64
    }
}

impl Round {
    /// The number of rounds that have ended by `at`, and the time since the last end.
    fn place(&self, at: Time) -> (u64, u64) {
        (at.as_ps() / self.length, at.as_ps() % self.length)
    }

    fn next_after(&self, now: Time) -> Time {
        let (rounds, since) = self.place(now);
        let next = self.times.partition_point(|&at| at <= since);
        Time::from_ps(rounds * self.length + self.times[next])
    }

    /// Opportunities before `at`.
    fn before(&self, at: Time) -> u64 {
        let (rounds, since) = self.place(at);
        let here = self.times.partition_point(|&other| other < since) as u64;
        // Opportunities at the end of a round that ends now are not before now.
        let at_end = match (rounds, since) {
            (1.., 0) => self.times.len() - self.times.partition_point(|&at| at < self.length),
            _ => 0,
        };
        rounds * self.times.len() as u64 + here - at_end as u64
    }

    /// The bytes of the opportunities from `from` (included) to `to` (excluded).
    fn between(&self, from: Time, to: Time) -> u128 {
        let count = self.before(to).saturating_sub(self.before(from));
        u128::from(count) * u128::from(OPPORTUNITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn steps() -> Steps {
        of_rates(&[(0, 12), (10, 3), (20, 6)])
    }

    /// Rates in Mbit/s, each from a time in ms on.
    fn of_rates(rates: &[(u64, u64)]) -> Steps {
        let rates = rates.iter();
        let rates = rates.map(|&(ms, mbps)| (at(ms), Rate::from_bps(mbps * 1_000_000)));
        Steps {
            rates: rates.collect(),
            layer: LinkLayerParams::default(),
        }
    }

    #[test]
    fn a_transmission_goes_on_at_the_new_rate() {
        // 12,000 bit: 0.5 ms at 12 Mbit/s carry 6,000; 6,000 more take 2 ms at 3 Mbit/s.
        assert_eq!(
            steps().end(at(10) - Span::from_us(500), 1500),
            at(10) + Span::from_ms(2)
        );
        assert_eq!(steps().end(at(9), 1500), at(10)); // just in time
        assert_eq!(steps().end(at(10), 1500), at(14)); // the new rate from its first instant on
        // 60,000 bit from 9 ms: 12,000 in 1 ms, 30,000 in 10 ms, 18,000 in 3 ms.
        assert_eq!(steps().end(at(9), 7500), at(23));
        assert_eq!(steps().end(at(100), 1500), at(102));
    }

    #[test]
    fn a_transmission_waits_for_the_end_of_an_outage() {
        // 12,000 bit at 12 Mbit/s take 1 ms; the outage of 40 ms is added, wherever it begins in the transmission.
        let outage = of_rates(&[(0, 12), (10, 0), (50, 12)]);
        assert_eq!(
            outage.end(at(10) - Span::from_us(300), 1500),
            at(50) + Span::from_us(700)
        );
        assert_eq!(outage.end(at(9), 1500), at(10));
        assert_eq!(outage.end(at(10), 1500), at(51));
        assert_eq!(outage.between(at(0), at(50)), outage.between(at(0), at(10)));
        assert_eq!(outage.between(at(10), at(50)), 0);
        // One that nothing ends.
        let dead = of_rates(&[(0, 12), (10, 0)]);
        assert_eq!(dead.end(at(10), 40), Time::MAX);
        assert_eq!(dead.end(at(10) - Span::from_us(500), 1500), Time::MAX);
        assert_eq!(dead.between(at(5), at(1000)) / PS_PER_S, 60_000);
    }

    #[test]
    fn the_capacity_of_steps_is_the_integral_of_the_rate() {
        let bits = |from, to| steps().between(at(from), at(to)) / PS_PER_S;
        assert_eq!(bits(0, 10), 120_000);
        assert_eq!(bits(5, 25), 60_000 + 30_000 + 30_000);
        assert_eq!(bits(10, 20), 30_000);
        assert_eq!(bits(30, 30), 0);
    }

    fn deliveries(ms: &[u64]) -> Deliveries {
        let round = Round {
            times: ms.iter().map(|ms| ms * PS_PER_MS).collect(),
            length: ms[ms.len() - 1] * PS_PER_MS,
        };
        Deliveries {
            round: Arc::new(round),
            layer: LinkLayerParams::default(),
            left: 0,
        }
    }

    #[test]
    fn a_trace_repeats_from_its_last_line_on() {
        // 0, 2, 2, 5 ms, then 5, 7, 7, 10 ms, ...
        let trace = deliveries(&[0, 2, 2, 5]);
        let next = |ms| trace.next_after(at(ms));
        assert_eq!(
            [0, 1, 2, 4, 5, 6, 7].map(next),
            [2, 2, 5, 5, 7, 7, 10].map(at)
        );
        assert_eq!(
            [0, 1, 2, 5, 7, 10].map(|ms| trace.room(at(ms))),
            [1500, 0, 3000, 3000, 3000, 3000]
        );
        let count = |from, to| trace.between(at(from), at(to)) / 1500;
        assert_eq!(count(0, 5), 3);
        assert_eq!(count(0, 6), 5);
        assert_eq!(count(5, 10), 4);
        assert_eq!(count(3, 3), 0);
    }

    #[test]
    fn a_follower_knows_the_mean_of_the_last_window_of_a_trace() {
        // Four opportunities in each 250 ms: at 50, 150, 160 and 250 ms.
        let trace = Capacity::Trace(deliveries(&[50, 150, 160, 250]));
        let course = trace.course(Rate::from_bps(1)).course;
        let step = |number| course.step(number).expect("a trace has no end");
        let opportunities = |count: u64| Rate::from_bps(count * 120_000);
        assert_eq!(step(0), (at(100), opportunities(1)));
        assert_eq!(step(1), (at(200), opportunities(2)));
        // From 200 to 300 ms: at 250 ms; from 300 to 400 ms: at 300 ms.
        assert_eq!(step(2), (at(300), opportunities(1)));
        assert_eq!(step(3), (at(400), opportunities(1)));
    }

    #[test]
    fn a_trace_of_one_line_is_a_constant_rate() {
        let trace = deliveries(&[1]);
        assert_eq!(trace.room(Time::ZERO), 0);
        assert_eq!(trace.room(at(1)), 1500);
        assert_eq!(trace.next_after(at(1)), at(2));
        assert_eq!(trace.between(at(1), at(4)), 3 * 1500);
    }
}
