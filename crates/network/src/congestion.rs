//! Congestion events at a queue: how many of its flows lose together, and how often.
//!
//! A congestion event begins with a drop and lasts one round-trip time. All drops in that time
//! belong to it, because senders react to them once.
//!
//! Source: the loss event of RFC 5348, section 5.2 (losses within a round-trip time of the first
//! are one), taken for all flows of a link together; synchronization is the fraction of the
//! connections that lose a packet during a congestion instance, "Loss Synchronization of TCP
//! Connections at a Shared Bottleneck Link", Washington University in St. Louis, May 2006; see also
//! S. Hassayoun and D. Ros, "Loss Synchronization and Router
//! Buffer Sizing with High-Speed Versions of TCP", IEEE INFOCOM Workshops 2008.
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | R | mean base round-trip time of the TCP flows with packets here | s |
//! | D | queueing delay of the packet that left last before the event | s |
//! | t_k | first drop of event k, which takes from t_k to t_k + R + D | s |
//! | a_k | flows with a packet that arrives or is dropped in it | 1 |
//! | l_k | flows with a packet that is dropped in it | 1 |
//! | mean of l_k / a_k | synchronization | 1 |
//! | t_(k+1) - t_k | interval | s |

use redtail_core::{Span, Time};

/// The congestion events so far.
#[derive(Clone, Debug)]
pub struct CongestionEvents {
    /// R; without it there are no events.
    round_trip: Option<Span>,
    /// First drop of the latest event; `None` before the first event.
    began: Option<Time>,
    /// When the latest event ends.
    until: Time,
    /// The number of the latest event, from 1.
    number: u32,
    active: u32,
    losing: u32,
    /// For each flow, the latest event in which it was active and the latest in which it lost
    /// packets.
    flows: Vec<[u32; 2]>,
    /// Events that have ended, and the sum of l/a over them.
    ended: u32,
    shares: f64,
    /// Sums of intervals in seconds and of their squares.
    intervals: u32,
    interval_sum: f64,
    interval_sum_of_squares: f64,
}

/// Summary of [`CongestionEvents`]; `None` where too few took place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CongestionSummary {
    /// Mean share of the active flows that lose.
    pub synchronization: Option<f64>,
    /// Mean time from one event to the next, in seconds.
    pub interval_mean: Option<f64>,
    /// Standard deviation of the time from one event to the next, in seconds.
    pub interval_std: Option<f64>,
}

impl CongestionEvents {
    /// `round_trip` is R.
    pub fn new(round_trip: Option<Span>) -> Self {
        Self {
            round_trip,
            began: None,
            until: Time::ZERO,
            number: 0,
            active: 0,
            losing: 0,
            flows: Vec::new(),
            ended: 0,
            shares: 0.0,
            intervals: 0,
            interval_sum: 0.0,
            interval_sum_of_squares: 0.0,
        }
    }

    /// A packet of `flow` arrived.
    #[inline]
    pub fn on_arrival(&mut self, flow: u32, now: Time) {
        if now < self.until {
            // Most flows have been active in the event before.
            match self.flows.get(flow as usize) {
                Some(&[active, _]) if active == self.number => {}
                _ => self.note(flow, false),
            }
        }
    }

    /// A packet of `flow` was dropped; `delay` is D if an event begins with it.
    pub fn on_drop(&mut self, flow: u32, delay: Span, now: Time) {
        let Some(round_trip) = self.round_trip else {
            return;
        };
        if now >= self.until {
            self.end();
            if let Some(before) = self.began {
                let interval = (now - before).as_secs_f64();
                self.intervals += 1;
                self.interval_sum += interval;
                self.interval_sum_of_squares += interval * interval;
            }
            self.began = Some(now);
            self.until = now + round_trip + delay;
            self.number += 1;
        }
        self.note(flow, true);
    }

    #[inline(never)] // a flow is noted once an event, and packets arrive often
    fn note(&mut self, flow: u32, loses: bool) {
        let index = flow as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, [0; 2]);
        }
        let [active, losing] = &mut self.flows[index];
        if *active != self.number {
            *active = self.number;
            self.active += 1;
        }
        if loses && *losing != self.number {
            *losing = self.number;
            self.losing += 1;
        }
    }

    /// Counts the latest event.
    fn end(&mut self) {
        if self.active > 0 {
            self.ended += 1;
            self.shares += f64::from(self.losing) / f64::from(self.active);
            self.active = 0;
            self.losing = 0;
        }
    }

    /// The summary at `now`, the end of the period. An event that is then in progress is incomplete
    /// and does not count for synchronization.
    pub fn finish(mut self, now: Time) -> CongestionSummary {
        if now >= self.until {
            self.end();
        }
        let over = |sum: f64, count: u32| (count > 0).then(|| sum / f64::from(count));
        let mean = over(self.interval_sum, self.intervals);
        let of_squares = over(self.interval_sum_of_squares, self.intervals);
        let variance = mean.zip(of_squares).map(|(mean, of)| of - mean * mean);
        CongestionSummary {
            synchronization: over(self.shares, self.ended),
            interval_mean: mean,
            interval_std: variance.map(|variance| variance.max(0.0).sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn an_event_takes_a_round_trip_and_counts_each_flow_once() {
        let mut events = CongestionEvents::new(Some(Span::from_ms(60)));
        events.on_arrival(7, at(0)); // before the event: not active
        events.on_drop(1, Span::from_ms(40), at(10)); // until 110 ms
        events.on_arrival(1, at(10));
        events.on_arrival(2, at(20));
        events.on_arrival(3, at(30));
        events.on_drop(3, Span::ZERO, at(30));
        events.on_drop(3, Span::ZERO, at(109));
        events.on_arrival(4, at(110)); // after it
        events.on_drop(9, Span::ZERO, at(210)); // a second one, until 270 ms
        events.on_drop(9, Span::ZERO, at(610)); // a third one, alone, that the end cuts
        let summary = events.clone().finish(at(650));
        // 2 of 3 flows, then 1 of 1; 200 ms and 400 ms.
        assert_eq!(summary.synchronization, Some((2.0 / 3.0 + 1.0) / 2.0));
        assert!((summary.interval_mean.unwrap() - 0.3).abs() < 1e-12);
        assert!((summary.interval_std.unwrap() - 0.1).abs() < 1e-12);
        let summary = events.finish(at(670));
        assert_eq!(summary.synchronization, Some((2.0 / 3.0 + 2.0) / 3.0));
    }

    #[test]
    fn without_a_round_trip_there_are_no_events() {
        let mut events = CongestionEvents::new(None);
        events.on_drop(1, Span::ZERO, at(1));
        events.on_drop(1, Span::ZERO, at(1000));
        assert_eq!(events.finish(at(2000)), CongestionSummary::default());
    }

    #[test]
    fn one_event_has_no_interval() {
        let mut events = CongestionEvents::new(Some(Span::from_ms(1)));
        events.on_drop(0, Span::ZERO, at(1));
        let summary = events.finish(at(2000));
        assert_eq!(summary.synchronization, Some(1.0));
        assert_eq!((summary.interval_mean, summary.interval_std), (None, None));
    }
}
