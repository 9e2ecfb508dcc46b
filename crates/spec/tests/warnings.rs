//! What is legal but hardly meant.

mod common;

use common::{FILE, changed, plan, single};

fn warnings(changes: &[(&str, &str)]) -> Vec<String> {
    plan(&changed(&single(), changes), &[]).unwrap().warnings
}

#[test]
fn a_sound_file_has_none() {
    assert_eq!(warnings(&[]), [""; 0]);
}

#[test]
fn a_buffer_below_one_bandwidth_delay_product() {
    assert_eq!(
        warnings(&[
            ("limit = \"300 packets\"", "limit = \"100 packets\""),
            ("195 packets", "90 packets")
        ]),
        [
            "e.toml:9: bottleneck.queue.limit = \"100 packets\" is below one bandwidth-delay product (10 Mbit/s x 130 ms \
          mean base round trip = 162 kB or 109 packets of 1500 B): with few flows the link will run idle after losses"
        ]
    );
    assert_eq!(
        warnings(&[(
            "limit = \"300 packets\"",
            "limit = [\"300 packets\", \"100 kB\"]"
        )])
        .len(),
        1
    );
    assert_eq!(
        warnings(&[(
            "limit = \"300 packets\"",
            "limit = [\"300 packets\", \"200 kB\"]"
        )]),
        [""; 0]
    );
}

#[test]
fn a_warmup_shorter_than_the_first_round_trips() {
    let expected = "is short of the slowest flow's first round trips: flows of \"ftp\" start as late as \"10 s\" and have \
                    base round-trip times up to \"140 ms\", so their slow start can last until \"11.4 s\" and will show in \
                    the statistics";
    assert_eq!(
        warnings(&[("\"50 s\"", "\"11 s\"")]),
        [format!("e.toml:3: warmup = \"11 s\" {expected}")]
    );
    assert_eq!(warnings(&[("\"50 s\"", "\"11.4 s\"")]), [""; 0]);
    assert_eq!(
        warnings(&[("warmup = \"50 s\"", "")]),
        [format!("e.toml:1: warmup (by default \"0 s\") {expected}")]
    );
}

#[test]
fn a_packet_larger_than_a_byte_limit() {
    assert_eq!(
        warnings(&[("\"300 packets\"", "[\"300 packets\", \"1 kB\"]")])[0],
        "e.toml:9: bottleneck.queue.limit = [\"300 packets\", \"1 kB\"] holds no packet of \"ftp\" (\"1500 B\"): every one of them \
         that has to wait is dropped"
    );
}

#[test]
fn a_start_beyond_the_end() {
    assert_eq!(
        warnings(&[("flows = 4\n", "flows = 4\nstart = \"250 s\"\n")]),
        [
            "e.toml:23: traffic.cbr.start = \"250 s\" is as late as \"250 s\", and the run ends at \"200 s\": such flows never send"
        ]
    );
}

#[test]
fn thresholds_that_the_buffer_keeps_out_of_reach() {
    assert_eq!(
        warnings(&[("\"195 packets\"", "\"300 packets\"")]),
        [
            "e.toml:9: bottleneck.queue.max_th = \"300 packets\" is not below the limit (\"300 packets\"), so the buffer \
          overflows before the average gets there"
        ]
    );
}

#[test]
fn a_warning_of_many_cases_is_given_once() {
    let text = changed(
        FILE,
        &[(
            "{ kind = \"tail-drop\", limit = \"300 packets\" }",
            "{ kind = \"tail-drop\", limit = \"20 packets\" }",
        )],
    );
    let warnings = plan(&text, &[]).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("e.toml:28: bottleneck.queue.limit = \"20 packets\" is below one"),
        "{warnings:?}"
    );
    assert!(warnings[0].ends_with("after losses"), "{warnings:?}");

    let text = changed(
        FILE,
        &[(
            "\"traffic.ftp.flows\" = [16, 64, 256]",
            "\"traffic.ftp.access_delay\" = [\"1 ms\", \"10 s\"]",
        )],
    );
    let warnings = plan(&text, &[]).unwrap().warnings;
    assert!(
        warnings[0].ends_with("[in 2 of 4 cases, first with bottleneck.queue = tail-drop, traffic.ftp.access_delay = 10 s]"),
        "{warnings:?}"
    );
}

#[test]
fn warnings_that_differ_in_numbers_alone_are_told_once() {
    // The flows share hosts of other delays, so the mean round trip depends on their number.
    let text = changed(
        FILE,
        &[
            (
                "[\"20 ms\", \"40 ms\"]",
                "[\"20 ms\", \"40 ms\", \"46 ms\"]",
            ),
            ("[16, 64, 256]", "[1, 2, 256]"),
            (
                "{ kind = \"tail-drop\", limit = \"300 packets\" }",
                "{ kind = \"tail-drop\", limit = \"20 packets\" }",
            ),
        ],
    );
    assert_eq!(
        plan(&text, &[]).unwrap().warnings,
        [
            "e.toml:28: bottleneck.queue.limit = \"20 packets\" is below one bandwidth-delay product (10 Mbit/s x 120 ms \
             mean base round trip = 150 kB or 100 packets of 1500 B): with few flows the link will run idle after losses \
             [in 3 of 6 cases; these numbers with bottleneck.queue = tail-drop, traffic.ftp.flows = 1]"
        ]
    );
    // Two queues that are too small stand on lines of their own, and get a warning each.
    let text = text.replace(
        "\"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" },\n]",
        "\"30 packets\", min_th = \"4 packets\", max_th = \"19 packets\" },\n]",
    );
    assert_eq!(plan(&text, &[]).unwrap().warnings.len(), 2);
}
