//! No packet appears or disappears, whatever the scenario.
//!
//! [`redtail_sim::run`] itself compares the counters of every flow and link at the
//! end of a run and panics when they do not balance; here it is made to do so
//! over scenarios drawn at random. What the metrics say must then be possible.

use crate::common::run;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use redtail_sim::RunResult;

fn queues() -> impl Strategy<Value = String> {
    let limit = prop_oneof![
        (1u32..40).prop_map(|n| format!("\"{n} packets\"")),
        (1500u32..60_000).prop_map(|n| format!("\"{n} B\"")),
        (1u32..40, 1500u32..60_000).prop_map(|(n, b)| format!("[\"{n} packets\", \"{b} B\"]")),
    ];
    let tail_drop = limit.prop_map(|limit| format!("{{ kind = \"tail-drop\", limit = {limit} }}"));
    let red = (
        (1u32..10, 1u32..20, 1u32..40),
        prop_oneof![Just("false"), Just("true"), Just("\"limit\"")],
        prop_oneof![Just("uniform"), Just("wait"), Just("none")],
        (any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |((min, range, rest), gentle, spacing, (byte_mode, ecn, mark))| {
                let (max, limit) = (min + range, min + range + rest);
                let above = if mark { "mark" } else { "drop" };
                format!(
                    "{{ kind = \"red\", limit = \"{limit} packets\", min_th = \"{min} packets\", \
                 max_th = \"{max} packets\", w_q = 0.05, gentle = {gentle}, \
                 spacing = \"{spacing}\", byte_mode = {byte_mode}, ecn = {ecn}, \
                 above_max_th = \"{above}\" }}"
                )
            },
        );
    prop_oneof![tail_drop, red]
}

/// The keys of a link.
fn links() -> impl Strategy<Value = String> {
    let loss = prop_oneof![
        Just(String::new()),
        (0.0f64..0.5).prop_map(|p| format!("wire.loss = {p:.3}\n")),
        (0.0f64..1.0, 1u32..20, 0u32..30, any::<bool>()).prop_map(|(p, limit, ms, free)| {
            let order = if free { "free" } else { "kept" };
            format!(
                "wire = {{ duplicate = {p:.3}, reorder = {{ share = {p:.3}, by = \"{ms} ms\" }}, \
                 jitter = \"{ms} ms\", order = \"{order}\", limit = {limit} }}\n"
            )
        }),
    ];
    (100u32..8000, 0u32..60, queues(), loss).prop_map(|(kbps, ms, queue, loss)| {
        format!("rate = \"{kbps} kbit/s\"\ndelay = \"{ms} ms\"\nqueue = {queue}\n{loss}")
    })
}

/// A topology, with the number of its hops; the way back has links or not.
fn topologies() -> impl Strategy<Value = (String, usize, bool)> {
    let hops = proptest::collection::vec((links(), links()), 1..4);
    (hops, any::<bool>()).prop_map(|(hops, returns)| {
        let (count, mut text) = (hops.len(), String::new());
        for (forward, back) in hops {
            let table = if count == 1 {
                "bottleneck"
            } else {
                "chain.hop"
            };
            let header = if count == 1 {
                format!("[{table}]")
            } else {
                format!("[[{table}]]")
            };
            text.push_str(&format!("{header}\n{forward}"));
            if returns {
                text.push_str(&format!("[{table}.return]\n{back}"));
            }
        }
        (text, count, returns)
    })
}

/// A group of users, but for their TCP.
fn users() -> impl Strategy<Value = String> {
    const MODELS: &[&str] = &["feldmann", "request-think", "empirical", "http1", "http2"];
    let web = (
        proptest::sample::select(MODELS),
        0u32..500,
        prop_oneof![Just("own"), Just("per-page"), Just("per-connection")],
        prop_oneof![Just("0 s"), Just("100 ms")],
        1u32..5,
    );
    prop_oneof![
        web.prop_map(|(model, think, server, keep_alive, hosts)| format!(
            "kind = \"web\"\nmodel = \"{model}\"\nthink = \"exponential mean {} ms\"\n\
             server = \"{server}\"\nkeep_alive = \"{keep_alive}\"\nhosts = {hosts}\n",
            think + 1
        )),
        (1u32..50_000, any::<bool>(), 0u32..50).prop_map(|(size, each, service)| format!(
            "kind = \"transactions\"\nresponse = \"{size} B\"\nconnections = \"{}\"\n\
             service = \"exponential mean {} ms\"\n",
            if each { "each" } else { "one" },
            service + 1,
        )),
    ]
}

/// Any group of flows on `hops` hops; data may go against the hops if `reverse`.
fn groups(hops: usize, reverse: bool) -> impl Strategy<Value = String> {
    let preset = prop_oneof![
        Just("sack"),
        Just("newreno"),
        Just("reno"),
        Just("ns2-sack"),
        Just("ns2-newreno"),
        Just("ns2-reno"),
    ];
    let tcp = (preset, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(preset, ecn, delayed_ack, handshake)| {
            format!(
                "tcp = {{ preset = \"{preset}\", ecn = {ecn}, delayed_ack = {delayed_ack}, \
                 handshake = {handshake} }}\n"
            )
        },
    );
    let kind = prop_oneof![
        tcp.clone()
            .prop_map(|tcp| format!("kind = \"bulk\"\n{tcp}")),
        (tcp.clone(), users()).prop_map(|(tcp, users)| format!("{users}{tcp}")),
        (tcp, 1u32..200_000)
            .prop_map(|(tcp, size)| format!("kind = \"transfer\"\nsize = \"{size} B\"\n{tcp}")),
        (10u32..3000, 40u32..3000, 0.0f64..1.0).prop_map(|(kbps, size, dither)| format!(
            "kind = \"cbr\"\nrate = \"{kbps} kbit/s\"\npacket = \"{size} B\"\ndither = {dither}\n"
        )),
    ];
    let way = (
        1usize..=hops,
        0usize..hops,
        any::<bool>(),
        prop_oneof![Just("\"0 s\""), Just("[\"1 ms\", \"35 ms\"]")],
        0u32..40,
    )
        .prop_map(move |(first, length, backwards, delays, return_ms)| {
            let mut way = format!("access_delay = {delays}\nreturn_delay = \"{return_ms} ms\"\n");
            if hops > 1 {
                let last = (first + length).min(hops);
                way.push_str(&format!("first_hop = {first}\nlast_hop = {last}\n"));
            }
            if reverse && backwards {
                way.push_str("direction = \"reverse\"\n");
            }
            way
        });
    (kind, 1u32..=6, any::<bool>(), way).prop_map(|(kind, flows, stops, way)| {
        let has_users = kind.contains("\"web\"") || kind.contains("\"transactions\"");
        let count = if has_users { "users" } else { "flows" };
        let stop = if stops && !kind.starts_with("kind = \"transfer\"") {
            "stop = [\"1001 ms\", \"uniform 1.1..3 s\"]\n"
        } else {
            ""
        };
        format!("{kind}{count} = {flows}\nstart = \"uniform 0..1 s\"\n{stop}{way}")
    })
}

fn scenarios() -> impl Strategy<Value = String> {
    (topologies(), 1000u32..3000, any::<u32>()).prop_flat_map(
        |((topology, hops, returns), ms, seed)| {
            proptest::collection::vec(groups(hops, returns), 1..4).prop_map(move |groups| {
                let mut text = format!(
                    "duration = \"{ms} ms\"\nwarmup = \"200 ms\"\nseed = {seed}\n{topology}"
                );
                for (i, group) in groups.iter().enumerate() {
                    text.push_str(&format!("[[traffic]]\nname = \"g{i}\"\n{group}"));
                }
                text
            })
        },
    )
}

/// Whether `name` is a share of something.
fn is_share(name: &str) -> bool {
    ["utilization", "loss", "mark", "fairness"]
        .iter()
        .any(|share| name.ends_with(share))
}

fn assert_possible(result: &RunResult) {
    for (name, value) in &result.metrics {
        assert!(value.is_finite() && *value >= 0.0, "{name} = {value}");
        if is_share(name) {
            assert!(*value <= 1.0 + 1e-12, "{name} = {value}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn packets_are_conserved_in_any_scenario(text in scenarios()) {
        assert_possible(&run(&text));
    }
}
