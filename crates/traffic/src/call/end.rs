//! One end of a call: it sends media and reports, and receives those of its peer.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use redtail_core::units::earlier;
use redtail_core::{Span, Stream, Time};

use super::encoder::Encoder;
use super::gcc::{BURST_TIME, Bounds, GccReceiver, GccSender};
use super::packet::{Arrivals, CallPacket, CallPayload, Media, Report};
use super::playback::Playback;
use super::scream::Scream;
use super::{CallParams, Controller, quality};
use crate::e_model::{mos, r_factor};
use crate::voip::{Codec, Playout};

/// How much faster than the target rate GCC sends the packets of a frame (WebRTC, `kDefaultPaceMultiplier`).
/// At the target rate itself (section 4 of the draft), the varying sizes of frames would let packets
/// wait without bound.
const PACING_FACTOR: f64 = 2.5;
/// While a packet has waited for so long, no further frame is encoded (WebRTC, `kMaxExpectedQueueLength`).
const LONGEST_WAIT: Span = Span::from_s(2);
/// With SCReAM, the time without a report after which a packet is sent although the window is full, so that
/// a loss of all reports does not end the call. It is redtail's own.
const PROBE_AFTER: Span = Span::from_ms(500);
/// Bytes of a report on the link: IPv4 and UDP, 28 B, with a receiver report and REMB, 32 B and 24 B
/// (RFC 3550, section 6.4.2; draft-alvestrand-rmcat-remb-03, section 2.2).
const GCC_REPORT: u32 = 84;
/// The same with the feedback of RFC 8298, section 4.2: two SSRCs and header 12 B, highest number and
/// count of marks 4 B, timestamp 4 B, 64 bits of acknowledgements 8 B.
const SCREAM_REPORT: u32 = 56;

/// The least time over which the rate is measured that chooses the interval of SCReAM's reports, as that of the
/// sender's rates (RFC 8298, section 4.1.3).
const RATE_WINDOW: Span = Span::from_ms(200);

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outgoing {
    /// What it carries.
    pub packet: CallPacket,
    /// The size of the packet on the link, in bytes.
    pub size: u32,
}

/// The sender's part of a controller.
#[derive(Clone, Debug)]
enum Control {
    Gcc(GccSender),
    Scream(Box<Scream>),
}

/// A packet of media at its sender.
#[derive(Clone, Copy, Debug)]
struct MediaPacket {
    /// Number of the frame, or of the packet of voice.
    unit: u32,
    parts: u16,
    size: u32,
    captured: Time,
}

/// Voice of a constant rate.
#[derive(Clone, Debug)]
struct Voice {
    interval: Span,
    size: u32,
    number: u32,
    next: Option<Time>,
}

/// What sends media.
#[derive(Clone, Debug)]
struct Sending {
    encoder: Encoder,
    stream: Stream,
    voice: Option<Voice>,
    /// Rate of voice in bit/s.
    voice_rate: f64,
    /// Largest packet on the link, and bytes of headers.
    packet: (f64, f64),
    ecn: bool,
    frame: u32,
    next_frame: Option<Time>,
    /// When the call stops. What waits then is not sent.
    stop: Time,
    queue: VecDeque<MediaPacket>,
    queued_bytes: u64,
    /// Pacing sends the next packet at this time or later.
    not_before: Time,
    /// When a report arrived, or a packet was sent, last.
    progress: Time,
    sequence: u32,
    control: Control,
}

/// What receives media.
#[derive(Clone, Debug)]
struct Receiving {
    arrivals: Arrivals,
    /// The receiver's part of GCC.
    gcc: Option<GccReceiver>,
    interval: Span,
    /// When a report is due; `None` if nothing has arrived since the last one.
    report_at: Option<Time>,
    reported_at: Time,
    /// Bytes that have arrived since this time, by which SCReAM's interval is chosen.
    rate_since: (u64, Time),
    playback: Playback,
    voice: Option<(Codec, Span, Playout)>,
    tally: Tally,
}

/// Packets of media that were sent in the measurement period.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    received: u64,
    received_bytes: u64,
    video_received: u64,
    video_payload: u64,
    video_lost: u64,
    voice_lost: u64,
}

/// What a caller saw and received in the measurement period; `None` where nothing was to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Media received, in bit/s.
    pub bitrate: Option<f64>,
    /// Frames shown per second.
    pub frame_rate: Option<f64>,
    /// Mean time from capture to showing, in seconds.
    pub frame_delay: Option<f64>,
    /// Freezes per second.
    pub freezes: Option<f64>,
    /// Share of the time that was frozen.
    pub frozen: Option<f64>,
    /// Score of the video.
    pub video: Option<f64>,
    /// Score of the voice.
    pub voice: Option<f64>,
    /// Score of both.
    pub quality: Option<f64>,
}

/// One end of a call: a state machine without clock and sockets. Whoever runs it calls
/// [`on_wakeup`](Self::on_wakeup) at [`next_wakeup`](Self::next_wakeup) and [`receive`](Self::receive) when a packet
/// arrives, and after either sends what [`poll_transmit`](Self::poll_transmit) gives.
#[derive(Clone, Debug)]
pub struct CallEnd {
    start: Time,
    stop: Time,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    report_size: u32,
    outbox: VecDeque<Outgoing>,
    measured_from: Time,
    header: u32,
}

impl CallEnd {
    /// The two ends of a call: that at which the group's direction begins, and its peer.
    pub fn pair(group: &CallParams, start: Time, stop: Time, stream: &Stream) -> [Self; 2] {
        let end = |sends: bool, receives: bool, name: &str| Self {
            start,
            stop,
            sending: sends.then(|| Sending::new(group, start, stop, stream.child(name))),
            receiving: receives.then(|| Receiving::new(group, start)),
            report_size: match group.controller {
                Controller::Gcc => GCC_REPORT,
                Controller::Scream => SCREAM_REPORT,
            },
            outbox: VecDeque::new(),
            measured_from: Time::ZERO,
            header: group.header.as_u64() as u32,
        };
        let both = group.goes_both_ways();
        [end(true, both, "forward"), end(both, true, "back")]
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due.
    pub fn next_wakeup(&self) -> Option<Time> {
        let sending = self.sending.as_ref().and_then(Sending::next_wakeup);
        earlier(sending, self.receiving.as_ref().and_then(|it| it.report_at))
    }

    /// The time has come to send media or a report.
    pub fn on_wakeup(&mut self, now: Time) {
        if let Some(sending) = &mut self.sending {
            sending.make(now, &mut self.outbox);
            sending.release(now, &mut self.outbox);
        }
        if let Some(receiving) = &mut self.receiving
            && receiving.report_at.is_some_and(|at| at <= now)
        {
            receiving.report(self.report_size, now, &mut self.outbox);
        }
    }

    /// The next packet to send now.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop_front()
    }

    /// A packet of `size` bytes arrives; `counts` tells whether it was sent in the measurement period.
    pub fn receive(
        &mut self,
        packet: &CallPacket,
        size: u32,
        marked: bool,
        counts: bool,
        now: Time,
    ) {
        match &packet.payload {
            CallPayload::Media(media) => {
                let Some(receiving) = &mut self.receiving else {
                    return;
                };
                receiving.receive(media, packet.sent, size, marked, now);
                receiving.play(media, packet.sent, counts, now);
                if counts {
                    receiving.count(media, size, self.header);
                }
                if receiving.gcc.as_ref().is_some_and(GccReceiver::must_report) {
                    receiving.report(self.report_size, now, &mut self.outbox);
                }
            }
            CallPayload::Report(report) => {
                if let Some(sending) = &mut self.sending {
                    sending.on_report(report, packet.sent, now);
                    sending.release(now, &mut self.outbox);
                }
            }
        }
    }

    /// A packet that was sent to this end in the measurement period is lost.
    pub fn miss(&mut self, packet: &CallPacket) {
        if let (CallPayload::Media(media), Some(receiving)) = (&packet.payload, &mut self.receiving)
        {
            match media.is_audio() {
                true => receiving.tally.voice_lost += 1,
                false => receiving.tally.video_lost += 1,
            }
        }
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self, now: Time) {
        self.measured_from = now;
        if let Some(receiving) = &mut self.receiving {
            receiving.playback.start_measuring(now);
        }
    }

    /// Packets of media that were sent to this end in the measurement period: those received, and those lost.
    pub fn packets(&self) -> (u64, u64) {
        self.receiving.as_ref().map_or((0, 0), |receiving| {
            let tally = &receiving.tally;
            (tally.received, tally.video_lost + tally.voice_lost)
        })
    }

    /// Bytes of these packets that were received.
    pub fn received_bytes(&self) -> u64 {
        self.receiving
            .as_ref()
            .map_or(0, |receiving| receiving.tally.received_bytes)
    }

    /// What the caller at this end saw and received in the period that ends at `now`.
    pub fn figures(&self, now: Time) -> Figures {
        let Some(receiving) = &self.receiving else {
            return Figures::default();
        };
        let end = self.stop.min(now);
        let lasted = end.saturating_since(self.start.max(self.measured_from));
        if lasted == Span::ZERO {
            return Figures::default();
        }
        receiving.figures(end, lasted.as_secs_f64())
    }
}

impl Sending {
    fn new(group: &CallParams, start: Time, stop: Time, mut stream: Stream) -> Self {
        let rate = group.start_rate().as_bps() as f64;
        let bounds = Bounds {
            least: group.min_rate.as_bps() as f64,
            most: group.max_rate.as_bps() as f64,
        };
        let interval = Span::from_secs_f64(1.0 / group.frame_rate);
        let first = start + stream.uniform_span(Span::ZERO, interval);
        let first = (first < stop).then_some(first);
        let voice = group.audio.codec().map(|codec| Voice {
            interval: codec.interval(),
            size: (codec.payload() + group.header).as_u64() as u32,
            number: 0,
            next: first,
        });
        Self {
            encoder: Encoder::new(group.frame_rate, rate - group.audio_rate()),
            stream,
            voice,
            voice_rate: group.audio_rate(),
            packet: (
                (group.packet + group.header).as_u64() as f64,
                group.header.as_u64() as f64,
            ),
            ecn: group.ecn,
            frame: 0,
            next_frame: first,
            stop,
            queue: VecDeque::new(),
            queued_bytes: 0,
            not_before: Time::ZERO,
            progress: start,
            sequence: 0,
            control: match group.controller {
                Controller::Gcc => Control::Gcc(GccSender::new(rate, bounds)),
                Controller::Scream => Control::Scream(Box::new(Scream::new(rate, bounds))),
            },
        }
    }

    fn target(&self) -> f64 {
        match &self.control {
            Control::Gcc(gcc) => gcc.target(),
            Control::Scream(scream) => scream.target(),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let voice = self.voice.as_ref().and_then(|voice| voice.next);
        let release = self.queue.front().map(|first| {
            let is_blocked = match &self.control {
                Control::Gcc(_) => false,
                Control::Scream(scream) => !scream.may_send(first.size),
            };
            match is_blocked {
                true => self.not_before.max(self.progress + PROBE_AFTER),
                false => self.not_before,
            }
        });
        let release = release.filter(|at| *at < self.stop);
        earlier(earlier(self.next_frame, voice), release)
    }

    /// Captures frames and voice that are due. Voice is sent at once.
    fn make(&mut self, now: Time, outbox: &mut VecDeque<Outgoing>) {
        if self.next_frame.is_some_and(|at| at <= now) {
            let video = (self.target() - self.voice_rate).max(0.0);
            let (bytes, gap) = self.encoder.frame(video, now, &mut self.stream);
            // An interval is never zero: the deviation is cut.
            let next = now + gap;
            self.next_frame = (next < self.stop).then_some(next);
            let waits = self
                .queue
                .front()
                .map(|first| now.saturating_since(first.captured));
            if waits.is_none_or(|waits| waits < LONGEST_WAIT) {
                self.enqueue(bytes, now);
            }
        }
        if let Some(voice) = &mut self.voice
            && voice.next.is_some_and(|at| at <= now)
        {
            let next = now + voice.interval;
            voice.next = (next < self.stop).then_some(next);
            let (number, size) = (voice.number, voice.size);
            voice.number += 1;
            self.made(f64::from(size));
            let packet = MediaPacket {
                unit: number,
                parts: 0,
                size,
                captured: now,
            };
            self.send(packet, now, outbox);
        }
    }

    fn made(&mut self, bytes: f64) {
        if let Control::Scream(scream) = &mut self.control {
            scream.made(bytes);
        }
    }

    /// Divides a frame of so many bytes on the link into packets of about the same size.
    fn enqueue(&mut self, bytes: f64, now: Time) {
        let (largest, header) = self.packet;
        let parts = (bytes / largest).ceil().clamp(1.0, f64::from(u16::MAX));
        let size = (bytes / parts).round().clamp(header + 1.0, largest) as u32;
        for _ in 0..parts as u16 {
            self.queue.push_back(MediaPacket {
                unit: self.frame,
                parts: parts as u16,
                size,
                captured: now,
            });
            self.queued_bytes += u64::from(size);
            self.made(f64::from(size));
        }
        self.frame += 1;
    }

    /// Sends the packets of video that may be sent now.
    fn release(&mut self, now: Time, outbox: &mut VecDeque<Outgoing>) {
        if now >= self.stop {
            self.queue.clear();
            self.queued_bytes = 0;
        }
        if now < self.not_before {
            return;
        }
        match &self.control {
            Control::Gcc(gcc) => {
                let rate = PACING_FACTOR * gcc.target();
                let group = rate * BURST_TIME.as_secs_f64() / 8.0;
                let mut sent = 0;
                while f64::from(sent) < group
                    && let Some(next) = self.dequeue()
                {
                    self.send(next, now, outbox);
                    sent += next.size;
                }
                if sent > 0 {
                    let took = Span::from_secs_f64(8.0 * f64::from(sent) / rate);
                    self.not_before = now + took.max(BURST_TIME);
                }
            }
            Control::Scream(scream) => {
                let probes = now.saturating_since(self.progress) >= PROBE_AFTER;
                let may_send = |next: &MediaPacket| scream.may_send(next.size) || probes;
                if self.queue.front().is_some_and(may_send)
                    && let Some(next) = self.dequeue()
                {
                    self.not_before = now + self.pace(next.size);
                    self.progress = now;
                    self.send(next, now, outbox);
                }
            }
        }
    }

    fn pace(&self, size: u32) -> Span {
        match &self.control {
            Control::Gcc(_) => BURST_TIME,
            // A picosecond at least, so that time goes on.
            Control::Scream(scream) => scream.pace(size).max(Span::from_ps(1)),
        }
    }

    fn dequeue(&mut self) -> Option<MediaPacket> {
        let next = self.queue.pop_front()?;
        self.queued_bytes -= u64::from(next.size);
        Some(next)
    }

    fn send(&mut self, packet: MediaPacket, now: Time, outbox: &mut VecDeque<Outgoing>) {
        let sequence = self.sequence;
        self.sequence += 1;
        let round_trip = match &mut self.control {
            Control::Gcc(gcc) => {
                gcc.sent(sequence, now);
                gcc.round_trip()
            }
            Control::Scream(scream) => {
                scream.sent(sequence, packet.size, now);
                scream.round_trip().unwrap_or(Span::ZERO)
            }
        };
        let media = Media {
            sequence,
            unit: packet.unit,
            parts: packet.parts,
            ecn: self.ecn,
            captured: packet.captured,
            round_trip,
        };
        outbox.push_back(Outgoing {
            packet: CallPacket {
                sent: now,
                payload: CallPayload::Media(media),
            },
            size: packet.size,
        });
    }

    fn on_report(&mut self, report: &Report, left: Time, now: Time) {
        self.progress = now;
        match &mut self.control {
            Control::Gcc(gcc) => gcc.report(report, left, now),
            Control::Scream(scream) => scream.report(report, self.queued_bytes as f64, now),
        }
    }
}

impl Receiving {
    fn new(group: &CallParams, start: Time) -> Self {
        let rate = group.start_rate().as_bps() as f64;
        let bounds = Bounds {
            least: group.min_rate.as_bps() as f64,
            most: group.max_rate.as_bps() as f64,
        };
        let (gcc, interval) = match group.controller {
            Controller::Gcc => (
                Some(GccReceiver::new(rate, bounds)),
                group.report_interval(),
            ),
            Controller::Scream => (None, interval_of(rate)),
        };
        let buffer = group.jitter_buffer;
        let codec = group.audio.codec();
        Self {
            arrivals: Arrivals::default(),
            gcc,
            interval,
            report_at: None,
            reported_at: start,
            rate_since: (0, start),
            playback: Playback::new(group.frame_rate, start),
            voice: codec.map(|codec| (codec, buffer, Playout::of(codec, buffer))),
            tally: Tally::default(),
        }
    }

    fn receive(&mut self, media: &Media, sent: Time, size: u32, marked: bool, now: Time) {
        self.arrivals.add(media.sequence, marked, now);
        self.rate_since.0 += u64::from(size);
        self.report_at
            .get_or_insert((self.reported_at + self.interval).max(now));
        if let Some(gcc) = &mut self.gcc {
            gcc.receive(sent, size, media.round_trip, now);
        }
    }

    fn play(&mut self, media: &Media, sent: Time, counts: bool, now: Time) {
        if !media.is_audio() {
            self.playback.receive(media, now);
        } else if let Some((_, _, playout)) = &mut self.voice {
            playout.receive(u64::from(media.unit), sent, now, counts);
        }
    }

    fn count(&mut self, media: &Media, size: u32, header: u32) {
        let tally = &mut self.tally;
        tally.received += 1;
        tally.received_bytes += u64::from(size);
        if !media.is_audio() {
            tally.video_received += 1;
            tally.video_payload += u64::from(size.saturating_sub(header));
        }
    }

    fn report(&mut self, size: u32, now: Time, outbox: &mut VecDeque<Outgoing>) {
        self.report_at = None;
        let Some(mut report) = self.arrivals.report() else {
            return;
        };
        match &mut self.gcc {
            Some(gcc) => report.rate = gcc.report() as u64,
            None => {
                let (bytes, since) = self.rate_since;
                let passed = now.saturating_since(since);
                if passed >= RATE_WINDOW {
                    self.interval = interval_of(8.0 * bytes as f64 / passed.as_secs_f64());
                    self.rate_since = (0, now);
                }
            }
        }
        self.reported_at = now;
        let packet = CallPacket {
            sent: now,
            payload: CallPayload::Report(report),
        };
        outbox.push_back(Outgoing { packet, size });
    }

    fn figures(&self, end: Time, lasted: f64) -> Figures {
        let (seen, tally) = (self.playback.seen(end), &self.tally);
        let frame_rate = seen.frames as f64 / lasted;
        let frame_delay = (seen.frames > 0).then(|| seen.delays / seen.frames as f64);
        let video_sent = tally.video_received + tally.video_lost;
        let loss = match video_sent {
            0 => 0.0,
            sent => tally.video_lost as f64 / sent as f64,
        };
        // What the encoder made: the part that arrived stands for all.
        let arrived = 8.0 * tally.video_payload as f64 / lasted;
        let encoded = if loss < 1.0 {
            arrived / (1.0 - loss)
        } else {
            0.0
        };
        let video = quality::video(encoded, frame_rate, loss);
        let voice = self.voice.as_ref().and_then(|(codec, buffer, playout)| {
            let received = playout.tally();
            let missing = received.missing(tally.voice_lost)?;
            let delay = codec.delay(received.wait(*buffer));
            let score = mos(r_factor(delay, missing, codec.impairment()));
            Some((score, delay.as_secs_f64()))
        });
        let both = voice.map(|(score, delay)| {
            // Without any frame there is no delay of video; the score of video is then 1.
            quality::call(score, video, delay, frame_delay.unwrap_or(delay))
        });
        Figures {
            bitrate: Some(8.0 * tally.received_bytes as f64 / lasted),
            frame_rate: Some(frame_rate),
            frame_delay,
            freezes: Some(seen.freezes as f64 / lasted),
            frozen: Some((seen.frozen / lasted).min(1.0)),
            video: Some(video),
            voice: voice.map(|(score, _)| score),
            quality: both,
        }
    }
}

/// The time between two reports of SCReAM at a rate of the media in bit/s: 10 to 50 in a second
/// (RFC 8298, section 4.2.1).
fn interval_of(rate: f64) -> Span {
    let frequency = (rate / 10_000.0).clamp(10.0, 50.0);
    Span::from_secs_f64(1.0 / frequency)
}
