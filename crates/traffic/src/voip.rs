//! Telephone calls: voice over RTP and UDP, one direction of each, and what the listener gets.
//!
//! The talker sends a packet every frame interval, all the time or while talking only (ITU-T P.59:
//! talkspurts and pauses exponential with means 1.004 s and 1.587 s). At the far end a buffer of
//! fixed length takes up jitter: the first packet of a talkspurt waits for the buffer's length, the
//! others until their playout time, and one that arrives after its playout time counts as lost
//! (R. Ramjee et al., "Adaptive playout mechanisms for packetized audio applications in wide-area
//! networks", INFOCOM 1994, section 2). A call without pauses is one long talkspurt. If all
//! packets of one second arrive too late, the receiver begins a new talkspurt, because no real receiver
//! would go on without playing anything.
//!
//! The rating is by the E-model ([`crate::e_model`]) with, from mouth to ear, the frame interval,
//! the codec's look-ahead, the delay of the network and the wait in the buffer.
//!
//! | codec | frame interval | payload | look-ahead | Ie | Bpl |
//! |---|---|---|---|---|---|
//! | G.711 with loss concealment (G.711 Appendix I) | 20 ms | 160 B | 0 | 0 | 25.1 |
//! | G.711 without | 20 ms | 160 B | 0 | 0 | 4.3 |
//! | G.729A with silence suppression | 20 ms | 20 B | 5 ms | 11 | 19.0 |
//! | G.723.1 at 6.3 kbit/s with silence suppression | 30 ms | 24 B | 7.5 ms | 15 | 16.1 |
//!
//! Source of Ie and Bpl: ITU-T G.113 (11/2007), Appendix I, Tables I.2 and I.4; those of G.711 were
//! found with packets of 10 ms.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Dscp, Metric, ParamError, Rate, Span, Stream, Time, metrics, schemars, serde,
};

use crate::access::Direction;
use crate::bounds::in_range;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::e_model::{Impairment, r_factor};
use crate::keys::groups;
use crate::kind::{PacketSource, TrafficKind, UdpKind};
use crate::start::Start;

/// Codec of the voice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Codec {
    /// G.711, 64 kbit/s in packets of 20 ms, with loss concealment (its Appendix I).
    #[default]
    G711,
    /// The same without loss concealment.
    G711Plain,
    /// G.729A, 8 kbit/s in packets of 20 ms.
    G729,
    /// G.723.1, 6.3 kbit/s in packets of 30 ms.
    G723,
}

impl Codec {
    /// Duration of the voice in a packet.
    pub fn interval(self) -> Span {
        match self {
            Self::G711 | Self::G711Plain | Self::G729 => Span::from_ms(20),
            Self::G723 => Span::from_ms(30),
        }
    }

    /// Payload of a packet.
    pub fn payload(self) -> Bytes {
        match self {
            Self::G711 | Self::G711Plain => Bytes::new(160),
            Self::G729 => Bytes::new(20),
            Self::G723 => Bytes::new(24),
        }
    }

    /// Look-ahead of the coder.
    pub fn look_ahead(self) -> Span {
        match self {
            Self::G711 | Self::G711Plain => Span::ZERO,
            Self::G729 => Span::from_ms(5),
            Self::G723 => Span::from_us(7500),
        }
    }

    /// The delay from mouth to ear of voice that takes this time from sending to playing.
    pub fn delay(self, wait: Span) -> Span {
        self.interval() + self.look_ahead() + wait
    }

    /// The codec's parameters in the E-model.
    pub fn impairment(self) -> Impairment {
        let (ie, bpl) = match self {
            Self::G711 => (0.0, 25.1),
            Self::G711Plain => (0.0, 4.3),
            Self::G729 => (11.0, 19.0),
            Self::G723 => (15.0, 16.1),
        };
        Impairment { ie, bpl }
    }
}

groups! {
    /// Telephone calls: voice over UDP, with the quality that the listener gets.
    pub struct VoipParams {
        /// Codec of the voice, which sets the packets' interval and payload.
        /// Source: G.711, what telephone networks use.
        #[serde(default)]
        pub codec: Codec,
        /// Bytes that headers add to each packet on the link.
        /// Source: IPv4, UDP and RTP, 20 B, 8 B and 12 B (RFC 791, RFC 768, RFC 3550).
        #[serde(default = "ip_udp_and_rtp")]
        pub header: Bytes,
        /// How long a talkspurt lasts, drawn for each, with `silence`; "exponential mean 1.004 s" by ITU-T P.59. Left out, the talker never pauses.
        /// Source: without silence suppression packets are sent all the time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub talk: Option<Dist<Span>>,
        /// How long a pause lasts, drawn for each, with `talk`; "exponential mean 1.587 s" by ITU-T P.59.
        /// Source: without silence suppression packets are sent all the time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub silence: Option<Dist<Span>>,
        /// Time for which the first packet of a talkspurt waits at the receiver, so that later packets arrive in time.
        /// Source: the 50 ms of delay variation that ITU-T Y.1541 allows in its classes 0 and 1, in whole packets of 20 ms.
        #[serde(default = "three_packets")]
        pub jitter_buffer: Span,
        /// When calls start; dealt out. Left out, each starts at a random phase; with pauses, it starts talking with the probability that it talks in the long run.
        /// Source: a random phase keeps like sources out of lockstep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Dealt<Start>>,
        /// When calls stop; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

fn ip_udp_and_rtp() -> Bytes {
    Bytes::new(40)
}

fn three_packets() -> Span {
    Span::from_ms(60)
}

metrics! {
    /// What a group of kind `voip` reports: the quality for the listeners.
    pub const METRICS of Group;

    /// [Mean opinion score](../traffic/voip.md#what-the-listener-gets) of a call, averaged over the calls.
    MOS = "mos", Ratio, "Mean opinion score", "MOS";
    /// Mean opinion score of the worst call.
    MOS_MIN = "mos_min", Ratio, "Mean opinion score of the worst call", "worst MOS";
    /// Transmission rating factor R of the E-model, averaged over the calls.
    R_FACTOR = "r_factor", Ratio, "Transmission rating factor R", "R";
    /// Interarrival jitter of a call's packets (RFC 3550), averaged over the calls.
    JITTER = "jitter", Delay, "Mean interarrival jitter", "jitter";
    /// Received packets that came too late to be played, averaged over the calls.
    LATE = "late", Fraction, "Packets too late to be played", "late";
}

impl TrafficKind for VoipParams {
    fn example() -> &'static str {
        r#"flows = 3
stop = "2 s""#
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn is_person(&self) -> bool {
        true
    }

    fn noun(&self) -> &'static str {
        "call"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        self.start.as_ref()
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        if self.packet().as_u64() > 65_535 {
            return Err(ParamError::new(
                "header",
                "does not fit an IP packet with its payload",
                "a size such as \"40 B\"",
            ));
        }
        for (key, given, other) in [
            ("talk", &self.talk, &self.silence),
            ("silence", &self.silence, &self.talk),
        ] {
            if given.is_none() && other.is_some() {
                return Err(ParamError::new(
                    key,
                    "is missing",
                    "talk and silence together, such as \"exponential mean 1.004 s\" and \"exponential mean 1.587 s\", or none of them",
                ));
            }
            if given.as_ref().is_some_and(|law| law.mean().is_none()) {
                return Err(ParamError::new(
                    key,
                    "has an infinite mean, so there is no long run",
                    "a law with a mean: a shape above 1, or a max",
                ));
            }
        }
        if self.talk.as_ref().and_then(Dist::mean) == Some(0.0) {
            return Err(ParamError::new(
                "talk",
                "is zero",
                "a time such as \"exponential mean 1.004 s\"",
            ));
        }
        Ok(())
    }
}

impl UdpKind for VoipParams {
    type Source = Box<VoipSource>;

    fn source(&self) -> Box<VoipSource> {
        Box::new(VoipSource::new(self))
    }

    fn mean_load(&self) -> (Rate, f64) {
        let rate = self.talking() * self.share_talking();
        let size = self.packet().as_u64() as f64;
        (Rate::from_bps(rate.round() as u64), size)
    }

    fn peak(&self) -> Rate {
        Rate::from_bps(self.talking().round() as u64)
    }

    fn largest_packet(&self) -> Bytes {
        self.packet()
    }

    fn random_start(&self, stream: &mut Stream) -> Time {
        let mut at = Time::ZERO + stream.uniform_span(Span::ZERO, self.codec.interval());
        if let Some((_, silence)) = self.periods() {
            let is_silent = stream.uniform() >= self.share_talking();
            let pause = in_range(silence.draw(stream));
            at += if is_silent { pause } else { Span::ZERO };
        }
        at
    }
}

impl VoipParams {
    /// Size of a packet on the link.
    pub fn packet(&self) -> Bytes {
        self.codec.payload() + self.header
    }

    /// The rating R of a call with this loss and mean wait from sending to playing.
    pub fn rating(&self, wait: Span, loss: f64) -> f64 {
        r_factor(self.codec.delay(wait), loss, self.codec.impairment())
    }

    /// Rate while somebody talks, in bit/s.
    fn talking(&self) -> f64 {
        self.packet().bits() as f64 / self.codec.interval().as_secs_f64()
    }

    /// Talkspurts and pauses, if there are any.
    fn periods(&self) -> Option<(&Dist<Span>, &Dist<Span>)> {
        self.talk.as_ref().zip(self.silence.as_ref())
    }

    /// Share of the time that a talker talks.
    fn share_talking(&self) -> f64 {
        self.periods().map_or(1.0, |(talk, silence)| {
            // Checked to be finite, and talkspurts to take some time.
            let [talk, silence] = [talk, silence].map(|law| law.mean().unwrap_or(1.0));
            talk / (talk + silence)
        })
    }
}

/// A running talker.
#[derive(Clone, Debug)]
pub struct VoipSource {
    interval: Span,
    size: u32,
    periods: Option<(Dist<Span>, Dist<Span>)>,
    /// The rest of the talkspurt; `None` before the first one.
    left: Option<Span>,
}

impl VoipSource {
    fn new(group: &VoipParams) -> Self {
        Self {
            interval: group.codec.interval(),
            size: group.packet().as_u64() as u32,
            periods: group
                .periods()
                .map(|(talk, silence)| (talk.clone(), silence.clone())),
            left: None,
        }
    }
}

impl PacketSource for VoipSource {
    fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
        let Some((talk, silence)) = &self.periods else {
            return (self.size, self.interval);
        };
        let left = self.left.unwrap_or_else(|| talk.draw(stream));
        if left > self.interval {
            self.left = Some(left - self.interval);
            return (self.size, self.interval);
        }
        self.left = Some(talk.draw(stream));
        let pause = left + in_range(silence.draw(stream));
        (self.size, in_range(pause).max(self.interval))
    }
}

/// The receiving end of a call: its jitter, and the buffer that plays packets at their time.
#[derive(Clone, Debug)]
pub struct Playout {
    interval: Span,
    buffer: Span,
    /// Number, time of sending and delay of the packet that arrived last.
    last: Option<(u64, Time, Span)>,
    /// Time from sending to playing in this talkspurt.
    wait: Span,
    /// When the first of the latest packets that all were too late arrived; `None` if the last was in time.
    late_since: Option<Time>,
    /// Interarrival jitter, smoothed, in picoseconds (RFC 3550, section 6.4.1).
    jitter: f64,
    /// The count of packets sent in the measurement period.
    tally: CallTally,
}

/// What happened to the packets of a call that were sent in the measurement period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTally {
    /// Packets that arrived.
    pub heard: u64,
    /// Of these, those that arrived after their playout time.
    pub late: u64,
    /// Sum of the times from sending to playing of the packets played, in seconds.
    pub waits: f64,
    /// Sum of the jitter at each arrival, in seconds.
    pub jitters: f64,
}

/// A receiver that has played nothing for this time begins a new talkspurt.
const PATIENCE: Span = Span::from_s(1);

impl Playout {
    /// The receiver of a call of `group`.
    pub fn new(group: &VoipParams) -> Self {
        Self::of(group.codec, group.jitter_buffer)
    }

    /// The receiver of voice of this codec, with this buffer.
    pub fn of(codec: Codec, buffer: Span) -> Self {
        Self {
            interval: codec.interval(),
            buffer,
            last: None,
            wait: Span::ZERO,
            late_since: None,
            jitter: 0.0,
            tally: CallTally::default(),
        }
    }

    /// Packet `number`, sent at `sent`, arrives; `counts` tells whether it was sent in the measurement period.
    pub fn receive(&mut self, number: u64, sent: Time, now: Time, counts: bool) {
        let delay = now - sent;
        let mut begins = self.last.is_none();
        if let Some((last, last_sent, last_delay)) = self.last {
            let difference = delay.as_ps().abs_diff(last_delay.as_ps()) as f64;
            self.jitter += (difference - self.jitter) / 16.0;
            // More time has passed than the packets between took: there was a pause.
            let passed = sent.saturating_since(last_sent);
            let steps = number.saturating_sub(last);
            begins = self
                .interval
                .checked_mul(steps)
                .is_some_and(|took| passed > took);
        }
        begins |= (self.late_since).is_some_and(|since| now.saturating_since(since) >= PATIENCE);
        if begins {
            self.wait = delay + self.buffer;
        }
        self.last = Some((number, sent, delay));
        let late = delay > self.wait;
        self.late_since = late.then(|| self.late_since.unwrap_or(now));
        if counts {
            self.tally.heard += 1;
            self.tally.late += u64::from(late);
            self.tally.jitters += self.jitter * 1e-12;
            if !late {
                self.tally.waits += self.wait.as_secs_f64();
            }
        }
    }

    /// The counts so far.
    pub fn tally(&self) -> CallTally {
        self.tally
    }
}

impl CallTally {
    /// The rating of the call, of which `lost` packets that count did not arrive; none if none
    /// was sent.
    pub fn rating(&self, group: &VoipParams, lost: u64) -> Option<f64> {
        let missing = self.missing(lost)?;
        Some(group.rating(self.wait(group.jitter_buffer), missing))
    }

    /// The mean time from sending to playing of the packets played; `buffer` if none was.
    pub fn wait(&self, buffer: Span) -> Span {
        match self.heard - self.late {
            0 => buffer,
            played => Span::from_secs_f64(self.waits / played as f64),
        }
    }

    /// The share of the packets that were late, or `lost`; none if none was sent.
    pub fn missing(&self, lost: u64) -> Option<f64> {
        let sent = self.heard + lost;
        (sent > 0).then(|| (self.late + lost) as f64 / sent as f64)
    }

    /// Mean jitter in seconds; none if nothing was heard.
    pub fn jitter(&self) -> Option<f64> {
        (self.heard > 0).then(|| self.jitters / self.heard as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e_model::mos;

    fn group(more: &str) -> VoipParams {
        crate::from_json(&format!(r#"{{"name": "v"{more}}}"#)).expect("the file's form")
    }

    const P59: &str =
        r#", "talk": "exponential mean 1.004 s", "silence": "exponential mean 1.587 s""#;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Packets of 20 ms with these delays in ms; what the receiver made of them.
    fn heard(delays: &[u64]) -> CallTally {
        let mut playout = Playout::new(&group(""));
        for (i, delay) in delays.iter().enumerate() {
            let sent = 20 * i as u64;
            playout.receive(i as u64, ms(sent), ms(sent + delay), true);
        }
        playout.tally()
    }

    #[test]
    fn codecs_send_what_their_recommendations_say() {
        // 50 packets of 200 B a second; 50 of 60 B; 33.3 of 64 B.
        for (codec, rate, packet) in [
            ("g711", 80_000, 200.0),
            ("g711-plain", 80_000, 200.0),
            ("g729", 24_000, 60.0),
            ("g723", 17_067, 64.0),
        ] {
            let group = group(&format!(r#", "codec": "{codec}""#));
            assert_eq!(group.mean_load(), (Rate::from_bps(rate), packet), "{codec}");
        }
    }

    #[test]
    fn talkspurts_and_pauses_take_their_share() {
        let group = group(P59);
        let (mut source, mut stream) = (VoipSource::new(&group), Stream::named(5, 0, "voip"));
        let (mut spurts, mut packets, mut seconds) = (0.0, 0.0, 0.0);
        while spurts < 20_000.0 {
            let (_, gap) = source.send(&mut stream);
            packets += 1.0;
            seconds += gap.as_secs_f64();
            spurts += f64::from(gap > Span::from_ms(20));
        }
        // A spurt of length T has T/20 ms packets, rounded up: for an exponential one
        // 1/(1 - exp(-20/1004)) on average, with a standard deviation that is about the mean. A
        // pause under 20 ms that joins two spurts is met once in 80 times, and joins both counts.
        let joined = 1.0 - libm::exp(-0.01 / 1.587);
        let expected = 1.0 / (1.0 - libm::exp(-0.020 / 1.004)) / (1.0 - joined);
        let found = packets / spurts;
        // Five standard errors, exceeded with probability 6e-7, and half a percent for the pauses
        // of 10 to 20 ms that the line above approximates.
        let tolerance = 5.0 * expected / 20_000_f64.sqrt() + 0.005 * expected;
        assert!(
            (found - expected).abs() < tolerance,
            "{found}, not {expected}"
        );
        let cycle = seconds / spurts / (1.0 + joined);
        assert!(
            (cycle - 2.591).abs() < 5.0 * 1.88 / 20_000_f64.sqrt() + 0.005 * 2.591,
            "{cycle}"
        );
    }

    #[test]
    fn without_pauses_packets_come_every_interval() {
        let mut source = VoipSource::new(&group(""));
        let mut stream = Stream::named(1, 0, "voip");
        assert!((0..10).all(|_| source.send(&mut stream) == (200, Span::from_ms(20))));
    }

    #[test]
    fn a_packet_that_comes_after_its_time_is_late() {
        // The first comes after 30 ms and waits for 60: what takes over 90 is late.
        let tally = heard(&[30, 90, 91, 40, 10]);
        assert_eq!((tally.heard, tally.late), (5, 1));
        assert!((tally.waits - 4.0 * 0.090).abs() < 1e-12);
    }

    #[test]
    fn a_call_all_of_whose_packets_are_late_for_a_second_begins_anew() {
        let mut delays = vec![10; 10];
        delays.extend([200; 100]);
        let tally = heard(&delays);
        // The first late one comes 1 s before the one that the receiver begins anew with.
        assert_eq!(tally.late, 50);
    }

    #[test]
    fn each_talkspurt_sets_its_own_time() {
        let mut playout = Playout::new(&group(P59));
        let packets = [
            // number, sent, delay
            (0, 0, 10),
            (1, 20, 71), // late: 10 + 60 ms
            (3, 60, 70), // one was lost in between, but there was no pause
            (4, 500, 200),
            (5, 520, 260),
            (6, 540, 261),
        ];
        for (number, sent, delay) in packets {
            playout.receive(number, ms(sent), ms(sent + delay), true);
        }
        assert_eq!(playout.tally().late, 2);
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_difference() {
        // RFC 3550, 6.4.1: J = J + (|D| - J)/16. Differences of 16 ms and 0.
        let tally = heard(&[10, 26, 26]);
        let (first, second) = (1.0, 1.0 - 1.0 / 16.0);
        assert!((tally.jitters - (first + second) * 1e-3).abs() < 1e-12);
        assert!(heard(&[10, 10, 10]).jitter() == Some(0.0));
        assert_eq!(CallTally::default().jitter(), None);
    }

    #[test]
    fn a_call_is_rated_by_its_waits_and_by_what_is_missing() {
        let group = group("");
        // 30 ms on the way, 60 in the buffer, 20 to fill a packet: 110 ms.
        let tally = heard(&[30; 100]);
        let r = tally.rating(&group, 0).expect("packets were sent");
        assert_eq!(
            r,
            r_factor(Span::from_ms(110), 0.0, group.codec.impairment())
        );
        let lost = tally.rating(&group, 100).expect("packets were sent");
        assert_eq!(
            lost,
            r_factor(Span::from_ms(110), 0.5, group.codec.impairment())
        );
        assert!(mos(r) > 4.3 && mos(lost) < 2.0, "{} {}", mos(r), mos(lost));
        assert_eq!(CallTally::default().rating(&group, 0), None);
        let silent = CallTally::default().rating(&group, 10);
        let nothing = r_factor(Span::from_ms(80), 1.0, group.codec.impairment());
        assert_eq!(silent, Some(nothing));
    }
}
