//! Changes of a link's rate: a list, or a period and a law.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | T, time from one change to the next | `every` | s |
//! | s, time of the first change | `from` | s |
//! | t_k = s + k T, time of change k = 0, 1, 2, ... | | s |
//! | l, h: least and largest rate | `low`, `high` | bit/s |
//! | P, period of the sine | `period` | s |
//! | d, largest step of the walk | `step` | bit/s |
//!
//! ```text
//! rates    r_k = the list's entry with the number k modulo its length
//! rate     r_k = a draw from the distribution
//! sine     r_k = l + (h - l) (1 + sin(2 pi (k T mod P) / P)) / 2
//! walk     r_k = r_(k-1) + U(-d, d), mirrored at l and h; before the first, the link's rate
//! ```
//!
//! Times are whole picoseconds, so that no change is rounded; rates are rounded to 1 bit/s.

use std::borrow::Cow;
use std::f64::consts::PI;
use std::fmt;

use libm::sin;
use redtail_core::{Rate, Span, Stream, Time, params};
use redtail_traffic::Dist;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A change of the rate of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RateChange")]
pub struct RateChangeParams {
    /// Time of the change, from the start of the run.
    pub at: Span,
    /// Transmission rate from this time; "0 bit/s" begins an outage.
    pub rate: Rate,
}

params! {
    /// Changes of a link's rate at regular times, by one of the laws `rates`, `rate`, `sine` and `walk`.
    #[schemars(rename = "RateLaw")]
    pub struct RateLawParams {
        /// Time from one change to the next. A run has at most 1 million changes of a link.
        every: Span;
        /// Time of the first change, from the start of the run. Until then the link has its `rate`.
        from: Span = Span::ZERO, "the whole run.";
        /// Time from which the link has its `rate` again.
        until: Option<Span>, "the end of the run.";
        /// Law: these rates in turn, and again from the first. "0 bit/s" is an outage.
        rates: Vec<Rate> = [];
        /// Law: each rate is drawn from this distribution, independently of those before, with a random stream of the link's own. The distribution must have a largest value: `"uniform 5..20 Mbit/s"`, `"exponential mean 10 Mbit/s max 50 Mbit/s"`.
        rate: Option<Dist<Rate>>;
        /// Law: a sine between two rates, which begins in the middle and rises.
        sine: Option<RateSineParams>;
        /// Law: a random walk between two rates, with a random stream of the link's own.
        walk: Option<RateWalkParams>;
    }
}

params! {
    /// A sine between two rates.
    #[schemars(rename = "RateSine")]
    pub struct RateSineParams {
        /// Least rate.
        low: Rate;
        /// Largest rate.
        high: Rate;
        /// Time from one maximum to the next.
        period: Span;
    }
}

params! {
    /// A random walk between two rates, which begins at the link's `rate`. Each step is uniform between `-step` and `step`; what would leave the interval is mirrored at its end.
    #[schemars(rename = "RateWalk")]
    pub struct RateWalkParams {
        /// Least rate.
        low: Rate;
        /// Largest rate.
        high: Rate;
        /// Largest step, up or down; at most `high` less `low`.
        step: Rate;
    }
}

/// How the rate of a link changes.
#[derive(Debug, Clone, PartialEq)]
pub enum RateChanges {
    /// At these times; never, if the list is empty.
    List(Vec<RateChangeParams>),
    /// At regular times, by a law.
    Law(Box<RateLawParams>),
}

impl Default for RateChanges {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// The most changes of a link in one run; each takes 16 B of memory.
const MOST_CHANGES: u64 = 1_000_000;

/// What is wrong with a law: the key within its table, and a clause.
pub(crate) type LawProblem = (&'static str, String);

impl RateChanges {
    /// Whether the rate never changes.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::List(list) if list.is_empty())
    }

    /// The changes of a list, those of a law excluded.
    pub fn list(&self) -> &[RateChangeParams] {
        match self {
            Self::List(list) => list,
            Self::Law(_) => &[],
        }
    }

    /// The law, if there is one.
    pub fn law(&self) -> Option<&RateLawParams> {
        match self {
            Self::List(_) => None,
            Self::Law(law) => Some(law),
        }
    }

    /// The largest rate to which it can change; zero if there is none.
    pub(crate) fn largest_rate(&self) -> Rate {
        let none = Rate::from_bps(0);
        match self {
            Self::List(list) => list.iter().map(|change| change.rate).fold(none, Rate::max),
            Self::Law(law) => law.largest_rate(),
        }
    }

    /// The first `most` times after `after` at which it changes in a run of this length.
    pub(crate) fn times(&self, after: Span, duration: Span, most: usize) -> Vec<Span> {
        match self {
            Self::List(list) => {
                let times = list.iter().map(|change| change.at);
                times.filter(|&at| at > after).take(most).collect()
            }
            Self::Law(law) => {
                let back = law.until.filter(|&until| until > after && until < duration);
                let times = law.regular_times(after, duration).take(most);
                times.chain(back).take(most).collect()
            }
        }
    }

    /// The rates of a link in a run of this length, each with the time from which it applies; the first one, the link's
    /// own, from the start of the run. `stream` is the link's own.
    pub fn steps(&self, first: Rate, duration: Span, stream: Stream) -> Vec<(Time, Rate)> {
        let at = |span| Time::ZERO + span;
        let mut steps = vec![(Time::ZERO, first)];
        match self {
            Self::List(list) => {
                steps.extend(list.iter().map(|change| (at(change.at), change.rate)));
            }
            Self::Law(law) => {
                let mut rates = law.course(first, stream);
                if law.from == Span::ZERO {
                    // It takes the place of the link's own rate.
                    steps[0].1 = rates();
                }
                let changes = law.regular_times(Span::ZERO, duration);
                steps.extend(changes.map(|change| (at(change), rates())));
                let back = law.until.filter(|&until| until < duration);
                steps.extend(back.map(|until| (at(until), first)));
            }
        }
        steps
    }
}

impl RateLawParams {
    /// The times of its changes after `after`, without the one back to the link's rate.
    fn regular_times(&self, after: Span, duration: Span) -> impl Iterator<Item = Span> + use<> {
        let end = self.until.map_or(duration, |until| until.min(duration));
        let (from, every) = (self.from.as_ps(), self.every.as_ps());
        let first = match after.as_ps().checked_sub(from) {
            Some(since) => since.checked_div(every).map(|passed| passed + 1),
            None => Some(0),
        };
        let counts = first.into_iter().flat_map(|first| first..);
        let at = move |count: u64| {
            from.checked_add(count.checked_mul(every)?)
                .map(Span::from_ps)
        };
        counts.map_while(at).take_while(move |&at| at < end)
    }

    fn largest_rate(&self) -> Rate {
        let listed = self.rates.iter().copied();
        let drawn = self.rate.iter().map(|dist| dist.quantile(1.0));
        let sine = self.sine.iter().map(|sine| sine.high);
        let walk = self.walk.iter().map(|walk| walk.high);
        let all = listed.chain(drawn).chain(sine).chain(walk);
        all.fold(Rate::from_bps(0), Rate::max)
    }

    /// The rates from the first change on, one for each call.
    fn course(&self, link: Rate, mut stream: Stream) -> Box<dyn FnMut() -> Rate + '_> {
        let mut count = 0_u64;
        if let Some(dist) = &self.rate {
            return Box::new(move || dist.draw(&mut stream));
        }
        if let Some(walk) = &self.walk {
            let [low, high, step] = [walk.low, walk.high, walk.step].map(|it| it.as_bps() as f64);
            let mut now = link.as_bps() as f64;
            return Box::new(move || {
                now += step * (2.0 * stream.uniform() - 1.0);
                if now < low {
                    now = 2.0 * low - now;
                }
                if now > high {
                    now = 2.0 * high - now;
                }
                Rate::from_bps(now.clamp(low, high).round() as u64)
            });
        }
        if let Some(sine) = &self.sine {
            let (every, period) = (
                u128::from(self.every.as_ps()),
                u128::from(sine.period.as_ps()),
            );
            let [low, high] = [sine.low, sine.high].map(|it| it.as_bps() as f64);
            return Box::new(move || {
                let phase = (u128::from(count) * every % period) as f64 / period as f64;
                count += 1;
                let rate = low + (high - low) * (1.0 + sin(2.0 * PI * phase)) / 2.0;
                Rate::from_bps(rate.round() as u64)
            });
        }
        Box::new(move || {
            let rate = self.rates[(count % self.rates.len() as u64) as usize];
            count += 1;
            rate
        })
    }

    /// What is wrong with it on a link of this rate in a run of this length.
    pub(crate) fn problem(&self, link: Rate, duration: Span) -> Option<LawProblem> {
        let refuse = |key, clause: &str| Some((key, clause.to_owned()));
        if self.every == Span::ZERO {
            return refuse("every", "is zero; accepted: a time such as \"100 ms\"");
        }
        if self.from >= duration {
            return refuse(
                "from",
                "is not before the run's end; accepted: a time in the run",
            );
        }
        if self.until.is_some_and(|until| until <= self.from) {
            let clause = format!("is not after from; accepted: more than \"{}\"", self.from);
            return Some(("until", clause));
        }
        let end = self.until.map_or(duration, |until| until.min(duration));
        let count = (end - self.from).as_ps().div_ceil(self.every.as_ps());
        if count > MOST_CHANGES {
            let clause = format!(
                "makes {count} changes; accepted: up to {MOST_CHANGES} in a run, so a longer time"
            );
            return Some(("every", clause));
        }
        let laws = [
            !self.rates.is_empty(),
            self.rate.is_some(),
            self.sine.is_some(),
            self.walk.is_some(),
        ];
        if laws.iter().filter(|given| **given).count() != 1 {
            return refuse(
                "",
                "has no law, or more than one; accepted: one of rates, rate, sine and walk",
            );
        }
        let largest = self.largest_rate();
        if largest > Rate::FASTEST {
            let key = match (&self.rate, &self.sine, &self.walk) {
                (Some(_), ..) => "rate",
                (_, Some(_), _) => "sine.high",
                (.., Some(_)) => "walk.high",
                _ => "rates",
            };
            let clause = match self.rate {
                Some(_) => format!(
                    "has no largest value, or one that is faster than the clock resolves; accepted: a law with a \
                     max up to \"{}\"",
                    Rate::FASTEST
                ),
                None => format!(
                    "is faster than the clock resolves; accepted: rates up to \"{}\"",
                    Rate::FASTEST
                ),
            };
            return Some((key, clause));
        }
        if let Some(sine) = &self.sine {
            if sine.low >= sine.high {
                let clause = format!("is not below high; accepted: less than \"{}\"", sine.high);
                return Some(("sine.low", clause));
            }
            if sine.period == Span::ZERO {
                return refuse("sine.period", "is zero; accepted: a time such as \"10 s\"");
            }
        }
        if let Some(walk) = &self.walk {
            if walk.low >= walk.high {
                let clause = format!("is not below high; accepted: less than \"{}\"", walk.high);
                return Some(("walk.low", clause));
            }
            if link < walk.low || link > walk.high {
                let clause = format!(
                    "does not contain the link's rate, at which the walk begins; accepted: low and high with \
                     \"{link}\" between them"
                );
                return Some(("walk", clause));
            }
            let width = Rate::from_bps(walk.high.as_bps() - walk.low.as_bps());
            if walk.step.as_bps() == 0 || walk.step > width {
                let clause = format!("is no step; accepted: above zero, up to \"{width}\"");
                return Some(("walk.step", clause));
            }
        }
        None
    }
}

impl Serialize for RateChanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::List(list) => list.serialize(serializer),
            Self::Law(law) => law.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RateChanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RateChanges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a list such as [{ at = \"20 s\", rate = \"5 Mbit/s\" }], or a table with a period and a law",
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RateChanges, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(RateChanges::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RateChanges, A::Error> {
                let law = RateLawParams::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RateChanges::Law(Box::new(law)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for RateChanges {
    fn schema_name() -> Cow<'static, str> {
        "RateChanges".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let change = generator.subschema_for::<RateChangeParams>();
        let law = generator.subschema_for::<RateLawParams>();
        json_schema!({ "anyOf": [{ "type": "array", "items": change }, law] })
    }
}
