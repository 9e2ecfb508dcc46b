//! Congestion controllers of users.

use redtail_core::{Span, Time};
use redtail_sim::controller::{
    CongestionEvent, Episode, LostSegment, PluginContext, PluginController, PluginError,
    RateSample, Value,
};
use redtail_sim::{Plugins, RunError, RunOptions, RunResult};
use redtail_spec::{Plan, PlanOptions, Scenario};

/// Reno (RFC 5681) with a window alone: it does not pace.
struct Reno {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Fast recovery has begun and not ended.
    recovering: bool,
    paced_at: Option<f64>,
    fault: Fault,
}

/// What the controller under test does wrong, from 2 s on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    Fails,
    NoNumber,
    Negative,
    Huge,
    Rate,
    States,
    Tiny,
}

impl PluginController for Reno {
    fn on_ack(&mut self, sample: &RateSample) -> Result<(), PluginError> {
        if self.recovering {
            self.recovering = sample.episode == Episode::Recovery;
        } else if sample.advanced > 0 && sample.window_limited {
            self.cwnd += match self.cwnd < self.ssthresh {
                true => (sample.advanced as f64).min(self.mss),
                false => self.mss * self.mss / self.cwnd,
            };
        }
        if sample.now < Time::ZERO + Span::from_s(2) {
            return Ok(());
        }
        match self.fault {
            Fault::Fails => return Err(PluginError::new("out of order").because(7_u8)),
            Fault::NoNumber => self.cwnd = f64::NAN,
            Fault::Negative => self.cwnd = -1.0,
            Fault::Huge => self.cwnd = 1e13,
            Fault::Tiny => self.cwnd = 0.5,
            Fault::Rate => self.paced_at = Some(0.0),
            Fault::None | Fault::States => {}
        }
        Ok(())
    }

    fn on_lost(&mut self, lost: &LostSegment, now: Time) -> Result<(), PluginError> {
        assert!(lost.len > 0 && now > Time::ZERO);
        Ok(())
    }

    fn on_recovery(&mut self, event: &CongestionEvent) -> Result<(), PluginError> {
        // Without what limited transmit sent beyond the window (RFC 5681, section 3.2, step 2).
        let flight = (event.flight as f64).min(self.cwnd);
        self.ssthresh = (flight / 2.0).max(2.0 * self.mss);
        self.cwnd = self.ssthresh;
        self.recovering = true;
        Ok(())
    }

    fn on_timeout(&mut self, event: &CongestionEvent) -> Result<(), PluginError> {
        self.on_recovery(event)?;
        self.cwnd = self.mss;
        self.recovering = false;
        Ok(())
    }

    fn set_cwnd(&mut self, cwnd: f64) -> Result<(), PluginError> {
        self.cwnd = cwnd;
        Ok(())
    }

    fn cwnd(&self) -> Result<f64, PluginError> {
        Ok(self.cwnd)
    }

    fn ssthresh(&self) -> Result<Option<f64>, PluginError> {
        Ok(Some(self.ssthresh))
    }

    fn pacing_rate(&self) -> Result<Option<f64>, PluginError> {
        Ok(self.paced_at)
    }

    fn state(&self) -> Result<&str, PluginError> {
        Ok(match self.fault {
            Fault::States => "a name that is longer than a name of a state is",
            _ if self.cwnd < self.ssthresh => "slow-start",
            _ => "avoidance",
        })
    }
}

fn reno(context: &PluginContext, paced_at: Option<f64>, fault: Fault) -> Reno {
    Reno {
        mss: f64::from(context.mss),
        cwnd: context.initial_cwnd,
        ssthresh: f64::INFINITY,
        recovering: false,
        paced_at,
        fault,
    }
}

fn plugins(fault: Fault) -> Plugins {
    Plugins::new().with_controller("reno", move |identity, context| {
        let rate = identity.params.get("rate").and_then(Value::as_f64);
        Ok(Box::new(reno(&context, rate, fault)))
    })
}

fn scenario(tcp: &str, more: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
        name = "own"
        duration = "20 s"
        warmup = "1 s"
        [bottleneck]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = {{ kind = "tail-drop", limit = "40 packets" }}
        [series]
        interval = "100 ms"
        {more}
        [[traffic]]
        kind = "bulk"
        name = "own"
        tcp = {tcp}
        "#
    );
    let plan = Plan::from_text(&text, PlanOptions::default()).map_err(|error| error.to_string())?;
    Ok(plan.scenario(0, 0).expect("there is a run"))
}

fn run(tcp: &str, plugins: Plugins) -> Result<RunResult, RunError> {
    let scenario = scenario(tcp, "").expect("it is sound");
    let options = RunOptions {
        plugins,
        ..RunOptions::default()
    };
    redtail_sim::run(&scenario, options)
}

fn metric(result: &RunResult, name: &str) -> f64 {
    let found = result.metrics.iter().find(|(known, _)| known == name);
    found
        .unwrap_or_else(|| panic!("no {name} among {:?}", result.metrics))
        .1
}

#[test]
fn reno_of_a_user_is_the_built_in_one() {
    let recorded = |tcp: &str, plugins| {
        let scenario = scenario(tcp, "windows = true").expect("it is sound");
        let options = RunOptions {
            plugins,
            ..RunOptions::default()
        };
        let result = redtail_sim::run(&scenario, options).expect("it runs");
        let flows = result.flow_series.expect("windows are recorded");
        assert!(flows.cwnd_bytes.len() > 100);
        (flows.cwnd_bytes, flows.ssthresh_bytes, result.metrics)
    };
    let own = recorded(
        r#"{ preset = "sack", class = "reno" }"#,
        plugins(Fault::None),
    );
    let built_in = recorded(r#""sack""#, Plugins::new());
    assert_eq!(own, built_in);
}

#[test]
fn a_controller_that_gives_a_rate_is_paced_at_it() {
    let tcp = r#"{ preset = "linux", class = "reno", params = { rate = 250000 } }"#;
    let result = run(tcp, plugins(Fault::None)).expect("it runs");
    // 250 kB/s, of payload alone.
    let goodput = metric(&result, "own.goodput");
    assert!((goodput / 2e6 - 1.0).abs() < 0.01, "{goodput}");
}

#[test]
fn the_failure_of_a_controller_ends_the_run_and_says_where() {
    for (fault, text) in [
        (Fault::Fails, "failed in on_ack at 2.0"),
        (Fault::NoNumber, "failed in cwnd at 2.0"),
        (
            Fault::Negative,
            "the window is -1; accepted: bytes from 0 to 1 TiB",
        ),
        (Fault::Huge, "the window is 10000000000000; accepted"),
        (
            Fault::Rate,
            "the pacing rate is 0; accepted: bytes/s from 1 to 1e15",
        ),
        (
            Fault::States,
            "accepted: at most 64 different names of up to 40 bytes",
        ),
    ] {
        let failed = run(r#"{ preset = "sack", class = "reno" }"#, plugins(fault));
        let Err(RunError::Plugin(failure)) = failed else {
            panic!("{fault:?} is no failure");
        };
        let message = failure.to_string();
        assert!(
            message.starts_with("the controller \"reno\" failed in "),
            "{message}"
        );
        assert!(message.contains(text), "{message}");
        assert_eq!(failure.cause::<u8>().is_some(), fault == Fault::Fails);
    }
}

#[test]
fn a_window_below_one_segment_counts_as_one() {
    let tcp = r#"{ preset = "sack", class = "reno", delayed_ack = false }"#;
    let result = run(tcp, plugins(Fault::Tiny)).expect("it runs");
    // From 2 s on one segment of 1460 B each 40 ms and its transmission time.
    let goodput = metric(&result, "own.goodput");
    assert!(goodput > 1460.0 * 8.0 / 0.0413, "{goodput}");
}

#[test]
fn a_controller_that_is_not_there_is_named() {
    let failed = run(
        r#"{ preset = "sack", class = "cubic" }"#,
        plugins(Fault::None),
    );
    let message = failed.expect_err("it is unknown").to_string();
    assert_eq!(
        message,
        "the controller \"cubic\" failed in new: this run was started without it; known: reno"
    );
}

#[test]
fn keys_of_built_in_laws_beside_a_class_are_refused() {
    for (tcp, text) in [
        (
            r#"{ class = "reno", growth = "cubic" }"#,
            "growth = \"cubic\" is of built-in laws, and the class has its own",
        ),
        (
            r#"{ class = "reno", slow_start = "standard" }"#,
            "slow_start = \"standard\" is of built-in laws",
        ),
        (
            r#"{ class = "reno", prr = true }"#,
            "prr = true is of built-in laws",
        ),
        (
            r#"{ preset = "reno", class = "reno" }"#,
            "does not tell a model what was delivered, and when; accepted: \"sack\", \"rack-tlp\" or \"linux\" with this class",
        ),
        (r#"{ class = "" }"#, "class = \"\" names nothing"),
        (
            r#"{ params = { gain = 1 } }"#,
            "is for a class, and there is none",
        ),
        (
            r#"{ source = "sha256:0" }"#,
            "is for a class, and there is none",
        ),
    ] {
        let message = scenario(tcp, "").expect_err(tcp);
        assert!(message.contains(text), "{tcp}: {message}");
    }
}

#[test]
fn a_scenario_with_a_class_is_read_back_as_it_was() {
    let scenario = scenario(
        r#"{ preset = "linux", class = "reno", params = { rate = 1.5, name = "x" } }"#,
        "",
    );
    let scenario = scenario.expect("it is sound");
    let text = scenario.to_json();
    assert_eq!(Scenario::from_json(&text).expect("it is sound"), scenario);
    assert!(text.contains(r#""class":"reno""#), "{text}");
}
