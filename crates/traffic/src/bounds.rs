//! Bounds of what a group may contain: sizes, rates, gaps, and actions at one instant.

use redtail_core::{Bytes, ParamError, Rate, Span};

use crate::dist::Dist;

/// The minimum mean time between two actions of a source: a nanosecond, the resolution of timers in
/// Linux (`ktime_t`).
const LEAST_GAP: Span = Span::from_ns(1);

/// The maximum number of actions of a user in one event. The others follow in another event at the same
/// instant, so that a run can be stopped between the two.
pub(crate) const MOST_AT_ONCE: usize = 1024;

/// The longest gap, so that times of events stay in range: 53 days.
pub(crate) const LONGEST_GAP: Span = Span::from_ps(u64::MAX / 4);

/// Longest time that hosts may delay packets at random: more than a packet takes on any link from
/// 12 kbit/s on.
pub const MAX_HOST_JITTER: Span = Span::from_s(1);

/// Most flows in a group: a million senders take about a gigabyte.
pub const MAX_FLOWS: u32 = 1_000_000;

/// The gap, but no longer than keeps the times of events in range.
pub(crate) fn in_range(gap: Span) -> Span {
    gap.min(LONGEST_GAP)
}

/// Refuses a law of gaps whose mean is below the resolution of timers.
pub(crate) fn refuse_short_gap(
    key: &'static str,
    gap: &Dist<Span>,
    accepted: &str,
) -> Result<(), ParamError> {
    let Some(mean) = gap.mean() else {
        return Ok(()); // infinite
    };
    let problem = match Span::from_secs_f64(mean) {
        Span::ZERO => "is zero".to_owned(),
        mean if mean < LEAST_GAP => format!("has a mean of \"{mean}\""),
        _ => return Ok(()),
    };
    let accepted = format!("a mean of at least \"{LEAST_GAP}\"; {accepted}");
    Err(ParamError::new(key, problem, accepted))
}

/// Refuses a rate that the clock cannot resolve.
pub(crate) fn refuse_fast(key: &'static str, rate: Rate) -> Result<(), ParamError> {
    if rate <= Rate::FASTEST {
        return Ok(());
    }
    Err(ParamError::new(
        key,
        "is faster than the clock resolves: a byte takes less than a picosecond",
        format!("up to \"{}\"", Rate::FASTEST),
    ))
}

/// Refuses a rate of zero.
pub(crate) fn check_rate(rate: Rate) -> Result<(), ParamError> {
    match rate.as_bps() {
        0 => Err(ParamError::new(
            "rate",
            "is zero",
            "a rate such as \"250 kbit/s\"",
        )),
        _ => refuse_fast("rate", rate),
    }
}

/// Refuses a size that is always zero.
pub(crate) fn refuse_nothing(key: &'static str, size: &Dist<Bytes>) -> Result<(), ParamError> {
    if size.only() == Some(Bytes::ZERO) {
        return Err(ParamError::new(
            key,
            "is zero",
            "a size such as \"5 kB\", or a distribution",
        ));
    }
    Ok(())
}

/// Refuses a maximum of random delays above [`MAX_HOST_JITTER`].
///
/// # Errors
/// [`ParamError`] names the key and what is accepted.
pub fn check_host_jitter(jitter: Option<Span>) -> Result<(), ParamError> {
    match jitter {
        Some(jitter) if jitter > MAX_HOST_JITTER => Err(ParamError::new(
            "host_jitter",
            "is more than hosts delay packets",
            format!(
                "up to \"{MAX_HOST_JITTER}\"; the transmission time of one packet at the \
                 bottleneck is enough"
            ),
        )),
        _ => Ok(()),
    }
}
