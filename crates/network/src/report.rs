//! The metrics of links.

use redtail_core::{Metric, Time};
use redtail_qdisc::policer::Policing;
use redtail_qdisc::{QueueDiscipline, Report};
use redtail_spec::Scenario;

use crate::congestion::CongestionSummary;
use crate::links::Links;
use crate::metrics::*;
use crate::result::RunResult;
use crate::statistics::TallySummary;

/// The name that `metric` has in results.
pub fn full_name(prefix: &str, metric: &Metric) -> String {
    format!("{prefix}{}", metric.name)
}

/// Adds the metrics and the distributions of the links of a run that has ended. Those of a single bottleneck have no prefix.
///
/// # Panics
/// During the warm-up.
pub fn links(links: &mut Links, scenario: &Scenario, now: Time, result: &mut RunResult) {
    for link in &mut links.network.links {
        let statistics = link.counters.statistics.take();
        let statistics = statistics.expect("the warm-up is over");
        let prefix = link.prefix.clone();
        let summary = statistics.whole.finish(now, link.capacity.as_deref());
        add_tally(&mut result.metrics, &prefix, &summary.all);
        add_congestion(&mut result.metrics, &prefix, &summary.congestion);
        link.queue.report(
            now,
            &mut Report::new(&mut |name, value| {
                result
                    .metrics
                    .push((format!("{prefix}queue.{name}"), value));
            }),
        );
        if let Some(policing) = link.queue.policing() {
            add_policing(&mut result.metrics, &prefix, policing);
        }
        if let Some(wire) = &link.wire {
            let defined = wire.metrics();
            let named = defined.map(|(metric, value)| (full_name(&prefix, metric), value));
            result.metrics.extend(named);
        }
        add_groups(&mut result.metrics, scenario, &prefix, &summary.groups);
        let histograms = &mut result.histograms;
        histograms.add_tally(&prefix, &summary.distributions);
        for (group, tally) in scenario.traffic.iter().zip(&summary.group_distributions) {
            histograms.add_tally(&format!("{prefix}{}.", group.access().name), tally);
        }
        result.consecutive_losses.push(summary.loss_events);
    }
}

/// Adds the metrics of the links in the phase that ends now; `phase` is their prefix.
///
/// # Panics
/// Without phases.
pub fn phase_links(
    links: &mut Links,
    scenario: &Scenario,
    phase: &str,
    now: Time,
    metrics: &mut Vec<(String, f64)>,
) {
    for link in &mut links.network.links {
        let measured = link.counters.statistics.as_mut();
        let statistics = measured.and_then(|measured| measured.phase.take());
        let mut statistics = statistics.expect("there are phases");
        if link.number == 0 {
            let begin = statistics.begin().as_secs_f64();
            metrics.push((full_name(phase, BEGIN_TIME), begin));
            metrics.push((full_name(phase, END_TIME), now.as_secs_f64()));
        }
        let capacity = link.capacity.as_deref();
        if let Some((group, since)) = link.in_transmission() {
            statistics.on_transmitted(group, since, now, capacity);
        }
        let summary = statistics.finish(now, capacity);
        let prefix = format!("{phase}{}", link.prefix);
        add_tally(metrics, &prefix, &summary.all);
        add_congestion(metrics, &prefix, &summary.congestion);
        add_groups(metrics, scenario, &prefix, &summary.groups);
    }
}

/// Adds the metrics of the groups at one link.
fn add_groups(
    metrics: &mut Vec<(String, f64)>,
    scenario: &Scenario,
    prefix: &str,
    groups: &[TallySummary],
) {
    let udp = scenario.traffic.iter().zip(groups);
    let udp = udp.filter(|(group, _)| is_udp(group));
    let (arrivals, lost) = udp.fold((0, 0), |(arrivals, lost), (_, summary)| {
        (arrivals + summary.arrivals, lost + summary.lost)
    });
    if arrivals > 0 {
        let loss = lost as f64 / arrivals as f64;
        metrics.push((full_name(prefix, UDP_LOSS), loss));
    }
    for (group, summary) in scenario.traffic.iter().zip(groups) {
        let name = group.access().name;
        add_tally(metrics, &format!("{prefix}{name}."), summary);
    }
}

fn add_congestion(metrics: &mut Vec<(String, f64)>, prefix: &str, summary: &CongestionSummary) {
    let defined = [
        (LOSS_SYNCHRONIZATION, summary.synchronization),
        (LOSS_INTERVAL_MEAN, summary.interval_mean),
        (LOSS_INTERVAL_STD, summary.interval_std),
    ];
    for (metric, value) in defined {
        metrics.extend(value.map(|value| (full_name(prefix, metric), value)));
    }
}

/// Adds what a policer did; nothing if no packet came by.
fn add_policing(metrics: &mut Vec<(String, f64)>, prefix: &str, policing: Policing) {
    let all = policing.all();
    if all == 0 {
        return;
    }
    let [green, yellow, red] = policing.colours;
    let counts = [policing.dropped, green, yellow, red];
    for (metric, count) in OF_POLICER.iter().zip(counts) {
        metrics.push((full_name(prefix, metric), count as f64 / all as f64));
    }
}

fn add_tally(metrics: &mut Vec<(String, f64)>, prefix: &str, summary: &TallySummary) {
    let defined = [
        (UTILIZATION, summary.utilization),
        (LOSS, summary.loss),
        (MARK, summary.mark),
        (QUEUE_LENGTH_MEAN, Some(summary.queue_length_mean)),
        (QUEUE_LENGTH_STD, Some(summary.queue_length_std)),
        (QUEUE_DELAY_MEAN, summary.queue_delay_mean),
        (QUEUE_DELAY_STD, summary.queue_delay_std),
        (QUEUE_DELAY_P50, summary.queue_delay_p50),
        (QUEUE_DELAY_P95, summary.queue_delay_p95),
        (QUEUE_DELAY_P99, summary.queue_delay_p99),
        (CONSECUTIVE_LOSS_MEAN, summary.consecutive_loss_mean),
    ];
    for (metric, value) in defined {
        if let Some(value) = value {
            metrics.push((full_name(prefix, metric), value));
        }
    }
}
