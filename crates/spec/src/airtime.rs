//! Airtime: a medium whose transmissions have a fixed overhead, carry several packets, and have a rate for each station.
//!
//! Sources: G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3), 2000
//! (times of a transmission); T. Høiland-Jørgensen et al., "Ending the Anomaly: Achieving Low Latency and Airtime Fairness in
//! WiFi", USENIX ATC 2017, section 2 (time of an aggregate); IEEE 802.11-2016 (constants).
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | T_oh, what each frame takes besides its packets | `overhead` | time |
//! | o, what each packet has besides its IP packet | `packet_overhead` | bytes |
//! | r, the station's rate | `rates`, or the link's `rate` | bit/s |
//! | l_1 ... l_n, the packets of a frame | | bytes |
//!
//! ```text
//! T = T_oh + sum of 8 (l_i + o) / r
//! ```

use std::collections::BTreeMap;

use redtail_core::{Bytes, ParamError, Rate, Span, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

params! {
    /// A link on which packets of one station share a transmission, as in 802.11. A traffic group is a station.
    #[schemars(rename = "Airtime")]
    pub struct AirtimeParams {
        /// Time that each frame takes besides its packets: contention, preamble, the gap before the acknowledgement, and the acknowledgement.
        overhead: Span = Span::from_ns(185_500), "IEEE 802.11-2016 at 5 GHz: DIFS 34 us, mean back-off 7.5 slots of 9 us, HT-mixed preamble 36 us, SIFS 16 us, block acknowledgement of 32 B at 24 Mbit/s 32 us.";
        /// Bytes that each packet has in a frame besides the IP packet.
        packet_overhead: Bytes = Bytes::new(42), "Høiland-Jørgensen et al. 2017, section 2.2: delimiter 4 B, MAC header and LLC 34 B, FCS 4 B; without padding.";
        /// The most packets of a frame.
        #[schemars(range(min = 1))]
        aggregate_packets: u32 = 64, "IEEE 802.11-2016, section 10.24: the window of a block acknowledgement.";
        /// The most bytes of a frame, `packet_overhead` included. A single packet may be larger.
        aggregate_bytes: Bytes = Bytes::new(65_535), "IEEE 802.11-2016, section 9.4.2.56: the largest A-MPDU of 802.11n.";
        /// The longest time of a frame's packets, without `overhead`. A single packet may take longer.
        aggregate_time: Span = Span::from_ms(4), "Linux, ath9k: frames of 4 ms at most.";
        /// Rates by the name of the group: `{ far = "6.5 Mbit/s", near = "130 Mbit/s" }`. Other groups have the link's `rate`.
        rates: BTreeMap<String, Rate> = BTreeMap::new(), "none: the link's `rate`.";
    }
}

/// Who uses the transmitter of a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// Both directions, one at a time (half duplex). If both have packets they take turns, a frame each; without `airtime` a frame is a packet.
    Shared,
}

impl AirtimeParams {
    /// A frame for each packet, without overhead: a transmission of a link without `airtime`.
    pub fn plain() -> Self {
        Self {
            overhead: Span::ZERO,
            packet_overhead: Bytes::ZERO,
            aggregate_packets: 1,
            ..Self::default()
        }
    }

    /// Refuses values that cannot be run anywhere.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    pub(crate) fn check(&self) -> Result<(), ParamError> {
        const LONGEST: Span = Span::from_ms(1000);
        let zero = |key: &'static str, accepted: &'static str| {
            Err(ParamError::new(key, "is zero", accepted))
        };
        if self.overhead > LONGEST {
            let accepted = "up to \"1 s\"";
            return Err(ParamError::new(
                "overhead",
                "is more than a second",
                accepted,
            ));
        }
        if self.packet_overhead > Bytes::new(65_535) {
            let accepted = "up to \"65535 B\"";
            return Err(ParamError::new(
                "packet_overhead",
                "is more than a packet",
                accepted,
            ));
        }
        if self.aggregate_packets == 0 {
            return zero("aggregate_packets", "1 or more");
        }
        if self.aggregate_bytes == Bytes::ZERO {
            return zero("aggregate_bytes", "a size such as \"65535 B\"");
        }
        if self.aggregate_time == Span::ZERO {
            return zero("aggregate_time", "a time such as \"4 ms\"");
        }
        for (name, rate) in &self.rates {
            if rate.as_bps() == 0 || *rate > Rate::FASTEST {
                return Err(ParamError::new(
                    "rates",
                    format!("has \"{rate}\" for {name:?}"),
                    format!("rates such as \"130 Mbit/s\", up to \"{}\"", Rate::FASTEST),
                ));
            }
        }
        Ok(())
    }
}
