//! Choices among the rules of ECN and of the retransmission timer, as keys of the `tcp` table.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{schemars, serde};
use strum::VariantArray;

/// How a receiver reports marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum EcnFeedback {
    /// That there was a mark: ECE on every acknowledgement until the sender sends CWR (RFC 3168, section 6.1.3).
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
    /// By as much as a loss (RFC 3168, section 6.1.2).
    Loss,
    /// By less than a loss: to 0.8, with CUBIC to 0.85 (ABE; RFC 8511, section 3.1).
    Abe,
    /// By half the share of marked data, once per round trip (RFC 8257, section 3.3).
    Dctcp,
    /// As `dctcp`, but at once even with `prr`, and after `rtt_transition` round trips at most once in 25 ms (Prague's virtual round trip).
    Prague,
    /// Not by this key: the model of the path responds to marks (growth `bbr3-google`).
    Bbr,
}

impl EcnReduction {
    /// Whether the reduction is in proportion to the share of marked bytes.
    pub fn is_scalable(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague | Self::Bbr)
    }
}

/// Initial value of the estimated share of marked data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum AlphaStart {
    /// 1; it decays from the first round on, with or without marks (RFC 8257, section 3.3).
    Decaying,
    /// 1; it stays at 1 until the first mark, which halves the window (TCP Prague 0.6, prague_update_alpha, saw_ce).
    Held,
    /// 0; the first mark halves the window (TCP Prague 0.7, prague_alpha_mode 0).
    Zero,
}

/// The codepoint of ECN-capable packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum EcnCodepoint {
    /// ECT(0) (RFC 3168, section 5).
    Ect0,
    /// ECT(1): requests the low-latency treatment of L4S, which is only for senders that respond to marks in proportion (RFC 9331).
    Ect1,
}

/// Which segments give round-trip samples; never a retransmitted one (Karn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RttSampling {
    /// The newest segment that each acknowledgement covers.
    EveryAck,
    /// The oldest segment without a retransmission that an acknowledgement newly covers, cumulatively or selectively; if there is none, the round-trip time from the timestamp (Linux, tcp_clean_rtx_queue and tcp_ack_update_rtt).
    EveryDelivery,
    /// One segment at a time (RFC 6298, section 3, the smallest allowed number; ns-2 without timestamps).
    OnePerWindow,
}

/// Quantity that the smallest retransmission timeout bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298, rule 2.4).
    Timeout,
    /// The term for the deviation, so that the timeout stays that much above the smoothed round trip (Linux).
    Deviation,
}

/// Which deviation of round-trip times the timeout uses: its term in addition to the smoothed round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RttDeviation {
    /// Four times the mean deviation (RFC 6298, rule 2.3).
    Mean,
    /// The largest value of four times the mean deviation within a round trip; it falls by a quarter of the difference in each round trip, and the mean hardly rises when round-trip times fall (Linux, tcp_rtt_estimator).
    Peak,
}

/// What restarts the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum TimerRestart {
    /// Acknowledgements of new data, and the beginning of a recovery (RFC 6298, rule 5.3; RFC 6675, section 5).
    Acks,
    /// Acknowledgements of new data; the retransmission of the first unacknowledged segment; and selective acknowledgements of data that was sent before the last transmission of this segment. After a tail loss probe or a reordering timer without effect, the timer runs from the last transmission of this segment (Linux, tcp_set_xmit_timer, tcp_rearm_rto, tcp_xmit_retransmit_queue).
    Head,
}

/// Effects of a lost SYN or SYN-ACK on the start of data transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum SynLoss {
    /// After the first retransmission, an initial window of one segment (RFC 5681, section 3.1) and a timeout of at least 3 s (RFC 6298, rule 5.7).
    First,
    /// An initial window of one segment from the second retransmission on; a timestamp still gives a round-trip sample, and the timeout is 3 s only without one (Linux, tcp_init_transfer, tcp_init_metrics).
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
