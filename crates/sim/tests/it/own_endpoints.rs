//! Endpoints that a program brings: when their datagrams arrive, what is measured of them, and how a run ends in which
//! they break what they promise.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::capture::{capture_with, packets, payload};
use crate::common::endpoints::{Diary, Outcome, endpoints};
use crate::common::{find_scenario, metric, scenario};
use redtail_core::Ecn;
use redtail_core::plugin::PluginError;
use redtail_sim::capture::IpVersion;
use redtail_sim::{Datagram, Endpoint, EndpointSide, Plugins, RunOptions, RunResult};

const LINK: &str = r#"
duration = "5 s"
warmup = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
"#;

fn file(queue: &str, keys: &str) -> String {
    format!(
        "{LINK}queue = {{ {queue} }}\n[[traffic]]\nname = \"own\"\nkind = \"endpoint\"\n{keys}\n"
    )
}

const TAIL_DROP: &str = r#"kind = "tail-drop", limit = "100 packets""#;

/// Runs a file with the endpoints of the tests.
fn run(text: &str) -> (RunResult, Diary) {
    let diary = Diary::default();
    let options = RunOptions {
        plugins: endpoints(&diary),
        ..RunOptions::default()
    };
    let result = redtail_sim::run(&scenario(text, 0), options).expect("it can be run");
    (result, diary)
}

#[test]
fn a_datagram_takes_the_links_of_its_path_and_an_answer_leaves_at_once() {
    let keys = "class = \"ping-pong\"\naccess_rate = \"100 Mbit/s\"\nexit_rate = \"20 Mbit/s\"\nreturn_delay = \"10 ms\"";
    let (_, diary) = run(&file(TAIL_DROP, keys));
    let heard = diary.heard();
    // 1000 B with headers: 80 us at 100 Mbit/s, 800 us at 10 Mbit/s, 400 us at 20 Mbit/s.
    let there = Duration::from_micros(80 + 800 + 10_000 + 400);
    let back = Duration::from_millis(10);
    for (i, &(side, at, number, _)) in (0..).zip(&heard) {
        let expected = match i % 2 {
            0 => (EndpointSide::Receiver, there * (i / 2 + 1) + back * (i / 2)),
            _ => (EndpointSide::Sender, (there + back) * (i / 2 + 1)),
        };
        assert_eq!((side, at), expected, "datagram {i}");
        assert_eq!(number, u64::from(i));
    }
    let round_trips = 5.0 / (there + back).as_secs_f64();
    assert_eq!(heard.len() / 2, round_trips as usize);
}

#[test]
fn what_arrives_is_measured_as_of_any_udp_group() {
    let keys = "class = \"steady\"\nflows = 2\npacket = \"1200 B\"\nstart = [\"0 s\", \"1 s\"]\nstop = [\"3 s\", \"2 s\"]";
    let (result, diary) = run(&file(TAIL_DROP, keys));
    // Of the period of 4 s, one flow sends for 2 s and the other for 1 s, 100 datagrams of 1172 B each second. The last
    // one of the warm-up arrives in the period.
    assert_eq!(
        metric(&result, "own.delivered_rate"),
        301.0 * 1172.0 * 8.0 / 4.0
    );
    assert_eq!(metric(&result, "own.end_to_end_loss"), 0.0);
    assert_eq!(
        metric(&result, "own.utilization"),
        300.0 * 1200.0 * 8.0 / 4e7
    );
    assert_eq!(
        metric(&result, "own.endpoint.sent"),
        f64::from(300 + 100) / 2.0
    );
    // 1200 B: 96 us on each of the hosts' links, 960 us on the bottleneck, and at most as long for the other's.
    let delay = metric(&result, "own.one_way_delay_mean");
    assert!((0.011152..0.012112).contains(&delay), "{delay}");
    let heard = diary.heard();
    assert_eq!(heard.len(), 400);
    assert!(
        heard
            .iter()
            .all(|(side, ..)| *side == EndpointSide::Receiver)
    );
    let flows = result.flows.as_ref().expect("there are few flows");
    assert_eq!(flows.delivered_bytes, [200.0 * 1200.0, 100.0 * 1200.0]);
    assert_eq!(flows.sent_packets, [200.0, 100.0]);
}

#[test]
fn lost_datagrams_are_counted_and_their_payloads_given_back() {
    // 1200 B each 0.5 ms are 19.2 Mbit/s: the link has room for 10 of them. The engine counts payloads at the end.
    let keys = "class = \"steady\"\npacket = \"1200 B\"\nparams = { gap = 0.0005 }";
    let (result, diary) = run(&file("kind = \"tail-drop\", limit = \"20 packets\"", keys));
    let loss = metric(&result, "own.end_to_end_loss");
    assert!((loss - (1.0 - 10.0 / 19.2)).abs() < 0.01, "{loss}");
    let numbers: Vec<u64> = diary.heard().iter().map(|heard| heard.2).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "they arrive in order");
    assert!((5100..5200).contains(&numbers.len()), "{}", numbers.len());
}

#[test]
fn a_receiver_sees_the_marks_of_the_queue() {
    let red = "kind = \"red\", limit = \"200 packets\", min_th = \"2 packets\", max_th = \"150 packets\", ecn = true";
    let tcp = "\n[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\nflows = 4";
    let marked = |params: &str| {
        let keys = format!("class = \"steady\"\n{params}{tcp}");
        let (result, diary) =
            run(&file(red, &keys).replace("warmup = \"1 s\"", "warmup = \"0 s\""));
        let heard = diary.heard();
        let ce = heard.iter().filter(|heard| heard.3 == Ecn::Ce).count();
        let others = heard.iter().filter(|heard| heard.3 != Ecn::Ce);
        let expected = if params.is_empty() {
            Ecn::NotEct
        } else {
            Ecn::Ect0
        };
        assert!(others.clone().all(|heard| heard.3 == expected));
        let flows = result.flows.as_ref().expect("there are few flows");
        let lost = metric(&result, "own.end_to_end_loss");
        (ce, flows.marked_packets[0] as usize, lost)
    };
    let (ce, by_queue, lost) = marked("params = { ecn = true }");
    assert!(ce > 3, "{ce}");
    // What was marked may be on its way at the end.
    assert!((ce..ce + 3).contains(&by_queue), "{by_queue} and {ce}");
    assert_eq!(lost, 0.0);
    let (ce, by_queue, lost) = marked("");
    assert_eq!((ce, by_queue), (0, 0));
    assert!(lost > 0.0);
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    // The jitter of hosts is the only chance in it.
    let text = |seed: u32| {
        let keys = "class = \"steady\"\nhost_jitter = \"5 ms\"\nparams = { gap = 0.002 }";
        format!("seed = {seed}\n{}", file(TAIL_DROP, keys))
    };
    let all = |seed| {
        let (result, diary) = run(&text(seed));
        (format!("{result:?}"), diary.heard())
    };
    assert!(all(1) == all(1));
    assert!(all(1).1 != all(2).1);
}

#[test]
fn each_endpoint_has_a_random_stream_of_its_own() {
    let seeds = |text: &str| {
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&drawn);
        let plugins = Plugins::new().with_endpoint("steady", move |_, mut context| {
            let place = (context.group.clone(), context.flow, context.side);
            kept.lock()
                .expect("no test has failed")
                .push((place, context.seed()));
            Ok(Box::new(Silent))
        });
        let options = RunOptions {
            plugins,
            ..RunOptions::default()
        };
        redtail_sim::run(&scenario(text, 0), options).expect("it can be run");
        let drawn = drawn.lock().expect("no test has failed");
        drawn.clone()
    };
    let text = file(TAIL_DROP, "class = \"steady\"\nflows = 2");
    let found = seeds(&text);
    assert_eq!(found.len(), 4);
    let mut distinct: Vec<_> = found.iter().map(|(_, seed)| *seed).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 4);
    assert_eq!(found, seeds(&text));
    // Another queue and other traffic draw no other numbers for it.
    let other = file(
        "kind = \"codel\"",
        "class = \"steady\"\nflows = 2\n[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"",
    );
    assert_eq!(found, seeds(&other));
    assert_ne!(found, seeds(&format!("seed = 9\n{text}")));
}

struct Silent;

impl Endpoint for Silent {
    fn receive(&mut self, _datagram: Datagram, _now: Duration) -> Outcome {
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Duration) -> Outcome<Option<Datagram>> {
        Ok(None)
    }
}

/// Sends so many datagrams of so many bytes at once, and is then woken at a time.
struct Faulty {
    datagrams: u64,
    payload: usize,
    wakeup: fn(Duration) -> Option<Duration>,
}

impl Endpoint for Faulty {
    fn receive(&mut self, _datagram: Datagram, _now: Duration) -> Outcome {
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Duration) -> Outcome<Option<Datagram>> {
        if self.datagrams == 0 {
            return Ok(None);
        }
        self.datagrams -= 1;
        Ok(Some(Datagram {
            payload: vec![0; self.payload],
            ..Datagram::default()
        }))
    }

    fn next_wakeup(&mut self, now: Duration) -> Outcome<Option<Duration>> {
        Ok((self.wakeup)(now))
    }

    fn on_wakeup(&mut self, now: Duration) -> Outcome {
        match now > Duration::from_secs(3) {
            true => Err(PluginError::new("it has had enough")),
            false => Ok(()),
        }
    }
}

fn failure(faulty: impl Fn() -> Faulty + Send + Sync + 'static, keys: &str) -> String {
    let plugins = Plugins::new().with_endpoint("faulty", move |_, context| {
        Ok(match context.side {
            EndpointSide::Sender => Box::new(faulty()),
            EndpointSide::Receiver => Box::new(Silent),
        })
    });
    let options = RunOptions {
        plugins,
        ..RunOptions::default()
    };
    let text = file(TAIL_DROP, &format!("class = \"faulty\"\n{keys}"));
    let ran = redtail_sim::run(&scenario(&text, 0), options);
    ran.err()
        .map_or_else(String::new, |error| error.to_string())
}

const SOUND: Faulty = Faulty {
    datagrams: 10,
    payload: 1472,
    wakeup: |_| None,
};

#[test]
fn an_endpoint_that_breaks_its_promises_is_named() {
    assert_eq!(failure(|| SOUND, ""), "");
    let which = "the endpoint \"faulty\" failed in";
    let sender = "the sender of flow 0 of \"own\"";
    let large = || Faulty {
        payload: 1473,
        ..SOUND
    };
    assert_eq!(
        failure(large, "start = \"500 ms\""),
        format!(
            "{which} poll_transmit at 0.5 s: {sender}: a datagram of 1473 B is 1501 B on the link; accepted: up to \
             1500 B, the group's key `packet`"
        )
    );
    assert_eq!(failure(large, "packet = \"9000 B\""), "");
    let endless = || Faulty {
        datagrams: u64::MAX,
        payload: 8,
        ..SOUND
    };
    assert_eq!(
        failure(endless, ""),
        format!(
            "{which} poll_transmit at 0 s: {sender}: it sends more than 65536 datagrams at one instant"
        )
    );
    let past = || Faulty {
        wakeup: |now| {
            now.checked_sub(Duration::from_secs(1))
                .or(Some(Duration::from_secs(1)))
        },
        ..SOUND
    };
    assert_eq!(
        failure(past, ""),
        format!(
            "{which} next_wakeup at 1 s: {sender}: it asks more than 1000 times at one instant to be woken at a time \
             that has come"
        )
    );
    let error = || Faulty {
        wakeup: |now| Some(now + Duration::from_secs(1)),
        ..SOUND
    };
    assert_eq!(
        failure(error, ""),
        format!("{which} on_wakeup at 4 s: {sender}: it has had enough")
    );
}

#[test]
fn a_wakeup_beyond_the_clock_is_never() {
    let never = || Faulty {
        wakeup: |_| Some(Duration::MAX),
        ..SOUND
    };
    assert_eq!(failure(never, ""), "");
}

#[test]
fn a_class_that_was_not_registered_is_named_with_those_that_were() {
    let text = file(TAIL_DROP, "class = \"quic\"");
    let started = |plugins| {
        let options = RunOptions {
            plugins,
            ..RunOptions::default()
        };
        redtail_sim::run(&scenario(&text, 0), options)
            .expect_err("it is not there")
            .to_string()
    };
    let begin = "the endpoint \"quic\" failed in new: the sender of flow 0 of \"own\": this run was started without \
                 it; known:";
    assert_eq!(started(Plugins::new()), format!("{begin} none"));
    let known = endpoints(&Diary::default());
    assert_eq!(started(known), format!("{begin} ping-pong, steady"));
}

#[test]
fn keys_that_cannot_be_run_are_refused() {
    let refused = |keys: &str| {
        let found = find_scenario(&file(TAIL_DROP, keys), 0);
        found.expect_err(keys).to_string()
    };
    for (keys, part) in [
        ("class = \"\"", "class"),
        (
            "class = \"a\"\npacket = \"70 kB\"",
            "does not fit an IP packet; accepted: up to \"65535 B\"",
        ),
        (
            "class = \"a\"\nheader = \"1500 B\"",
            "leaves no room in a packet of \"1500 B\"; accepted: less than `packet`",
        ),
        ("class = \"a\"\nstart = \"2 s\"\nstop = \"1 s\"", "stop"),
    ] {
        let error = refused(keys);
        assert!(error.contains(part), "{keys}: {error}");
    }
}

#[test]
fn a_capture_has_the_payloads() {
    for (ip, header) in [(IpVersion::V4, 20), (IpVersion::V6, 40)] {
        // Headers of 60 B on the link are no part of the datagram.
        let text = file(
            TAIL_DROP,
            "class = \"steady\"\nheader = \"60 B\"\npacket = \"1161 B\"",
        );
        let options = RunOptions {
            plugins: endpoints(&Diary::default()),
            ..RunOptions::default()
        };
        let (_, file) =
            capture_with(&text, &["bottleneck"], ip, options).expect("it can be captured");
        let captured = packets(&file, 1);
        assert!(captured.len() > 400);
        for (number, packet) in (0u64..).zip(&captured) {
            let payload = payload(packet);
            assert_eq!(packet.original, 14 + header + 8 + 1101);
            assert_eq!(payload.len(), 1101);
            assert_eq!(payload[..8], number.to_be_bytes());
            assert!(payload[8..].iter().all(|byte| *byte == number as u8));
        }
    }
}
