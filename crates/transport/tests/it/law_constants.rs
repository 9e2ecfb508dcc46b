//! The constants of laws are keys of the experiment file.

use std::fs;
use std::path::Path;

use redtail_core::serde::Deserialize;
use redtail_transport::cc::slow_start::{SlowStartKind, SlowStartParams};
use redtail_transport::cc::{Growth, GrowthParams};
use redtail_transport::constants::LawTable;
use redtail_transport::params::ResolvedTcpParams;
use redtail_transport::{Preset, VariantArray};
use serde_json::{Value, json};

/// Constants of the sources that are no keys, and why.
const NO_KEYS: [(&str, &[&str], &str); 12] = [
    (
        "bbr3.rs",
        &["MANY_ROUNDS"],
        "a number of rounds that is never reached",
    ),
    (
        "bic.rs",
        &["BETA_ONE", "RATIO_SHIFT", "UPDATE_INTERVAL"],
        "the kernel's fixed point, and how often it computes",
    ),
    (
        "highspeed.rs",
        &["TABLE"],
        "the function of the window that RFC 3649, appendix B, lists",
    ),
    ("htcp.rs", &["SHIFT", "ONE"], "the kernel's fixed point"),
    (
        "hybla.rs",
        &["FRACTIONS", "MOST_DOUBLINGS"],
        "powers of two in the kernel's fixed point",
    ),
    (
        "illinois.rs",
        &[
            "ALPHA_SHIFT",
            "ALPHA_BASE",
            "BETA_SHIFT",
            "BETA_BASE",
            "RTT_MAX",
        ],
        "the kernel's fixed point, and what it can hold",
    ),
    (
        "ledbat.rs",
        &["LONGEST_HISTORY", "LONGEST_FILTER", "MINUTE"],
        "room in memory, and a unit",
    ),
    (
        "linux_cubic.rs",
        &["UPDATE_INTERVAL", "SCALE", "ONE"],
        "the kernel's fixed point, and how often it computes",
    ),
    ("model.rs", &["MOST_ROUNDS"], "room in memory"),
    (
        "tick.rs",
        &["TICK", "TICKS_PER_S"],
        "the kernel's clock, which all its laws share",
    ),
    ("vegas.rs", &["LEAST_WINDOW"], "a bound of all laws"),
    ("veno.rs", &["UNKNOWN_RTT"], "the kernel's word for none"),
];

/// The constants that a source defines outside of its tests and its functions.
fn constants(source: &str) -> Vec<&str> {
    let lines = source.lines().filter(|line| !line.starts_with(' '));
    lines
        .filter_map(|line| line.split_once("const "))
        .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
        .filter_map(|(_, rest)| rest.split_once(':').map(|(name, _)| name))
        .collect()
}

#[test]
fn every_constant_of_a_law_is_a_key_or_is_known_not_to_be_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cc");
    let mut unknown = Vec::new();
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder).expect("the sources are here") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let name = if name == "yeah.rs" {
            "veno.rs".into()
        } else {
            name
        }; // they have the same
        let source = fs::read_to_string(&path).expect("it is a text");
        let excepted = NO_KEYS.iter().find(|(file, ..)| *file == name);
        let excepted = excepted.map_or(&[][..], |(_, names, _)| names);
        for constant in constants(&source) {
            match excepted.contains(&constant) {
                true => seen.push((name.to_string(), constant.to_owned())),
                false => unknown.push(format!("{name}: {constant}")),
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "constants that are no keys (`constants!`): {unknown:?}"
    );
    for (file, names, _) in NO_KEYS {
        for name in names {
            let known = seen.contains(&(file.to_owned(), (*name).to_owned()));
            assert!(known, "{file} has no {name} any more");
        }
    }
}

#[test]
fn the_scan_sees_a_constant() {
    let source = "use a;\nconst GAIN: f64 = 1.0;\npub(super) const STEP: u64 = 5;\nmod tests {\n    const MSS: f64 = 1.0;\n}";
    assert_eq!(constants(source), ["GAIN", "STEP"]);
}

fn tcp(table: Value) -> ResolvedTcpParams {
    ResolvedTcpParams::deserialize(table).expect("it has the form of a table")
}

fn refusal(table: Value) -> String {
    tcp(table).check().expect_err("it is refused").to_string()
}

#[test]
fn a_name_and_a_table_of_a_law_mean_the_same() {
    let name = tcp(json!({"preset": "sack", "growth": "cubic"}));
    for table in [
        json!({"kind": "cubic"}),
        json!({"kind": "cubic", "c": 0.4, "beta": 0.7}),
    ] {
        assert_eq!(tcp(json!({"preset": "sack", "growth": table})), name);
    }
    assert_eq!(name.params.growth, Growth::Cubic.into());
}

#[test]
fn a_table_without_kind_changes_the_law_of_the_preset() {
    let changed =
        tcp(json!({"preset": "cubic", "growth": {"beta": 0.5}, "slow_start": {"css_rounds": 2}}));
    changed.check().expect("it can be run");
    let GrowthParams::Cubic(cubic) = &changed.params.growth else {
        panic!("{:?}", changed.params.growth);
    };
    assert_eq!((cubic.beta, cubic.c), (0.5, 0.4));
    let SlowStartParams::HystartPlusPlus(hystart) = &changed.params.slow_start else {
        panic!("{:?}", changed.params.slow_start);
    };
    assert_eq!((hystart.css_rounds, hystart.n_rtt_sample), (2, 8));
}

#[test]
fn scenarios_have_every_constant_and_are_read_again() {
    for preset in Preset::ALL {
        let given = tcp(json!({"preset": preset}));
        let written = serde_json::to_value(&given).expect("it has a form");
        assert!(written["growth"]["kind"].is_string(), "{written}");
        assert_eq!(tcp(written), given);
    }
    let written = serde_json::to_value(tcp(json!("cubic"))).expect("it has a form");
    assert_eq!(written["growth"]["beta"], 0.7);
    assert_eq!(written["slow_start"]["min_rtt_thresh"], "4 ms");
}

#[test]
fn what_a_law_does_not_have_is_refused_with_what_it_has() {
    let unknown = json!({"preset": "cubic", "growth": {"gamma": 1.0}});
    assert_eq!(
        refusal(unknown),
        "growth.gamma is no constant of \"cubic\"; accepted: kind, c, beta, fast_convergence, reno_friendly"
    );
    let of_none = json!({"slow_start": {"gamma": 1.0}});
    assert_eq!(
        refusal(of_none),
        "slow_start.gamma is no constant of \"standard\"; accepted: no key but kind"
    );
}

#[test]
fn values_outside_a_range_are_refused_with_the_range() {
    let beyond = json!({"preset": "cubic", "growth": {"beta": 1.2}});
    assert_eq!(
        refusal(beyond),
        "growth.beta is outside its range; accepted: a number from 0.05 to 0.95; the default is 0.7"
    );
    let another = json!({"preset": "ledbat", "growth": {"target": 25}});
    assert_eq!(
        refusal(another),
        "growth.target is of another type; accepted: a time from \"100 us\" to \"10 s\"; the default is \"100 ms\""
    );
    let order = json!({"preset": "vegas", "growth": {"alpha": 5.0}});
    assert_eq!(
        refusal(order),
        "growth.alpha is above beta (4); accepted: at most 4"
    );
    // The default is that of the law, where two share their constants.
    let google = json!({"preset": "bbr3-google", "growth": {"drain_gain": 0.0}});
    assert!(refusal(google).ends_with("the default is 0.34375"));
}

#[test]
fn the_defaults_of_all_laws_can_be_run() {
    for &growth in Growth::ALL {
        GrowthParams::from(growth)
            .check()
            .expect("defaults are sound");
    }
    for &kind in SlowStartKind::VARIANTS {
        SlowStartParams::from(kind)
            .check()
            .expect("defaults are sound");
    }
}
