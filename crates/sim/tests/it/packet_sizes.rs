//! Sizes of packets that are drawn from a law: their moments, their repeatability, and what they leave as it is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::common::{assert_mean_wait, find_scenario, metric, run, scenario};
use redtail_core::Time;
use redtail_sim::capture::{Capture, CaptureError, IpVersion};
use redtail_sim::plugin::{Actions, DropReason, PacketId, PacketView, PluginError, PluginQueue};
use redtail_sim::{Plugins, RunError, RunOptions};

/// The sizes of the packets of each flow, in the order of their arrival: `(flow, size)`.
type Seen = Arc<Mutex<Vec<(u32, u64)>>>;

/// The header of a segment in these tests.
const HEADER: u64 = 54;

/// A queue that notes the sizes of packets and drops the arrivals of some numbers, counted from 0.
struct Noting {
    seen: Seen,
    drops: Vec<usize>,
    waiting: VecDeque<PacketId>,
}

impl PluginQueue for Noting {
    fn enqueue(
        &mut self,
        packet: PacketView,
        _now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        if packet.size.as_u64() <= HEADER {
            self.waiting.push_back(packet.id);
            return Ok(());
        }
        let mut seen = self.seen.lock().expect("no test has panicked with it");
        let number = seen.len();
        seen.push((packet.flow.0, packet.size.as_u64()));
        if self.drops.contains(&number) {
            return actions.drop(packet.id, DropReason::Limit);
        }
        self.waiting.push_back(packet.id);
        Ok(())
    }

    fn dequeue(
        &mut self,
        _now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        Ok(self.waiting.pop_front())
    }
}

/// What arrives at the queues of both directions in a run of `groups`, where the arrivals of the numbers `drops` are
/// dropped; acknowledgements are not in it.
fn arrivals(groups: &str, seed: u64, drops: &[usize]) -> Vec<(u32, u64)> {
    let text = format!(
        r#"
duration = "100 s"
seed = {seed}
[bottleneck]
rate = "100 Mbit/s"
delay = "10 ms"
queue = {{ kind = "plugin", class = "noting" }}
[bottleneck.return]
rate = "100 Mbit/s"
delay = "10 ms"
queue = {{ kind = "plugin", class = "noting" }}
{groups}
"#
    );
    let seen = Seen::default();
    let (drops, noted) = (drops.to_vec(), Arc::clone(&seen));
    let plugins = Plugins::new().with("noting", move |_, _| {
        Ok(Box::new(Noting {
            seen: Arc::clone(&noted),
            drops: drops.clone(),
            waiting: VecDeque::new(),
        }))
    });
    let options = RunOptions {
        plugins,
        ..RunOptions::default()
    };
    redtail_sim::run(&scenario(&text, 0), options).expect("it can be run");
    let seen = seen.lock().expect("the run is over");
    seen.clone()
}

fn sizes(of: &[(u32, u64)]) -> Vec<u64> {
    of.iter().map(|&(_, size)| size).collect()
}

const UDP: &str = r#"
[[traffic]]
name = "udp"
kind = "cbr"
flows = 4
rate = "1 Mbit/s"
packet = "uniform 1400..1628 B"
"#;

const TRANSFER: &str = r#"
[[traffic]]
name = "file"
kind = "transfer"
flows = 2
size = "1460 kB"
tcp = { preset = "ns2-sack", mss = "1460 B", header = "54 B" }
packet = "uniform 1400..1628 B"
"#;

/// The mean and the variance of sizes to the byte of the uniform law from 1400 to 1628 bytes: the values between have
/// the weight 1/228, the two at the ends half of it.
fn moments() -> (f64, f64) {
    let variance: f64 = (1400..=1628)
        .map(|size| {
            let weight = if size == 1400 || size == 1628 {
                0.5
            } else {
                1.0
            };
            weight / 228.0 * (f64::from(size) - 1514.0).powi(2)
        })
        .sum();
    (1514.0, variance)
}

/// Checks sizes of the law against its closed form: their mean, their variance, their range, and that neighbours are
/// not alike. Each bound is five standard errors, exceeded with probability 6e-7.
fn assert_follow_the_law(sizes: &[u64]) {
    let n = sizes.len() as f64;
    let (mean, variance) = moments();
    let off: Vec<f64> = sizes.iter().map(|&size| size as f64 - mean).collect();
    let average = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n;
    let shift = average(&mut off.iter().copied());
    assert!(shift.abs() < 5.0 * (variance / n).sqrt(), "mean {shift}");
    // The fourth central moment of a uniform law is 9/5 of the squared variance: that of the estimate is 4/5 / n.
    let spread = average(&mut off.iter().map(|x| x * x)) / variance;
    assert!(
        (spread - 1.0).abs() < 5.0 * (0.8 / n).sqrt(),
        "variance {spread}"
    );
    let together = average(&mut off.windows(2).map(|pair| pair[0] * pair[1])) / variance;
    assert!(together.abs() < 5.0 / n.sqrt(), "correlation {together}");
    assert!(sizes.iter().all(|size| (1400..=1628).contains(size)));
    // An end is missed by all n with probability e^(-n/456): e^-22 from 10,000 on.
    for end in [1400, 1628] {
        assert!(n < 10_000.0 || sizes.contains(&end), "{end} is never drawn");
    }
}

#[test]
fn sizes_of_udp_have_the_moments_and_the_range_of_the_law() {
    let seen = sizes(&arrivals(UDP, 1, &[]));
    assert!(seen.len() > 30_000, "{}", seen.len());
    assert_follow_the_law(&seen);
}

#[test]
fn sizes_of_full_segments_have_the_moments_and_the_range_of_the_law() {
    let bulk = TRANSFER.replace("1460 kB", "29200 kB");
    let seen = sizes(&arrivals(&bulk, 1, &[]));
    assert_eq!(seen.len(), 40_000);
    assert_follow_the_law(&seen);
}

#[test]
fn sizes_are_the_same_with_one_seed_and_differ_with_another_and_between_flows() {
    for groups in [UDP, TRANSFER] {
        let [first, again, other] = [1, 1, 2].map(|seed| arrivals(groups, seed, &[]));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let of_flow = |flow| first.iter().filter(move |it| it.0 == flow).map(|it| it.1);
        assert!(of_flow(0).ne(of_flow(1)));
    }
}

#[test]
fn a_segment_that_is_sent_again_keeps_its_size() {
    let clean = arrivals(TRANSFER, 1, &[]);
    assert_eq!(clean.len(), 2000);
    let drops = [100, 101, 102, 700, 1500];
    let mut lossy = arrivals(TRANSFER, 1, &drops);
    // The segments that are dropped arrive twice; all others once, as without a loss.
    let before = *drops.first().expect("some are dropped");
    assert_eq!(clean[..before], lossy[..before]);
    let mut expected = clean;
    expected.extend(drops.map(|number| lossy[number]));
    assert_eq!(lossy.len(), expected.len());
    lossy.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lossy, expected);
}

#[test]
fn only_full_segments_are_drawn() {
    // A segment of 1000 bytes, and two full segments.
    let groups = TRANSFER
        .replace("flows = 2\n", "")
        .replace("1460 kB", "3920 B");
    let mut seen = sizes(&arrivals(&groups, 1, &[]));
    seen.sort_unstable();
    let [short, drawn @ ..] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(*short, 1000 + HEADER, "{seen:?}");
    assert_eq!(drawn.len(), 2);
    assert!(drawn.iter().all(|&size| size != 1514), "{drawn:?}");
}

#[test]
fn each_connection_of_a_user_draws_for_itself_in_both_directions() {
    let groups = r#"
[[traffic]]
name = "rpc"
kind = "transactions"
users = 1
request = "14600 B"
response = "14600 B"
tcp = { preset = "ns2-sack", mss = "1460 B", header = "54 B" }
packet = "uniform 1400..1628 B"
start = "0 s"
"#;
    let seen = sizes(&arrivals(groups, 1, &[]));
    assert!(seen.len() > 3000, "{}", seen.len());
    assert_follow_the_law(&seen);
    // Requests and responses have ten segments each: had two of them the same sizes, runs of ten would repeat.
    let mut runs: Vec<&[u64]> = seen.chunks_exact(10).collect();
    let all = runs.len();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), all);
}

#[test]
fn the_link_and_the_receivers_count_what_the_law_says() {
    // 4 Mbit/s of UDP, and TCP that takes the rest. What a packet has of the mean is off by 65.8/1514 = 4.3 %, so that of
    // n packets by 4.3 %/sqrt(n): five times that, exceeded with probability 6e-7.
    let text = |packet: &str, udp: &str| {
        format!(
            r#"
duration = "110 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "udp"
kind = "cbr"
flows = 4
rate = "1 Mbit/s"
packet = "{udp}"
[[traffic]]
name = "tcp"
kind = "bulk"
flows = 4
tcp = {{ preset = "ns2-sack", mss = "1460 B", header = "54 B" }}
{packet}
return_delay = "10 ms"
"#
        )
    };
    let law = "uniform 1400..1628 B";
    let alone = |packet: &str, udp| {
        let text = text(packet, udp);
        let (udp, tcp) = text
            .split_once("[[traffic]]\nname = \"tcp\"")
            .expect("both");
        let head = udp.split("[[traffic]]").next().expect("it begins so");
        [
            udp.to_owned(),
            format!("{head}[[traffic]]\nname = \"tcp\"{tcp}"),
        ]
    };
    let [udp, tcp] = alone(&format!("packet = \"{law}\""), law);
    let used = metric(&run(&udp), "utilization");
    let packets: f64 = 4e6 * 100.0 / 8.0 / 1514.0;
    assert!(
        (used / 0.4 - 1.0).abs() < 5.0 * 0.0435 / packets.sqrt(),
        "{used}"
    );
    let result = run(&tcp);
    let (goodput, used) = (metric(&result, "goodput"), metric(&result, "utilization"));
    let expected = used * 10e6 * 1460.0 / 1514.0;
    let packets: f64 = 10e6 * 100.0 / 8.0 / 1514.0;
    // Losses are of few packets here, and a lost one is sent again: it uses the link once.
    assert!(used > 0.99, "{used}");
    assert!(
        (goodput / expected - 1.0).abs() < 5.0 * 0.0435 / packets.sqrt() + 1e-3,
        "{goodput} of {expected}"
    );
}

#[test]
fn many_sources_with_exponential_sizes_wait_as_in_m_m_1() {
    // 2000 sources with random gaps are close to Poisson over the length of a busy period. Service has the mean
    // S = 1 ms, the load is 0.5: the mean wait is rho S / (1 - rho), twice that of packets of one size.
    let text = r#"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "100000 packets" }
[[traffic]]
name = "many"
kind = "cbr"
flows = 2000
rate = "2500 bit/s"
packet = "exponential mean 1250 B max 60 kB"
dither = 1.0
access_rate = "1000 Gbit/s"
"#;
    let expected = 0.5 * 1e-3 / (1.0 - 0.5);
    assert_mean_wait(text, expected, 0.1);
}

#[test]
fn a_constant_that_is_written_out_is_the_run_without_it() {
    let constant = TRANSFER.replace("uniform 1400..1628 B", "1514 B");
    let without = TRANSFER.replace("packet = \"uniform 1400..1628 B\"\n", "");
    assert_eq!(arrivals(&constant, 1, &[]), arrivals(&without, 1, &[]));
}

#[test]
fn sizes_that_do_not_belong_to_their_traffic_are_refused() {
    let refusal = |group: &str| {
        let text = format!(
            r#"
duration = "1 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "10 packets" }}
[[traffic]]
name = "g"
{group}
"#
        );
        match find_scenario(&text, 0) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted: {group}"),
        }
    };
    let tcp = r#"kind = "bulk"
tcp = { mss = "1460 B", header = "40 B" }"#;
    for (group, expected) in [
        (
            format!("{tcp}\npacket = \"uniform 1400..1628 B\""),
            "has a mean of \"1514 B\"; accepted: a size or a law with a mean of \"1500 B\"",
        ),
        (
            format!("{tcp}\npacket = \"uniform 20..2980 B\""),
            "may be \"20 B\", which leaves no room beside a header of \"40 B\"",
        ),
        (
            "kind = \"cbr\"\nrate = \"1 Mbit/s\"\npacket = \"exponential mean 500 B\"".to_owned(),
            "may be more than fits an IP packet; accepted: \"1 B\" to \"65535 B\"",
        ),
        (
            "kind = \"cbr\"\nrate = \"1 Mbit/s\"\npacket = \"0 B\"".to_owned(),
            "is empty",
        ),
    ] {
        let refused = refusal(&group);
        assert!(refused.contains("packet"), "{refused}");
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn tcp_with_drawn_sizes_is_not_captured() {
    let text = format!(
        r#"
duration = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "10 packets" }}
{TRANSFER}
"#
    );
    let options = RunOptions {
        capture: Some(Capture {
            ip: IpVersion::default(),
            files: Vec::new(),
        }),
        ..RunOptions::default()
    };
    let Err(RunError::Capture(CaptureError::Impossible(message))) =
        redtail_sim::run(&scenario(&text, 0), options)
    else {
        panic!("it was captured");
    };
    assert!(
        message.starts_with("traffic.file.packet is a law"),
        "{message}"
    );
}
