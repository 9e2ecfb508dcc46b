//! Checks of parameters that many disciplines share.

use redtail_core::{Bytes, ParamError, QueueSize, Sampling, Span};

/// Refuses a number that is not a probability above 0.
pub(crate) fn unless_probability(key: &'static str, value: f64) -> Result<(), ParamError> {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    let accepted = "a number above 0 and up to 1";
    Err(ParamError::new(
        key,
        "is not a probability above 0",
        accepted,
    ))
}

/// Refuses a number that is not above 0.
pub(crate) fn unless_positive(key: &'static str, value: f64) -> Result<(), ParamError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(ParamError::new(key, "is not above 0", "a number above 0"))
}

/// Refuses a time of zero.
pub(crate) fn unless_some_time(key: &'static str, span: Span) -> Result<(), ParamError> {
    if span > Span::ZERO {
        return Ok(());
    }
    Err(ParamError::new(key, "is zero", "a time such as \"100 ms\""))
}

/// Refuses a size of zero.
pub(crate) fn unless_some_size(key: &'static str, size: QueueSize) -> Result<(), ParamError> {
    let (QueueSize::Packets(amount) | QueueSize::Bytes(amount)) = size else {
        return match size {
            QueueSize::Time(span) => unless_some_time(key, span),
            _ => Ok(()),
        };
    };
    if amount > 0 {
        return Ok(());
    }
    let accepted = "a queue size such as \"20 packets\" or \"15 ms\"";
    Err(ParamError::new(key, "is zero", accepted))
}

/// Refuses an update interval so short that the updates of a law would take too long, because each is computed.
/// Source of the bound: Linux, whose `TCA_PIE_TUPDATE` counts microseconds.
pub(crate) fn unless_some_interval(key: &'static str, span: Span) -> Result<(), ParamError> {
    const SHORTEST: Span = Span::from_us(1);
    unless_some_time(key, span)?;
    if span >= SHORTEST {
        return Ok(());
    }
    let problem = format!("is below {SHORTEST}, which takes too many updates");
    let accepted = "at least \"1 us\" (Linux counts these in microseconds), for example \"10 ms\"";
    Err(ParamError::new(key, problem, accepted))
}

/// Refuses a frequency of zero, and one that is too high.
pub(crate) fn unless_some_sampling(
    key: &'static str,
    sampling: Sampling,
) -> Result<(), ParamError> {
    let accepted = "a frequency such as \"170 Hz\" or a time such as \"10 ms\"";
    match sampling.interval() {
        None => Err(ParamError::new(key, "would never update", accepted)),
        Some(interval) => unless_some_interval(key, interval).map_err(|error| ParamError {
            accepted: accepted.to_owned(),
            ..error
        }),
    }
}

/// Refuses a packet size of zero.
pub(crate) fn unless_some_packet(key: &'static str, size: Option<Bytes>) -> Result<(), ParamError> {
    if size != Some(Bytes::ZERO) {
        return Ok(());
    }
    Err(ParamError::new(key, "is zero", "a size such as \"1500 B\""))
}
