//! From the value of a key to the words of `tc`.

use redtail_core::serde::de::DeserializeOwned;
use redtail_core::{Bytes, QueueSize, Rate, Span};
use redtail_qdisc::{Limit, LinkFacts};
use serde_json::{Map, Value as Json};

use super::shown::Expect;
use super::table::{Clock, Row, Unit};
use super::{Place, ROUNDING, Setting, Unmapped};

const U32: u64 = u32::MAX as u64;
/// What the kernel may add to a packet in memory: its `sk_buff`, the information shared by its copies, and
/// what alignment costs.
const OVERHEAD: u64 = 1024;
/// `SFQ_MAX_FLOWS` of sch_sfq.c.
/// Bytes of Ethernet's header.
const ETHERNET_HEADER: u64 = 14;
const MOST_FLOWS: u64 = 65_408;
/// `SFB_MAX_PROB` of sch_sfb.c.
pub(super) const SFB_ONE: f64 = 65_535.0;
const TWO_TO_32: f64 = 4_294_967_296.0;

/// What conversions depend on.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub link: &'a LinkFacts,
    pub place: &'a Place,
    /// All keys of the queue that are given or have a default.
    pub keys: &'a Map<String, Json>,
}

/// A value as a message shows it.
fn displayed(value: Option<&Json>) -> String {
    value.map_or_else(|| "left out".to_owned(), Json::to_string)
}

/// The error for a value.
pub(super) fn refused(key: &str, value: Option<&Json>, accepted: impl Into<String>) -> Unmapped {
    let accepted = accepted.into();
    Unmapped::new(
        key,
        format!("is {}; accepted: {accepted}", displayed(value)),
    )
}

/// A value as the type that the experiment file has for it.
pub(super) fn read<T: DeserializeOwned>(value: &Json) -> T {
    serde_json::from_value(value.clone()).expect("the parameters have been checked")
}

/// A time in microseconds: as it is asked for, and as it is written.
pub(super) fn micros(value: &Json) -> (f64, f64) {
    let asked = read::<Span>(value).as_ps() as f64 / 1e6;
    (asked, asked.round())
}

/// Whether a value stays what it was, but for rounding.
pub(super) fn is_rounding(asked: f64, got: f64) -> bool {
    (got - asked).abs() <= ROUNDING * asked
}

/// Whole bytes per second at this rate; `None` if that is another rate.
pub(super) fn bytes_per_second(rate: Rate) -> Option<u64> {
    let bytes = rate.as_bps() / 8;
    is_rounding(rate.as_bps() as f64, bytes as f64 * 8.0).then_some(bytes)
}

/// Bytes that a bucket of this rate may be too small by: its burst is counted in units of 64 ns. `None` if
/// that is too coarse, or if the burst lasts too long to be counted.
pub(super) fn burst_grain(burst: u64, rate: Rate) -> Option<f64> {
    let unit = 64e-9 * rate.as_bps() as f64 / 8.0;
    let counts = burst as f64 / unit;
    (counts < TWO_TO_32 && unit <= ROUNDING * burst as f64).then_some(unit + 1.0)
}

/// What conversions find out: the words and what the kernel will report.
type Converted = (Vec<String>, Vec<Expect>);

fn option(name: &str, value: impl ToString) -> Vec<String> {
    vec![name.to_owned(), value.to_string()]
}

fn number(name: &str, value: u64) -> Converted {
    (option(name, value), vec![Expect::exactly(value as f64)])
}

impl Context<'_> {
    /// What the key of `row` becomes; `value` is `None` if the key is left out.
    pub fn setting(&self, row: &Row, value: Option<&Json>) -> Result<Setting, Unmapped> {
        let refuse = |accepted: String| Err(refused(row.key, value, accepted));
        let unit = row.unit.words();
        let (words, expect): Converted = match row.unit {
            Unit::Structure => (Vec::new(), Vec::new()),
            Unit::Always(words) => (
                words.iter().map(|&word| word.to_owned()).collect(),
                Vec::new(),
            ),
            Unit::OfLink => (
                option(row.option, format!("{}bit", self.link.rate.as_bps())),
                Vec::new(),
            ),
            Unit::LeftOut => match value {
                None => (Vec::new(), Vec::new()),
                Some(_) => return refuse("no such key".to_owned()),
            },
            Unit::Only(only) => {
                let only_value: Json = serde_json::from_str(only).expect("it is JSON");
                if value != Some(&only_value) {
                    return refuse(only.to_owned());
                }
                let expect =
                    (only == "false" && !row.shown.is_empty()).then_some(Expect::Flag(false));
                (Vec::new(), expect.into_iter().collect())
            }
            Unit::FullPacket | Unit::FullPacketIfGiven => {
                let size = match value {
                    Some(value) => read::<Bytes>(value),
                    None if self.link.largest_packet > Bytes::ZERO => self.link.largest_packet,
                    None => Bytes::new(1500),
                };
                let mtu = self.place.mtu;
                if size != mtu {
                    let given = Json::from(size.to_string());
                    let accepted = format!("\"{mtu}\", the MTU of the device");
                    return Err(refused(row.key, Some(value.unwrap_or(&given)), accepted));
                }
                (Vec::new(), Vec::new())
            }
            Unit::LimitInPackets
            | Unit::LimitInBytes
            | Unit::LimitInEither
            | Unit::LimitWithMemory => return self.limit(row, value),
            Unit::FlowsAsLimit => number(row.option, self.most_flows()),
            _ => {
                let Some(value) = value else {
                    return self.left_out(row);
                };
                match self.given(row, value)? {
                    Some(converted) => converted,
                    None => return refuse(unit),
                }
            }
        };
        Ok(Setting {
            kept: value.and_then(|value| self.kept(row, value)),
            ..setting(row, words, expect)
        })
    }

    /// A key that is left out, and may be.
    fn left_out(&self, row: &Row) -> Result<Setting, Unmapped> {
        let (words, expect) = match row.unit {
            Unit::OptionalTime(_) | Unit::OptionalBurst => (Vec::new(), vec![Expect::Absent]),
            Unit::OptionalRate => (Vec::new(), Vec::new()),
            Unit::RateOrUnlimited => (
                vec!["unlimited".to_owned()],
                vec![Expect::Text("unlimited".to_owned())],
            ),
            Unit::Seconds => number(row.option, 0),
            _ => return Err(refused(row.key, None, row.unit.words())),
        };
        Ok(setting(row, words, expect))
    }

    /// A key that is given; `None` if the value has no counterpart.
    fn given(&self, row: &Row, value: &Json) -> Result<Option<Converted>, Unmapped> {
        let name = row.option;
        Ok(match row.unit {
            Unit::Whole { least, most } => value
                .as_u64()
                .filter(|whole| (least..=most).contains(whole))
                .map(|whole| number(name, whole)),
            Unit::PowerOfTwo(most) => value
                .as_u64()
                .filter(|whole| whole.is_power_of_two() && *whole <= most)
                .map(|whole| number(name, whole)),
            Unit::Size { least, most } => {
                let size = read::<Bytes>(value).as_u64();
                (least..=most).contains(&size).then(|| number(name, size))
            }
            Unit::CakeOverhead => {
                let has_rate = self.keys.get("rate").is_some_and(|rate| !rate.is_null());
                let size = match read::<Bytes>(value).as_u64() {
                    0 if !has_rate => ETHERNET_HEADER,
                    size => size,
                };
                (size <= 256).then(|| number(name, size))
            }
            Unit::ThresholdInBytes | Unit::ThresholdInPackets => {
                return self
                    .threshold(row, value)
                    .map(|size| Some(number(name, size)));
            }
            Unit::Rate | Unit::RateOrUnlimited | Unit::OptionalRate => {
                let rate: Rate = read(value);
                bytes_per_second(rate).map(|bytes| {
                    let expect = Expect::exactly(bytes as f64);
                    (option(name, format!("{}bit", rate.as_bps())), vec![expect])
                })
            }
            Unit::Time(clock) | Unit::OptionalTime(clock) => {
                return self.time(row, value, clock).map(Some);
            }
            Unit::Millis => {
                let seconds = read::<Span>(value).as_secs_f64();
                let whole = (seconds * 1e3).round();
                let fits = whole * 1e3 <= U32 as f64 && is_rounding(seconds * 1e3, whole);
                // The kernel keeps ticks, and tc reports microseconds.
                let within = 1e6 / f64::from(self.place.hz);
                fits.then(|| {
                    let expect = Expect::Number {
                        value: whole * 1e3,
                        within,
                    };
                    (option(name, whole), vec![expect])
                })
            }
            Unit::Seconds => {
                let seconds = read::<Span>(value).as_secs_f64();
                let whole = seconds.round();
                let fits = whole <= f64::from(i32::MAX) && is_rounding(seconds, whole);
                fits.then(|| number(name, whole as u64))
            }
            Unit::Flag(on, off) => {
                let is_on = value == &Json::Bool(true);
                let word = if is_on { on } else { off };
                let words = Some(word.to_owned()).filter(|word| !word.is_empty());
                // `wash` and `ingress` have a word for each value, and are always reported.
                Some((words.into_iter().collect(), vec![Expect::Flag(is_on)]))
            }
            Unit::Choice(list) => {
                let found = list.iter().find(|(text, ..)| value.as_str() == Some(text));
                found.map(|&(_, word, shown)| {
                    let expect = match shown {
                        "true" => Expect::Flag(true),
                        "" => Expect::Flag(false),
                        text => Expect::Text(text.to_owned()),
                    };
                    let words = Some(word.to_owned()).filter(|word| !word.is_empty());
                    (words.into_iter().collect(), vec![expect])
                })
            }
            Unit::Probability => {
                let probability = value.as_f64().unwrap_or(f64::NAN);
                self.slope(probability).map(|()| {
                    let expect = Expect::about(probability);
                    (option(name, probability), vec![expect])
                })
            }
            Unit::SfbStep => {
                let step = value.as_f64().unwrap_or(f64::NAN);
                let units = (step * SFB_ONE).round();
                let fits = (1.0..=SFB_ONE).contains(&units) && is_rounding(step, units / SFB_ONE);
                fits.then(|| {
                    let written = units / SFB_ONE;
                    let expect = Expect::Number {
                        value: written,
                        within: 1e-5 * written,
                    };
                    (option(name, format!("{written:.9}")), vec![expect])
                })
            }
            Unit::Weight => return self.weight(row, value).map(Some),
            Unit::Parts {
                of_one,
                most,
                whole,
            } => {
                let asked = value.as_f64().unwrap_or(f64::NAN);
                let one = f64::from(of_one);
                let parts = (asked * one).round();
                let fits = (1.0..=most as f64).contains(&parts) && is_rounding(asked * one, parts);
                fits.then(|| {
                    if whole {
                        return (option(name, parts), vec![Expect::about(parts)]);
                    }
                    // `dualpi2` keeps another unit and reports what is left rounded down; tc prints six digits.
                    let value = parts / one;
                    let within = 1.0 / one + 1e-5 * value;
                    (option(name, value), vec![Expect::Number { value, within }])
                })
            }
            Unit::Percent(sign) => {
                let asked = value.as_f64().unwrap_or(f64::NAN) * 100.0;
                let whole = asked.round();
                let fits = (1.0..=100.0).contains(&whole) && is_rounding(asked, whole);
                fits.then(|| {
                    let text = format!("{whole}{}", if sign { "%" } else { "" });
                    (option(name, text), vec![Expect::exactly(whole)])
                })
            }
            Unit::Burst | Unit::OptionalBurst => {
                let of = match row.key {
                    "burst" => "rate",
                    "cburst" => "ceil",
                    _ => "peak_rate",
                };
                let size = read::<Bytes>(value).as_u64();
                let rate: Rate = read(&self.keys[of]);
                let grain = burst_grain(size, rate).filter(|_| size <= U32);
                grain.map(|within| {
                    let expect = Expect::Size {
                        value: size as f64,
                        within,
                    };
                    (option(name, size), vec![expect])
                })
            }
            _ => unreachable!("{:?} needs no value", row.unit),
        })
    }

    fn limit(&self, row: &Row, value: Option<&Json>) -> Result<Setting, Unmapped> {
        let refuse = |accepted: &str| refused(row.key, value, accepted);
        let Some(limit) = value.map(read::<Limit>) else {
            return Err(refuse(&row.unit.words()));
        };
        let mtu = self.place.mtu.as_u64();
        let ((words, expect), least) = match (row.unit, limit) {
            (
                Unit::LimitInPackets | Unit::LimitInEither,
                Limit {
                    packets: Some(packets),
                    bytes: None,
                    time: None,
                },
            ) => (number(row.option, packets), packets),
            (Unit::LimitInBytes | Unit::LimitInEither, Limit { packets: None, .. }) => {
                let bytes = limit.at(self.link.rate).bytes.unwrap_or(0);
                (number(row.option, bytes), bytes)
            }
            (
                Unit::LimitWithMemory,
                Limit {
                    packets: Some(packets),
                    bytes,
                    time: None,
                },
            ) => {
                let needed = packets.saturating_mul(mtu + OVERHEAD);
                let memory = bytes.unwrap_or(needed);
                if memory < needed || memory > U32 {
                    return Err(refuse(&format!(
                        "packets, and bytes only from {needed} to {U32} for these packets, because the \
                         kernel counts its own overhead"
                    )));
                }
                let (mut words, mut expect) = number("limit", packets);
                let (also, reported) = number("memory_limit", memory);
                words.extend(also);
                expect.extend(reported);
                ((words, expect), packets)
            }
            _ => return Err(refuse(&row.unit.words())),
        };
        let most = match row.kind {
            "choke" => 131_071,
            // The kernel takes no more than its queues can hold together.
            "sfq" => self.whole("depth") * self.most_flows(),
            _ => U32,
        };
        let at_least = if row.kind == "sfq" { 2 } else { 1 };
        if !(at_least..=most).contains(&least) {
            return Err(refuse(&format!("{at_least} to {most}")));
        }
        let mut setting = setting(row, words, Vec::new());
        let names = [row.shown, "memory_limit"];
        setting.expect = names.into_iter().zip(expect).collect();
        Ok(setting)
    }

    /// A key that is a whole number.
    fn whole(&self, key: &str) -> u64 {
        read(&self.keys[key])
    }

    /// Flows that `sfq` can have at a time: each has a packet and a place in the table.
    fn most_flows(&self) -> u64 {
        let limit: Limit = read(&self.keys["limit"]);
        let packets = limit.packets.unwrap_or(MOST_FLOWS);
        packets.min(self.whole("divisor")).min(MOST_FLOWS)
    }

    /// The packets or bytes of a threshold.
    fn threshold(&self, row: &Row, value: &Json) -> Result<u64, Unmapped> {
        let refuse = |accepted: String| refused(row.key, Some(value), accepted);
        let size = read::<QueueSize>(value).at(self.link.rate);
        let number = match (row.unit, size) {
            (Unit::ThresholdInBytes, QueueSize::Bytes(number))
            | (Unit::ThresholdInPackets, QueueSize::Packets(number)) => number,
            _ => return Err(refuse(row.unit.words())),
        };
        if number == 0 || number > U32 {
            return Err(refuse(format!("1 to {U32}")));
        }
        if row.key == "max_th" {
            let limit: Limit = read(&self.keys["limit"]);
            if row.kind == "choke" && limit.packets.is_some_and(|limit| limit < number) {
                return Err(refuse(format!("at most the limit (\"{limit}\")")));
            }
            // `red_check_params` of the kernel: the average is counted in units of W.
            let exponent = self.exponent(&self.keys["w_q"])?;
            if number >= 1 << (31 - exponent) {
                return Err(refuse(format!(
                    "below {} with w_q = 2^-{exponent}",
                    1u64 << (31 - exponent)
                )));
            }
        }
        Ok(number)
    }

    fn time(&self, row: &Row, value: &Json, clock: Clock) -> Result<Converted, Unmapped> {
        let refuse = |accepted: String| Err(refused(row.key, Some(value), accepted));
        let jiffy = 1e6 / f64::from(self.place.hz);
        let (asked, written) = micros(value);
        let kept = self.kept_micros(written, clock);
        let reported = kept.floor();
        if !(1.0..=U32 as f64).contains(&written) {
            return refuse(format!("1 us to {U32} us"));
        }
        if !is_rounding(asked, kept) {
            return refuse(match clock {
                Clock::Micros => "whole microseconds".to_owned(),
                Clock::Codel => "multiples of 1.024 us".to_owned(),
                Clock::Jiffies => format!(
                    "multiples of {} ms, the ticks of a kernel with {} Hz, such as \"{} ms\"",
                    jiffy / 1e3,
                    self.place.hz,
                    kept / 1e3
                ),
            });
        }
        let expect = Expect::Number {
            value: reported,
            within: 1.0,
        };
        Ok((option(row.option, format!("{written}us")), vec![expect]))
    }

    /// The microseconds that the kernel makes of so many whole ones.
    pub fn kept_micros(&self, written: f64, clock: Clock) -> f64 {
        let jiffy = 1e6 / f64::from(self.place.hz);
        match clock {
            Clock::Micros => written,
            Clock::Codel => (written * 1000.0 / 1024.0).floor() * 1.024,
            Clock::Jiffies => (written / jiffy).ceil() * jiffy,
        }
    }

    /// The k of W = 2^-k for a weight.
    pub fn exponent(&self, value: &Json) -> Result<u32, Unmapped> {
        let weight = value.as_f64().unwrap_or(f64::NAN);
        let exponent = (-weight.log2()).round();
        let power = (-exponent).exp2();
        if (1.0..=31.0).contains(&exponent) && is_rounding(weight, power) {
            return Ok(exponent as u32);
        }
        Err(refused(
            "w_q",
            Some(value),
            "a power of two from 2^-1 to 2^-31 (within 5 %), such as 0.001953125",
        ))
    }

    /// The weight of RED's average. tc has no option for it; it derives the exponent from a burst.
    fn weight(&self, row: &Row, value: &Json) -> Result<Converted, Unmapped> {
        let threshold = read::<QueueSize>(&self.keys["min_th"]).at(self.link.rate);
        let mean = read::<Bytes>(&self.keys["mean_packet"]).as_u64() as f64;
        let packets = match threshold {
            QueueSize::Packets(packets) => packets as f64,
            QueueSize::Bytes(bytes) => bytes as f64 / mean,
            QueueSize::Time(_) => unreachable!("a time has become bytes"),
        };
        let exponent = self.exponent(value)?;
        let Some(burst) = burst_for(exponent, packets) else {
            return Err(refused(
                row.key,
                Some(value),
                "a weight for which tc finds a burst; min_th must be more than one mean_packet",
            ));
        };
        let expect = Expect::exactly(f64::from(exponent));
        Ok((option("burst", burst), vec![expect]))
    }

    /// Whether tc and the kernel keep this probability at the top of RED's slope.
    fn slope(&self, probability: f64) -> Option<()> {
        let [min, max] = ["min_th", "max_th"].map(|key| {
            match read::<QueueSize>(&self.keys[key]).at(self.link.rate) {
                QueueSize::Packets(number) | QueueSize::Bytes(number) => number,
                QueueSize::Time(_) => unreachable!("a time has become bytes"),
            }
        });
        let length = max.checked_sub(min).filter(|&length| length > 0)? as f64;
        // `tc_red_eval_P` wants a shift below 32, and `red_set_parms` divides by the length.
        let of_slope = (probability * TWO_TO_32).floor() / length;
        let fits = probability < 1.0
            && probability / length * 2f64.powi(31) > 1.0
            && is_rounding(of_slope, of_slope.floor());
        fits.then_some(())
    }
}

fn setting(row: &Row, words: Vec<String>, expect: Vec<Expect>) -> Setting {
    let reported = expect.into_iter().filter(|_| !row.shown.is_empty());
    Setting {
        key: row.key.to_owned(),
        words,
        kept: None,
        expect: reported.map(|expect| (row.shown, expect)).collect(),
    }
}

/// The exponent that tc chooses for a burst, where `min` is RED's lower threshold in packets: the least k
/// for which a burst of so many packets moves an average from 0 up to the threshold at most
/// (`tc_red_eval_ewma`).
pub(super) fn exponent_of(burst: u32, min: f64) -> Option<u32> {
    let burst = f64::from(burst);
    let beyond = burst + 1.0 - min;
    if beyond < 1.0 {
        return None;
    }
    (1..32)
        .find(|&k| {
            let weight = f64::from(-k).exp2();
            beyond <= (1.0 - (1.0 - weight).powf(burst)) / weight
        })
        .map(|k| k as u32)
}

/// A burst for which tc chooses this exponent: the middle of those that do.
pub(super) fn burst_for(exponent: u32, min: f64) -> Option<u32> {
    // The exponent grows with the burst. A burst for which there is none is too small or too large.
    let least = min.ceil().max(1.0);
    if least > 1e9 {
        return None;
    }
    let least = least as u32;
    let first = |wanted: u32| {
        let (mut low, mut high) = (least, 1 << 31);
        while low < high {
            let middle = low + (high - low) / 2;
            match exponent_of(middle, min) {
                Some(found) if found < wanted => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    };
    let (from, to) = (first(exponent), first(exponent + 1));
    let middle = from + (to - from) / 2;
    (exponent_of(middle, min) == Some(exponent)).then_some(middle)
}
