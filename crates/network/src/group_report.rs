//! The metrics of groups that every engine computes in the same way from what it has counted.

use redtail_core::{Bytes, Metric, Span, Time};
use redtail_traffic::bulk::{START_UP_TIME_MAX, START_UP_TIME_MEAN, STARTED_UP};
use redtail_traffic::e_model::mos;
use redtail_traffic::transfer::{
    BEGUN, COMPLETED, COMPLETION_TIME_MEAN, COMPLETION_TIME_P50, COMPLETION_TIME_P95,
    COMPLETION_TIME_P99, ESTABLISHED, FIRST_BYTE_TIME_MEAN, HANDSHAKE_TIME_MEAN,
};
use redtail_traffic::voip::{JITTER, LATE, MOS, MOS_MIN, R_FACTOR};
use redtail_traffic::web::{
    PAGE_TIME_MEAN, PAGE_TIME_P50, PAGE_TIME_P95, PAGE_TIME_P99, PAGES, PAGES_UNFINISHED,
};
use redtail_traffic::{Application, CallEnd, Playout, User, VoipParams, call};

use crate::answers::AnswerSummary;
use crate::histogram::ThreeDigits;
use crate::metrics::*;
use crate::statistics::Delays;

/// A metric with its value; `None` if it is undefined.
pub type Value = (&'static Metric, Option<f64>);

/// The rate of `bytes` bytes in `period`, in bit/s.
pub fn bits_per_second(bytes: u64, period: Span) -> f64 {
    Bytes::new(bytes).bits() as f64 / period.as_secs_f64()
}

/// The mean of the values that are defined.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    /// Adds a value; `None` counts for nothing.
    pub fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    /// The mean; `None` without values.
    pub fn get(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// What a transfer has reached, at the end of the run or before.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// When it started.
    pub start: Time,
    /// When the SYN-ACK reached the sender.
    pub established: Option<Time>,
    /// When the receiver delivered the first byte.
    pub first_byte: Option<Time>,
    /// When the acknowledgement of the last byte reached the sender.
    pub completed: Option<Time>,
}

/// The metrics of the transfers of a group: of those that were in progress at `from` or started later.
///
/// `handshake` is whether their connections have one.
pub fn of_transfers(
    transfers: impl Iterator<Item = Moments>,
    handshake: bool,
    from: Time,
    now: Time,
) -> [Value; 9] {
    let mut times: [Times; 3] = Default::default();
    for it in transfers {
        if it.start >= now || it.completed.is_some_and(|at| at < from) {
            continue;
        }
        let ends = [it.established, it.first_byte, it.completed];
        for (times, end) in times.iter_mut().zip(ends) {
            match end {
                Some(end) => times.add(end - it.start),
                None => times.add_unfinished(now - it.start),
            }
        }
    }
    let [established, first_byte, completion] = times;
    [
        (COMPLETED, completion.share()),
        (COMPLETION_TIME_MEAN, completion.mean()),
        (COMPLETION_TIME_P50, completion.quantile(0.5)),
        (COMPLETION_TIME_P95, completion.quantile(0.95)),
        (COMPLETION_TIME_P99, completion.quantile(0.99)),
        (ESTABLISHED, established.share().filter(|_| handshake)),
        (HANDSHAKE_TIME_MEAN, established.mean()),
        (BEGUN, first_byte.share()),
        (FIRST_BYTE_TIME_MEAN, first_byte.mean()),
    ]
}

/// The metrics of the starts of a group's bulk flows, none without a handshake.
pub fn of_bulk(flows: impl Iterator<Item = Moments>, handshake: bool, now: Time) -> Vec<Value> {
    let mut times = Times::default();
    let mut longest = None;
    for it in flows.filter(|it| it.start < now) {
        match it.established {
            Some(at) => {
                times.add(at - it.start);
                longest = longest.max(Some(at - it.start));
            }
            None => times.add_unfinished(now - it.start),
        }
    }
    if !handshake {
        return Vec::new();
    }
    vec![
        (START_UP_TIME_MEAN, times.mean()),
        (START_UP_TIME_MAX, longest.map(Span::as_secs_f64)),
        (STARTED_UP, times.share()),
    ]
}

/// The number of events of one kind, and their durations.
#[derive(Clone, Debug, Default)]
struct Times {
    all: u32,
    count: u32,
    seconds: f64,
    /// Nanoseconds.
    took: ThreeDigits,
    /// How long those have lasted that have not ended, in nanoseconds.
    lasted: ThreeDigits,
}

impl Times {
    /// Adds an event, which took this time.
    fn add(&mut self, took: Span) {
        self.all += 1;
        self.count += 1;
        self.seconds += took.as_secs_f64();
        self.took.record(took.as_ps() / 1000);
    }

    /// Adds an event that has lasted for this time and not ended.
    fn add_unfinished(&mut self, lasted: Span) {
        self.all += 1;
        self.lasted.record(lasted.as_ps() / 1000);
    }

    /// The share of events that have ended.
    fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| f64::from(self.count) / f64::from(self.all))
    }

    /// The mean in seconds, over the events that have ended.
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / f64::from(self.count))
    }

    /// In seconds, of all events; `None` if it is beyond what is known of those that have not ended.
    fn quantile(&self, q: f64) -> Option<f64> {
        let quantile = self.took.quantile_with_unfinished(&self.lasted, q)?;
        (self.count > 0).then_some(quantile as f64 * 1e-9)
    }
}

/// The metrics of the exchanges of a group that has users.
pub fn of_answers(summary: &AnswerSummary, period: Span) -> Vec<Value> {
    let times = &summary.times;
    let mut values = vec![
        (RESPONSES, Some(times.count() as f64)),
        (UNANSWERED, times.unfinished()),
        (
            TRANSACTION_RATE,
            Some(times.count() as f64 / period.as_secs_f64()),
        ),
        (RESPONSE_TIME_MEAN, times.mean()),
        (RESPONSE_TIME_STD, times.std()),
        (RESPONSE_TIME_P50, times.quantile(0.5)),
        (RESPONSE_TIME_P95, times.quantile(0.95)),
        (RESPONSE_TIME_P99, times.quantile(0.99)),
        (SLOWDOWN_MEAN, summary.slowdown_mean),
        (SLOWDOWN_P50, summary.slowdown_p50),
        (SLOWDOWN_P99, summary.slowdown_p99),
    ];
    if let Some(pages) = &summary.pages {
        values.extend([
            (PAGES, Some(pages.count() as f64)),
            (PAGES_UNFINISHED, pages.unfinished()),
            (PAGE_TIME_MEAN, pages.mean()),
            (PAGE_TIME_P50, pages.quantile(0.5)),
            (PAGE_TIME_P95, pages.quantile(0.95)),
            (PAGE_TIME_P99, pages.quantile(0.99)),
        ]);
    }
    values.push((CONNECTIONS, Some(summary.connections as f64)));
    values.push((CONNECTIONS_MEAN, Some(summary.connections_mean)));
    values
}

/// The metrics that the programs of a group's users report, each over all users.
pub fn of_users<'a>(programs: impl Iterator<Item = &'a User>, now: Time) -> Vec<Value> {
    // Definition, amount and divisor, summed over the users.
    let mut sums: Vec<(&'static Metric, f64, f64)> = Vec::new();
    for program in programs {
        program.report(now, &mut |metric, amount, per| match sums
            .iter_mut()
            .find(|known| known.0.name == metric.name)
        {
            Some(known) => {
                known.1 += amount;
                known.2 += per;
            }
            None => sums.push((metric, amount, per)),
        });
    }
    let value = |(metric, amount, per)| (metric, (per > 0.0).then(|| amount / per));
    sums.into_iter().map(value).collect()
}

/// The quality of a group's calls at the listeners, averaged over the calls. Each call has the
/// number of its packets that were lost.
pub fn of_calls<'a>(
    calls: impl Iterator<Item = (&'a Playout, u64)>,
    group: &VoipParams,
) -> [Value; 5] {
    let (mut late, mut jitter) = (Mean::default(), Mean::default());
    let (mut rating, mut opinion, mut worst) = (Mean::default(), Mean::default(), f64::INFINITY);
    for (call, lost) in calls {
        let tally = call.tally();
        jitter.add(tally.jitter());
        late.add((tally.heard > 0).then(|| tally.late as f64 / tally.heard as f64));
        let r = tally.rating(group, lost);
        rating.add(r);
        opinion.add(r.map(mos));
        worst = worst.min(r.map_or(f64::INFINITY, mos));
    }
    [
        (MOS, opinion.get()),
        (MOS_MIN, worst.is_finite().then_some(worst)),
        (R_FACTOR, rating.get()),
        (JITTER, jitter.get()),
        (LATE, late.get()),
    ]
}

/// The metrics of a group's video calls, by the ends that receive the media in the group's direction and against
/// it, by the rate at which packets are received in the group's direction, and by the delays of both.
pub fn of_video_calls<'a>(
    forward: impl Iterator<Item = &'a CallEnd>,
    back: impl Iterator<Item = &'a CallEnd>,
    rate: f64,
    delays: [&Delays; 2],
    now: Time,
) -> Vec<Value> {
    let (forward, back) = (Viewers::of(forward, now), Viewers::of(back, now));
    let mut values = of_udp(forward.received, forward.lost, rate, delays[0]).to_vec();
    let all = back.received + back.lost;
    let back_loss = (all > 0).then(|| back.lost as f64 / all as f64);
    values.extend([
        (call::QUALITY, forward.quality.get()),
        (call::QUALITY_MIN, forward.worst),
        (call::VIDEO_QUALITY, forward.video.get()),
        (call::AUDIO_QUALITY, forward.voice.get()),
        (call::BITRATE, forward.bitrate.get()),
        (call::FRAME_RATE, forward.frame_rate.get()),
        (call::FRAME_DELAY_MEAN, forward.frame_delay.get()),
        (call::FREEZES, forward.freezes.get()),
        (call::FROZEN, forward.frozen.get()),
        (call::BACK_QUALITY, back.quality.get()),
        (call::BACK_VIDEO_QUALITY, back.video.get()),
        (call::BACK_AUDIO_QUALITY, back.voice.get()),
        (call::BACK_BITRATE, back.bitrate.get()),
        (call::BACK_LOSS, back_loss),
        (call::BACK_ONE_WAY_DELAY_MEAN, delays[1].mean()),
        (call::BACK_ONE_WAY_DELAY_P95, delays[1].quantile(0.95)),
        (call::BACK_FRAME_RATE, back.frame_rate.get()),
        (call::BACK_FRAME_DELAY_MEAN, back.frame_delay.get()),
        (call::BACK_FREEZES, back.freezes.get()),
        (call::BACK_FROZEN, back.frozen.get()),
    ]);
    values
}

/// What the viewers of one direction of calls saw and heard.
#[derive(Default)]
struct Viewers {
    received: u64,
    lost: u64,
    quality: Mean,
    worst: Option<f64>,
    video: Mean,
    voice: Mean,
    bitrate: Mean,
    frame_rate: Mean,
    frame_delay: Mean,
    freezes: Mean,
    frozen: Mean,
}

impl Viewers {
    fn of<'a>(ends: impl Iterator<Item = &'a CallEnd>, now: Time) -> Self {
        let mut viewers = Self::default();
        for end in ends {
            let (received, lost) = end.packets();
            viewers.received += received;
            viewers.lost += lost;
            let figures = end.figures(now);
            viewers.quality.add(figures.quality);
            let worst = viewers.worst.into_iter().chain(figures.quality);
            viewers.worst = worst.reduce(f64::min);
            viewers.video.add(figures.video);
            viewers.voice.add(figures.voice);
            viewers.bitrate.add(figures.bitrate);
            viewers.frame_rate.add(figures.frame_rate);
            viewers.frame_delay.add(figures.frame_delay);
            viewers.freezes.add(figures.freezes);
            viewers.frozen.add(figures.frozen);
        }
        viewers
    }
}

/// The metrics of the packets of a UDP group, received at `rate` in bit/s.
pub fn of_udp(received: u64, lost: u64, rate: f64, delays: &Delays) -> [Value; 6] {
    let all = received + lost;
    [
        (UDP_RECEIVED_RATE, Some(rate)),
        (END_TO_END_LOSS, (all > 0).then(|| lost as f64 / all as f64)),
        (ONE_WAY_DELAY_MEAN, delays.mean()),
        (ONE_WAY_DELAY_P50, delays.quantile(0.5)),
        (ONE_WAY_DELAY_P95, delays.quantile(0.95)),
        (ONE_WAY_DELAY_P99, delays.quantile(0.99)),
    ]
}
