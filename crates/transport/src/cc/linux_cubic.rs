//! CUBIC as Linux computes it: in whole segments and ticks of the kernel's clock.
//!
//! Source: Linux 6.1, net/ipv4/tcp_cubic.c (`bictcp_update` and what is around it) and
//! net/ipv4/tcp_cong.c (`tcp_cong_avoid_ai`), read for what they compute; the cubic
//! function itself is that of Ha, Rhee and Xu, "CUBIC: A New TCP-Friendly High-Speed
//! TCP Variant", ACM SIGOPS Operating Systems Review 42(5), 2008.
//!
//! With windows of a few segments this law differs from RFC 9438's. The distance from the plateau
//! is rounded down, so that the target is the plateau itself from 1.36 s before K to 1.36 s after
//! it; w_reno grows by whole segments, and never faster than by 8/15 of one a round trip.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | last_max | w before the last reduction; 0: none is known | segments |
//! | origin | w of the plateau | segments |
//! | K | time from the epoch's start to the plateau | s/1024 |
//! | t | time since the epoch's start, and delay_min | s/1024, from ticks |
//! | delay_min | least round trip, rounded up to ticks | tick, 4 ms |
//! | cnt | segments to be acknowledged for w to grow by one | segments |
//! | w_reno | window of a Reno flow that reduces to 0.7 | segments |
//!
//! ```text
//! K      = floor(cbrt(floor(2^40 / 410) (last_max - w)))    for w < last_max, else 0
//! target = origin -+ floor(410 |t - K|^3 / 2^40)            C = 410/1024
//! cnt    = floor(w / (target - w))                          for target > w
//!          100 w                                            otherwise
//! cnt   <= 20                                               while last_max is not known
//! w_reno += 1 when more than floor(15 w / 8) were acknowledged since it last was
//! cnt   <= floor(w / (w_reno - w))                          for w_reno > w
//! cnt   >= 2
//!
//! reduction: last_max = w, or floor(1741/2048 w) for w < last_max; w = floor(717/1024 w)
//! timeout:   all of this is forgotten
//! idle:      the epoch's start moves by the time in which nothing was sent
//! ```
//!
//! The target is computed when the tick or the window has changed, but only every eight ticks while
//! the window stays the same.
//!
//! The cube root here is exact. The kernel's, from a table and one step of Newton's method, has an
//! error of 0.2 % on average.

use std::sync::Arc;

use redtail_core::{Span, Time};

use super::additive::{Additive, fixed, whole};
use super::tick::{TICKS_PER_S, ticks, ticks_of};
use super::{AckSample, CongestionKind, ControllerConfig, GrowthLaw, Window};
use crate::constants::constants;

/// Ticks after which the target is computed again if the window has not changed.
const UPDATE_INTERVAL: u64 = TICKS_PER_S / 32;
/// The exponent of 2^40, the product of the scale of C and the cube of the scale of t.
const SCALE: u32 = 40;
/// The parts in which the kernel counts C and beta.
const ONE: u64 = 1024;

constants! {
    /// The constants of CUBIC as Linux computes it.
    pub struct LinuxCubicParams {
        /// C: scale of the cubic function, in segments/s^3; in 1/1024.
        c: f64 = 0.4, in 0.01 => 100.0, "Linux 6.1, net/ipv4/tcp_cubic.c, bic_scale = 41";
        /// beta: factor of a reduction; in 1/1024.
        beta: f64 = 0.7, in 0.05 => 0.95, "Linux 6.1, tcp_cubic.c, beta = 717";
        /// Release more bandwidth when the window at a loss is smaller than at the one before.
        fast_convergence: bool = true, "Linux 6.1, tcp_cubic.c, fast_convergence";
        /// Grow at least as fast as Reno would (tcp_friendliness).
        reno_friendly: bool = true, "Linux 6.1, tcp_cubic.c, tcp_friendliness";
        /// Beyond the target, most windows to be acknowledged for one segment of growth.
        plateau: u64 = 100, in 1 => 10_000, "Linux 6.1, tcp_cubic.c, bictcp_update";
        /// While no window of a loss is known, most segments to be acknowledged for one of growth.
        unknown_ceiling: u64 = 20, in 1 => 10_000, "Linux 6.1, tcp_cubic.c, bictcp_update: 5 % a round trip";
        /// Least number of segments to be acknowledged for one of growth.
        fastest: u64 = 2, in 1 => 10_000, "Linux 6.1, tcp_cubic.c, bictcp_update: half a window in a round trip";
    }
}

impl LinuxCubicParams {
    fn c(&self) -> u64 {
        fixed(self.c, ONE)
    }

    fn beta(&self) -> u64 {
        fixed(self.beta, ONE)
    }

    /// Eighths of a window to be acknowledged for w_reno to grow by one: 8 (1 + beta) / (3 (1 - beta)), rounded down.
    fn reno_eighths(&self) -> u64 {
        8 * (ONE + self.beta()) / (3 * (ONE - self.beta()))
    }
}

/// The law's state, in segments and ticks.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    params: Arc<LinuxCubicParams>,
    /// C in 1/1024.
    c: u32,
    /// Eighths of a window to be acknowledged for w_reno to grow by one.
    reno_eighths: u32,
    cnt: u64,
    /// 0 when none is known.
    last_max: u64,
    epoch: Option<Epoch>,
    /// The window and the tick for which the target was last computed.
    computed: Option<(u64, u64)>,
    /// Acknowledged since w_reno last grew.
    reno_acked: u64,
    w_reno: u64,
    delay_min: Option<Span>,
    additive: Additive,
}

/// Congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    k: u64,
    origin: u64,
}

/// The integer cube root, rounded down; of less than 2^53.
fn cube_root(a: u64) -> u64 {
    let near = libm::cbrt(a as f64) as u64;
    let above = near + 1;
    if above * above * above <= a {
        above
    } else if near * near * near > a {
        near - 1
    } else {
        near
    }
}

impl Default for LinuxCubic {
    fn default() -> Self {
        Self::new(&Arc::default())
    }
}

impl LinuxCubic {
    fn new(params: &Arc<LinuxCubicParams>) -> Self {
        Self {
            params: Arc::clone(params),
            c: params.c() as u32,
            reno_eighths: params.reno_eighths() as u32,
            cnt: 0,
            last_max: 0,
            epoch: None,
            computed: None,
            reno_acked: 0,
            w_reno: 0,
            delay_min: None,
            additive: Additive::default(),
        }
    }

    fn begin_epoch(&mut self, w: u64, acked: u64, tick: u64) -> Epoch {
        self.reno_acked = acked;
        self.w_reno = w;
        let below = self.last_max.saturating_sub(w);
        Epoch {
            start: tick,
            k: cube_root((1 << SCALE) / u64::from(self.c) * below),
            origin: w.max(self.last_max),
        }
    }

    /// The target window, a round trip after `tick`.
    fn target(&self, epoch: &Epoch, tick: u64) -> u64 {
        let ahead = self.delay_min.map_or(0, ticks_of);
        // An epoch that was moved begins in the future only because of rounding.
        let t = ((tick.saturating_sub(epoch.start) + ahead) << 10) / TICKS_PER_S;
        let off = t.abs_diff(epoch.k);
        // After some six minutes this saturates, far above any window.
        let cube = off.saturating_mul(off).saturating_mul(off);
        let delta = u64::from(self.c).saturating_mul(cube) >> SCALE;
        if t < epoch.k {
            epoch.origin.saturating_sub(delta)
        } else {
            epoch.origin + delta
        }
    }

    /// Computes cnt for a window of `w`.
    fn update(&mut self, w: u64, acked: u64, tick: u64) {
        self.reno_acked += acked;
        if self
            .computed
            .is_some_and(|(window, at)| window == w && tick - at <= UPDATE_INTERVAL)
        {
            return;
        }
        let this_tick = self.computed.is_some_and(|(_, at)| at == tick);
        if self.epoch.is_none() || !this_tick {
            self.computed = Some((w, tick));
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => self.begin_epoch(w, acked, tick),
            };
            self.epoch = Some(epoch);
            let target = self.target(&epoch, tick);
            self.cnt = if target > w {
                w / (target - w)
            } else {
                self.params.plateau * w
            };
            if self.last_max == 0 {
                self.cnt = self.cnt.min(self.params.unknown_ceiling);
            }
        }
        // The window of a Reno-friendly flow, raised once for each of its segments.
        let each = (w * u64::from(self.reno_eighths) / 8).max(1);
        let grown = self.reno_acked.saturating_sub(1) / each;
        self.reno_acked -= grown * each;
        self.w_reno += grown;
        if self.w_reno > w && self.params.reno_friendly {
            self.cnt = self.cnt.min(w / (self.w_reno - w));
        }
        self.cnt = self.cnt.max(self.params.fastest);
    }

    fn sample_delay(&mut self, sample: &AckSample) {
        let Some(rtt) = sample.rtt else {
            return;
        };
        // The first second of an epoch still shows the queue that recovery left.
        let young = |epoch: &Epoch| ticks(sample.now) < epoch.start + TICKS_PER_S;
        if !self.epoch.as_ref().is_some_and(young) {
            self.delay_min = Some(self.delay_min.map_or(rtt, |least| least.min(rtt)));
        }
    }
}

impl GrowthLaw for LinuxCubic {
    type Params = LinuxCubicParams;

    fn start(_: &ControllerConfig, params: &Arc<LinuxCubicParams>) -> Self {
        Self::new(params)
    }

    #[inline]
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.sample_delay(sample);
        let acked = self.additive.segments(sample.acked, mss);
        let w = whole(cwnd, mss);
        if acked == 0 {
            return w as f64 * mss;
        }
        self.update(w, acked, ticks(sample.now));
        self.additive.grown(w, self.cnt, acked) as f64 * mss
    }

    fn observe(&mut self, _window: &mut Window, sample: &AckSample, _mss: f64) {
        self.sample_delay(sample);
    }

    #[inline]
    fn beta(&self) -> f64 {
        self.params.beta() as f64 / ONE as f64
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn after_pause(&mut self, sent: Time, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + ticks(now) - ticks(sent)).min(ticks(now));
        }
    }

    fn on_congestion(&mut self, window: f64, kind: CongestionKind) {
        if matches!(kind, CongestionKind::Timeout { .. }) {
            *self = Self::new(&self.params);
            return;
        }
        let w = window as u64;
        self.epoch = None;
        self.additive.reset();
        // Fast convergence: a flow whose window shrinks releases more.
        self.last_max = if self.params.fast_convergence && w < self.last_max {
            w * (ONE + self.params.beta()) / (2 * ONE)
        } else {
            w
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: f64 = 1000.0;

    fn sample(now_ms: u64, segments: u64, rtt_ms: u64) -> AckSample {
        AckSample {
            now: Time::ZERO + Span::from_ms(now_ms),
            acked: segments * MSS as u64,
            marked: 0,
            una: 0,
            next: 0,
            rtt: Some(Span::from_ms(rtt_ms)),
            srtt: None,
            rtt_independent: false,
        }
    }

    /// One flow: its window in segments, and a clock in ms.
    struct Flow {
        law: LinuxCubic,
        w: u64,
        ms: u64,
    }

    impl Flow {
        /// After a loss at `max` segments.
        fn after_loss_at(max: u64) -> Self {
            let mut law = LinuxCubic::default();
            law.on_congestion(max as f64, CongestionKind::Loss);
            Self {
                law,
                w: max * 717 / 1024,
                ms: 10_000,
            }
        }

        fn acks(&mut self, segments: u64, rtt: u64) {
            let sample = sample(self.ms, segments, rtt);
            self.w = (self.law.grown(self.w as f64 * MSS, &sample, MSS) / MSS) as u64;
        }

        /// A window's acknowledgements, evenly over each round trip of `rtt` ms.
        fn runs_for(&mut self, ms: u64, rtt: u64) -> u64 {
            let end = self.ms + ms;
            while self.ms < end {
                let mut seen = 0;
                for i in 1..=rtt {
                    self.ms += 1;
                    let due = self.w * i / rtt;
                    if due > seen {
                        self.acks(due - seen, rtt);
                        seen = due;
                    }
                }
            }
            self.w
        }
    }

    #[test]
    fn large_windows_follow_the_cubic_function() {
        // W_max 1000, from 700: K = cbrt(300 / 0.4004) = 9.08 s.
        let (c, mut flow) = (410.0 / 1024.0, Flow::after_loss_at(1000));
        let k = (300.0_f64 / c).cbrt();
        let begin = flow.ms;
        for step in [2000, 3000, 4000, 3000, 3000] {
            let window = flow.runs_for(step, 50) as f64;
            let t = (flow.ms - begin) as f64 / 1e3;
            let expected = 1000.0 + c * (t - k).powi(3);
            assert!(
                (window - expected).abs() < 0.01 * expected,
                "{t}: {window} {expected}"
            );
        }
    }

    #[test]
    fn the_distance_from_the_plateau_is_rounded_toward_it() {
        // From 10 segments to 7: K is 1.96 s, and floor(0.4004 (1.905 s)^3) = 2 at first.
        let mut flow = Flow::after_loss_at(10);
        flow.acks(1, 50);
        assert_eq!(flow.law.epoch.map(|e| e.k), Some(2003));
        assert_eq!(flow.law.cnt, 7); // one round trip to 8
        // Less than a segment is missing from K - 1.357 s on.
        let epoch = flow.law.epoch.expect("an epoch");
        let target = |ms: u64| flow.law.target(&epoch, (flow.ms + ms) / 4);
        assert_eq!((target(500), target(600)), (9, 10));
    }

    #[test]
    fn at_the_plateau_a_segment_is_added_for_a_hundred_windows() {
        let mut flow = Flow::after_loss_at(10);
        flow.w = 10;
        flow.acks(18, 50); // no more than Reno's first 150/8
        assert_eq!((flow.law.cnt, flow.w), (1000, 10));
        flow.ms += 1200;
        flow.acks(1, 50);
        assert_eq!(
            flow.law
                .target(&flow.law.epoch.expect("an epoch"), flow.ms / 4),
            10
        );
        // 0.4004 (1.357 s)^3 is a segment.
        flow.ms += 112;
        assert_eq!(
            flow.law
                .target(&flow.law.epoch.expect("an epoch"), flow.ms / 4),
            11
        );
    }

    #[test]
    fn a_small_window_grows_as_renos_by_a_segment_in_fifteen_eighths_of_it() {
        // 8 segments, at their plateau: w_reno is 9 once more than 15 were acknowledged,
        // and asks for floor(8 / 1) acknowledgements for a segment, fewer than there were.
        let mut flow = Flow::after_loss_at(8);
        flow.w = 8;
        for _ in 0..15 {
            flow.acks(1, 50);
            assert_eq!(flow.w, 8);
        }
        flow.ms += 32; // the same window is looked at anew after eight ticks
        flow.acks(1, 50);
        assert_eq!((flow.law.w_reno, flow.law.cnt), (9, 8));
        assert_eq!(flow.w, 9);
    }

    #[test]
    fn the_window_grows_by_a_half_in_a_round_trip_at_most() {
        let mut flow = Flow::after_loss_at(20);
        flow.acks(1, 50);
        flow.ms += 60_000; // far along the curve
        let before = flow.w;
        flow.acks(1, 50);
        assert_eq!(flow.law.cnt, 2);
        flow.acks(before - 1, 50);
        assert!(flow.w <= before * 3 / 2 + 1, "{before} {}", flow.w);
    }

    #[test]
    fn without_a_known_ceiling_it_grows_by_five_percent() {
        let mut flow = Flow {
            law: LinuxCubic::default(),
            w: 100,
            ms: 1000,
        };
        flow.acks(100, 50);
        assert_eq!((flow.law.cnt, flow.w), (20, 105));
    }

    #[test]
    fn a_flow_that_loses_before_its_last_plateau_aims_lower() {
        let mut flow = Flow::after_loss_at(1000);
        flow.law.on_congestion(800.0, CongestionKind::Loss);
        assert_eq!(flow.law.last_max, 680); // 800 * 1741 / 2048 = 680.08
        flow.law.on_congestion(900.0, CongestionKind::Ecn);
        assert_eq!(flow.law.last_max, 900);
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut flow = Flow::after_loss_at(1000);
        flow.acks(10, 50);
        let timeout = CongestionKind::Timeout { repeated: false };
        flow.law.on_congestion(700.0, timeout);
        assert_eq!((flow.law.last_max, flow.law.delay_min), (0, None));
        assert!(flow.law.epoch.is_none());
    }

    #[test]
    fn a_pause_moves_the_epoch() {
        let (mut steady, mut paused) = (Flow::after_loss_at(100), Flow::after_loss_at(100));
        for flow in [&mut steady, &mut paused] {
            flow.runs_for(2000, 50);
        }
        let sent = Time::ZERO + Span::from_ms(paused.ms);
        paused.ms += 600_000;
        let now = Time::ZERO + Span::from_ms(paused.ms);
        paused.law.after_pause(sent, now);
        for flow in [&mut steady, &mut paused] {
            flow.runs_for(2000, 50);
        }
        assert_eq!(steady.w, paused.w);
    }

    #[test]
    fn delays_of_an_epochs_first_second_do_not_count() {
        let mut flow = Flow::after_loss_at(100);
        flow.acks(1, 60);
        assert_eq!(flow.law.delay_min, Some(Span::from_ms(60)));
        flow.ms += 999;
        flow.acks(1, 50);
        assert_eq!(flow.law.delay_min, Some(Span::from_ms(60)));
        flow.ms += 1;
        flow.acks(1, 55);
        assert_eq!(flow.law.delay_min, Some(Span::from_ms(55)));
    }

    #[test]
    fn cube_roots_are_exact() {
        for root in [1, 2, 3, 54, 1389, 13_890, 100_000, 208_000] {
            let cube = root * root * root;
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube - 1), root - 1);
            assert_eq!(cube_root(cube + 1), root);
        }
        assert_eq!(cube_root(0), 0);
    }

    /// The rules of the file's head step by step, a segment at a time where they count
    /// segments, K by bisection, and with 128 bits.
    #[derive(Default)]
    struct Oracle {
        last_max: i128,
        /// Start, K, origin.
        epoch: Option<(i128, i128, i128)>,
        /// Window and tick.
        looked: Option<(i128, i128)>,
        cnt: i128,
        toward_reno: i128,
        reno: i128,
        /// In ms.
        delay: Option<i128>,
        credit: i128,
    }

    impl Oracle {
        fn acks(&mut self, w: i128, segments: i128, ms: i128, rtt: i128) -> i128 {
            let tick = ms / 4;
            if self.epoch.is_none_or(|(start, ..)| tick - start >= 250) {
                self.delay = Some(self.delay.unwrap_or(rtt).min(rtt));
            }
            self.toward_reno += segments;
            let same = self.looked.is_some_and(|(window, _)| window == w);
            let ago = self.looked.map_or(i128::MAX, |(_, at)| tick - at);
            if !(same && ago < 8) {
                if self.epoch.is_none() || ago != 0 {
                    self.look(w, segments, tick);
                }
                while self.toward_reno > (15 * w).div_euclid(8) {
                    self.toward_reno -= (15 * w).div_euclid(8);
                    self.reno += 1;
                }
                if self.reno > w {
                    self.cnt = self.cnt.min(w / (self.reno - w));
                }
                self.cnt = self.cnt.max(2);
            }
            let mut grown = w;
            if self.credit >= self.cnt {
                (self.credit, grown) = (0, w + 1);
            }
            for _ in 0..segments {
                self.credit += 1;
                if self.credit == self.cnt {
                    (self.credit, grown) = (0, grown + 1);
                }
            }
            grown
        }

        fn look(&mut self, w: i128, segments: i128, tick: i128) {
            self.looked = Some((w, tick));
            if self.epoch.is_none() {
                (self.toward_reno, self.reno) = (segments, w);
                let gap = (self.last_max - w).max(0) * ((1_i128 << 40) / 410);
                let (mut low, mut high) = (0_i128, 1 << 30);
                while high - low > 1 {
                    let middle = i128::midpoint(low, high);
                    if middle.pow(3) <= gap {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                self.epoch = Some((tick, low, self.last_max.max(w)));
            }
            let (start, k, origin) = self.epoch.expect("an epoch");
            let ahead = self.delay.map_or(0, |ms| (ms + 3) / 4);
            let t = (tick - start + ahead) * 1024 / 250;
            let away = 410 * (t - k).abs().pow(3) / (1 << 40);
            let target = if t < k { origin - away } else { origin + away };
            self.cnt = if target > w {
                w / (target - w)
            } else {
                100 * w
            };
            if self.last_max == 0 {
                self.cnt = self.cnt.min(20);
            }
        }

        fn reduces(&mut self, w: i128) {
            self.last_max = if w < self.last_max {
                w * (1024 + 717) / 2048
            } else {
                w
            };
            (self.epoch, self.credit) = (None, 0);
        }
    }

    #[test]
    fn random_histories_grow_as_the_rules_say_step_by_step() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for history in 0..60 {
            let (mut flow, mut oracle) = (Flow::after_loss_at(0), Oracle::default());
            flow.law = LinuxCubic::default();
            flow.w = 1 + draw(if history % 2 == 0 { 30 } else { 3000 });
            for _ in 0..3000 {
                // Several within a tick, some after a while.
                flow.ms += [0, 1, 3, 20, 500][draw(5) as usize];
                let (w, ms) = (i128::from(flow.w), i128::from(flow.ms));
                match draw(300) {
                    0 => {
                        flow.law.on_congestion(flow.w as f64, CongestionKind::Loss);
                        oracle.reduces(w);
                        flow.w = (flow.w * 717 / 1024).max(2);
                    }
                    1 => {
                        let kind = CongestionKind::Timeout { repeated: false };
                        flow.law.on_congestion(flow.w as f64, kind);
                        oracle = Oracle::default();
                        flow.w = 1;
                    }
                    2 => {
                        let sent = Time::ZERO + Span::from_ms(flow.ms);
                        flow.ms += 4 * draw(5000);
                        let now = Time::ZERO + Span::from_ms(flow.ms);
                        flow.law.after_pause(sent, now);
                        if let Some((start, ..)) = &mut oracle.epoch {
                            *start += i128::from(flow.ms) / 4 - ms / 4;
                        }
                    }
                    _ => {
                        let (segments, rtt) = (1 + draw(4), 20 + draw(100));
                        flow.acks(segments, rtt);
                        let grown = oracle.acks(w, segments.into(), ms, rtt.into());
                        assert_eq!(i128::from(flow.w), grown, "history {history}, {ms} ms");
                    }
                }
                flow.w = flow.w.min(100_000);
            }
        }
    }
}
