//! What the kernel keeps of a value that it cannot hold.

use redtail_core::{Rate, Span};
use serde_json::Value as Json;

use super::convert::{Context, SFB_ONE, bytes_per_second, micros, read};
use super::table::{Row, Unit};

/// The largest relative difference that is not told: a part of 2^-32, or what a text of six digits loses.
const SAME: f64 = 1e-6;

impl Context<'_> {
    /// The value that the kernel keeps for the key of `row`, as the experiment file would write it. `None` if
    /// it keeps this one. The value must have a counterpart.
    pub fn kept(&self, row: &Row, value: &Json) -> Option<String> {
        let number = value.as_f64().unwrap_or(f64::NAN);
        match row.unit {
            Unit::Time(clock) | Unit::OptionalTime(clock) => {
                let (asked, written) = micros(value);
                changed(asked, self.kept_micros(written, clock), " us")
            }
            Unit::Millis | Unit::Seconds => {
                let (unit, of_one) = match row.unit {
                    Unit::Millis => (" ms", 1e3),
                    _ => (" s", 1.0),
                };
                let asked = read::<Span>(value).as_secs_f64() * of_one;
                changed(asked, asked.round(), unit)
            }
            Unit::Rate | Unit::RateOrUnlimited | Unit::OptionalRate => {
                let rate: Rate = read(value);
                let bytes = bytes_per_second(rate)?;
                changed(rate.as_bps() as f64, (bytes * 8) as f64, " bit/s")
            }
            Unit::Weight => {
                let power = (-f64::from(self.exponent(value).ok()?)).exp2();
                changed(number, power, "")
            }
            Unit::SfbStep => changed(number, (number * SFB_ONE).round() / SFB_ONE, ""),
            Unit::Parts { of_one, .. } => {
                let one = f64::from(of_one);
                changed(number, (number * one).round() / one, "")
            }
            Unit::Percent(_) => changed(number, (number * 100.0).round() / 100.0, ""),
            _ => None,
        }
    }
}

/// What is kept, with its unit, if it is not what was asked for.
fn changed(asked: f64, kept: f64, unit: &str) -> Option<String> {
    // Nine digits are more than the kernel keeps of any value.
    let text = format!("{kept:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    ((kept - asked).abs() > SAME * asked).then(|| format!("{text}{unit}"))
}
