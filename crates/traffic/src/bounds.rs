//! How much may happen at once.

use redtail_core::{ParamError, Rate, Span};

use crate::dist::Dist;

/// The least mean time between what a source does: a nanosecond, in which the timers of Linux count
/// (`ktime_t`).
const LEAST_GAP: Span = Span::from_ns(1);

/// How much a user does in one event. What is left follows in another event at the same instant, so
/// that a run can be stopped between the two.
pub(crate) const MOST_AT_ONCE: usize = 1024;

/// Refuses a law of gaps that lets things happen more often than timers can.
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
