//! Recommended parameters for a queue on a link, each with its source: a model or a text.
//!
//! Sources:
//! - RED: [`crate::laws::red::ziegler`] (Ziegler, Brandauer, Fdida 2001).
//! - PI: [`crate::laws::pi::design`] (Hollot, Misra, Towsley, Gong 2001).
//! - CoDel: RFC 8289, sections 4.2 and 4.3; FQ-CoDel: RFC 8290, section 5.2.
//! - PIE: RFC 8033, sections 4.2 and 4.4.
//! - Buffers: C. Villamizar and C. Song, "High Performance TCP in ANSNET", ACM CCR 24(5),
//!   1994 (C r); G. Appenzeller, I. Keslassy and N. McKeown, "Sizing Router Buffers", ACM
//!   SIGCOMM 2004 (C r / sqrt(N), for flows that are not synchronized; fewer than 500 may be).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | C | the link's rate | bit/s, packets/s |
//! | r, r_max | mean and longest round trip without queueing | s |
//! | N | TCP flows | 1 |
//! | L | a packet | bit |
//!
//! ```text
//! mean r                            of four round trips evenly from the shortest to the longest
//! bandwidth-delay product           C r / L packets
//! CoDel     target = max(max(100 ms, r_max) / 20, L / C),
//!           interval = max(100 ms, r_max, 2 target)
//! PIE       target = max(15 ms, L / C)
//! PI        designed for N flows and the round trip R = r_max + q_ref L / C;
//!           limit = max(4 q_ref, C r_max / L)
//! ```

use redtail_core::serde::{self, Serialize};
use redtail_core::{Bytes, ParamError, Rate, Span};

use crate::laws::pi;
use crate::laws::red::ziegler::{self, NoTuning, Situation};

/// From this number on, flows are assumed not to be synchronized.
/// Source: Appenzeller, Keslassy, McKeown 2004 (flows in step are rare above 500).
pub const MANY_FLOWS: u64 = 500;

/// The kinds of queue for which parameters can be recommended.
pub const KINDS: [&str; 6] = ["red", "pi", "codel", "fq-codel", "pie", "tail-drop"];

/// A link and its traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situated {
    /// The link's rate.
    pub rate: Rate,
    /// The shortest round trip without queueing.
    pub rtt: Span,
    /// The longest.
    pub rtt_max: Span,
    /// TCP flows that send all the time.
    pub flows: u64,
    /// A TCP packet on the link.
    pub packet: Bytes,
    /// Whether receivers acknowledge every second segment.
    pub delayed_acks: bool,
    /// Rate of all UDP traffic that arrives; zero is none.
    pub udp_rate: Rate,
    /// Size of its packets on the link.
    pub udp_packet: Bytes,
}

/// One recommended number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(crate = "serde")]
pub struct Advised {
    /// The key of the queue, or the name of a result of the model.
    pub name: String,
    /// The symbol of the parameter in the model.
    pub symbol: &'static str,
    /// The number.
    pub value: f64,
    /// The unit of the parameter; empty for a pure number.
    pub unit: &'static str,
    /// The form of the parameter in the experiment file; `None` if it is not a key.
    pub toml: Option<String>,
    /// The source of the parameter, in a sentence.
    pub source: String,
}

/// Parameters for a queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(crate = "serde")]
pub struct Advice {
    /// The queue's kind.
    pub kind: String,
    /// The model behind the numbers, in a sentence.
    pub model: &'static str,
    /// The keys, and then further results of the model.
    pub parameters: Vec<Advised>,
    /// Respects in which the model is used outside the range for which it was tested; each is a sentence.
    pub cautions: Vec<String>,
    /// The line of the experiment file.
    pub queue: String,
}

/// Collects the recommendation.
struct Notes(Vec<Advised>);

impl Notes {
    fn add(
        &mut self,
        name: &str,
        symbol: &'static str,
        (value, unit): (f64, &'static str),
        toml: Option<String>,
        source: impl Into<String>,
    ) {
        self.0.push(Advised {
            name: name.to_owned(),
            symbol,
            value,
            unit,
            toml,
            source: source.into(),
        });
    }

    /// A key in packets, to the nearest.
    fn packets(&mut self, key: &str, symbol: &'static str, packets: f64, source: &str) {
        let packets = packets.round();
        let text = format!("\"{packets} packets\"");
        self.add(key, symbol, (packets, "packets"), Some(text), source);
    }

    fn number(&mut self, key: &str, symbol: &'static str, value: f64, source: &str) {
        let value = rounded(value);
        self.add(key, symbol, (value, ""), Some(toml(value)), source);
    }

    fn time(&mut self, key: &str, symbol: &'static str, time: Span, source: &str) {
        let seconds = time.as_secs_f64();
        let text = format!("\"{time}\"");
        self.add(key, symbol, (seconds, "s"), Some(text), source);
    }

    /// A result of the model that is not a key.
    fn figure(&mut self, name: &str, symbol: &'static str, value: (f64, &'static str), why: &str) {
        self.add(name, symbol, value, None, why);
    }

    fn finish(self, kind: &str, model: &'static str) -> Advice {
        let keys = self.0.iter().filter_map(|one| {
            let text = one.toml.as_ref()?;
            Some(format!(", {} = {text}", one.name))
        });
        let keys: String = keys.collect();
        Advice {
            kind: kind.to_owned(),
            model,
            cautions: Vec::new(),
            queue: format!("queue = {{ kind = \"{kind}\"{keys} }}"),
            parameters: self.0,
        }
    }
}

/// A number with four digits; no model is more exact.
fn rounded(value: f64) -> f64 {
    let text = format!("{value:.3e}");
    text.parse().expect("a printed number reads back")
}

/// A number in the form of the experiment file.
fn toml(value: f64) -> String {
    if value.abs() < 1e-4 {
        return format!("{value:e}");
    }
    let text = value.to_string();
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

impl Situated {
    fn check(&self) -> Result<(), ParamError> {
        let refuse = |key: &'static str, problem: String, accepted: &str| {
            Err(ParamError::new(key, problem, accepted))
        };
        if self.rate.as_bps() == 0 {
            return refuse("rate", "is zero".into(), "a rate such as \"10 Mbit/s\"");
        }
        if self.rtt == Span::ZERO {
            return refuse("rtt", "is zero".into(), "a time such as \"100 ms\"");
        }
        if self.rtt_max < self.rtt {
            let problem = format!("is below rtt (\"{}\")", self.rtt);
            return refuse("rtt_max", problem, &format!("\"{}\" or more", self.rtt));
        }
        let minute = Span::from_s(60);
        if self.rtt_max > minute {
            let key = if self.rtt > minute { "rtt" } else { "rtt_max" };
            return refuse(key, "is no round trip".into(), "up to \"60 s\"");
        }
        if self.flows == 0 || self.flows > 1_000_000 {
            return refuse(
                "flows",
                "is no number of flows to plan for".into(),
                "1 to 1000000",
            );
        }
        for (key, packet) in [("packet", self.packet), ("udp_packet", self.udp_packet)] {
            if !(1..=65_535).contains(&packet.as_u64()) {
                let problem = "does not fit an IP packet".to_owned();
                return refuse(key, problem, "\"1 B\" to \"65535 B\"");
            }
        }
        if self.udp_rate >= self.rate {
            let problem = format!("leaves nothing of the rate (\"{}\") to TCP", self.rate);
            return refuse("udp_rate", problem, &format!("below \"{}\"", self.rate));
        }
        Ok(())
    }

    /// Evenly from the shortest to the longest.
    fn round_trips(&self) -> Vec<(Span, f64)> {
        let step = (self.rtt_max - self.rtt).as_ps() / 3;
        let at = |i: u64| Span::from_ps(self.rtt.as_ps() + i * step);
        (0..4).map(|i| (at(i), 1.0)).collect()
    }

    /// C, packets/s.
    fn packet_rate(&self) -> f64 {
        self.rate.as_bps() as f64 / self.packet.bits() as f64
    }

    /// C r / L.
    fn product(&self) -> f64 {
        let mean = 0.5 * (self.rtt.as_secs_f64() + self.rtt_max.as_secs_f64());
        self.packet_rate() * mean
    }

    /// L / C.
    fn packet_time(&self) -> Span {
        self.rate.tx_time(self.packet)
    }
}

/// Parameters for a queue of this `kind`.
///
/// # Errors
/// [`ParamError`] for a situation that cannot exist, or a kind for which there is no recommendation.
pub fn advise(kind: &str, on: &Situated) -> Result<Advice, ParamError> {
    on.check()?;
    match kind {
        "red" => red(on),
        "pi" => pi(on),
        "codel" => Ok(codel(on, kind)),
        "fq-codel" => Ok(codel(on, kind)),
        "pie" => Ok(pie(on)),
        "tail-drop" => Ok(tail_drop(on)),
        _ => Err(ParamError::new(
            "queue",
            "has no published rule to advise by",
            KINDS.join(", "),
        )),
    }
}

fn red(on: &Situated) -> Result<Advice, ParamError> {
    let situation = Situation {
        capacity: on.rate,
        round_trips: on.round_trips(),
        flows: on.flows as f64,
        packet: on.packet,
        packets_per_ack: if on.delayed_acks { 2.0 } else { 1.0 },
        min_rto: ziegler::MIN_RTO,
        udp_rate: on.udp_rate,
        udp_packet: on.udp_packet,
    };
    let tuning = ziegler::tune(&situation).map_err(|why| {
        let (key, problem) = match why {
            NoTuning::NoTcp => ("flows", "leaves the model without TCP traffic"),
            NoTuning::NoCapacity => ("udp_rate", "fills the link alone"),
        };
        ParamError::new(key, problem, "a link that TCP shares")
    })?;
    let mut notes = Notes(Vec::new());
    let share = |of: &str| {
        format!("{of} of D = 85 + 0.0216 C r + 0.567 N, recollected fit of Ziegler et al. 2001.")
    };
    notes.packets("limit", "B", tuning.limit, &share("2"));
    notes.packets("min_th", "min_th", tuning.min_th, &share("0.3"));
    notes.packets("max_th", "max_th", tuning.max_th, &share("1.3"));
    let max_p = if on.udp_rate.as_bps() > 0 {
        "2 p, so that the average settles halfway; 1.1 times that since UDP takes part (ISCC 2001)."
    } else {
        "2 p, so that the average settles halfway between the thresholds (Ziegler et al. 2001)."
    };
    notes.number("max_p", "max_p", tuning.max_p, max_p);
    let w_q = "1 - exp(-1 / (lambda I)), I the period of TCP's sawtooth (Ziegler et al. 2001).";
    notes.number("w_q", "w_q", tuning.w_q, w_q);
    let size = on.packet.to_string();
    let packet = (on.packet.as_u64() as f64, "B");
    let mean = "The packet size given.";
    notes.add(
        "mean_packet",
        "L",
        packet,
        Some(format!("\"{size}\"")),
        mean,
    );
    let loss = "Where the flows' throughput fills the link (Padhye et al. 1998, equation 30).";
    notes.figure("loss", "p", (tuning.loss, ""), loss);
    let target = "Halfway between the thresholds.";
    notes.figure("average queue", "Q", (tuning.target, "packets"), target);
    let round_trip = "Mean round trip with the queueing of Q packets.";
    notes.figure("round trip", "R", (tuning.round_trip, "s"), round_trip);
    let model = "Ziegler, Brandauer, Fdida 2001: RED for endless TCP flows, whose loss holds the average halfway between the thresholds";
    let mut advice = notes.finish("red", model);
    let product = on.product();
    if tuning.limit < product {
        advice.cautions.push(format!(
            "The buffer is below C r, {product:.0} packets: the model's fit of D was checked near \
             144 packets only, and here the link may run idle after losses."
        ));
    }
    Ok(advice)
}

/// ns-2.35, ns-default.tcl (`qref_`).
const PI_REFERENCE: f64 = 50.0;
/// ns-2.35, ns-default.tcl (`w_`), Hz.
const PI_SAMPLING: f64 = 170.0;

/// The slowest useful control loop, in s. Source: our choice.
const SLOW_LOOP: f64 = 60.0;

fn pi(on: &Situated) -> Result<Advice, ParamError> {
    let capacity = on.packet_rate();
    let path = pi::Path {
        capacity,
        flows: on.flows as f64,
        round_trip: on.rtt_max.as_secs_f64() + PI_REFERENCE / capacity,
    };
    let zero = 2.0 * path.flows / (path.round_trip * path.round_trip * capacity);
    let interval = 1.0 / PI_SAMPLING;
    let (a, b) = pi::design(path, interval);
    if b <= 0.0 {
        return Err(ParamError::new(
            "flows",
            format!(
                "needs a controller with its zero at {zero:.0} rad/s, too quick for updates at 170 Hz"
            ),
            "fewer flows, a higher rate or a longer rtt",
        ));
    }
    let mut notes = Notes(Vec::new());
    let room = (4.0 * PI_REFERENCE).max(capacity * on.rtt_max.as_secs_f64());
    let limit =
        "Four times q_ref as in Hollot et al. 2001 (200 of 800), or C r_max if that is more.";
    notes.packets("limit", "B", room, limit);
    let q_ref = "ns-2.35, ns-default.tcl (qref_); a choice, not a result.";
    notes.packets("q_ref", "q_ref", PI_REFERENCE, q_ref);
    let gain = "K (1/z + T/2), designed for N or more flows and R or less (Hollot et al. 2001, proposition 2).";
    // The difference of the two is the integral gain, and four of its digits must survive.
    let lost = libm::ceil(libm::log10(a / (a - b))).clamp(0.0, 12.0) as usize;
    let digits = (lost + 4).max(7);
    let key = |gain: f64| Some(format!("{gain:.digits$e}"));
    notes.add("a", "a", (a, "1/packet"), key(a), gain);
    let gain = "K (1/z - T/2), the same.";
    notes.add("b", "b", (b, "1/packet"), key(b), gain);
    let sampling = Some(format!("\"{PI_SAMPLING} Hz\""));
    let often = "ns-2.35, ns-default.tcl (w_).";
    notes.add("sampling", "1/T", (PI_SAMPLING, "Hz"), sampling, often);
    let size = Some(format!("\"{}\"", on.packet));
    let packet = (on.packet.as_u64() as f64, "B");
    notes.add("mean_packet", "L", packet, size, "The packet size given.");
    let zero_is = "2 N / (R^2 C): the slower pole of TCP's window, which it cancels.";
    notes.figure("controller zero", "z", (zero, "rad/s"), zero_is);
    let crosses = "Where the loop's gain is 1: z, or 0.5 / (R + T/2) if that is slower, to leave a phase margin.";
    let crossover = pi::crossover(path, interval);
    notes.figure("crossover", "w_g", (crossover, "rad/s"), crosses);
    let margin = pi::phase_margin(path, a, b, interval).unwrap_or(f64::NAN);
    let margin_is = "180 degrees plus the loop's phase where its gain is 1; above 0 it is stable.";
    let degrees = margin.to_degrees();
    notes.figure("phase margin", "PM", (degrees, "degrees"), margin_is);
    let longest = "r_max with the queueing of q_ref packets.";
    notes.figure("round trip", "R", (path.round_trip, "s"), longest);
    let model = "Hollot, Misra, Towsley, Gong 2001: PI gains that keep the loop stable for N or more flows and round trips of R or less";
    let mut advice = notes.finish("pi", model);
    let settles = 1.0 / crossover;
    if settles > SLOW_LOOP {
        advice.cautions.push(format!(
            "The loop takes about 1 / w_g, {settles:.0} s, to follow a change of the load: with so few \
             flows at this rate the queue stays far from q_ref for as long."
        ));
    }
    Ok(advice)
}

fn codel(on: &Situated, kind: &str) -> Advice {
    let flow_queueing = kind == "fq-codel";
    let usual = Span::from_ms(100);
    let interval = usual.max(on.rtt_max);
    let share = Span::from_ps(interval.as_ps() / 20);
    let one = on.packet_time();
    let target = share.max(one);
    let interval = interval.max(Span::from_ps(2 * target.as_ps()));
    let mut notes = Notes(Vec::new());
    let (limit, least, of_interval, of_target) = if flow_queueing {
        (
            "RFC 8290, section 5.2.3; C r_max in packets if that is more.",
            10_240.0,
            "Of the order of the longest round trip, 100 ms by default (RFC 8290, section 5.2.1).",
            "5 % of the interval, and no less than one packet time (RFC 8290, section 5.2.2).",
        )
    } else {
        (
            "Linux 6.1, sch_codel; C r_max in packets if that is more.",
            1000.0,
            "Of the order of the longest round trip, 100 ms by default (RFC 8289, section 4.2).",
            "5 % of the interval (RFC 8289, section 4.3), and no less than one packet time.",
        )
    };
    let room = (on.packet_rate() * on.rtt_max.as_secs_f64()).max(least);
    notes.packets("limit", "limit", room, limit);
    notes.time("target", "TARGET", target, of_target);
    notes.time("interval", "INTERVAL", interval, of_interval);
    if flow_queueing {
        let flows = (4 * on.flows).next_power_of_two().clamp(1024, 65_536);
        let text = Some(flows.to_string());
        let why = "RFC 8290, section 5.2.5's default, or a power of two above 4 N to keep collisions rare.";
        notes.add("flows", "queues", (flows as f64, ""), text, why);
        let quantum = on.packet.as_u64().max(1500);
        let text = Some(format!("\"{quantum} B\""));
        let why = "One packet, as RFC 8290, section 5.2.4, has it for Ethernet; its 1514 B count a header that packets here have not.";
        notes.add("quantum", "quantum", (quantum as f64, "B"), text, why);
    }
    let packet = "L / C: below it, a target would be missed by whatever waits.";
    notes.figure("packet time", "L/C", (one.as_secs_f64(), "s"), packet);
    let model = if flow_queueing {
        "RFC 8290, section 5.2: CoDel's delays from the longest round trip and the packet time, queues from the flows"
    } else {
        "RFC 8289, section 4: CoDel's delays from the longest round trip and the packet time; it needs no number of flows"
    };
    notes.finish(kind, model)
}

fn pie(on: &Situated) -> Advice {
    let one = on.packet_time();
    let target = Span::from_ms(15).max(one);
    let mut notes = Notes(Vec::new());
    let product = on.packet_rate() * on.rtt_max.as_secs_f64();
    let held = on.packet_rate() * target.as_secs_f64();
    let room = (2.0 * (product + held)).max(100.0).ceil();
    let limit =
        "Twice C (r_max + target), so that the burst allowance of 150 ms finds room; at least 100.";
    notes.packets("limit", "limit", room, limit);
    let why = "15 ms (RFC 8033, section 4.2, QDELAY_REF), and no less than one packet time.";
    notes.time("target", "QDELAY_REF", target, why);
    let update = "RFC 8033, section 4.2 (T_UPDATE).";
    notes.time("update", "T_UPDATE", Span::from_ms(15), update);
    let alpha = "RFC 8033, section 4.2, 1/8 Hz; scaled with the probability, for any load.";
    notes.number("alpha", "alpha", 0.125, alpha);
    let beta = "RFC 8033, section 4.2, 1 + 1/4 Hz; scaled with the probability, for any load.";
    notes.number("beta", "beta", 1.25, beta);
    let burst = "RFC 8033, section 4.4 (MAX_BURST).";
    notes.time("max_burst", "MAX_BURST", Span::from_ms(150), burst);
    let packet = "L / C: below it, a target would be missed by whatever waits.";
    notes.figure("packet time", "L/C", (one.as_secs_f64(), "s"), packet);
    let model = "RFC 8033, section 4: fixed gains for all loads, and a target no shorter than the packet time";
    notes.finish("pie", model)
}

fn tail_drop(on: &Situated) -> Advice {
    let product = on.product();
    let shared = product / libm::sqrt(on.flows as f64);
    let many = on.flows >= MANY_FLOWS;
    let mut notes = Notes(Vec::new());
    let (room, why) = if many {
        let why = "C r / sqrt(N), for 500 or more flows, which are not in step (Appenzeller, Keslassy, McKeown 2004).";
        (shared, why)
    } else {
        let why = "C r, since fewer than 500 flows may be in step (Villamizar and Song 1994).";
        (product, why)
    };
    notes.packets("limit", "B", room.ceil().max(2.0), why);
    let one = "Bandwidth-delay product: one flow, or many in step, keep the link busy (Villamizar and Song 1994).";
    notes.figure("C r", "C r", (product, "packets"), one);
    let all = "Flows that are not in step need no more (Appenzeller, Keslassy, McKeown 2004).";
    notes.figure("C r / sqrt(N)", "C r / sqrt(N)", (shared, "packets"), all);
    let model =
        "Rules of buffer size: the bandwidth-delay product, divided by sqrt(N) for many flows";
    notes.finish("tail-drop", model)
}
