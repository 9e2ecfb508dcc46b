//! A policer: it stands in front of a queue, and drops packets above a rate or gives them another DSCP. It holds none.
//!
//! Sources: RFC 2475, section 2.3.3.4 (policers drop, markers set the DS field); RFC 2697 and RFC 2698 for the
//! colours. The meters are those of [`crate::laws::meter`].
//!
//! It is no kind of queue: a link has it beside its queue. [`AnyQueue::policed`] puts it in front of one, so that links
//! without a policer do nothing for it.

use redtail_core::{
    Bytes, Dscp, Packet, ParamError, ParamWarning, Rate, Time, kinded, params, shared_keys,
};

use crate::laws::meter::{Colour, Meter};
use crate::{
    AnyQueue, Backlog, DropReason, Internals, LinkFacts, QueueDiscipline, Report, Sink, Wakeup,
};

kinded! {
    /// A policer with its parameters, chosen by `kind`.
    #[schemars(rename = "PolicerSpec")]
    pub enum PolicerParams {
        /// One rate and one burst: packets conform or exceed.
        "token-bucket" => TokenBucket(BucketPolicerParams),
        /// Single-rate three-colour marker (RFC 2697).
        "sr-tcm" => SingleRate(SingleRateParams),
        /// Two-rate three-colour marker (RFC 2698).
        "tr-tcm" => TwoRate(TwoRateParams),
    }
}

shared_keys! { $
    /// The keys of both markers.
    colour_keys {
        /// Whether a packet that has a colour keeps it or gets a worse one. Packets of AF have the colour of their drop precedence: AFx1 green, AFx2 yellow, AFx3 red; all others are green.
        colour_aware: bool = false, "ours; RFC 2697 and RFC 2698, section 2 have both modes.";
        /// What is done with green packets: `"pass"`, `"drop"`, or a DSCP that they get.
        green: Action = Action::Pass, "RFC 2697 and RFC 2698, section 5.";
        /// What is done with yellow packets.
        yellow: Action = Action::Pass, "RFC 2697 and RFC 2698, section 5: forwarded as best effort.";
        /// What is done with red packets.
        red: Action = Action::Drop, "RFC 2697 and RFC 2698, section 5: discarded.";
    }
}

params! {
    /// A policer with one token bucket.
    #[schemars(rename = "TokenBucketPolicer")]
    pub struct BucketPolicerParams {
        /// Rate at which tokens are added: the largest long-term rate of the packets that conform.
        rate: Rate;
        /// Size of the bucket, which is full at first: the largest burst that conforms, at least one packet.
        burst: Bytes;
        /// What is done with packets that conform: `"pass"`, `"drop"`, or a DSCP that they get.
        conform: Action = Action::Pass, "Linux, tc-police(8), `conform-exceed`.";
        /// What is done with the others.
        exceed: Action = Action::Drop, "RFC 2475, section 2.3.3.4: a policer drops packets.";
    }

    /// A single-rate three-colour marker.
    #[schemars(rename = "SingleRateMarker")]
    pub struct SingleRateParams {
        /// Committed information rate: the rate at which tokens are added.
        cir: Rate;
        /// Committed burst size: the bucket of green packets, which is full at first.
        cbs: Bytes;
        /// Excess burst size: the bucket of yellow packets, which is full at first. It gets the tokens for which the other has no room.
        ebs: Bytes;
        colour_keys!(colour_aware, green, yellow, red);
    }

    /// A two-rate three-colour marker.
    #[schemars(rename = "TwoRateMarker")]
    pub struct TwoRateParams {
        /// Committed information rate: that of green packets.
        cir: Rate;
        /// Committed burst size: the bucket of green packets, which is full at first.
        cbs: Bytes;
        /// Peak information rate, at least `cir`: that of green and yellow packets together.
        pir: Rate;
        /// Peak burst size: the bucket of green and yellow packets together, which is full at first.
        pbs: Bytes;
        colour_keys!(colour_aware, green, yellow, red);
    }
}

/// What is done with packets of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They reach the queue as they are.
    Pass,
    /// They are dropped.
    Drop,
    /// They reach the queue with this DSCP.
    Remark(Dscp),
}

redtail_core::when_serde! {
    mod action_text {
        use std::fmt;

        use redtail_core::Dscp;
        use redtail_core::serde::de::{self, IntoDeserializer, Visitor};
        use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Action;

        impl Serialize for Action {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::Pass => serializer.serialize_str("pass"),
                    Self::Drop => serializer.serialize_str("drop"),
                    Self::Remark(dscp) => dscp.serialize(serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for Action {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ActionVisitor;

                impl Visitor<'_> for ActionVisitor {
                    type Value = Action;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("\"pass\", \"drop\", or a DSCP such as \"AF12\"")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<Action, E> {
                        let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                        match text {
                            "pass" => Ok(Action::Pass),
                            "drop" => Ok(Action::Drop),
                            _ => text.parse().map(Action::Remark).map_err(|_| wrong()),
                        }
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Action, E> {
                        Dscp::deserialize(number.into_deserializer()).map(Action::Remark)
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Action, E> {
                        Dscp::deserialize(number.into_deserializer()).map(Action::Remark)
                    }
                }

                deserializer.deserialize_any(ActionVisitor)
            }
        }
    }
}

redtail_core::when_schema! {
    mod action_schema {
        use std::borrow::Cow;

        use redtail_core::Dscp;
        use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

        use super::Action;

        impl JsonSchema for Action {
            fn schema_name() -> Cow<'static, str> {
                "PolicerAction".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": "What a policer does with packets: \"pass\", \"drop\", or a DSCP that they get.",
                    "anyOf": [
                        { "enum": ["pass", "drop"] },
                        generator.subschema_for::<Dscp>(),
                    ],
                })
            }
        }
    }
}

/// A key that has a rate or a size of zero.
fn unless_zero(key: &'static str, number: u64, accepted: &'static str) -> Result<(), ParamError> {
    match number {
        0 => Err(ParamError::new(key, "is zero", accepted)),
        _ => Ok(()),
    }
}

const A_RATE: &str = "a rate such as \"1 Mbit/s\"";
const A_SIZE: &str = "at least the largest packet, such as \"1600 B\"";

impl PolicerParams {
    /// The rates of the policer, each with its key.
    fn rates(&self) -> Vec<(&'static str, Rate)> {
        match self {
            Self::TokenBucket(params) => vec![("rate", params.rate)],
            Self::SingleRate(params) => vec![("cir", params.cir)],
            Self::TwoRate(params) => vec![("cir", params.cir), ("pir", params.pir)],
        }
    }

    /// The buckets of the policer, each with its key.
    fn buckets(&self) -> Vec<(&'static str, Bytes)> {
        match self {
            Self::TokenBucket(params) => vec![("burst", params.burst)],
            Self::SingleRate(params) => vec![("cbs", params.cbs), ("ebs", params.ebs)],
            Self::TwoRate(params) => vec![("cbs", params.cbs), ("pbs", params.pbs)],
        }
    }

    /// The actions, from green to red.
    pub fn actions(&self) -> [Action; 3] {
        match self {
            Self::TokenBucket(it) => [it.conform, Action::Pass, it.exceed],
            Self::SingleRate(it) => [it.green, it.yellow, it.red],
            Self::TwoRate(it) => [it.green, it.yellow, it.red],
        }
    }

    /// Whether packets can be yellow.
    pub fn has_yellow(&self) -> bool {
        !matches!(self, Self::TokenBucket(_))
    }

    /// Whether it gives packets another DSCP.
    pub fn remarks(&self) -> bool {
        let mut actions = self.actions().into_iter();
        actions.any(|action| matches!(action, Action::Remark(_)))
    }

    /// Refuses values that cannot be run anywhere.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    pub fn check(&self) -> Result<(), ParamError> {
        for (key, rate) in self.rates() {
            unless_zero(key, rate.as_bps(), A_RATE)?;
        }
        let buckets = self.buckets();
        // Of the buckets of RFC 2697 one may be left at zero (section 2).
        let one_is_enough = matches!(self, Self::SingleRate(_))
            && buckets.iter().any(|&(_, size)| size > Bytes::ZERO);
        for &(key, size) in buckets.iter().filter(|_| !one_is_enough) {
            unless_zero(key, size.as_u64(), A_SIZE)?;
        }
        if let Self::TwoRate(params) = self
            && params.pir < params.cir
        {
            return Err(ParamError::new(
                "pir",
                format!("is below cir ({})", params.cir),
                format!("at least \"{}\" (RFC 2698, section 3)", params.cir),
            ));
        }
        Ok(())
    }

    /// Refuses values that cannot be run on this link; called after `check`.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    pub fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let largest = link.largest_packet;
        for (key, size) in self.buckets() {
            if size > Bytes::ZERO && size < largest {
                return Err(ParamError::new(
                    key,
                    format!("is below the largest packet ({largest}), which could never conform"),
                    format!("at least \"{largest}\""),
                ));
            }
        }
        Ok(())
    }

    /// Warns of values that can be run but are probably a mistake.
    pub fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let rates = self.rates().into_iter();
        let idle = rates.filter(|(_, rate)| *rate > link.rate);
        let clause = format!("is above the link's ({})", link.rate);
        let warning = |(key, _)| ParamWarning::new(key, clause.clone());
        idle.map(warning).collect()
    }

    fn meter(&self) -> Meter {
        match self {
            Self::TokenBucket(it) => Meter::bucket(it.rate, it.burst),
            Self::SingleRate(it) => Meter::single_rate(it.cir, it.cbs, it.ebs),
            Self::TwoRate(it) => Meter::two_rate((it.cir, it.cbs), (it.pir, it.pbs)),
        }
    }

    fn colour_aware(&self) -> bool {
        match self {
            Self::TokenBucket(_) => false,
            Self::SingleRate(it) => it.colour_aware,
            Self::TwoRate(it) => it.colour_aware,
        }
    }
}

/// The colour that a packet of this class has: its drop precedence (RFC 2597, section 6); green if it has none.
fn colour_of(dscp: Dscp) -> Colour {
    let (class, low) = (dscp.get() >> 3, dscp.get() & 7);
    match (class, low) {
        (1..=4, 4) => Colour::Yellow,
        (1..=4, 6) => Colour::Red,
        _ => Colour::Green,
    }
}

/// Packets that a policer has seen in the measurement period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policing {
    /// By colour, from green to red.
    pub colours: [u64; 3],
    /// Those that it dropped.
    pub dropped: u64,
}

impl Policing {
    /// All packets that it has seen.
    pub fn all(&self) -> u64 {
        self.colours.iter().sum()
    }
}

/// A queue with a policer in front of it.
#[derive(Debug)]
pub struct Policed<P: Packet> {
    meter: Meter,
    colour_aware: bool,
    actions: [Action; 3],
    counts: Policing,
    queue: AnyQueue<P>,
}

impl<P: Packet> AnyQueue<P> {
    /// This queue with a policer in front of it. The parameters must have passed [`PolicerParams::check`] and
    /// [`PolicerParams::check_at`].
    #[must_use]
    pub fn policed(self, policer: &PolicerParams) -> Self {
        Self::Policed(Box::new(Policed {
            meter: policer.meter(),
            colour_aware: policer.colour_aware(),
            actions: policer.actions(),
            counts: Policing::default(),
            queue: self,
        }))
    }

    /// What the policer in front of it has seen in the measurement period; `None` without one.
    pub fn policing(&self) -> Option<Policing> {
        match self {
            Self::Policed(policed) => Some(policed.counts),
            _ => None,
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Policed<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, sink: &mut impl Sink<P>) {
        let before = match self.colour_aware {
            true => colour_of(packet.dscp()),
            false => Colour::Green,
        };
        let colour = self.meter.colour(packet.size(), before, now) as usize;
        self.counts.colours[colour] += 1;
        match self.actions[colour] {
            Action::Pass => {}
            Action::Drop => {
                self.counts.dropped += 1;
                return sink.dropped(packet, DropReason::Policer, now);
            }
            Action::Remark(dscp) => packet.set_dscp(dscp),
        }
        self.queue.enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.queue.dequeue(now, sink)
    }

    fn next_wakeup(&self) -> Wakeup {
        self.queue.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.queue.on_wakeup(now);
    }

    fn front(&self) -> Option<&P> {
        self.queue.front()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn missing(&self) -> u64 {
        self.queue.missing()
    }

    fn internals(&self) -> Internals {
        self.queue.internals()
    }

    fn start_measuring(&mut self, now: Time) {
        self.counts = Policing::default();
        self.queue.start_measuring(now);
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        self.queue.report(now, report);
    }
}
