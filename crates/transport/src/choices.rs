//! Choices among the rules of ECN and of the retransmission timer, as keys of the `tcp` table.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{schemars, serde};
use strum::VariantArray;

/// How a receiver tells of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum EcnFeedback {
    /// That there was one: ECE on every acknowledgement until the sender says CWR (RFC 3168, section 6.1.3).
    Echo,
    /// Which segments were marked: ECE as long as marked ones arrive, with an acknowledgement at every change (RFC 8257, section 3.2).
    Dctcp,
    /// How many packets and bytes were marked: counters in the header and in an option (RFC 9768).
    Accecn,
}

/// By how much marks reduce the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum EcnReduction {
    /// As a loss does (RFC 3168, section 6.1.2).
    Loss,
    /// Less than a loss does: to 0.8, with CUBIC to 0.85 (ABE; RFC 8511, section 3.1).
    Abe,
    /// By half the share of what is marked, once a round trip (RFC 8257, section 3.3).
    Dctcp,
    /// As `dctcp`, at once even with `prr`, and after `rtt_transition` round trips at most once in 25 ms (Prague's virtual round trip).
    Prague,
    /// Not here: a model of the path that answers marks does it (growth `bbr3-google`).
    Bbr,
}

impl EcnReduction {
    /// Whether the reduction is in proportion to the share of marked bytes.
    pub fn is_scalable(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague | Self::Bbr)
    }
}

/// How the estimate of the share that is marked begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum AlphaStart {
    /// At 1, and decays from the first round on, marks or not (RFC 8257, section 3.3).
    Decaying,
    /// At 1, and stays there until the first mark, which halves the window (TCP Prague 0.6, prague_update_alpha, saw_ce).
    Held,
    /// At 0; the first mark halves the window (TCP Prague 0.7, prague_alpha_mode 0).
    Zero,
}

/// The codepoint of ECN-capable packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum EcnCodepoint {
    /// ECT(0) (RFC 3168, section 5).
    Ect0,
    /// ECT(1): asks for the low-latency treatment of L4S, which only senders that respond in proportion may (RFC 9331).
    Ect1,
}

/// Which segments give round-trip samples; never a retransmitted one (Karn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RttSampling {
    /// The newest segment that each acknowledgement covers.
    EveryAck,
    /// The oldest never sent again of the segments that an acknowledgement newly covers, selectively or not; where there is none, what its timestamp says (Linux, tcp_clean_rtx_queue and tcp_ack_update_rtt).
    EveryDelivery,
    /// One segment timed at a time (RFC 6298, section 3, the least allowed; ns-2 without timestamps).
    OnePerWindow,
}

/// What the least timeout is a bound of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298, rule 2.4).
    Timeout,
    /// The term for the deviation, so that the timeout stays that much above the smoothed round trip (Linux).
    Deviation,
}

/// What the timeout takes for the deviation of round trips: its term besides the smoothed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RttDeviation {
    /// Four times the mean deviation (RFC 6298, rule 2.3).
    Mean,
    /// The greatest that this was within a round trip; it falls by a quarter of the difference each round trip, and the mean hardly rises with a round trip that falls (Linux, tcp_rtt_estimator).
    Peak,
}

/// What restarts the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum TimerRestart {
    /// Acknowledgements of new data, and the beginning of a recovery (RFC 6298, rule 5.3; RFC 6675, section 5).
    Acks,
    /// Acknowledgements of new data; the retransmission of the first unacknowledged segment; and selective acknowledgements of data sent before that was last sent. After a tail loss probe or a reordering timer that came to nothing it runs from when that segment was last sent (Linux, tcp_set_xmit_timer, tcp_rearm_rto, tcp_xmit_retransmit_queue).
    Head,
}

/// What a lost SYN or SYN-ACK leaves behind when data transmission begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum SynLoss {
    /// After the first retransmission one segment (RFC 5681, section 3.1), and a timeout of at least 3 s (RFC 6298, rule 5.7).
    First,
    /// One segment from the second retransmission on; a timestamp gives a round trip in spite of them, and the timeout is 3 s only where there is none (Linux, tcp_init_transfer, tcp_init_metrics).
    Second,
}

impl SynLoss {
    /// Whether this number of SYN retransmissions reduces the initial window to one segment.
    pub(super) fn reduces_window(self, retransmissions: u32) -> bool {
        match self {
            Self::First => retransmissions > 0,
            Self::Second => retransmissions > 1,
        }
    }
}
