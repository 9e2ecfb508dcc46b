use std::collections::BTreeMap;

use redtail_core::serde::Deserialize;

use super::*;

fn group(keys: serde_json::Value) -> VideoParams {
    let mut table = serde_json::json!({ "name": "tv" });
    let keys = keys.as_object().expect("keys are a table").clone();
    table.as_object_mut().expect("so is this").extend(keys);
    let group = VideoParams::deserialize(table).expect("the group can be read");
    group.check().expect("the group is sound");
    group
}

fn s(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

/// A link of constant rate without delay or overhead, with one user at its end.
struct Link {
    rate: f64,
    now: Time,
    under_way: Option<(Time, Answer)>,
    /// When each segment was asked for, and its bytes.
    asked: Vec<(f64, u64)>,
    last: bool,
    connections: u32,
    closed: Option<Time>,
}

impl Network for Link {
    fn now(&self) -> Time {
        self.now
    }
    fn connect(&mut self, server: Server) -> ConnectionId {
        assert_eq!(server, Server::Own);
        self.connections += 1;
        ConnectionId(0)
    }
    fn request(&mut self, connection: ConnectionId, exchange: Exchange) {
        assert!(!self.last, "asked after the last exchange");
        assert!(self.under_way.is_none(), "one segment at a time");
        self.last = exchange.last;
        self.asked.push((self.now.as_secs_f64(), exchange.response));
        let took = Span::from_secs_f64(exchange.response as f64 * 8.0 / self.rate);
        let answer = Answer {
            connection,
            tag: exchange.tag,
            size: exchange.response,
            asked: self.now,
        };
        self.under_way = Some((self.now + took, answer));
    }
    fn close(&mut self, _: ConnectionId) {
        self.closed = Some(self.now);
    }
    fn page(&mut self, _: Span) {
        panic!("there are no pages");
    }
}

/// A user at the end of a link.
struct Home {
    user: VideoUser,
    link: Link,
}

impl Home {
    fn new(keys: serde_json::Value, mbit_per_s: f64, stop: Time) -> Self {
        Self {
            user: Arc::new(group(keys)).user(Time::ZERO, stop, Stream::named(1, 0, "video")),
            link: Link {
                rate: mbit_per_s * 1e6,
                now: Time::ZERO,
                under_way: None,
                asked: Vec::new(),
                last: false,
                connections: 0,
                closed: None,
            },
        }
    }

    fn run(&mut self, until: Time) {
        loop {
            let arrival = self.link.under_way.map(|(at, _)| at);
            let wakeup = self.user.next_wakeup();
            let Some(at) = arrival.into_iter().chain(wakeup).min() else {
                break;
            };
            if at > until {
                break;
            }
            self.link.now = at;
            if arrival == Some(at) {
                let (_, answer) = self.link.under_way.take().expect("it is under way");
                self.user.on_answer(answer, &mut self.link);
            } else {
                self.user.on_wakeup(&mut self.link);
            }
        }
        self.link.now = until;
    }

    /// The metrics of this user, those that are defined.
    fn told(&self) -> BTreeMap<&'static str, f64> {
        let mut told = BTreeMap::new();
        self.user.report(self.link.now, &mut |metric, amount, per| {
            if per > 0.0 {
                told.insert(metric.name, amount / per);
            }
        });
        told
    }

    fn figures(&self) -> (f64, f64, u64) {
        let figures = self.user.playback.figures(self.link.now);
        let (played, stalled) = (figures.played, figures.stalled);
        (played.as_secs_f64(), stalled.as_secs_f64(), figures.stalls)
    }
}

/// At 4 Mbit/s, 0.85 of it is enough for 3 Mbit/s. The first segment (1 Mbit/s) is there at 1 s, the
/// second at 4 s: 8 s are buffered and it plays. The third is there at 7 s with 5 s left: 9 s, and
/// there is room for the next at 8 s. From there on one every 4 s.
#[test]
fn a_fast_link_fills_the_buffer_and_then_idles_until_a_segment_fits() {
    let keys = serde_json::json!({
        "bitrates": ["1 Mbit/s", "3 Mbit/s"], "segment": "4 s", "buffer": "12 s", "startup": "8 s",
    });
    let mut home = Home::new(keys, 4.0, Time::MAX);
    home.run(s(12.0));
    let expected = [
        (0.0, 500_000),
        (1.0, 1_500_000),
        (4.0, 1_500_000),
        (8.0, 1_500_000),
        (12.0, 1_500_000),
    ];
    assert_eq!(home.link.asked, expected);
    assert_eq!(home.link.connections, 1);
    assert_eq!(home.figures(), (8.0, 0.0, 0));
    let told = home.told();
    assert_eq!(told["startup_delay_mean"], 4.0);
    assert_eq!(told["rebuffering_ratio"], 0.0);
    assert_eq!(told["bitrate_mean"], 2.5e6); // 4 s of 1 Mbit/s, 12 s of 3 Mbit/s
    assert_eq!(told["bitrate_switches"], 1.0 / 8.0);
}

/// At 0.8 Mbit/s a segment of 4 s in 1 Mbit/s takes 5 s: it plays 4 s and stalls 1 s.
#[test]
fn a_link_slower_than_the_lowest_bitrate_stalls_playback_once_per_segment() {
    let keys = serde_json::json!({ "bitrates": ["1 Mbit/s"], "segment": "4 s" });
    let mut home = Home::new(keys, 0.8, Time::MAX);
    home.run(s(12.0));
    assert_eq!(home.figures(), (6.0, 1.0, 1)); // 5..9, 10..12; 9..10
    assert_eq!(home.told()["startup_delay_mean"], 5.0);
    home.user.start_measuring(s(12.0));
    home.run(s(20.0));
    assert_eq!(home.figures(), (6.0, 2.0, 2)); // 12..14, 15..19; 14..15, 19..20
    let told = home.told();
    assert_eq!(told["rebuffering_ratio"], 0.25);
    assert_eq!(told["rebuffering_events"], 0.25);
    assert!(
        !told.contains_key("startup_delay_mean"),
        "it started before"
    );
}

/// Starts at 10 s with 8 s; a second less after each segment: 7, 6, 5, 4 s at 15, 20, 25, 30 s.
/// It runs dry at 34 s, has 4 s at 35 s and the 8 s that it resumes with at 40 s.
#[test]
fn a_stall_lasts_until_as_much_is_buffered_as_at_the_start() {
    let keys = serde_json::json!({ "bitrates": ["1 Mbit/s"], "segment": "4 s", "startup": "8 s" });
    let mut home = Home::new(keys, 0.8, Time::MAX);
    home.run(s(33.0));
    assert_eq!(home.figures(), (23.0, 0.0, 0));
    home.run(s(42.0));
    assert_eq!(home.figures(), (26.0, 6.0, 1));
}

#[test]
fn a_video_ends_with_a_shorter_segment_and_without_a_stall() {
    let keys = serde_json::json!({
        "bitrates": ["1 Mbit/s"], "segment": "4 s", "startup": "7 s", "duration": "10 s",
    });
    let mut home = Home::new(keys.clone(), 2.0, Time::MAX);
    home.run(s(100.0));
    let expected = [(0.0, 500_000), (2.0, 500_000), (4.0, 250_000)];
    assert_eq!(home.link.asked, expected);
    assert!(home.link.last, "the server closes after the last");
    assert_eq!(home.figures(), (10.0, 0.0, 0));
    // One that is shorter than what playback starts with plays all the same.
    let mut short = keys;
    short["duration"] = "3 s".into();
    let mut home = Home::new(short, 2.0, Time::MAX);
    home.run(s(100.0));
    assert_eq!(home.figures(), (3.0, 0.0, 0));
}

#[test]
fn a_user_who_leaves_asks_no_more_and_counts_no_more() {
    let keys = serde_json::json!({ "bitrates": ["1 Mbit/s"], "segment": "4 s" });
    let mut home = Home::new(keys, 0.8, s(7.0));
    home.run(s(30.0));
    assert_eq!(home.link.asked.len(), 2, "the second was under way");
    assert_eq!(home.link.closed, Some(s(7.0)));
    assert_eq!(home.figures(), (2.0, 0.0, 0));
    assert_eq!(home.told()["bitrate_mean"], 1e6);
}

#[test]
fn sizes_vary_by_a_draw_for_each_segment_that_the_bitrate_does_not_change() {
    let factors = |bitrate: &str, bits: f64| {
        let keys = serde_json::json!({
            "bitrates": [bitrate], "segment": "4 s", "variation": "uniform 0.5..1.5",
        });
        let mut home = Home::new(keys, 100.0, Time::MAX);
        home.run(s(40.0));
        let sizes = home.link.asked.iter();
        let factors: Vec<f64> = sizes.map(|(_, size)| *size as f64 / bits).collect();
        factors
    };
    let (low, high) = (factors("1 Mbit/s", 5e5), factors("2 Mbit/s", 1e6));
    assert!(low.len() > 10);
    for (low, high) in low.iter().zip(&high) {
        assert!((low - high).abs() < 2e-6, "bytes are whole");
    }
    assert!(low.iter().any(|it| *it < 0.9) && low.iter().any(|it| *it > 1.1));
}

fn rates(mbit_per_s: &[f64]) -> Vec<Rate> {
    let rates = mbit_per_s.iter();
    rates
        .map(|rate| Rate::from_bps((rate * 1e6) as u64))
        .collect()
}

/// The harmonic mean of 2 and 6 Mbit/s is 3 Mbit/s, and with a factor of 0.8 it is 2.4 Mbit/s.
#[test]
fn the_throughput_algorithm_goes_by_the_harmonic_mean_of_its_window() {
    let keys = serde_json::json!({ "window": 2, "safety": 0.8 });
    let mut adaptation = group(keys).adaptation();
    let bitrates = rates(&[1.0, 2.3, 2.5, 4.7, 4.9]);
    let choose = |adaptation: &Adaptation| adaptation.choose(&bitrates, 0, Span::ZERO);
    assert_eq!(choose(&adaptation), 0, "nothing is known");
    let second = Span::from_s(1);
    adaptation.on_segment(250_000, second);
    adaptation.on_segment(1_500_000, second * 2);
    assert_eq!(choose(&adaptation), 1);
    adaptation.on_segment(750_000, second);
    assert_eq!(choose(&adaptation), 3, "2 Mbit/s is out of the window: 4.8");
    adaptation.on_segment(1000, second);
    assert_eq!(choose(&adaptation), 0, "the lowest, if all are too high");
}

/// f(B) = 1 + 4 (B - 10) / 20 Mbit/s. Algorithm 1 of Huang et al. 2014.
#[test]
fn bba0_moves_when_the_rate_map_crosses_a_neighbouring_bitrate() {
    let adaptation = Adaptation::Buffer {
        reservoir: Span::from_s(10),
        cushion: Span::from_s(20),
    };
    let bitrates = rates(&[1.0, 2.0, 3.0, 5.0]);
    let choose = |last, level| adaptation.choose(&bitrates, last, Span::from_secs_f64(level));
    assert_eq!(choose(3, 10.0), 0, "the reservoir");
    assert_eq!(choose(0, 14.0), 0, "1.8: not yet the next");
    assert_eq!(choose(0, 16.0), 1, "2.2: the highest below it");
    assert_eq!(choose(0, 24.0), 2, "3.8: two up at once");
    assert_eq!(choose(1, 19.0), 1, "2.8");
    assert_eq!(choose(2, 29.0), 2, "4.8");
    assert_eq!(choose(2, 30.0), 3, "the cushion's end");
    assert_eq!(choose(3, 20.5), 3, "3.1: above the next lower one");
    assert_eq!(choose(3, 19.0), 2, "2.8: the lowest above it");
    assert_eq!(choose(3, 12.0), 1, "1.4: two down at once");
    assert_eq!(choose(2, 14.0), 1, "1.8");
    assert_eq!(
        choose(1, 10.5),
        1,
        "1.1: down to the lowest only in the reservoir"
    );
}

#[test]
fn the_rate_map_of_a_buffer_of_240_s_is_that_of_the_paper_and_ends_where_the_buffer_is_full() {
    let map = |buffer: &str| {
        let keys = serde_json::json!({ "algorithm": "buffer", "buffer": buffer });
        match group(keys).adaptation() {
            Adaptation::Buffer { reservoir, cushion } => {
                (reservoir.as_secs_f64(), cushion.as_secs_f64())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(map("240 s"), (90.0, 126.0));
    assert_eq!(map("30 s"), (11.25, 14.75));
}
