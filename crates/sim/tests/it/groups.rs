//! Names of hops change no run, and a group that comes and goes is the same as its activations written out.

use crate::common::{metric, run};
use redtail_sim::RunResult;

const QUEUE: &str = "queue = { kind = \"red\", limit = \"60 packets\", min_th = \"5 packets\", max_th = \"20 packets\" }";

/// What is drawn for a link.
const CHANGES: &str = "rate_changes = { every = \"1 s\", rate = \"uniform 3..7 Mbit/s\" }";

/// Two hops, the first with a return link, and flows over one of them and over both.
fn chain(names: [&str; 2], last_hop: &str) -> String {
    let hop = |name: &str, back: &str| {
        format!(
            "[[chain.hop]]\n{name}\nrate = \"5 Mbit/s\"\n{CHANGES}\ndelay = \"5 ms\"\nwire.loss = 0.001\n{QUEUE}\n{back}\n"
        )
    };
    let back =
        format!("return = {{ rate = \"1 Mbit/s\", delay = \"5 ms\", wire.loss = 0.01, {QUEUE} }}");
    format!(
        "duration = \"20 s\"\nwarmup = \"5 s\"\n{}{}\
         [[traffic]]\nname = \"through\"\nkind = \"bulk\"\nflows = 3\n\
         [[traffic]]\nname = \"cross\"\nkind = \"bulk\"\nlast_hop = {last_hop}\n\
         [[traffic]]\nname = \"voice\"\nkind = \"on-off\"\npacket = \"500 B\"\non = \"exponential mean 1 s\"\noff = \"exponential mean 1 s\"\nrate = \"500 kbit/s\"\n",
        hop(names[0], &back),
        hop(names[1], "")
    )
}

fn metrics(result: &RunResult) -> Vec<(String, u64)> {
    let bits = |(name, value): &(String, f64)| (name.clone(), value.to_bits());
    result.metrics.iter().map(bits).collect()
}

#[test]
fn names_of_hops_change_the_names_in_results_alone() {
    let plain = run(&chain(["", ""], "1"));
    let named = run(&chain(["name = \"left\"", "name = \"right\""], "\"left\""));
    let renamed: Vec<_> = (metrics(&plain).into_iter())
        .map(|(name, value)| {
            let name = name.replace("hop1", "left").replace("hop2", "right");
            (name, value)
        })
        .collect();
    assert_eq!(renamed, metrics(&named));
    assert!(named.metric("left.return.loss").is_some());
    assert!(named.metric("right.through.loss").is_some());
}

/// One hop and a group with these lines, beside a steady one. The mean round trip, which bounds loss events, is the same
/// however many flows of a group are counted.
fn comes_and_goes(kind: &str, lines: &str) -> String {
    format!(
        "duration = \"90 s\"\nwarmup = \"5 s\"\nphases = \"auto\"\nhost_jitter = \"100 us\"\n\
         [bottleneck]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n{QUEUE}\n\
         [[traffic]]\nname = \"steady\"\nkind = \"bulk\"\naccess_delay = \"5 ms\"\n\
         [[traffic]]\nname = \"guest\"\naccess_delay = [\"1 ms\", \"9 ms\"]\n{kind}\n{lines}\n"
    )
}

#[test]
fn a_group_that_comes_and_goes_is_what_its_activations_are_written_out() {
    let (start, stop) = ("start = [\"5 s\", \"10 s\"]", "stop = [\"15 s\", \"20 s\"]");
    let starts = "start = [\"5 s\", \"10 s\", \"35 s\", \"40 s\", \"65 s\", \"70 s\"]";
    let stops = "stop = [\"15 s\", \"20 s\", \"45 s\", \"50 s\", \"75 s\", \"80 s\"]";
    for (kind, count, stopping) in [
        ("kind = \"bulk\"", "flows", true),
        (
            "kind = \"cbr\"\npacket = \"500 B\"\nrate = \"900 kbit/s\"\naccess_rate = \"50 Mbit/s\"\nexit_rate = \"50 Mbit/s\"",
            "flows",
            true,
        ),
        (
            "kind = \"on-off\"\npacket = \"500 B\"\non = \"exponential mean 1 s\"\noff = \"exponential mean 1 s\"\nrate = \"900 kbit/s\"\naccess_rate = \"50 Mbit/s\"\nexit_rate = \"50 Mbit/s\"",
            "flows",
            true,
        ),
        ("kind = \"call\"\nhosts = 2", "flows", true),
        ("kind = \"web\"\nmodel = \"http2\"", "users", true),
        (
            "kind = \"transfer\"\nsize = [\"90 kB\", \"300 kB\"]",
            "flows",
            false,
        ),
    ] {
        let lines = |count: String, start: &str, stop: &str| match stopping {
            true => format!("{count}\n{start}\n{stop}"),
            false => format!("{count}\n{start}"),
        };
        let again = lines(format!("{count} = 2\nrepeat = \"30 s\""), start, stop);
        let out = lines(format!("{count} = 6"), starts, stops);
        let (again, out) = (
            run(&comes_and_goes(kind, &again)),
            run(&comes_and_goes(kind, &out)),
        );
        assert_eq!(metrics(&again), metrics(&out), "{kind}");
        assert!(again.metric("phase2.guest.goodput").is_some() || !kind.contains("bulk"));
    }
}

#[test]
fn a_group_sends_in_its_windows_and_at_no_other_time() {
    let text = comes_and_goes(
        "kind = \"cbr\"\nrate = \"400 kbit/s\"\npacket = \"500 B\"",
        "start = \"10 s\"\nstop = \"20 s\"\nrepeat = \"30 s\"",
    );
    let text = text.replace(
        "[[traffic]]\nname = \"steady\"\nkind = \"bulk\"\naccess_delay = \"5 ms\"\n",
        "",
    );
    let result = run(&text);
    // 400 kbit/s of 5 Mbit/s in every other phase, from 10 s on; the packets at the ends of one are 0.01 % of it.
    let share = 400e3 / 5e6;
    for phase in 1..=7 {
        let sent = metric(&result, &format!("phase{phase}.utilization"));
        let expected = if phase % 2 == 0 { share } else { 0.0 };
        assert!((sent - expected).abs() < 2e-4, "phase {phase}: {sent}");
    }
}
