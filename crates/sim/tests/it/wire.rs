//! What the wire behind a transmitter does to packets, against closed forms.
//!
//! Datagrams of 1250 B with numbers cross one link of 100 Mbit/s, on which each takes 0.1 ms, and a delay of 10 ms. Their
//! arrivals are compared with those over a link without a wire, to the nanosecond in which endpoints see the time.

use std::time::Duration;

use crate::common::endpoints::{Diary, endpoints};
use crate::common::{metric, run, scenario};
use redtail_core::Span;
use redtail_sim::{RunOptions, RunResult};
use redtail_transport::Preset;

const DELAY: Duration = Duration::from_millis(10);

/// What a datagram takes on the link of its receiver.
const EXIT: Duration = Duration::from_micros(1);

/// When datagrams arrive at the receiver that reach its link at these times, in this order.
fn through_exit(reached: impl Iterator<Item = (Duration, u64)>) -> Vec<(Duration, u64)> {
    let mut last = Duration::ZERO;
    let pass = |(at, number)| {
        last = last.max(at) + EXIT;
        (last, number)
    };
    reached.map(pass).collect()
}

/// The numbers of the datagrams that arrive, with their times; one is sent each `gap_us` from 0 to 1 s before the end.
fn arrivals(wire: &str, gap_us: u32, seconds: u32) -> (RunResult, Vec<(Duration, u64)>) {
    let text = format!(
        r#"
duration = "{seconds} s"
[bottleneck]
rate = "100 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
{wire}
[[traffic]]
name = "own"
kind = "endpoint"
class = "steady"
packet = "1250 B"
access_rate = "100 Mbit/s"
exit_rate = "10 Gbit/s"
params = {{ gap = {:.6} }}
stop = "{} s"
"#,
        f64::from(gap_us) * 1e-6,
        seconds - 1
    );
    let diary = Diary::default();
    let options = RunOptions {
        plugins: endpoints(&diary),
        ..RunOptions::default()
    };
    let result = redtail_sim::run(&scenario(&text, 0), options).expect("it can be run");
    let heard = diary.heard().into_iter();
    let heard = heard.map(|(_, at, number, _)| (at, number)).collect();
    (result, heard)
}

/// When the transmission of each datagram ends.
fn transmitted(gap_us: u32, seconds: u32) -> Vec<Duration> {
    let (_, arrivals) = arrivals("", gap_us, seconds);
    assert!(arrivals.iter().map(|it| it.1).eq(0..arrivals.len() as u64));
    arrivals
        .into_iter()
        .map(|(at, _)| at - DELAY - EXIT)
        .collect()
}

/// Five standard deviations of a share of `n` independent packets; more is exceeded with probability 6e-7.
fn five_sigma(p: f64, n: usize) -> f64 {
    5.0 * (p * (1.0 - p) / n as f64).sqrt()
}

#[test]
fn losses_of_the_gilbert_elliott_model_have_its_share_and_its_bursts() {
    let (p, r) = (0.01, 0.2);
    let (result, heard) = arrivals(&format!("wire.loss = {{ p = {p}, r = {r} }}"), 200, 21);
    let n = 100_000;
    let mut lost = vec![true; n];
    heard.iter().for_each(|it| lost[it.1 as usize] = false);
    let share = lost.iter().filter(|lost| **lost).count() as f64 / n as f64;
    // The states of two packets are correlated with 1 - p - r, so that the variance of the share is (2 - p - r) / (p + r) times
    // that of independent packets. Five standard deviations, as below: a false alarm has probability 6e-7 each.
    let expected: f64 = p / (p + r);
    let inflation = ((2.0 - p - r) / (p + r)).sqrt();
    let bound = inflation * five_sigma(expected, n);
    assert!((share - expected).abs() < bound, "{share} and {expected}");
    assert_eq!(metric(&result, "wire_loss"), share);
    // Bursts are geometric with the mean 1 / r.
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    let mean = share * n as f64 / bursts as f64;
    let bound = 5.0 * (1.0_f64 - r).sqrt() / r / (bursts as f64).sqrt();
    assert!((mean - 1.0 / r).abs() < bound, "{mean}");
}

#[test]
fn losses_of_both_states_add_up() {
    let wire = "wire.loss = { p = 0.3, r = 0.5, h = 0.6, k = 0.9 }";
    let (result, _) = arrivals(wire, 200, 11);
    let bad: f64 = 0.3 / 0.8;
    let expected = bad * 0.4 + (1.0 - bad) * 0.1;
    // States are correlated with 0.2: what the share of the bad state varies more than that of independent packets is less
    // than (1 + 0.2) / (1 - 0.2), and so is the share of losses.
    let bound = 1.5_f64.sqrt() * five_sigma(expected, 50_000);
    assert!((metric(&result, "wire_loss") - expected).abs() < bound);
}

#[test]
fn the_share_of_reordered_packets_is_that_of_a_two_point_law() {
    // A packet is late by 1.5 ms with probability q, and the next one comes 1 ms later: it overtakes if it is not late.
    let q = 0.2;
    let expected = q * (1.0 - q);
    let law = format!(
        "{{ cdf = [[{0}, \"0 s\"], [{0}, \"1.5 ms\"], [1.0, \"1.5 ms\"]] }}",
        1.0 - q
    );
    for wire in [
        format!("wire = {{ jitter = {law}, order = \"free\" }}"),
        format!("wire.reorder = {{ share = {q}, by = \"1.5 ms\" }}"),
    ] {
        let (result, heard) = arrivals(&wire, 1000, 31);
        let n = heard.len();
        assert_eq!(n, 30_000, "nothing is lost");
        let mut next = 0;
        let mut late = 0;
        for (_, number) in heard {
            // RFC 4737, section 3.3.
            late += u32::from(number < next);
            next = next.max(number + 1);
        }
        let share = f64::from(late) / n as f64;
        // Two neighbours are never both overtaken by the next, so the share varies less than that of independent packets.
        assert!(
            (share - expected).abs() < five_sigma(expected, n),
            "{share}, {wire}"
        );
        assert_eq!(metric(&result, "wire_reordered"), share);
        let mean = metric(&result, "wire_delay_mean") - 0.010;
        let bound = 0.0015 * five_sigma(q, n);
        assert!((mean - q * 0.0015).abs() < bound, "{mean}, {wire}");
    }
}

#[test]
fn jitter_that_keeps_the_order_makes_packets_wait_for_those_before_them() {
    let (result, heard) = arrivals("wire.jitter = \"uniform 0..10 ms\"", 1000, 31);
    let n = heard.len();
    assert!(
        heard.iter().map(|it| it.1).eq(0..n as u64),
        "none overtakes"
    );
    assert!(heard.is_sorted());
    // A packet takes more than x if one of those before it, k ms earlier, has drawn more than x + k.
    let survival = |x: f64| {
        1.0 - (0..10)
            .map(|k| ((x + f64::from(k)) / 10.0).min(1.0))
            .product::<f64>()
    };
    let steps = 10_000;
    let points = (0..steps).map(|i| (f64::from(i) + 0.5) * 10.0 / f64::from(steps));
    let (mean, square) = points.fold((0.0, 0.0), |(mean, square), x| {
        let part = survival(x) * 10.0 / f64::from(steps);
        (mean + part, square + 2.0 * x * part)
    });
    // Packets 10 ms apart are independent: each tenth.
    let bound = 5.0 * ((square - mean * mean) / (n as f64 / 10.0)).sqrt();
    let found = (metric(&result, "wire_delay_mean") - 0.010) * 1e3;
    assert!((found - mean).abs() < bound, "{found} and {mean} ms");
    assert!(
        result
            .metrics
            .iter()
            .all(|(name, _)| name != "wire_reordered")
    );
}

#[test]
fn a_duplicate_arrives_behind_its_packet() {
    let p = 0.3;
    let (result, heard) = arrivals(&format!("wire.duplicate = {p}"), 1000, 21);
    let n = 20_000;
    let share = heard.len() as f64 / f64::from(n) - 1.0;
    assert!((share - p).abs() < five_sigma(p, 20_000), "{share}");
    assert!((metric(&result, "wire_duplicates") - share).abs() < 1e-12);
    let times = transmitted(1000, 21);
    let numbers = heard.iter().map(|it| it.1);
    let reached = numbers.map(|number| (times[number as usize] + DELAY, number));
    assert_eq!(heard, through_exit(reached));
    for three in heard.windows(3) {
        assert!(three[2].1 > three[0].1, "{three:?}");
    }
    // No figure of the flow counts copies.
    assert_eq!(metric(&result, "own.end_to_end_loss"), 0.0);
}

#[test]
fn a_packet_has_the_delay_of_the_time_at_which_it_was_sent() {
    let ms = Duration::from_millis;
    let changes = "delay_changes = [{ at = \"1 s\", delay = \"25.0005 ms\" }, \
                   { at = \"2 s\", delay = \"5 ms\", gap = \"30 ms\" }]";
    let trace =
        "delay_trace = { steps_ps = \"1000000000000 25000500000 2000000000000 5000000000\" }";
    let times = transmitted(1000, 4);
    for (keys, gap) in [(changes, ms(30)), (trace, ms(0))] {
        for order in ["kept", "free"] {
            let (result, heard) = arrivals(
                &format!("wire = {{ {keys}, order = \"{order}\" }}"),
                1000,
                4,
            );
            let mut expected: Vec<(Duration, u64)> = Vec::new();
            for (&t, number) in times.iter().zip(0..) {
                let at = match t {
                    t if t < ms(1000) => t + ms(10),
                    t if t < ms(2000) => t + Duration::from_nanos(25_000_500),
                    t => t.max(ms(2000) + gap) + ms(5),
                };
                let last = expected.last().map_or(ms(0), |last| last.0);
                let at = if order == "kept" { at.max(last) } else { at };
                expected.push((at, number));
            }
            if order == "free" {
                expected.sort();
            }
            assert_eq!(heard, through_exit(expected.into_iter()), "{order}, {keys}");
            let longest = metric(&result, "wire_delay_max");
            assert_eq!(
                longest,
                if gap > ms(0) && order == "free" {
                    0.0348
                } else {
                    longest
                }
            );
        }
    }
}

#[test]
fn a_change_of_the_delay_is_exact_to_the_picosecond() {
    let completion = |wire: &str| {
        let result = run(&format!(
            r#"
duration = "2 s"
[bottleneck]
rate = "7 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "10 packets" }}
{wire}
[[traffic]]
name = "one"
kind = "transfer"
size = "1460 B"
return_delay = "11 ms"
tcp = {{ handshake = false, delayed_ack = false }}
"#
        ));
        Span::from_secs_f64(metric(&result, "one.completion_time_mean"))
    };
    let later = "wire.delay_changes = [{ at = \"1 us\", delay = \"31.000000007 ms\" }]";
    let sooner = "wire.delay_changes = [{ at = \"1 us\", delay = \"8.999999998 ms\" }]";
    assert_eq!(
        completion(later) - completion(""),
        Span::from_ps(11_000_000_007)
    );
    assert_eq!(
        completion("") - completion(sooner),
        Span::from_ps(11_000_000_002)
    );
}

#[test]
fn between_two_handovers_the_delay_is_one_draw() {
    let wire = "wire = { delay_changes = { every = \"500 ms\", delay = \"uniform 20..60 ms\", gap = \"15 ms\" }, order = \"free\" }";
    let (_, heard) = arrivals(wire, 1000, 11);
    let times = transmitted(1000, 11);
    let mut of_period = vec![None; 20];
    for (at, number) in heard {
        let t = times[number as usize];
        let period = (t.as_millis() / 500) as usize;
        let open = Duration::from_millis(period as u64 * 500 + if period > 0 { 15 } else { 0 });
        let delay = at - t.max(open);
        // The 15 packets that a gap holds reach the receiver's link together.
        let first = *of_period[period].get_or_insert(delay);
        assert!(delay.abs_diff(first) <= 20 * EXIT, "period {period}");
    }
    let mut found: Vec<Duration> = of_period
        .into_iter()
        .map(|it| it.expect("each has packets"))
        .collect();
    assert_eq!(found.remove(0), DELAY + EXIT);
    let within = Duration::from_millis(20)..=Duration::from_millis(61);
    assert!(found.iter().all(|delay| within.contains(delay)));
    found.dedup();
    assert_eq!(found.len(), 19, "each is drawn anew");
}

#[test]
fn a_full_delay_line_drops() {
    // 9.5 ms at 1 packet/ms: of each ten packets the first five find room.
    for more in ["", ", jitter = \"0 s\""] {
        let wire = format!(
            "wire = {{ limit = 5, delay_changes = [{{ at = \"1 us\", delay = \"9.5 ms\" }}]{more} }}"
        );
        let (result, heard) = arrivals(&wire, 1000, 3);
        let expected = (0..2000).filter(|number| number % 10 < 5);
        assert!(heard.iter().map(|it| it.1).eq(expected), "{heard:?}");
        assert_eq!(metric(&result, "wire_loss"), 0.5);
    }
    // Without a wire that holds packets, the line is that behind the link: 10 ms, and a packet that arrives leaves its room.
    let (_, heard) = arrivals("wire.limit = 7", 1000, 3);
    let expected = (0..2000).filter(|number| number % 10 < 7);
    assert!(heard.iter().map(|it| it.1).eq(expected), "{heard:?}");
}

#[test]
fn batches_are_released_together() {
    let times = transmitted(1000, 3);
    let every = Duration::from_millis(7);
    let slot = |t: Duration| t.as_nanos().div_ceil(every.as_nanos()) as u32;
    let (_, heard) = arrivals("wire.batches = { every = \"7 ms\" }", 1000, 3);
    let reached = (times.iter().zip(0..)).map(|(&t, i)| (every * slot(t) + DELAY, i));
    assert_eq!(heard, through_exit(reached));
    // At most 5 of the 7 that come: the n-th goes with release n / 5 after the first.
    let wire = "wire.batches = { every = \"7 ms\", packets = 5 }";
    let (_, heard) = arrivals(wire, 1000, 3);
    let first = slot(times[0]);
    let reached = (0..heard.len() as u64).map(|i| {
        let release = first + i as u32 / 5;
        (every * release + DELAY, i)
    });
    assert_eq!(heard, through_exit(reached));
    assert!(heard.len() > 1000);
}

/// A link that does everything to packets.
pub const DISTURBED: &str = r#"
duration = "20 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
wire = { loss = { p = 0.002, r = 0.5 }, duplicate = 0.05, reorder = { share = 0.05, by = "exponential mean 8 ms" }, jitter = "uniform 0..3 ms", order = "free", delay_changes = { every = "2 s", delay = "uniform 5..25 ms", gap = "20 ms" } }
[bottleneck.return]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
wire = { loss = 0.01, duplicate = 0.05, reorder = { share = 0.05, by = "5 ms" }, batches = { every = "4 ms" } }
"#;

#[test]
fn every_preset_finishes_a_transfer_over_a_disturbed_path() {
    for preset in Preset::ALL {
        let name = serde_json::to_value(preset).expect("a name");
        let group = format!(
            "[[traffic]]\nname = \"t\"\nkind = \"transfer\"\nsize = \"500 kB\"\ntcp = {name}\n"
        );
        let result = run(&format!("{DISTURBED}{group}"));
        assert_eq!(metric(&result, "t.completed"), 1.0, "{name}");
    }
}

#[test]
fn the_delay_on_a_wire_is_that_of_its_link_alone() {
    let result = run(r#"
duration = "5 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[bottleneck.return]
rate = "10 Mbit/s"
delay = "7 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
wire = { jitter = "0 s", limit = 100 }
[[traffic]]
name = "ftp"
kind = "bulk"
return_delay = "500 ms"
tcp = { preset = "sack", receive_window = "292000 B" }
"#);
    assert_eq!(metric(&result, "return.wire_delay_mean"), 0.007);
    assert_eq!(metric(&result, "return.wire_delay_max"), 0.007);
    // 100 acknowledgements in half a second are many more than in 7 ms.
    assert_eq!(metric(&result, "return.wire_loss"), 0.0);
}
