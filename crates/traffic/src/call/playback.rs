//! The receiving end of the video of a call: which frames are complete, and where the picture freezes.
//!
//! A frame is shown as soon as all its packets have arrived; a frame that is complete only after a later
//! one was shown is not shown. A frame with a lost packet is never shown, and frames after it are, as if
//! they did not need it.
//!
//! A freeze is a time between two frames that were shown one after the other of at least
//! `max(3 delta, delta + 150 ms)`, where `delta` is the mean of the last 30 such times. Source: W3C,
//! "Identifiers for WebRTC's Statistics API", `freezeCount` and `totalFreezesDuration`.

use std::collections::VecDeque;

use redtail_core::{Span, Time};

use super::packet::Media;

/// The times between frames of which delta is the mean (`freezeCount`).
const TIMES: usize = 30;
/// What a freeze exceeds delta by, at least (`freezeCount`).
const MORE: Span = Span::from_ms(150);
/// Incomplete frames that are kept; frames rarely overlap on their way.
const MOST_PARTIAL: usize = 64;

/// What was seen in the measurement period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Frames shown.
    pub frames: u64,
    /// Sum of the times from the capture of a frame to its showing, in seconds.
    pub delays: f64,
    /// Freezes that ended in the period, or had not ended when it did.
    pub freezes: u64,
    /// How long they lasted within the period, in seconds.
    pub frozen: f64,
}

/// The receiving end of the video of a call.
#[derive(Clone, Debug)]
pub struct Playback {
    /// Incomplete frames in the order of their numbers, with the number of packets that are missing.
    partial: VecDeque<(u32, u16)>,
    /// The number above those of all frames shown.
    next: u32,
    /// When the latest frame was shown; the start of the call before the first.
    last: Time,
    /// The latest times between frames.
    times: VecDeque<Span>,
    /// The time between frames as the sender captures them.
    nominal: Span,
    /// When the measurement began.
    since: Time,
    seen: Seen,
}

impl Playback {
    /// The receiver of a video that starts at `start`.
    pub fn new(frame_rate: f64, start: Time) -> Self {
        Self {
            partial: VecDeque::new(),
            next: 0,
            last: start,
            times: VecDeque::new(),
            nominal: Span::from_secs_f64(1.0 / frame_rate),
            since: Time::ZERO,
            seen: Seen::default(),
        }
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self, now: Time) {
        (self.since, self.seen) = (now, Seen::default());
    }

    /// A part of a frame arrives.
    pub fn receive(&mut self, media: &Media, now: Time) {
        if media.unit < self.next {
            return;
        }
        let place = self.partial.partition_point(|frame| frame.0 < media.unit);
        match self.partial.get_mut(place) {
            Some((frame, missing)) if *frame == media.unit => *missing = missing.saturating_sub(1),
            _ => self.partial.insert(place, (media.unit, media.parts - 1)),
        }
        if self.partial[place].1 == 0 {
            self.partial.drain(..=place);
            self.next = media.unit + 1;
            self.show(now, now - media.captured);
        } else if self.partial.len() > MOST_PARTIAL {
            self.partial.pop_front();
        }
    }

    fn show(&mut self, now: Time, delay: Span) {
        self.seen.frames += 1;
        self.seen.delays += delay.as_secs_f64();
        let gap = now.saturating_since(self.last);
        // The wait for the first frame is no time between frames.
        if self.has_shown() {
            self.count_freeze(gap, now);
        }
        if self.times.len() == TIMES {
            self.times.pop_front();
        }
        self.times
            .push_back(if self.has_shown() { gap } else { self.nominal });
        self.last = now;
    }

    fn has_shown(&self) -> bool {
        !self.times.is_empty()
    }

    fn count_freeze(&mut self, gap: Span, now: Time) {
        let count = self.times.len().max(1) as f64;
        let sum: Span = self.times.iter().copied().sum();
        let delta = if self.has_shown() {
            Span::from_secs_f64(sum.as_secs_f64() / count)
        } else {
            self.nominal
        };
        let three = Span::from_ps(delta.as_ps().saturating_mul(3));
        if gap >= three.max(delta + MORE) {
            self.seen.freezes += 1;
            let within = now.saturating_since(self.last.max(self.since));
            self.seen.frozen += within.as_secs_f64();
        }
    }

    /// What was seen in the period that ends at `now`, with a freeze that has not ended.
    pub fn seen(&self, now: Time) -> Seen {
        let mut at_end = self.clone();
        at_end.count_freeze(now.saturating_since(self.last), now);
        at_end.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn part(unit: u32, parts: u16) -> Media {
        Media {
            sequence: 0,
            unit,
            parts,
            ecn: false,
            captured: ms(40 * u64::from(unit)),
            round_trip: Span::ZERO,
        }
    }

    /// Frames of one packet that arrive at these times.
    fn shown_at(times: &[u64]) -> Playback {
        let mut playback = Playback::new(25.0, Time::ZERO);
        for (unit, &at) in (0..).zip(times) {
            playback.receive(&part(unit, 1), ms(at));
        }
        playback
    }

    #[test]
    fn a_frame_is_shown_when_its_last_part_arrives() {
        let mut playback = Playback::new(25.0, Time::ZERO);
        playback.receive(&part(0, 2), ms(10));
        assert_eq!(playback.seen(ms(10)).frames, 0);
        playback.receive(&part(0, 2), ms(25));
        let seen = playback.seen(ms(25));
        assert_eq!(seen.frames, 1);
        assert!((seen.delays - 0.025).abs() < 1e-12);
        // Frame 1 misses a part and frame 2 does not; frame 1 is then too late.
        playback.receive(&part(1, 2), ms(60));
        playback.receive(&part(2, 1), ms(100));
        playback.receive(&part(1, 2), ms(101));
        assert_eq!(playback.seen(ms(101)).frames, 2);
    }

    #[test]
    fn a_freeze_is_longer_than_three_times_or_150_ms_more_than_usual() {
        // delta = 40 ms: max(120, 190) = 190 ms.
        let frames = |gap: u64| {
            let mut times: Vec<u64> = (0..=30).map(|i| 40 * i).collect();
            times.push(1200 + gap);
            shown_at(&times).seen(ms(1200 + gap))
        };
        assert_eq!(frames(189).freezes, 0);
        let seen = frames(190);
        assert_eq!(seen.freezes, 1);
        assert!((seen.frozen - 0.190).abs() < 1e-12);
        // delta = 100 ms: max(300, 250) = 300 ms.
        let frames = |gap: u64| {
            let mut times: Vec<u64> = (0..=30).map(|i| 100 * i).collect();
            times.push(3000 + gap);
            shown_at(&times).seen(ms(3000 + gap)).freezes
        };
        assert_eq!([frames(299), frames(300)], [0, 1]);
    }

    #[test]
    fn a_picture_that_stays_is_frozen_to_the_end_and_counts_within_the_period() {
        let mut playback = shown_at(&[0, 40, 80]);
        playback.start_measuring(ms(1000));
        let seen = playback.seen(ms(3000));
        assert_eq!(seen.freezes, 1);
        assert!((seen.frozen - 2.0).abs() < 1e-12, "{seen:?}");
        // A call of which nothing arrives is frozen all the time.
        let mut nothing = Playback::new(25.0, Time::ZERO);
        nothing.start_measuring(ms(0));
        assert!((nothing.seen(ms(500)).frozen - 0.5).abs() < 1e-12);
    }
}
