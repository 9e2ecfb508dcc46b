//! What the tests of both controllers use.

use redtail_core::{Span, Time};

/// Asserts that a number is the expected one but for rounding.
pub fn near(found: f64, expected: f64) {
    let tolerance = 1e-9 * expected.abs().max(1.0);
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected}"
    );
}

/// A time in milliseconds from the start.
pub fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}
