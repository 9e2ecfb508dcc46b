//! Adaptive video over HTTP (DASH, HLS): users who watch, and ask for one segment after another.
//!
//! ```text
//! segment:  a request for some seconds of video in one of several bitrates, and its response
//! when:     as soon as the buffer has room for it
//! bitrate:  chosen for each segment by the throughput of the last ones, or by the buffer
//! ```
//!
//! All segments come over one connection (a persistent one, RFC 9112, section 9.3), one at a time.
//! What is in the buffer plays in real time; see [`playback`]. How bitrates are chosen is in
//! [`adaptation`].
//!
//! A user who stops requests no more segments and leaves. A segment that was requested still arrives,
//! because the connection is closed and not reset.

pub mod adaptation;
pub mod playback;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Dscp, Metric, ParamError, Rate, Span, Stream, Time, metrics, schemars, serde,
};

use crate::access::Direction;
use crate::application::{Answer, Application, ConnectionId, Exchange, Network, Server};
use crate::bounds::refuse_nothing;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{MakeUser, TrafficKind, UserKind};
use crate::start::Start;
use crate::table::Traces;

use adaptation::Adaptation;
use playback::Playback;

/// Algorithm that chooses the bitrate of the next segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Algorithm {
    /// By the throughput of the last segments: the harmonic mean times a safety factor (FESTIVE, Jiang et al., CoNEXT 2012).
    #[default]
    Throughput,
    /// By the amount of video in the buffer: BBA-0 (Huang et al., SIGCOMM 2014).
    Buffer,
}

groups! {
    /// Users who watch adaptive video (DASH, HLS): segment after segment over one connection.
    pub struct VideoParams of users {
        /// Bitrates in which the video is available, in ascending order.
        /// Source: the nine H.264 variants of Apple's HLS Authoring Specification, table 2-1 of 2016: 145 kbit/s to 7.8 Mbit/s.
        #[serde(default = "hls_ladder")]
        #[schemars(length(min = 1))]
        pub bitrates: Vec<Rate>,
        /// Length of a segment, in time of video.
        /// Source: 4 s, as in Huang et al. 2014 and Yin et al. 2015.
        #[serde(default = "four_seconds")]
        pub segment: Span,
        /// Size of a segment divided by bitrate times length; one draw for each segment, the same at every bitrate.
        /// Source: 1, a constant bitrate.
        #[serde(default = "one")]
        pub variation: Dist<f64>,
        /// Maximum of buffered video: a segment is requested when it fits.
        /// Source: 30 s, as GOAL_BUFFER_LENGTH of video.js.
        #[serde(default = "thirty_seconds")]
        pub buffer: Span,
        /// Video that must be buffered before playback starts, or resumes after a stall.
        /// Source: one segment, the minimum.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub startup: Option<Span>,
        /// Algorithm that chooses the bitrate of the next segment.
        /// Source: throughput, the first choice of most players.
        #[serde(default)]
        pub algorithm: Algorithm,
        /// For `throughput`: share of the estimated throughput that a bitrate may take.
        /// Source: 0.85, the p of FESTIVE; dash.js has 0.9.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub safety: Option<f64>,
        /// For `throughput`: number of segments in the estimate.
        /// Source: 20, as in FESTIVE; dash.js has 4.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1000))]
        pub window: Option<u32>,
        /// For `buffer`: with no more buffered video than this, the lowest bitrate.
        /// Source: 3/8 of the buffer, the 90 s of 240 s of Huang et al. 2014.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reservoir: Option<Span>,
        /// For `buffer`: with this much more than the reservoir, the highest bitrate.
        /// Source: to 9/10 of the buffer, as in Huang et al. 2014, or to the maximum of the buffer when a segment is requested, if that is less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cushion: Option<Span>,
        /// Length of the video. Left out, it does not end.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub duration: Option<Span>,
        /// Payload of a request.
        /// Source: the default of `transactions`.
        #[serde(default = "crate::keys::thousand_bytes")]
        pub request: Dist<Bytes>,
        /// When users begin to watch; dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When users leave; dealt out. Left out, they stay to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

/// In kbit/s.
const HLS_LADDER: [u64; 9] = [145, 365, 730, 1100, 2000, 3000, 4500, 6000, 7800];

fn hls_ladder() -> Vec<Rate> {
    let rates = HLS_LADDER.iter();
    rates.map(|kbps| Rate::from_bps(kbps * 1000)).collect()
}

fn four_seconds() -> Span {
    Span::from_s(4)
}

fn thirty_seconds() -> Span {
    Span::from_s(30)
}

fn one() -> Dist<f64> {
    Dist::constant(1.0)
}

impl TrafficKind for VideoParams {
    fn example() -> &'static str {
        r#"users = 2
stop = "2 s""#
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn is_person(&self) -> bool {
        true
    }

    fn noun(&self) -> &'static str {
        "video user"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        refuse_nothing("request", &self.request)?;
        let refuse =
            |key, problem: String, accepted: String| Err(ParamError::new(key, problem, accepted));
        let example = "a list such as [\"1 Mbit/s\", \"3 Mbit/s\"]";
        if self.bitrates.is_empty() {
            return refuse("bitrates", "is empty".into(), example.into());
        }
        if self.bitrates[0].as_bps() == 0 {
            return refuse("bitrates", "begins with zero".into(), example.into());
        }
        if let Some(pair) = self.bitrates.windows(2).find(|pair| pair[0] >= pair[1]) {
            let problem = format!("has \"{}\" behind \"{}\"", pair[1], pair[0]);
            return refuse("bitrates", problem, "rates in rising order".into());
        }
        if self.variation.only() == Some(0.0) {
            let accepted = "a law such as \"lognormal median 1 sigma 0.2\"";
            return refuse("variation", "is zero".into(), accepted.into());
        }
        for (key, span) in [
            ("segment", Some(self.segment)),
            ("startup", self.startup),
            ("duration", self.duration),
        ] {
            if span == Some(Span::ZERO) {
                return refuse(key, "is zero".into(), "a time such as \"4 s\"".into());
            }
        }
        let sum = |a: Span, b: Span| Span::from_ps(a.as_ps().saturating_add(b.as_ps()));
        let (needed, fullest) = (sum(self.startup(), self.segment), self.fullest());
        if self.buffer < needed {
            let problem = format!(
                "has no room for a segment beside the \"{}\" that playback starts with",
                self.startup()
            );
            return refuse("buffer", problem, format!("\"{needed}\" and more"));
        }
        let (by_throughput, by_buffer) = match self.algorithm {
            Algorithm::Throughput => (true, false),
            Algorithm::Buffer => (false, true),
        };
        for (key, given, used, algorithm) in [
            ("safety", self.safety.is_some(), by_throughput, "throughput"),
            ("window", self.window.is_some(), by_throughput, "throughput"),
            ("reservoir", self.reservoir.is_some(), by_buffer, "buffer"),
            ("cushion", self.cushion.is_some(), by_buffer, "buffer"),
        ] {
            if given && !used {
                let problem = "is given, but another algorithm decides".to_owned();
                return refuse(key, problem, format!("it with algorithm = \"{algorithm}\""));
            }
        }
        if self
            .safety
            .is_some_and(|share| !(share > 0.0 && share <= 2.0))
        {
            let accepted = "a factor above 0, at most 2".to_owned();
            return refuse("safety", "is out of range".into(), accepted);
        }
        if self
            .window
            .is_some_and(|window| !(1..=1000).contains(&window))
        {
            return refuse("window", "is out of range".into(), "1 to 1000".into());
        }
        if let Adaptation::Buffer { reservoir, cushion } = self.adaptation() {
            let room = format!("the buffer has at most \"{fullest}\" when a segment is asked for");
            if reservoir >= fullest {
                let problem = format!("ends at \"{reservoir}\", but {room}");
                return refuse("reservoir", problem, format!("less than \"{fullest}\""));
            }
            let end = sum(reservoir, cushion);
            if end > fullest {
                let problem = format!("ends at \"{end}\", but {room}");
                let most = fullest - reservoir;
                return refuse("cushion", problem, format!("at most \"{most}\""));
            }
        }
        Ok(())
    }
}

impl UserKind for VideoParams {
    type User = VideoUser;

    fn make_users(&self, _: &Traces) -> MakeUser<VideoUser> {
        let group = Arc::new(self.clone());
        Box::new(move |_, start, stop, stream| group.user(start, stop, stream))
    }

    fn offered(&self) -> Option<f64> {
        let highest = self.bitrates.last()?.as_bps() as f64 / 8.0;
        Some(highest * self.variation.mean()?)
    }
}

impl VideoParams {
    /// The maximum of the buffer when a segment is requested.
    fn fullest(&self) -> Span {
        self.buffer.saturating_sub(self.segment)
    }

    fn startup(&self) -> Span {
        self.startup.unwrap_or(self.segment)
    }

    fn adaptation(&self) -> Adaptation {
        match self.algorithm {
            Algorithm::Throughput => Adaptation::Throughput {
                safety: self.safety.unwrap_or(0.85),
                window: self.window.unwrap_or(20) as usize,
                paces: Default::default(),
            },
            Algorithm::Buffer => {
                let of_buffer = |share: f64| Span::from_secs_f64(self.buffer.as_secs_f64() * share);
                let reservoir = self.reservoir.unwrap_or_else(|| of_buffer(0.375));
                let cushion = self.cushion.unwrap_or_else(|| {
                    let end = of_buffer(0.9).min(self.fullest());
                    end.saturating_sub(reservoir)
                });
                Adaptation::Buffer { reservoir, cushion }
            }
        }
    }

    /// The user of this group whose draws are those of `stream`.
    fn user(self: &Arc<Self>, start: Time, stop: Time, stream: Stream) -> VideoUser {
        VideoUser {
            group: Arc::clone(self),
            left: self.duration,
            adaptation: self.adaptation(),
            playback: Playback::new(self.startup(), start),
            connection: None,
            next: Some(start),
            stop: Some(stop).filter(|at| *at != Time::MAX),
            begun: false,
            gone: false,
            left_before: false,
            asked: None,
            rung: 0,
            fetched: Fetched::default(),
            stream,
        }
    }
}

/// A segment that was requested and has not arrived.
#[derive(Clone, Copy, Debug)]
struct Asked {
    length: Span,
    rung: usize,
    is_last: bool,
}

/// Segments that arrived in the measurement period.
#[derive(Clone, Copy, Debug, Default)]
struct Fetched {
    /// Bitrate times length, summed.
    bits: f64,
    /// Length, in seconds.
    seconds: f64,
    /// Number of segments with another bitrate than the previous one.
    switches: u64,
}

/// A user of a group of [`VideoParams`].
#[derive(Clone, Debug)]
pub struct VideoUser {
    group: Arc<VideoParams>,
    /// Length of the video that was not requested yet; `None` if it does not end.
    left: Option<Span>,
    adaptation: Adaptation,
    playback: Playback,
    connection: Option<ConnectionId>,
    /// When the next segment is requested, if none is pending.
    next: Option<Time>,
    stop: Option<Time>,
    /// The user has asked for the video.
    begun: bool,
    /// The user has left.
    gone: bool,
    /// The same, before the measurement period.
    left_before: bool,
    /// The pending segment.
    asked: Option<Asked>,
    /// Index of the bitrate of the last segment that arrived; at first the lowest.
    rung: usize,
    fetched: Fetched,
    stream: Stream,
}

impl VideoUser {
    /// Length of the next segment; zero when there is none.
    fn next_length(&self) -> Span {
        self.left
            .map_or(self.group.segment, |left| left.min(self.group.segment))
    }

    /// Tells of a stall that is over.
    fn tell_stall(&mut self, network: &mut impl Network) {
        if let Some(took) = self.playback.take_stall(network.now()) {
            network.stalled(took);
        }
    }

    /// Requests the next segment; `level` is the buffered video.
    fn ask(&mut self, level: Span, network: &mut impl Network) {
        let length = self.next_length();
        let rung = self
            .adaptation
            .choose(&self.group.bitrates, self.rung, level);
        let bits = self.group.bitrates[rung].as_bps() as f64 * length.as_secs_f64();
        let bytes = bits / 8.0 * self.group.variation.draw(&mut self.stream);
        self.left = self.left.map(|left| left - length);
        let is_last = self.left == Some(Span::ZERO);
        let connection = match self.connection {
            Some(connection) => connection,
            None => network.connect(Server::Own),
        };
        self.connection = (!is_last).then_some(connection);
        self.asked = Some(Asked {
            length,
            rung,
            is_last,
        });
        let exchange = Exchange {
            request: self.group.request.draw(&mut self.stream).as_u64().max(1),
            response: (bytes.round() as u64).max(1),
            service: Span::ZERO,
            tag: 0,
            last: is_last,
        };
        network.request(connection, exchange);
    }
}

metrics! {
    /// What a group of kind `video` reports: of all its users together.
    pub const METRICS of Group;

    /// Time stalled, divided by watching time. A stall begins when the buffer is empty and ends when the buffer holds `startup` of video again.
    REBUFFERING_RATIO = "rebuffering_ratio", Fraction, "Share of watching time stalled", "stalled";
    /// Stalls divided by watching time: per user and second, shown per minute. A stall that began before the period adds its time to the ratio, but does not count as an event.
    REBUFFERING_EVENTS = "rebuffering_events", PerMinute, "Stalls per user", "stalls";
    /// Users whose playback had not started when the period ended or when they left in it, divided by all users who had asked for their video and not left before the period. They have no startup delay, and no watching time.
    NOT_STARTED = "not_started", Fraction, "Users whose video never started", "not started";
    /// From the first request to the start of playback, over the users whose playback first started in the period: with a warm-up longer than all starts it is undefined.
    STARTUP_DELAY_MEAN = "startup_delay_mean", Time, "Mean startup delay of videos", "startup";
    /// Bitrate, weighted by length, of the segments that arrived in the period. With `variation` it is the nominal one.
    BITRATE_MEAN = "bitrate_mean", Rate, "Mean bitrate of videos", "bitrate";
    /// Segments that arrived with another bitrate than the segment before, divided by watching time; shown per minute.
    BITRATE_SWITCHES = "bitrate_switches", PerMinute, "Bitrate switches per user", "switches";
}

impl Application for VideoUser {
    fn next_wakeup(&self) -> Option<Time> {
        self.next.into_iter().chain(self.stop).min()
    }

    fn on_wakeup(&mut self, network: &mut impl Network) {
        let now = network.now();
        if self.stop.take_if(|at| *at <= now).is_some() {
            self.gone = true;
            self.next = None;
            self.playback.end(now);
            self.tell_stall(network);
            if let Some(connection) = self.connection.take() {
                network.close(connection);
            }
        }
        if self.next.take_if(|at| *at <= now).is_some() {
            self.begun = true;
            let level = self.playback.advance(now);
            self.ask(level, network);
        }
    }

    fn on_answer(&mut self, answer: Answer, network: &mut impl Network) {
        let Some(segment) = self.asked.take().filter(|_| !self.gone) else {
            return; // the user has left
        };
        let now = network.now();
        self.adaptation.on_segment(answer.size, now - answer.asked);
        let seconds = segment.length.as_secs_f64();
        self.fetched.bits += self.group.bitrates[segment.rung].as_bps() as f64 * seconds;
        self.fetched.seconds += seconds;
        self.fetched.switches += u64::from(segment.rung != self.rung);
        self.rung = segment.rung;
        let level = self.playback.add(segment.length, segment.is_last, now);
        self.tell_stall(network);
        if segment.is_last {
            return;
        }
        let room_at = self.group.buffer - self.next_length();
        if level > room_at {
            self.next = Some(now + (level - room_at));
        } else {
            self.ask(level, network);
        }
    }

    fn start_measuring(&mut self, now: Time) {
        self.left_before = self.gone;
        self.playback.start_measuring(now);
        self.fetched = Fetched::default();
    }

    fn report(&self, now: Time, add: &mut impl FnMut(&'static Metric, f64, f64)) {
        let figures = self.playback.figures(now);
        let stalled = figures.stalled.as_secs_f64();
        let watched = stalled + figures.played.as_secs_f64();
        add(REBUFFERING_RATIO, stalled, watched);
        add(REBUFFERING_EVENTS, figures.stalls as f64, watched);
        let delay = figures.startup_delay.map(Span::as_secs_f64);
        let started = f64::from(u8::from(delay.is_some()));
        let here = f64::from(u8::from(self.begun && !self.left_before));
        let waits = f64::from(u8::from(!self.playback.has_started()));
        add(NOT_STARTED, here * waits, here);
        add(STARTUP_DELAY_MEAN, delay.unwrap_or(0.0), started);
        add(BITRATE_MEAN, self.fetched.bits, self.fetched.seconds);
        add(BITRATE_SWITCHES, self.fetched.switches as f64, watched);
    }
}
