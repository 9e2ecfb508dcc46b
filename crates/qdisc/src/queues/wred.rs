//! Weighted RED: a first-in first-out queue with a RED law for each drop precedence.
//!
//! Source: D. Clark and W. Fang, "Explicit Allocation of Best-Effort Packet Delivery Service",
//! IEEE/ACM Transactions on Networking 6(4), 1998 (RIO, RED with In and Out); Linux,
//! net/sched/sch_gred.c (a profile for each of several precedences, with one average for
//! all, one for each, or RIO's); RFC 2597, section 4 (drop precedences of AF). The law is
//! that of [`crate::laws::red`], with its symbols.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | q_k | backlog of packets of profile k, counted from 1 in the order of the file | packets or bytes |
//! | avg_k | average that decides about packets of profile k | the same |
//!
//! ```text
//! average = "total":  avg_k follows q_1 + q_2 + ... of all profiles, at every arrival
//! average = "rio":    avg_k follows q_1 + ... + q_k, at arrivals of profiles 1 to k
//! average = "own":    avg_k follows q_k, at arrivals of profile k
//! ```
//!
//! With two profiles, `"rio"` is Clark and Fang's scheme: the average of In packets decides about In
//! packets, the average of all packets about Out packets.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Dscp, Packet, ParamError, ParamWarning, QueueSize, Rate, Span, Stream, Time, params,
    schemars, serde,
};

use crate::fifo::Fifo;
use crate::laws::red::{Arrival, Flavour, RedConfig, RedLaw, Spacing};
use crate::queues::red::{
    AboveMaxTh, Gentle, carry_out, check_mean_packet, check_unit_interval, gentle_end, red_keys,
    threshold_at,
};
use crate::{Backlog, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind, Sink};

params! {
    /// RED with thresholds for each drop precedence.
    pub struct WredParams {
        /// Limit on the waiting packets of all profiles together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Thresholds by class, from the packets to drop last to the packets to drop first; a profile without `dscp` is for all other packets.
        profiles: Vec<ProfileParams>;
        /// Which packets are counted in the average that decides about a packet.
        average: Average = Average::Total, "one average for all, as in Linux's gred where profiles have one priority.";
        red_keys!(w_q);
        /// Above a profile's `max_th`, let the probability rise from its `max_p` to 1 instead of dropping every packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"` at the queue's limit (ISCC 2001).
        gentle: Gentle = Gentle::Off, "off as in Clark and Fang 1998.";
        /// How early drops of a profile are spaced among its arrivals.
        spacing: Spacing = Spacing::Wait, "ns-2.35, ns-default.tcl (`wait_` true).";
        red_keys!(byte_mode, mean_packet);
        red_keys!(ecn = false, "RFC 3168, section 5; off as in Linux.");
        red_keys!(above_max_th = AboveMaxTh::Drop, "RFC 3168, section 7.");
    }
}

params! {
    /// RED's parameters for packets of some classes.
    #[schemars(rename = "Profile")]
    pub struct ProfileParams {
        /// The classes of the profile, such as `["AF11", "EF"]`; left out, all classes that no other profile names.
        dscp: Vec<Dscp> = [];
        /// Average below which no packet of the profile is dropped, in packets, bytes or time at the link's rate.
        min_th: QueueSize;
        /// Average at which the drop probability of the profile's packets reaches `max_p`, in the unit of `min_th`.
        max_th: QueueSize;
        red_keys!(max_p);
    }
}

/// Which packets are counted in the average of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Average {
    /// All packets (WRED).
    #[default]
    Total,
    /// The packets of the profile and of the profiles before it (RIO, Clark and Fang 1998).
    Rio,
    /// The packets of the profile (Linux's gred without grio).
    Own,
}

/// The largest number of profiles.
/// Source: Linux, sch_gred.c (`MAX_DPs`).
const MAX_PROFILES: usize = 16;

impl WredParams {
    fn measures_bytes(&self) -> bool {
        let first = self.profiles.first();
        first.is_some_and(|profile| !profile.min_th.counts_packets())
    }

    /// Returns the limit in the unit of the thresholds, if it has a part in this unit.
    fn limit_like_thresholds(&self, rate: Rate) -> Option<f64> {
        // With `gentle = "limit"`, the slope ends at the limit.
        gentle_end(
            Gentle::Limit,
            0.0,
            self.limit.at(rate),
            self.measures_bytes(),
        )
    }

    fn law(&self, profile: &ProfileParams, rate: Rate) -> RedConfig {
        let max_th = threshold_at(profile.max_th, rate);
        let limit = self.limit.at(rate);
        RedConfig {
            min_th: threshold_at(profile.min_th, rate),
            max_th,
            max_p: profile.max_p,
            w_q: self.w_q,
            gentle_end: gentle_end(self.gentle, max_th, limit, self.measures_bytes()),
            spacing: self.spacing,
            flavour: Flavour::Paper,
        }
    }

    /// Refuses classes that have no profile or two profiles.
    fn check_classes(&self) -> Result<(), ParamError> {
        let accepted =
            "for each DSCP one profile at most, and one profile without dscp for all others";
        let without = (self.profiles.iter()).filter(|profile| profile.dscp.is_empty());
        let problem = match without.count() {
            _ if self.profiles.len() > MAX_PROFILES => {
                return Err(ParamError::new(
                    "profiles",
                    format!("are {}, more than {MAX_PROFILES}", self.profiles.len()),
                    accepted,
                ));
            }
            0 => Some(
                "have none without dscp: packets of other classes would have no thresholds"
                    .to_owned(),
            ),
            1 => None,
            more => Some(format!(
                "have {more} without dscp, and one alone can be for all other packets"
            )),
        };
        let mut seen = [false; 64];
        let all = self.profiles.iter().flat_map(|profile| &profile.dscp);
        let twice = all
            .copied()
            .find(|dscp| std::mem::replace(&mut seen[usize::from(dscp.get())], true));
        let twice = twice.map(|dscp| format!("name {dscp} twice"));
        match problem.or(twice) {
            Some(problem) => Err(ParamError::new("profiles", problem, accepted)),
            None => Ok(()),
        }
    }
}

/// Returns the key of a profile, counted from 1, in the form that messages use for entries of lists.
fn entry(index: usize) -> String {
    format!("profiles (entry {})", index + 1)
}

impl QueueKind for WredParams {
    type Queue<P: Packet> = Wred<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets"
average = "rio"
profiles = [
  { dscp = ["AF11"], min_th = "40 packets", max_th = "120 packets", max_p = 0.1 },
  { min_th = "20 packets", max_th = "60 packets", max_p = 0.2 },
]"#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_unit_interval("w_q", self.w_q, "a weight")?;
        check_mean_packet(self.mean_packet)?;
        self.check_classes()?;
        for (index, profile) in self.profiles.iter().enumerate() {
            check_unit_interval("max_p", profile.max_p, "a probability")
                .map_err(|error| error.within(&entry(index)))?;
            for (key, size) in [("min_th", profile.min_th), ("max_th", profile.max_th)] {
                if size.counts_packets() == self.measures_bytes() {
                    let error = ParamError::new(
                        key,
                        format!(
                            "is in another unit than min_th of the first profile ({})",
                            self.profiles[0].min_th
                        ),
                        "all thresholds in packets, or all in bytes or time",
                    );
                    return Err(error.within(&entry(index)));
                }
            }
        }
        Ok(())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let most = self.limit_like_thresholds(link.rate);
        for (index, profile) in self.profiles.iter().enumerate() {
            let RedConfig { min_th, max_th, .. } = self.law(profile, link.rate);
            if min_th >= max_th {
                let error = ParamError::new(
                    "min_th",
                    format!("is not below max_th ({})", profile.max_th),
                    format!("less than \"{}\"", profile.max_th),
                );
                return Err(error.within(&entry(index)));
            }
            if self.gentle == Gentle::Limit && most.is_none_or(|most| most <= max_th) {
                return Err(ParamError::new(
                    "gentle",
                    format!(
                        "needs a limit above every max_th ({}) in the same unit",
                        profile.max_th
                    ),
                    "true, false, \"twice-max-th\" or \"limit\"",
                ));
            }
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = Vec::new();
        let most = self.limit_like_thresholds(link.rate);
        let max_th = |profile: &ProfileParams| threshold_at(profile.max_th, link.rate);
        for (index, profile) in self.profiles.iter().enumerate() {
            if most.is_some_and(|most| most <= max_th(profile)) {
                let warning = ParamWarning::new(
                    "max_th",
                    format!(
                        "is not below the limit (\"{}\"), so the buffer overflows before the \
                         average gets there",
                        self.limit
                    ),
                );
                warnings.push(warning.within(&entry(index)));
            }
            let before = &self.profiles[..index];
            let lower = before.iter().find(|other| max_th(other) < max_th(profile));
            if let Some(lower) = lower.filter(|_| self.average == Average::Rio) {
                let warning = ParamWarning::new(
                    "max_th",
                    format!(
                        "is above that of a profile before it ({}), while its average counts \
                         that one's packets too: profiles go from the packets to keep longest to \
                         those to drop first",
                        lower.max_th
                    ),
                );
                warnings.push(warning.within(&entry(index)));
            }
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Wred<P> {
        let mut class_of = Box::new([0; 64]);
        let others = self.profiles.iter().position(|all| all.dscp.is_empty());
        class_of.fill(others.expect("check has passed") as u8);
        for (index, profile) in self.profiles.iter().enumerate() {
            for dscp in &profile.dscp {
                class_of[usize::from(dscp.get())] = index as u8;
            }
        }
        let classes = self.profiles.iter().map(|profile| ProfileState {
            backlog: Backlog::default(),
            law: RedLaw::new(self.law(profile, context.rate)),
        });
        Wred {
            limit: self.limit.at(context.rate),
            measures_bytes: self.measures_bytes(),
            mean_packet: self.byte_mode.then_some(self.mean_packet),
            mean_packet_time: context.rate.tx_time(self.mean_packet),
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            average: self.average,
            class_of,
            classes: classes.collect(),
            latest: 0,
            stream: context.stream,
            idle_since: Some(Time::ZERO),
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Wred<P> {
    limit: Limit,
    measures_bytes: bool,
    /// The mean packet size in byte mode, otherwise `None`.
    mean_packet: Option<Bytes>,
    mean_packet_time: Span,
    ecn: bool,
    above_max_th: AboveMaxTh,
    average: Average,
    /// Number of the profile for each DSCP.
    class_of: Box<[u8; 64]>,
    /// The profiles, by number.
    classes: Vec<ProfileState>,
    /// Profile of the latest arrival.
    latest: usize,
    stream: Stream,
    /// The time since which the link has been idle.
    idle_since: Option<Time>,
    fifo: Fifo<P>,
}

/// A profile's law, and its packets in the queue.
#[derive(Debug)]
struct ProfileState {
    backlog: Backlog,
    law: RedLaw,
}

impl<P: Packet> Wred<P> {
    fn class(&self, packet: &P) -> usize {
        usize::from(self.class_of[usize::from(packet.dscp().get())])
    }

    /// Updates all averages at an arrival of profile `class`.
    fn observe(&mut self, class: usize, now: Time) {
        let mean_packet_time = self.mean_packet_time.as_ps().max(1);
        let idle = self.idle_since.take();
        let idle = idle.map(|since| (now - since).as_ps() / mean_packet_time);
        let total = self.fifo.backlog();
        let mut so_far = Backlog::default();
        for (k, each) in self.classes.iter_mut().enumerate() {
            so_far.packets += each.backlog.packets;
            so_far.bytes += each.backlog.bytes;
            let (counts, backlog) = match self.average {
                Average::Total => (true, total),
                Average::Rio => (class <= k, so_far),
                Average::Own => (class == k, each.backlog),
            };
            if counts {
                each.law.observe(Arrival {
                    backlog: if self.measures_bytes {
                        backlog.bytes
                    } else {
                        backlog.packets
                    } as f64,
                    idle,
                    relative_size: None,
                });
            } else if let Some(packets) = idle {
                // The link was idle for this average too.
                each.law.decay(packets);
            }
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Wred<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let class = self.class(&packet);
        self.latest = class;
        self.observe(class, now);
        let size = packet.size();
        let relative_size = self
            .mean_packet
            .map(|mean| size.as_u64() as f64 / mean.as_u64() as f64);
        let law = &mut self.classes[class].law;
        let decision = law.decide(relative_size, || self.stream.uniform());
        let (ecn, above_max_th) = (self.ecn, self.above_max_th);
        let may_mark = || ecn && (above_max_th == AboveMaxTh::Mark || law.is_below_max_th());
        let fits = self.limit.admits(self.fifo.backlog(), size);
        if carry_out(packet, decision, may_mark, fits, &mut self.fifo, now, sink) {
            let backlog = &mut self.classes[class].backlog;
            backlog.packets += 1;
            backlog.bytes += size.as_u64();
        }
    }

    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        let Some(packet) = self.fifo.pop() else {
            self.idle_since.get_or_insert(now);
            return None;
        };
        let class = self.class(&packet);
        let backlog = &mut self.classes[class].backlog;
        backlog.packets -= 1;
        backlog.bytes -= packet.size().as_u64();
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// The average of all packets (with `average = "own"`, the sum of the averages), and the probability of
    /// the latest arrival.
    fn internals(&self) -> Internals {
        let mut averages = self.classes.iter().map(|class| class.law.average());
        let average = match self.average {
            Average::Total | Average::Rio => averages.next_back(),
            Average::Own => Some(averages.sum()),
        };
        Internals {
            average,
            probability: Some(self.classes[self.latest].law.probability()),
        }
    }
}
