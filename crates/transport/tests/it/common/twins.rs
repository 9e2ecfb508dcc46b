//! A sender and a receiver that take short paths, each beside one that takes none. What is done to one is done to the
//! other, and they must not differ: neither in what they send, nor in their timers, nor in their state.
//!
//! The fuzzer has this module too.

use std::ops::Deref;

use redtail_core::Time;
use redtail_transport::{Receiver, Segment, Sender};

/// After every step what a caller sees is compared; the whole states, which takes long, after some.
fn compares_states(steps: u32) -> bool {
    steps == 8 || steps.is_multiple_of(256)
}

/// Fails if two states differ, and shows where they begin to.
fn assert_same(short: &str, general: &str) {
    if short == general {
        return;
    }
    let both = short.bytes().zip(general.bytes());
    let from = both.take_while(|(a, b)| a == b).count().saturating_sub(60);
    let seen = [short, general].map(|state| state.get(from..).unwrap_or(state));
    let [short, general] = seen.map(|state| state.chars().take(160).collect::<String>());
    panic!("states differ: with the short path\n  {short}\nwithout it\n  {general}");
}

/// Two senders that must not differ. Reading reads the one that takes short paths.
pub struct TwinSenders {
    short: Sender,
    general: Sender,
    steps: u32,
}

/// Two receivers that must not differ. Reading reads the one that takes short paths.
pub struct TwinReceivers {
    short: Receiver,
    general: Receiver,
    steps: u32,
}

impl Deref for TwinSenders {
    type Target = Sender;

    fn deref(&self) -> &Sender {
        &self.short
    }
}

impl Deref for TwinReceivers {
    type Target = Receiver;

    fn deref(&self) -> &Receiver {
        &self.short
    }
}

impl TwinSenders {
    /// A sender that has sent nothing, and one that is the same but for its paths.
    pub fn new(short: Sender) -> Self {
        let mut general = short.clone();
        general.forbid_short_paths();
        Self {
            short,
            general,
            steps: 0,
        }
    }

    fn both(&mut self, act: impl Fn(&mut Sender)) {
        act(&mut self.short);
        act(&mut self.general);
        self.compare();
    }

    /// As [`Sender::open`].
    pub fn open(&mut self, handshake: bool) {
        self.both(|it| it.open(handshake));
    }

    /// As [`Sender::write`].
    pub fn write(&mut self, bytes: u64) {
        self.both(|it| it.write(bytes));
    }

    /// As [`Sender::close`].
    pub fn close(&mut self) {
        self.both(Sender::close);
    }

    /// As [`Sender::on_segment`].
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        self.both(|it| it.on_segment(segment, now));
    }

    /// As [`Sender::on_wakeup`].
    pub fn on_wakeup(&mut self, now: Time) {
        self.both(|it| it.on_wakeup(now));
    }

    /// As [`Sender::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.short.poll_transmit(now);
        assert_eq!(
            segment,
            self.general.poll_transmit(now),
            "the short path sends the first"
        );
        // Before nothing is left to send, timers may still be to be set for what was sent.
        if segment.is_none() {
            self.compare();
        }
        segment
    }

    fn compare(&mut self) {
        let seen = [&self.short, &self.general].map(|it| {
            (
                [it.next_timer(), it.next_release(), it.next_wakeup()],
                (it.snapshot(), it.counters(), it.in_flight()),
                (it.is_established(), it.is_complete(), it.is_closed()),
                it.round_trips(),
            )
        });
        assert_eq!(seen[0], seen[1], "the short path shows the first");
        self.steps += 1;
        if compares_states(self.steps) {
            assert_same(&self.short.state(), &self.general.state());
        }
    }
}

impl TwinReceivers {
    /// A receiver that has received nothing, and one that is the same but for its paths.
    pub fn new(short: Receiver) -> Self {
        let mut general = short.clone();
        general.forbid_short_paths();
        Self {
            short,
            general,
            steps: 0,
        }
    }

    fn both(&mut self, act: impl Fn(&mut Receiver)) {
        act(&mut self.short);
        act(&mut self.general);
        self.compare();
    }

    /// As [`Receiver::on_segment`].
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        self.both(|it| it.on_segment(segment, now));
    }

    /// As [`Receiver::on_wakeup`].
    pub fn on_wakeup(&mut self, now: Time) {
        self.both(|it| it.on_wakeup(now));
    }

    /// As [`Receiver::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.short.poll_transmit(now);
        assert_eq!(
            segment,
            self.general.poll_transmit(now),
            "the short path sends the first"
        );
        self.compare();
        segment
    }

    fn compare(&mut self) {
        let seen = [&self.short, &self.general].map(|it| {
            (
                it.next_wakeup(),
                it.has_due(),
                it.delivered(),
                it.received(),
            )
        });
        assert_eq!(seen[0], seen[1], "the short path shows the first");
        self.steps += 1;
        if compares_states(self.steps) {
            assert_same(&self.short.state(), &self.general.state());
        }
    }
}
