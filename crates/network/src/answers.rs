//! Response times of the users of a group.
//!
//! An exchange counts if it was requested in the measurement period. Its time runs from the request
//! to the arrival of the response's last byte, connection set-up included. Distributions are
//! histograms, so that memory does not grow with the length of a run. What has not ended counts too,
//! also if it began before the period: quantiles take it as at least as long as it has lasted.
//!
//! *Slowdown* is that time divided by the least possible time on this path, without queues, losses
//! or a limiting window: a round trip (two, if the connection had to be opened first), the server's
//! time, and the transmission of the response's packets at the rate of the slowest link they cross.

use std::sync::LazyLock;

use redtail_core::{Rate, Span, Time, nearest_whole};
use redtail_spec::Scenario;
use redtail_traffic::{Done, TrafficParams};

use crate::histogram::ThreeDigits;
use crate::histograms::{Bins, each_bin};
use crate::result::ResponseTimes;
use crate::statistics::TimeWeighted;

/// Upper ends of the classes of response sizes, in bytes; the last class has none. The first is one
/// segment; the others are decades.
pub const SIZE_CLASSES: [u64; 4] = [1_460, 10_000, 100_000, 1_000_000];

const CLASSES: usize = SIZE_CLASSES.len() + 1;

/// Slowdowns are counted in hundredths.
const SLOWDOWN_UNIT: f64 = 100.0;

/// Of exported distributions.
static BINS: LazyLock<Bins> = LazyLock::new(|| Bins::new(1e-6, 50.0));

/// Times of one kind.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Microseconds.
    histogram: ThreeDigits,
    /// How long those had lasted that did not end, in microseconds.
    unfinished: ThreeDigits,
    /// Seconds.
    sum: f64,
    sum_of_squares: f64,
}

impl Times {
    fn record(&mut self, took: Span) {
        let seconds = took.as_secs_f64();
        self.sum += seconds;
        self.sum_of_squares += seconds * seconds;
        self.histogram.record(took.as_ps() / 1_000_000);
    }

    /// One has lasted for this time and not ended.
    fn record_unfinished(&mut self, lasted: Span) {
        self.unfinished.record(lasted.as_ps() / 1_000_000);
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The share that did not end; `None` if there was nothing.
    pub fn unfinished(&self) -> Option<f64> {
        let unfinished = self.unfinished.len();
        let all = self.count() + unfinished;
        (all > 0).then(|| unfinished as f64 / all as f64)
    }

    /// In seconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum / self.count() as f64)
    }

    /// In seconds.
    pub fn std(&self) -> Option<f64> {
        let mean = self.mean()?;
        let variance = self.sum_of_squares / self.count() as f64 - mean * mean;
        Some(variance.max(0.0).sqrt())
    }

    /// In seconds, of all, also of those that did not end; `None` if it is beyond what is known of these.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let quantile = self
            .histogram
            .quantile_with_unfinished(&self.unfinished, q)?;
        (self.count() > 0).then_some(quantile as f64 * 1e-6)
    }

    fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.histogram.add(&other.histogram);
    }
}

/// The response times of the users of one group.
#[derive(Clone, Debug)]
pub struct Answers {
    from: Time,
    by_class: [Times; CLASSES],
    /// `None` for users who do not load pages.
    pages: Option<Times>,
    slowdowns: ThreeDigits,
    slowdown_sum: f64,
    open: TimeWeighted,
    opened: u64,
    /// Round-trip time without queues of each host, in seconds.
    round_trips: Vec<f64>,
    /// The rate of the slowest link that responses cross: in the group's direction, and against it.
    rates: [Rate; 2],
    /// By host: whether its responses go against the group's direction.
    reverse: Vec<bool>,
    mss: u64,
    header: u64,
    handshake: bool,
}

/// The numbers of a group with users.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the names are the metrics'
pub struct AnswerSummary {
    pub times: Times,
    pub pages: Option<Times>,
    pub slowdown_mean: Option<f64>,
    pub slowdown_p50: Option<f64>,
    pub slowdown_p99: Option<f64>,
    pub connections: u64,
    pub connections_mean: f64,
}

impl Answers {
    /// For group `index`; `None` if it has no users.
    pub fn of(group: &TrafficParams, scenario: &Scenario, index: usize) -> Option<Box<Self>> {
        let params = &group.tcp()?.params;
        if !group.has_users() {
            return None;
        }
        let round_trips = scenario.base_round_trips(index);
        let from = Time::ZERO + scenario.warmup;
        Some(Box::new(Self {
            from,
            by_class: std::array::from_fn(|_| Times::default()),
            pages: matches!(group, TrafficParams::Web(_)).then(Times::default),
            slowdowns: ThreeDigits::default(),
            slowdown_sum: 0.0,
            open: TimeWeighted::new(Time::ZERO, 0.0),
            opened: 0,
            round_trips: round_trips.iter().map(|rtt| rtt.as_secs_f64()).collect(),
            rates: scenario.slowest_links(index),
            reverse: (0..round_trips.len())
                .map(|host| group.is_reverse(host))
                .collect(),
            mss: params.mss.as_u64().max(1),
            header: params.header.as_u64(),
            handshake: params.handshake,
        }))
    }

    /// A connection opens.
    pub fn on_open(&mut self, now: Time) {
        self.opened += u64::from(now >= self.from);
        self.open.add(1.0, now);
    }

    /// A connection is gone.
    pub fn on_gone(&mut self, now: Time) {
        self.open.add(-1.0, now);
    }

    /// The measurement period begins.
    pub fn begin(&mut self, now: Time) {
        self.open.restart(now);
    }

    /// Whether somebody waits for a response: not for data that was not requested, except for a greeting.
    fn is_awaited(done: &Done) -> bool {
        let (request, response) = (done.exchange.request, done.exchange.response);
        response > 0 && (request > 0 || done.first)
    }

    /// A response from `host` is complete.
    pub fn on_answer(&mut self, done: &Done, host: u32, now: Time) {
        if done.asked < self.from || !Self::is_awaited(done) {
            return;
        }
        let took = now - done.asked;
        let class = SIZE_CLASSES.partition_point(|&end| end < done.exchange.response);
        self.by_class[class].record(took);
        let slowdown = took.as_secs_f64() / self.least(done, host);
        self.slowdown_sum += slowdown;
        self.slowdowns
            .record(nearest_whole(slowdown * SLOWDOWN_UNIT));
    }

    /// The least possible time of an exchange with `host`, in seconds.
    fn least(&self, done: &Done, host: u32) -> f64 {
        let size = done.exchange.response;
        let rounds = 1.0 + f64::from(u8::from(done.first && self.handshake));
        let host = host as usize % self.round_trips.len();
        let round_trip = self.round_trips[host];
        let rate = self.rates[usize::from(self.reverse[host])];
        let bytes = size + size.div_ceil(self.mss) * self.header;
        rounds * round_trip
            + done.exchange.service.as_secs_f64()
            + bytes as f64 * 8.0 / rate.as_bps() as f64
    }

    /// A page was completed in the time `took`.
    pub fn on_page(&mut self, took: Span, now: Time) {
        if now >= self.from + took
            && let Some(pages) = &mut self.pages
        {
            pages.record(took);
        }
    }

    /// The measurement ends now, after `period`.
    ///
    /// `unfinished` are the exchanges that are not complete, each with its host, and `pages` the times at which the
    /// pages began that are not complete.
    pub fn summary(
        &self,
        now: Time,
        period: Span,
        unfinished: impl Iterator<Item = (Done, u32)>,
        pages: impl Iterator<Item = Time>,
    ) -> AnswerSummary {
        let mut times = Times::default();
        self.by_class.iter().for_each(|class| times.add(class));
        let mut slow = ThreeDigits::default();
        for (exchange, host) in unfinished.filter(|(exchange, _)| Self::is_awaited(exchange)) {
            let lasted = now.saturating_since(exchange.asked);
            times.record_unfinished(lasted);
            let slowdown = lasted.as_secs_f64() / self.least(&exchange, host);
            slow.record(nearest_whole(slowdown * SLOWDOWN_UNIT));
        }
        let mut whole = self.pages.clone();
        if let Some(whole) = &mut whole {
            pages.for_each(|began| whole.record_unfinished(now.saturating_since(began)));
        }
        let some = |value: f64| (times.count() > 0).then_some(value);
        let quantile = |q: f64| {
            let quantile = self.slowdowns.quantile_with_unfinished(&slow, q)?;
            some(quantile as f64 / SLOWDOWN_UNIT)
        };
        AnswerSummary {
            slowdown_mean: some(self.slowdown_sum / times.count().max(1) as f64),
            slowdown_p50: quantile(0.5),
            slowdown_p99: quantile(0.99),
            connections: self.opened,
            connections_mean: self.open.clone().finish(now, period).0,
            pages: whole,
            times,
        }
    }

    /// Adds the distribution to `rows`, as counts in bins that are the same in every run.
    pub fn export(&self, group: u32, rows: &mut ResponseTimes) {
        for (class, times) in self.by_class.iter().enumerate() {
            let size_up_to = SIZE_CLASSES
                .get(class)
                .map_or(f64::INFINITY, |&end| end as f64);
            each_bin(&times.histogram, &BINS, |end, count| {
                rows.group.push(group);
                rows.size_up_to_bytes.push(size_up_to);
                rows.time_up_to_s.push(end);
                rows.count.push(count);
            });
        }
    }
}
