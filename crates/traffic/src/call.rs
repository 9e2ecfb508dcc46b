//! Video calls that adapt to the network: media over RTP and UDP, with a rate controller and reports.
//!
//! ```text
//! caller:  an encoder that follows the target rate, and voice at a constant rate
//! sending: voice at once; the packets of a frame wait for pacing and window
//! report:  from the receiver of the media, against it; the controller turns it into a target rate
//! ```
//!
//! A call is one flow between two hosts, which carries media and reports in both directions. Controllers
//! are in [`gcc`] and [`scream`], the encoder is in [`encoder`], what the viewer sees in [`playback`], and
//! how good it is in [`quality`]. [`CallEnd`] joins them: a state machine without clock and sockets.

pub mod encoder;
mod end;
pub mod gcc;
pub mod packet;
pub mod playback;
pub mod quality;
pub mod scream;
#[cfg(test)]
mod testing;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, Metric, ParamError, Rate, Span, metrics, schemars, serde};

use crate::access::Direction;
use crate::bounds::refuse_fast;
use crate::dealt::Dealt;
use crate::keys::groups;
use crate::kind::TrafficKind;
use crate::start::Start;
use crate::voip::Codec;

pub use end::{CallEnd, Figures, Outgoing};
pub use packet::CallPacket;

/// What chooses the rate of the media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Controller {
    /// Google Congestion Control (draft-ietf-rmcat-gcc-02).
    #[default]
    Gcc,
    /// Self-clocked rate adaptation for multimedia (RFC 8298).
    Scream,
}

/// Who sends media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Media {
    /// Both callers.
    #[default]
    BothWays,
    /// The caller at whose host the group's direction begins; the other sends reports only.
    OneWay,
}

/// Voice of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Audio {
    /// G.711, 64 kbit/s in packets of 20 ms, with loss concealment.
    #[default]
    G711,
    /// G.729A, 8 kbit/s in packets of 20 ms.
    G729,
    /// None: video alone.
    None,
}

impl Audio {
    /// The codec of the voice.
    pub fn codec(self) -> Option<Codec> {
        match self {
            Self::G711 => Some(Codec::G711),
            Self::G729 => Some(Codec::G729),
            Self::None => None,
        }
    }
}

groups! {
    /// Video calls that adapt to the network: media over UDP with a rate controller.
    pub struct CallParams of people {
        /// What chooses the rate of the media.
        /// Source: GCC, the controller of WebRTC in browsers.
        #[serde(default)]
        pub controller: Controller,
        /// Who sends media.
        /// Source: both callers, as in a conversation.
        #[serde(default)]
        pub media: Media,
        /// Rate of the media of a caller at the beginning, voice and headers included.
        /// Source: 300 kbit/s, the start bitrate of WebRTC, or the nearest rate from `min_rate` to `max_rate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start_rate: Option<Rate>,
        /// The least rate of the media of a caller, voice and headers included; more than voice alone.
        /// Source: 150 kbit/s, R_min of RFC 8593 and RMIN of RFC 8698.
        #[serde(default = "least_rate")]
        pub min_rate: Rate,
        /// The highest rate of the media of a caller, voice and headers included.
        /// Source: 1.5 Mbit/s, R_max of RFC 8593 and RMAX of RFC 8698.
        #[serde(default = "highest_rate")]
        pub max_rate: Rate,
        /// Frames of video per second; 1 to 240.
        /// Source: 30, FPS of RFC 8593.
        #[serde(default = "thirty_frames")]
        #[schemars(range(min = 1.0, max = 240.0))]
        pub frame_rate: f64,
        /// Voice.
        /// Source: G.711, which RFC 7874 requires of WebRTC beside Opus, and for which the E-model has parameters.
        #[serde(default)]
        pub audio: Audio,
        /// Time for which the first packet of voice waits at the receiver, so that later ones arrive in time.
        /// Source: the default of `voip`.
        #[serde(default = "three_packets")]
        pub jitter_buffer: Span,
        /// Largest payload of a packet of video.
        /// Source: 1200 B, as in draft-ietf-rmcat-gcc-02, section 5.5.
        #[serde(default = "payload")]
        pub packet: Bytes,
        /// Bytes that headers add to each packet of media on the link.
        /// Source: IPv4, UDP and RTP, 20 B, 8 B and 12 B (RFC 791, RFC 768, RFC 3550).
        #[serde(default = "ip_udp_and_rtp")]
        pub header: Bytes,
        /// For `gcc`: time between two reports; a fall of the estimate by 3 % is reported at once. At least "1 ms".
        /// Source: 1 s, draft-ietf-rmcat-gcc-02, section 3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub report_interval: Option<Span>,
        /// For `scream`: send media as ECN-capable, ECT(0), and reduce the rate when packets are marked.
        /// Source: off, as in WebRTC.
        #[serde(default)]
        pub ecn: bool,
        /// When calls start; dealt out. Each end sends its first frame at a random phase of its frame interval.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When calls stop; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

/// The start bitrate of WebRTC (`kDefaultStartBitrate`).
const START_RATE: u64 = 300_000;

fn least_rate() -> Rate {
    Rate::from_bps(150_000)
}

fn highest_rate() -> Rate {
    Rate::from_bps(1_500_000)
}

fn thirty_frames() -> f64 {
    30.0
}

fn three_packets() -> Span {
    Span::from_ms(60)
}

fn payload() -> Bytes {
    Bytes::new(1200)
}

fn ip_udp_and_rtp() -> Bytes {
    Bytes::new(40)
}

metrics! {
    /// What a group of kind `call` reports: its media as they reach the callers. Those of `back_` are of the
    /// media against the group's direction.
    pub const METRICS of Group;

    /// [Quality of a call](../traffic/call.md#quality) for the viewer in the group's direction (MMq of ITU-T G.1070), averaged over the calls.
    QUALITY = "quality", Ratio, "Call quality, forward", "quality";
    /// Quality of the worst call in the group's direction.
    QUALITY_MIN = "quality_min", Ratio, "Least call quality, forward", "worst quality";
    /// Quality of the video in the group's direction (Vq of ITU-T G.1070), averaged over the calls.
    VIDEO_QUALITY = "video_quality", Ratio, "Video quality, forward", "video quality";
    /// Quality of the voice in the group's direction: mean opinion score by the E-model (ITU-T G.107), averaged over the calls.
    AUDIO_QUALITY = "audio_quality", Ratio, "Voice quality, forward", "audio quality";
    /// Bits of media that were sent in the period and arrived, headers included, by the time that the call lasted in the period; averaged over the calls.
    BITRATE = "bitrate", Rate, "Bitrate, forward", "bitrate";
    /// Frames shown per second, averaged over the calls.
    FRAME_RATE = "frame_rate", PerSecond, "Frames shown per second, forward", "frames";
    /// Time from the capture of a frame to the arrival of its last packet, with the wait at the sender; mean over the frames shown, averaged over the calls.
    FRAME_DELAY_MEAN = "frame_delay_mean", Delay, "Mean delay of a frame, forward", "frame delay";
    /// [Freezes](../traffic/call.md#freezes) of the picture by the time that the call lasted, averaged over the calls.
    FREEZES = "freezes", PerMinute, "Freezes of the picture, forward", "freezes";
    /// Share of the time in which the picture was frozen, averaged over the calls.
    FROZEN = "frozen", Fraction, "Time with a frozen picture, forward", "frozen";
    /// Quality of a call for the viewer against the group's direction, averaged over the calls.
    BACK_QUALITY = "back_quality", Ratio, "Call quality, back", "back quality";
    /// Quality of the video against the group's direction, averaged over the calls.
    BACK_VIDEO_QUALITY = "back_video_quality", Ratio, "Video quality, back", "back video quality";
    /// Quality of the voice against the group's direction, averaged over the calls.
    BACK_AUDIO_QUALITY = "back_audio_quality", Ratio, "Voice quality, back", "back audio quality";
    /// `bitrate` of the media against the group's direction.
    BACK_BITRATE = "back_bitrate", Rate, "Bitrate, back", "back bitrate";
    /// Packets of media against the group's direction that were sent in the period and lost, divided by the sum of lost and received ones.
    BACK_LOSS = "back_loss", Fraction, "Media packets lost, back", "back lost";
    /// Mean one-way delay of the packets of media against the group's direction.
    BACK_ONE_WAY_DELAY_MEAN = "back_one_way_delay_mean", Delay, "Mean one-way delay, back", "back one-way";
    /// 95th percentile of the one-way delay of the packets of media against the group's direction.
    BACK_ONE_WAY_DELAY_P95 = "back_one_way_delay_p95", Delay, "One-way delay, 95th percentile, back", "back one-way p95";
    /// `frame_rate` against the group's direction.
    BACK_FRAME_RATE = "back_frame_rate", PerSecond, "Frames shown per second, back", "back frames";
    /// `frame_delay_mean` against the group's direction.
    BACK_FRAME_DELAY_MEAN = "back_frame_delay_mean", Delay, "Mean delay of a frame, back", "back frame delay";
    /// `freezes` of the picture against the group's direction.
    BACK_FREEZES = "back_freezes", PerMinute, "Freezes of the picture, back", "back freezes";
    /// `frozen` of the picture against the group's direction.
    BACK_FROZEN = "back_frozen", Fraction, "Time with a frozen picture, back", "back frozen";
}

impl TrafficKind for CallParams {
    fn example() -> &'static str {
        r#"flows = 2
start_rate = "500 kbit/s"
max_rate = "500 kbit/s"
stop = "2 s""#
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn noun(&self) -> &'static str {
        "video call"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn has_own_hosts(&self) -> bool {
        true
    }

    fn is_person(&self) -> bool {
        true
    }

    fn fill_in(&mut self) {
        self.start_rate = Some(self.start_rate());
        if self.controller == Controller::Gcc {
            self.report_interval = Some(self.report_interval());
        }
    }

    fn check(&self) -> Result<(), ParamError> {
        let refuse =
            |key, problem: String, accepted: String| Err(ParamError::new(key, problem, accepted));
        let (least, most) = (self.min_rate, self.max_rate);
        refuse_fast("max_rate", most)?;
        let voice = Rate::from_bps(self.audio_rate().ceil() as u64);
        if least <= voice {
            let problem = format!("leaves no rate for video beside the \"{voice}\" of voice");
            let accepted = format!("more than \"{voice}\", such as \"150 kbit/s\"");
            return refuse("min_rate", problem, accepted);
        }
        if most < least {
            let problem = format!("is less than min_rate, \"{least}\"");
            return refuse("max_rate", problem, format!("\"{least}\" and more"));
        }
        if self.start_rate() < least || self.start_rate() > most {
            let problem = "is not within min_rate and max_rate".to_owned();
            return refuse("start_rate", problem, format!("\"{least}\" to \"{most}\""));
        }
        if !(1.0..=240.0).contains(&self.frame_rate) {
            let problem = "is out of range".to_owned();
            return refuse("frame_rate", problem, "1 to 240".to_owned());
        }
        if self.packet.as_u64() == 0 {
            let problem = "is zero".to_owned();
            return refuse("packet", problem, "a size such as \"1200 B\"".to_owned());
        }
        if self.largest_packet().as_u64() > 65_535 {
            let problem = "does not fit an IP packet with its header".to_owned();
            return refuse("packet", problem, "up to \"65535 B\" together".to_owned());
        }
        if self.ecn && self.controller != Controller::Scream {
            let problem = "is on, but the controller does not react to marks".to_owned();
            return refuse(
                "ecn",
                problem,
                "false, or controller = \"scream\"".to_owned(),
            );
        }
        if self.report_interval.is_some() && self.controller != Controller::Gcc {
            let problem = "is given, but RFC 8298 determines it".to_owned();
            let accepted = "it with controller = \"gcc\"".to_owned();
            return refuse("report_interval", problem, accepted);
        }
        if self.report_interval() < Span::from_ms(1) {
            let problem = "is too short".to_owned();
            return refuse("report_interval", problem, "\"1 ms\" and more".to_owned());
        }
        Ok(())
    }
}

impl CallParams {
    /// Whether both callers send media.
    pub fn goes_both_ways(&self) -> bool {
        self.media == Media::BothWays
    }

    /// The highest rate of one caller's media on the link, and the mean size of its packets in bytes.
    pub fn mean_load(&self) -> (Rate, f64) {
        let rate = self.max_rate.as_bps() as f64;
        let frame = (rate - self.audio_rate()) / 8.0 / self.frame_rate;
        let parts = (frame / self.largest_packet().as_u64() as f64)
            .ceil()
            .max(1.0);
        let voice = self
            .audio
            .codec()
            .map_or(0.0, |codec| 1.0 / codec.interval().as_secs_f64());
        let packets = parts * self.frame_rate + voice;
        (self.max_rate, rate / 8.0 / packets)
    }

    /// The size of the largest packet on the link.
    pub fn largest_packet(&self) -> Bytes {
        let voice = self.audio.codec().map_or(Bytes::ZERO, Codec::payload);
        self.packet.max(voice) + self.header
    }

    /// The rate of voice on the link, in bit/s.
    pub(crate) fn audio_rate(&self) -> f64 {
        self.audio.codec().map_or(0.0, |codec| {
            (codec.payload() + self.header).bits() as f64 / codec.interval().as_secs_f64()
        })
    }

    fn start_rate(&self) -> Rate {
        let usual = Rate::from_bps(START_RATE);
        self.start_rate
            .unwrap_or(usual.min(self.max_rate).max(self.min_rate))
    }

    fn report_interval(&self) -> Span {
        self.report_interval.unwrap_or(Span::from_s(1))
    }
}
