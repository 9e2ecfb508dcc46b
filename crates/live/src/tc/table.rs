//! The table: for each key of each kind the option of `tc` that it becomes.

use serde_json::{Value as Json, json};

use Unit::*;

/// A key of redtail and its counterpart.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The kind of queue, as in the experiment file.
    pub kind: &'static str,
    /// The key; `class.rate` is the key `rate` of each entry of the list `class`. Empty for an option of
    /// `tc` without a key.
    pub key: &'static str,
    /// The option of `tc`; empty if there is none.
    pub option: &'static str,
    /// How the value is written, and what is accepted.
    pub unit: Unit,
    /// The name under which `tc -j qdisc show` reports it; empty if it does not.
    pub shown: &'static str,
    /// What else there is to know.
    pub note: &'static str,
}

/// What times are counted in by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Microseconds.
    Micros,
    /// CoDel's units of 1.024 us, rounded down.
    Codel,
    /// Ticks of the kernel's clock, rounded up.
    Jiffies,
}

/// How a value is written for `tc`, and which values are accepted.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// A limit that has a part in packets and no other.
    LimitInPackets,
    /// A limit that has no part in packets; a time is converted to bytes.
    LimitInBytes,
    /// A limit in packets, or one in bytes or time: `pfifo` or `bfifo`.
    LimitInEither,
    /// A limit in packets, with a limit of memory that is never reached.
    LimitWithMemory,
    /// A key that must be left out.
    LeftOut,
    /// A whole number.
    Whole {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A power of two, up to this.
    PowerOfTwo(u64),
    /// A size in bytes.
    Size {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A threshold in bytes; a time is converted to bytes, packets are refused.
    ThresholdInBytes,
    /// A threshold in packets.
    ThresholdInPackets,
    /// The overhead of CAKE, in bytes: Ethernet's header if there is no rate.
    CakeOverhead,
    /// A rate in bit/s, which the kernel counts in bytes per second.
    Rate,
    /// A rate as before; the word `unlimited` if it is left out.
    RateOrUnlimited,
    /// A time in microseconds.
    Time(Clock),
    /// A time in microseconds; no option if it is left out.
    OptionalTime(Clock),
    /// A time in milliseconds.
    Millis,
    /// A time in seconds; 0 if it is left out.
    Seconds,
    /// The word for true and the word for false; an empty one is no word.
    Flag(&'static str, &'static str),
    /// A word for each value: the value, the word, and what the kernel reports.
    Choice(&'static [(&'static str, &'static str, &'static str)]),
    /// No option: only this value (a text of JSON) is what the kernel does.
    Only(&'static str),
    /// No option: the size of a full packet of the device.
    FullPacket,
    /// No option: left out, or the size of a full packet; the largest packet that crosses the link must be one.
    FullPacketIfGiven,
    /// A probability, counted in 2^-32.
    Probability,
    /// A change of a probability, counted in 1/65535.
    SfbStep,
    /// The weight of an average, a power of two; written as `burst` (and `avpkt`).
    Weight,
    /// A number counted in this many parts of one, up to a most.
    Parts {
        /// Parts of one.
        of_one: u32,
        /// Most parts.
        most: u64,
        /// Whether the parts are written (`pie`), or the number itself (`dualpi2`).
        whole: bool,
    },
    /// A share as a whole number of percent, with the sign (`true`) or without.
    Percent(bool),
    /// Words that are always written.
    Always(&'static [&'static str]),
    /// The rate of the link in bit/s.
    OfLink,
    /// As many flows as packets.
    FlowsAsLimit,
    /// A burst of a bucket, counted by the kernel as the time that it lasts.
    Burst,
    /// As before; no option if it is left out.
    OptionalBurst,
    /// A rate; no option if it is left out.
    OptionalRate,
    /// Becomes classes, filters or inner queues; the note says how.
    Structure,
}

const U32: u64 = u32::MAX as u64;
const COUNT: Unit = Whole {
    least: 1,
    most: U32,
};

impl Unit {
    /// Whether redtail's default of such a key gives way to what the kernel does, if the kernel cannot
    /// have it.
    pub fn yields(self) -> bool {
        matches!(self, Only(_) | Time(_) | OptionalTime(_))
    }

    /// What the reference page says of it.
    pub fn words(self) -> String {
        let most_bytes = |most| match most {
            U32 => String::new(),
            most => format!(", at most {most}"),
        };
        match self {
            LimitInPackets => "packets; a limit in bytes or time is refused".to_owned(),
            LimitInBytes => "bytes; a time is converted at the link's rate, packets are refused".to_owned(),
            LimitInEither => {
                "packets (`pfifo`), or bytes (`bfifo`; a time is converted at the link's rate); both are refused"
                    .to_owned()
            }
            LimitWithMemory => "packets and bytes".to_owned(),
            LeftOut => "accepted only when it is left out".to_owned(),
            Whole { least, most: U32 } => format!("whole number from {least}"),
            Whole { least, most } => format!("whole number from {least} to {most}"),
            PowerOfTwo(most) => format!("power of two, at most {most}"),
            Size { least: 0 | 1, most } => format!("bytes{}", most_bytes(most)),
            Size { least, most } => format!("bytes, at least {least}{}", most_bytes(most)),
            ThresholdInBytes => {
                "bytes; a time is converted at the link's rate, packets are refused".to_owned()
            }
            ThresholdInPackets => "packets; bytes and times are refused".to_owned(),
            CakeOverhead => {
                "bytes, at most 256; 14 if `rate` is left out".to_owned()
            }
            Rate | OptionalRate => "bit/s, whole bytes per second".to_owned(),
            RateOrUnlimited => "bit/s, whole bytes per second; `unlimited` if left out".to_owned(),
            Time(clock) | OptionalTime(clock) => match clock {
                Clock::Micros => "us".to_owned(),
                Clock::Codel => "us; the kernel rounds down to 1.024 us".to_owned(),
                Clock::Jiffies => "us; the kernel rounds up to ticks (4 ms at 250 Hz)".to_owned(),
            },
            Millis => "whole milliseconds, at most 4294967".to_owned(),
            Seconds => "whole seconds; 0 if left out".to_owned(),
            Flag(on, off) => {
                let word = |word: &str| match word {
                    "" => "no word".to_owned(),
                    word => format!("`{word}`"),
                };
                format!("true: {}, false: {}", word(on), word(off))
            }
            Choice(list) => {
                let each = list.iter().map(|(value, word, _)| match *word {
                    "" => format!("`{value}`: no word"),
                    word if word == *value => format!("`{value}`"),
                    word => format!("`{value}`: `{word}`"),
                });
                each.collect::<Vec<_>>().join(", ")
            }
            Only(value) => format!("accepted: `{value}`"),
            FullPacket => "accepted: the MTU of the device".to_owned(),
            FullPacketIfGiven => "accepted: the MTU of the device, given or known from the link".to_owned(),
            Probability => "probability below 1, counted in 2^-32 for the whole slope".to_owned(),
            SfbStep => "probability, counted in 1/65535".to_owned(),
            Weight => "a power of two, 2^-1 to 2^-31, by way of `burst`".to_owned(),
            Parts {
                of_one: 1, most, ..
            } => format!("whole number, at most {most}"),
            Parts { of_one, most, whole: true } => {
                format!("counted in 1/{of_one}; at most {most} of them")
            }
            Parts { of_one, .. } => format!("a number, counted in 1/{of_one}"),
            Percent(_) => "whole percent".to_owned(),
            Always(_) => "always written".to_owned(),
            OfLink => "bit/s: the rate of the link".to_owned(),
            FlowsAsLimit => "the packets of `limit`, at most `divisor` and 65408".to_owned(),
            Burst | OptionalBurst => "bytes, counted as time in units of 64 ns".to_owned(),
            Structure => "see the note".to_owned(),
        }
    }
}

const fn row(
    kind: &'static str,
    key: &'static str,
    option: &'static str,
    unit: Unit,
    shown: &'static str,
    note: &'static str,
) -> Row {
    Row {
        kind,
        key,
        option,
        unit,
        shown,
        note,
    }
}

const BYTES: Unit = Size {
    least: 1,
    most: U32,
};
const QUANTUM: Unit = Size {
    least: 256,
    most: 1 << 20,
};
const CODEL: Unit = Time(Clock::Codel);
const MICROS: Unit = Time(Clock::Micros);
const SIXTEENTHS: Unit = Parts {
    of_one: 16,
    most: 32,
    whole: true,
};
const ESTIMATOR: Unit = Choice(&[
    ("timestamps", "no_dq_rate_estimator", ""),
    ("departure-rate", "dq_rate_estimator", "true"),
]);
/// `true` is reported as a flag, `""` as its absence, anything else as a text.
const ABOVE: Unit = Choice(&[("drop", "harddrop", "true"), ("mark", "", "")]);
const NEWTON: &str = "The kernel computes the gaps with Newton's method.";
const MEMORY: &str = "Packets become `limit`. The kernel counts its own overhead in `memory_limit`, so a part in \
     bytes is accepted only if it cannot be reached: at least the MTU and 1024 B for each packet. A part in time \
     is refused.";
const RED_LIMIT: &str = "The kernel counts bytes.";
const RED_BYTES: &str = "The kernel averages bytes.";
const RED_SPACING: &str = "The kernel draws one random number for each gap.";
const RED_WEIGHT: &str = "`burst` is computed so that tc chooses the exponent nearest to `w_q`; the option sets \
     nothing else.";
const IDLE: &str =
    "Under a class of `htb` the kernel's average does not decay while the link is idle.";
const RED_MEAN: &str = "Measures idle periods, with `bandwidth`.";
const RULES: &str = "Each rule becomes filters `flower` with a `pref` of its own. `dscp` becomes `ip_tos` with \
     mask 0xfc; `protocol` `ip_proto`; `port` `src_port` and `dst_port`, in filters of their own (1 to 1023, \
     because a client may have any other port itself); `group` `src_ip` with the networks of the group's hosts, \
     and `host` with the addresses of one of these.";
const NAME: &str = "Classes are numbered in the order of the file.";
const INNER: &str = "Becomes the queue of the class.";

/// Every key of every kind that the kernel has.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("tail-drop", "limit", "limit", LimitInEither, "limit", ""),

    row("head-drop", "limit", "limit", LimitInPackets, "limit", "Becomes `pfifo_head_drop`."),

    row("red", "tune", "", LeftOut, "", "The kernel computes nothing from the traffic."),
    row("red", "limit", "limit", LimitInBytes, "limit", RED_LIMIT),
    row("red", "min_th", "min", ThresholdInBytes, "min", RED_BYTES),
    row("red", "max_th", "max", ThresholdInBytes, "max", "Below 2^31 times `w_q`."),
    row("red", "mean_packet", "avpkt", BYTES, "", RED_MEAN),
    row("red", "w_q", "burst", Weight, "ewma", RED_WEIGHT),
    row("red", "max_p", "probability", Probability, "probability", ""),
    row("red", "", "bandwidth", OfLink, "", "For idle periods."),
    row("red", "gentle", "", Only("false"), "", "The kernel drops everything above `max_th`."),
    row("red", "spacing", "", Only("\"linux\""), "", RED_SPACING),
    row("red", "flavour", "", Only("\"paper\""), "", ""),
    row("red", "byte_mode", "", Only("false"), "", "The kernel's probability does not depend on the size."),
    row("red", "idle_decay", "", Only("false"), "", IDLE),
    row("red", "ecn", "ecn", Flag("ecn", ""), "ecn", ""),
    row("red", "above_max_th", "harddrop", ABOVE, "harddrop", ""),

    row("adaptive-red", "limit", "limit", LimitInBytes, "limit", RED_LIMIT),
    row("adaptive-red", "min_th", "min", ThresholdInBytes, "min", RED_BYTES),
    row("adaptive-red", "mean_packet", "avpkt", BYTES, "", RED_MEAN),
    row("adaptive-red", "w_q", "burst", Weight, "ewma", RED_WEIGHT),
    row("adaptive-red", "max_th", "max", ThresholdInBytes, "max", "Below 2^31 times `w_q`."),
    row("adaptive-red", "target_delay", "", Only("\"5 ms\""), "", "It has no effect when `min_th` is given."),
    row("adaptive-red", "max_p", "probability", Probability, "probability", "Where it starts."),
    row("adaptive-red", "", "bandwidth", OfLink, "", "For idle periods."),
    row("adaptive-red", "", "adaptive", Always(&["adaptive"]), "", "The queue is `red`."),
    row("adaptive-red", "adapt", "", Structure, "",
        "`true`: redtail repeats tc's options with the flag in `tc_red_qopt`, where the kernel reads it \
         ([why](../explanation/adaptive-red-on-linux.md)). `false`: as tc leaves it, `max_p` stays."),
    row("adaptive-red", "alpha", "", Only("0.01"), "", ""),
    row("adaptive-red", "beta", "", Only("0.9"), "", ""),
    row("adaptive-red", "bottom", "", Only("0.01"), "", "Left out, redtail's is smaller on links above 8 Mbit/s."),
    row("adaptive-red", "top", "", Only("0.5"), "", ""),
    row("adaptive-red", "interval", "", Only("\"500 ms\""), "", ""),
    row("adaptive-red", "gentle", "", Only("false"), "", "The kernel drops everything above `max_th`."),
    row("adaptive-red", "spacing", "", Only("\"linux\""), "", RED_SPACING),
    row("adaptive-red", "flavour", "", Only("\"paper\""), "", ""),
    row("adaptive-red", "byte_mode", "", Only("false"), "", "The kernel's probability does not depend on the size."),
    row("adaptive-red", "idle_decay", "", Only("false"), "", IDLE),
    row("adaptive-red", "ecn", "ecn", Flag("ecn", ""), "ecn", ""),
    row("adaptive-red", "above_max_th", "harddrop", ABOVE, "harddrop", ""),

    row("wred", "profiles", "vqs, default", Structure, "",
        "ProfileParams N of the file becomes `DP` N, set up by `tc qdisc change`; at most 15 profiles. With two or \
         more, all get `prio 1`, so that they share one average. With `dscp`, filters `flower` at the exit of \
         the device (`clsact`) write the number of the profile into the packet's `tc_index`; such a queue is \
         accepted only where no other queue stands beside it."),
    row("wred", "average", "grio", Only("\"total\""), "",
        "`\"own\"`: the kernel limits each profile by itself then. `\"rio\"`: the kernel adds averages, and \
         redtail averages sums."),
    row("wred", "limit", "limit", LimitInBytes, "limit", RED_LIMIT),
    row("wred", "profiles.dscp", "ip_tos", Structure, "", "See `profiles`."),
    row("wred", "profiles.min_th", "min", ThresholdInBytes, "min", RED_BYTES),
    row("wred", "profiles.max_th", "max", ThresholdInBytes, "max", "Below 2^31 times `w_q`."),
    row("wred", "mean_packet", "avpkt", Structure, "", "Bytes. Measures idle periods, with `bandwidth`. Written for each profile."),
    row("wred", "w_q", "burst", Structure, "", "As in `red`, for each profile."),
    row("wred", "profiles.max_p", "probability", Probability, "probability", ""),
    row("wred", "", "bandwidth", Structure, "", "The rate of the link. Written for each profile."),
    row("wred", "gentle", "", Only("false"), "", "The kernel drops everything above `max_th`."),
    row("wred", "spacing", "", Only("\"linux\""), "", RED_SPACING),
    row("wred", "byte_mode", "", Only("false"), "", "The kernel's probability does not depend on the size."),
    row("wred", "ecn", "ecn", Structure, "", "Written for each profile."),
    row("wred", "above_max_th", "harddrop", Structure, "", "`drop`: `harddrop`, `mark`: no word. Written for each profile."),

    row("choke", "limit", "limit", LimitInPackets, "limit", "At most 131071."),
    row("choke", "min_th", "min", ThresholdInPackets, "min", "The kernel averages packets."),
    row("choke", "max_th", "max", ThresholdInPackets, "max", "The kernel averages packets. At most `limit`, and below 2^31 times `w_q`."),
    row("choke", "mean_packet", "avpkt", BYTES, "", RED_MEAN),
    row("choke", "idle_decay", "", Only("false"), "", IDLE),
    row("choke", "w_q", "burst", Weight, "ewma", RED_WEIGHT),
    row("choke", "max_p", "probability", Probability, "probability", ""),
    row("choke", "", "bandwidth", OfLink, "", "For idle periods."),
    row("choke", "flavour", "", Only("\"linux\""), "", "The kernel's average moves by whole packets, and does not fall while the queue has as many."),
    row("choke", "spacing", "", Only("\"linux\""), "", RED_SPACING),
    row("choke", "candidates", "", Only("1"), "", ""),
    row("choke", "ecn", "", Only("false"), "ecn", "With `ecn` the kernel marks above `max_th` too, where redtail drops; tc has no `harddrop` for `choke`."),

    row("codel", "limit", "limit", LimitInPackets, "limit", ""),
    row("codel", "target", "target", CODEL, "target", ""),
    row("codel", "interval", "interval", CODEL, "interval", ""),
    row("codel", "ecn", "ecn", Flag("ecn", "noecn"), "ecn", ""),
    row("codel", "ce_threshold", "ce_threshold", OptionalTime(Clock::Codel), "ce_threshold", "Left out: no option, off."),
    row("codel", "mtu", "", FullPacket, "", ""),
    row("codel", "inverse_sqrt", "", Only("\"newton\""), "", NEWTON),

    row("fq-codel", "limit", "limit, memory_limit", LimitWithMemory, "limit", MEMORY),
    row("fq-codel", "flows", "flows", Whole { least: 1, most: 65_536 }, "flows", ""),
    row("fq-codel", "quantum", "quantum", QUANTUM, "quantum", ""),
    row("fq-codel", "target", "target", CODEL, "target", ""),
    row("fq-codel", "interval", "interval", CODEL, "interval", ""),
    row("fq-codel", "ecn", "ecn", Flag("ecn", "noecn"), "ecn", ""),
    row("fq-codel", "ce_threshold", "ce_threshold", OptionalTime(Clock::Codel), "ce_threshold", "Left out: no option, off."),
    row("fq-codel", "mtu", "", FullPacket, "", ""),
    row("fq-codel", "drop_batch", "drop_batch", COUNT, "drop_batch", ""),
    row("fq-codel", "inverse_sqrt", "", Only("\"newton\""), "", NEWTON),

    row("pie", "limit", "limit", LimitInPackets, "limit", ""),
    row("pie", "target", "target", MICROS, "target", ""),
    row("pie", "update", "tupdate", Time(Clock::Jiffies), "tupdate", ""),
    row("pie", "alpha", "alpha", SIXTEENTHS, "alpha", ""),
    row("pie", "beta", "beta", SIXTEENTHS, "beta", ""),
    row("pie", "max_burst", "", Only("\"150 ms\""), "", ""),
    row("pie", "derandomize", "", Only("true"), "", ""),
    row("pie", "delay", "dq_rate_estimator", ESTIMATOR, "dq_rate_estimator", ""),
    row("pie", "decay", "", Only("\"no-delay\""), "", ""),
    row("pie", "byte_mode", "bytemode", Flag("bytemode", "nobytemode"), "bytemode", ""),
    row("pie", "mean_packet", "", FullPacketIfGiven, "", ""),
    row("pie", "activation", "", Only("false"), "", ""),
    row("pie", "flavour", "", Only("\"linux\""), "", ""),
    row("pie", "ecn", "ecn", Flag("ecn", "noecn"), "ecn", ""),
    row("pie", "max_ecn", "", Only("0.1"), "", ""),

    row("fq-pie", "limit", "limit, memory_limit", LimitWithMemory, "limit", MEMORY),
    row("fq-pie", "flows", "flows", Whole { least: 1, most: 65_536 }, "flows", ""),
    row("fq-pie", "quantum", "quantum", QUANTUM, "quantum", ""),
    row("fq-pie", "target", "target", MICROS, "target", ""),
    row("fq-pie", "update", "tupdate", Time(Clock::Jiffies), "tupdate", ""),
    row("fq-pie", "alpha", "alpha", SIXTEENTHS, "alpha", ""),
    row("fq-pie", "beta", "beta", SIXTEENTHS, "beta", ""),
    row("fq-pie", "max_burst", "", Only("\"150 ms\""), "", ""),
    row("fq-pie", "mean_packet", "", FullPacket, "", ""),
    row("fq-pie", "delay", "dq_rate_estimator", ESTIMATOR, "dq_rate_estimator", ""),
    row("fq-pie", "ecn", "ecn", Flag("ecn", "noecn"), "ecn", ""),
    row("fq-pie", "max_ecn", "ecn_prob", Percent(false), "ecn_prob", ""),
    row("fq-pie", "", "nobytemode", Always(&["nobytemode"]), "", "redtail has no byte mode here."),

    row("cake", "rate", "bandwidth", RateOrUnlimited, "bandwidth", ""),
    row("cake", "rtt", "rtt", MICROS, "rtt", ""),
    row("cake", "diffserv", "", Choice(&[
        ("besteffort", "besteffort", "besteffort"), ("precedence", "precedence", "precedence"),
        ("diffserv3", "diffserv3", "diffserv3"), ("diffserv4", "diffserv4", "diffserv4"),
        ("diffserv8", "diffserv8", "diffserv8"),
    ]), "diffserv", ""),
    row("cake", "isolation", "", Choice(&[
        ("flowblind", "flowblind", "flowblind"), ("srchost", "srchost", "srchost"),
        ("dsthost", "dsthost", "dsthost"), ("hosts", "hosts", "hosts"), ("flows", "flows", "flows"),
        ("dual-srchost", "dual-srchost", "dual-srchost"), ("dual-dsthost", "dual-dsthost", "dual-dsthost"),
        ("triple-isolate", "triple-isolate", "triple-isolate"),
    ]), "flowmode", ""),
    row("cake", "", "nonat, split-gso", Always(&["nonat", "split-gso"]), "", "redtail has neither."),
    row("cake", "wash", "wash", Flag("wash", "nowash"), "wash", ""),
    row("cake", "ack_filter", "", Choice(&[
        ("off", "no-ack-filter", "disabled"), ("on", "ack-filter", "enabled"),
        ("aggressive", "ack-filter-aggressive", "aggressive"),
    ]), "ack-filter", ""),
    row("cake", "framing", "", Choice(&[
        ("none", "noatm", "noatm"), ("atm", "atm", "atm"), ("ptm", "ptm", "ptm"),
    ]), "atm", ""),
    row("cake", "overhead", "overhead", CakeOverhead, "overhead", "With this option the kernel leaves out a link header, on Ethernet too. Without a rate its quantum is 1514 B, a full packet with Ethernet's header, and with 14 B it counts full packets as that."),
    row("cake", "mpu", "mpu", Size { least: 0, most: 256 }, "mpu", ""),
    row("cake", "ingress", "ingress", Flag("ingress", "egress"), "ingress", ""),
    row("cake", "ecn", "", Only("true"), "", ""),
    row("cake", "first_gap", "", Only("\"none\""), "", ""),
    row("cake", "follow_after", "", LeftOut, "", "The rate of the kernel's link does not change."),
    row("cake", "follow_hop", "", LeftOut, "", "As `follow_after`."),
    row("cake", "limit", "", LeftOut, "", "The kernel counts its own overhead in `memlimit`. Left out, both compute the limit by the same formula, the kernel with that overhead."),

    row("sfq", "limit", "limit", LimitInPackets, "limit", "At least 2, at most `depth` times the flows."),
    row("sfq", "", "flows", FlowsAsLimit, "flows", "So that the number of flows is never a limit."),
    row("sfq", "depth", "depth", Whole { least: 1, most: 127 }, "depth", ""),
    row("sfq", "divisor", "divisor", PowerOfTwo(65_536), "divisor", ""),
    row("sfq", "quantum", "quantum", QUANTUM, "quantum", "The kernel counts turns in units of 8 B, rounded up."),
    row("sfq", "perturb", "perturb", Seconds, "perturb", ""),
    row("sfq", "head_drop", "headdrop", Flag("headdrop", ""), "headdrop", ""),

    row("sfb", "limit", "limit", LimitInPackets, "limit", ""),
    row("sfb", "bin_size", "target", COUNT, "target", ""),
    row("sfb", "max", "max", COUNT, "max", ""),
    row("sfb", "increment", "increment", SfbStep, "increment", ""),
    row("sfb", "decrement", "decrement", SfbStep, "decrement", ""),
    row("sfb", "rehash", "rehash", Millis, "rehash", ""),
    row("sfb", "warmup", "db", Millis, "db", ""),
    row("sfb", "penalty_rate", "penalty_rate", Whole { least: 0, most: U32 }, "penalty_rate", ""),
    row("sfb", "penalty_burst", "penalty_burst", Whole { least: 0, most: U32 }, "penalty_burst", ""),
    row("sfb", "ecn", "", Only("true"), "", "The kernel always marks ECN-capable packets."),

    row("dualpi2", "flavour", "", Only("\"linux\""), "", "Keys that are left out get the defaults of this flavour, and they are written."),
    row("dualpi2", "limit", "limit", LimitInPackets, "limit", ""),
    row("dualpi2", "target", "target", MICROS, "target", ""),
    row("dualpi2", "rtt_max", "", LeftOut, "", "`update`, `alpha` and `beta` are written instead."),
    row("dualpi2", "update", "tupdate", MICROS, "tupdate", ""),
    row("dualpi2", "alpha", "alpha", Parts { of_one: 256, most: (1 << 24) - 1, whole: false }, "alpha", ""),
    row("dualpi2", "beta", "beta", Parts { of_one: 256, most: (1 << 24) - 1, whole: false }, "beta", ""),
    row("dualpi2", "coupling", "coupling_factor", Parts { of_one: 1, most: 255, whole: true }, "coupling", ""),
    row("dualpi2", "min_th", "step_thresh", MICROS, "step-thresh-us", ""),
    row("dualpi2", "range", "", Only("\"0 s\""), "", "The kernel has a step."),
    row("dualpi2", "th_len", "min_qlen_step", Whole { least: 0, most: 0 }, "min-qlen-step", "The kernel asks the queue that a packet finds, redtail the one that it leaves."),
    row("dualpi2", "scheduler", "", Only("\"wrr\""), "", ""),
    row("dualpi2", "classic_share", "classic_protection", Percent(true), "c-protection", ""),
    row("dualpi2", "time_shift", "", LeftOut, "", "Belongs to another scheduler."),
    row("dualpi2", "", "drop_on_overload, drop_dequeue, l4s_ect, split_gso", Always(&["drop_on_overload", "drop_dequeue", "l4s_ect", "split_gso"]), "", "What redtail does."),

    row("htb", "default", "default", Structure, "", "The number of the class."),
    row("htb", "follow_after", "", LeftOut, "", "The rate of the kernel's link does not change."),
    row("htb", "follow_hop", "", LeftOut, "", "As `follow_after`."),
    row("htb", "class", "", Structure, "", "`tc class add`, parents first."),
    row("htb", "class.name", "classid", Structure, "", NAME),
    row("htb", "class.match", "flower", Structure, "", RULES),
    row("htb", "class.rate", "rate", Rate, "", ""),
    row("htb", "class.ceil", "ceil", Rate, "", "Left out: the rate, which is written."),
    row("htb", "class.prio", "prio", Whole { least: 0, most: 7 }, "", ""),
    row("htb", "class.quantum", "quantum", BYTES, "", "Left out: computed as redtail does, and written. Only for classes with a queue."),
    row("htb", "class.burst", "burst", Burst, "", ""),
    row("htb", "class.cburst", "cburst", Burst, "", ""),
    row("htb", "class.queue", "parent", Structure, "", INNER),
    row("htb", "class.class", "parent", Structure, "", "Classes below a class."),

    row("tbf", "rate", "rate", Rate, "rate", ""),
    row("tbf", "burst", "burst", Burst, "burst", ""),
    row("tbf", "peak_rate", "peakrate", OptionalRate, "", ""),
    row("tbf", "mtu", "mtu", OptionalBurst, "mtu", ""),
    row("tbf", "", "limit", Structure, "", "tc asks for it; it holds for a queue that the inner queue replaces."),
    row("tbf", "follow_after", "", LeftOut, "", "The rate of the kernel's link does not change."),
    row("tbf", "follow_hop", "", LeftOut, "", "As `follow_after`."),
    row("tbf", "queue", "parent", Structure, "", "Becomes the queue of class 1."),

    row("prio", "default", "priomap", Structure, "", "All 16 places have the band of the default class."),
    row("prio", "class", "bands", Structure, "", "At most 16 classes. Of a single class `prio` makes two bands, the second without packets."),
    row("prio", "class.name", "parent", Structure, "", NAME),
    row("prio", "class.match", "flower", Structure, "", RULES),
    row("prio", "class.queue", "parent", Structure, "", INNER),

    row("drr", "default", "matchall", Structure, "", "A filter for all other packets, which the kernel would drop."),
    row("drr", "class", "", Structure, "", "`tc class add`."),
    row("drr", "class.name", "classid", Structure, "", NAME),
    row("drr", "class.match", "flower", Structure, "", RULES),
    row("drr", "class.quantum", "quantum", BYTES, "", ""),
    row("drr", "class.queue", "parent", Structure, "", INNER),
];

/// The rows of a kind, in the order in which `tc` gets the options.
pub fn rows(kind: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.kind == kind)
}

/// The row of a key.
pub(super) fn row_of(kind: &str, key: &str) -> Option<&'static Row> {
    rows(kind).find(|row| row.key == key)
}

/// The kinds that the kernel has.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = ROWS.iter().map(|row| row.kind).collect();
    kinds.dedup();
    kinds
}

/// The table as plain data, for the reference page and for who makes a queue that the kernel can have: `only` is
/// the one value of the key that is accepted, as a text of JSON; it is empty where others are, too.
pub fn table() -> Json {
    let each = ROWS.iter().map(|row| {
        json!({
            "kind": row.kind,
            "key": row.key,
            "option": row.option,
            "unit": row.unit.words(),
            "note": row.note,
            "only": match row.unit {
                Only(value) => value,
                _ => "",
            },
        })
    });
    each.collect()
}
