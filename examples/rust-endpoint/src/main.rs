//! Plugins in a crate of its own: a client asks at a fixed interval, and a server answers. The experiment in
//! `experiment.toml` puts them behind two queues, beside downloads.
//!
//! `cargo run -p rust-endpoint` here; `cargo run` in a crate of your own.

use std::error::Error;
use std::time::Duration;

use redtail_core::plugin::PluginError;
use redtail_sim::{
    Datagram, Endpoint, EndpointContext, EndpointSide, Plugins, RunOptions, RunResult, run,
};
use redtail_spec::{Plan, PlanOptions};

const EXPERIMENT: &str = include_str!("../experiment.toml");

/// A question and its answer have the time of the question in front.
const SIZE: usize = 200;

/// Asks at a fixed interval, and measures how long answers take.
struct Client {
    gap: Duration,
    next: Option<Duration>,
    /// The sum of the round-trip times since the measurement began, and their number.
    waited: (Duration, u32),
}

impl Endpoint for Client {
    fn start(&mut self, now: Duration) -> Result<(), PluginError> {
        self.next = Some(now);
        Ok(())
    }

    fn stop(&mut self, _now: Duration) -> Result<(), PluginError> {
        self.next = None;
        Ok(())
    }

    fn receive(&mut self, datagram: Datagram, now: Duration) -> Result<(), PluginError> {
        let asked = datagram.payload.first_chunk();
        let asked = asked.ok_or_else(|| PluginError::new("an answer is too short"))?;
        self.waited.0 += now - Duration::from_nanos(u64::from_be_bytes(*asked));
        self.waited.1 += 1;
        Ok(())
    }

    fn poll_transmit(&mut self, now: Duration) -> Result<Option<Datagram>, PluginError> {
        let Some(next) = self.next.filter(|next| *next <= now) else {
            return Ok(None);
        };
        self.next = Some(next + self.gap);
        let mut payload = (now.as_nanos() as u64).to_be_bytes().to_vec();
        payload.resize(SIZE, 0);
        Ok(Some(Datagram {
            payload,
            ..Datagram::default()
        }))
    }

    fn next_wakeup(&mut self, _now: Duration) -> Result<Option<Duration>, PluginError> {
        Ok(self.next)
    }

    fn start_measuring(&mut self, _now: Duration) -> Result<(), PluginError> {
        self.waited = Default::default();
        Ok(())
    }

    fn report(&self, _now: Duration, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        let (sum, count) = self.waited;
        if count > 0 {
            tell("round_trip", (sum / count).as_secs_f64());
        }
        Ok(())
    }
}

/// Sends back what it hears.
#[derive(Default)]
struct Server {
    answer: Option<Datagram>,
}

impl Endpoint for Server {
    fn receive(&mut self, datagram: Datagram, _now: Duration) -> Result<(), PluginError> {
        self.answer = Some(datagram);
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Duration) -> Result<Option<Datagram>, PluginError> {
        Ok(self.answer.take())
    }
}

/// What `class = "ask"` in the experiment stands for. The group's direction begins at the client.
fn plugins() -> Plugins {
    Plugins::new().with_endpoint("ask", |group, context: EndpointContext| {
        let gap = group.params.get("gap").and_then(|value| value.as_f64());
        let gap = gap.filter(|gap| *gap > 0.0);
        let gap = gap.ok_or_else(|| PluginError::new("params.gap must be a number of seconds"))?;
        Ok(match context.side {
            EndpointSide::Sender => Box::new(Client {
                gap: Duration::from_secs_f64(gap),
                next: None,
                waited: Default::default(),
            }),
            EndpointSide::Receiver => Box::new(Server::default()),
        })
    })
}

/// A run for each queue of an experiment, with the label of the queue.
fn runs(text: &str) -> Result<Vec<(String, RunResult)>, Box<dyn Error>> {
    let options = PlanOptions {
        file: Some("experiment.toml"),
        ..PlanOptions::default()
    };
    let plan = Plan::from_text(text, options)?;
    let mut results = Vec::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let label = case.labels["bottleneck.queue"].as_str().unwrap_or_default();
        let scenario = plan.scenario(index, 0).expect("the case is there");
        let options = RunOptions {
            plugins: plugins(),
            ..RunOptions::default()
        };
        results.push((label.to_owned(), run(&scenario, options)?));
    }
    Ok(results)
}

/// What is printed of a run.
fn line(label: &str, result: &RunResult) -> String {
    let metric = |name| result.metric(name).unwrap_or_default();
    format!(
        "{label}: an answer takes {:.1} ms, {:.1} % of the questions are lost, downloads have {:.2} Mbit/s\n",
        metric("ask.endpoint.round_trip") * 1e3,
        metric("ask.end_to_end_loss") * 1e2,
        metric("downloads.goodput") / 1e6,
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    for (label, result) in runs(EXPERIMENT)? {
        print!("{}", line(&label, &result));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_long_behind_tail_drop_and_the_base_round_trip_behind_fq_codel() {
        let results = runs(EXPERIMENT).unwrap();
        let round_trips: Vec<f64> = results
            .iter()
            .map(|(_, result)| result.metric("ask.endpoint.round_trip").unwrap())
            .collect();
        // Two propagation delays of 10 ms; a full buffer of 200 packets of 1500 B is 120 ms more.
        assert!((0.07..0.14).contains(&round_trips[0]), "{round_trips:?}");
        // Of the queue, it waits at most for the packets in transmission of the others.
        assert!((0.020..0.023).contains(&round_trips[1]), "{round_trips:?}");
    }

    #[test]
    fn a_run_is_repeatable_and_prints_what_its_page_shows() {
        let all = || runs(EXPERIMENT).unwrap();
        assert_eq!(format!("{:?}", all()), format!("{:?}", all()));
        let lines = all().into_iter();
        let lines: String = lines.map(|(label, result)| line(&label, &result)).collect();
        let page = include_str!("../../../docs/how-to/own-endpoint.md");
        assert!(page.contains(&format!("```text\n{lines}```")), "{lines}");
    }

    #[test]
    fn an_endpoint_that_cannot_be_made_says_why() {
        let text = EXPERIMENT.replace("gap = 0.02", "gap = \"soon\"");
        assert_eq!(
            runs(&text).unwrap_err().to_string(),
            "the endpoint \"ask\" failed in new: the sender of flow 0 of \"ask\": params.gap must be a number of seconds"
        );
    }
}
