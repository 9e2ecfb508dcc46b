//! UDP sources of constant rate.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, ParamError, Rate, Span, Stream, Time, schemars, serde};

use crate::access::Direction;
use crate::bounds::check_rate;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{PacketSource, TrafficKind, UdpKind};
use crate::packet::{check_packet, largest, mean_size, mean_time};
use crate::start::Start;

groups! {
    /// UDP sources of constant rate.
    pub struct CbrParams {
        /// Rate of each source on the link, headers included.
        pub rate: Rate,
        /// Size of each packet on the link, headers included, or a law from which it is drawn for each; the gaps are those of the mean. Only the simulator draws sizes.
        pub packet: Dist<Bytes>,
        /// Draw each gap between packets uniformly from (1 - dither) to (1 + dither) times the nominal one.
        /// Source: none, a strictly constant rate.
        #[serde(default)]
        pub dither: f64,
        /// When sources start; dealt out. Left out, each starts at a random phase of its first gap.
        /// Source: a random phase keeps like sources out of lockstep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Dealt<Start>>,
        /// When sources stop; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

impl TrafficKind for CbrParams {
    fn example() -> &'static str {
        r#"flows = 2
rate = "1 Mbit/s"
packet = "1000 B"
stop = "2 s""#
    }

    fn noun(&self) -> &'static str {
        "constant-rate flow"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        self.start.as_ref()
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        check_rate(self.rate)?;
        check_packet(&self.packet)?;
        if !(0.0..=1.0).contains(&self.dither) {
            return Err(ParamError::new(
                "dither",
                "is not between 0 and 1",
                "a number from 0 to 1",
            ));
        }
        Ok(())
    }
}

impl UdpKind for CbrParams {
    type Source = CbrSource;

    fn source(&self) -> CbrSource {
        CbrSource::new(self)
    }

    fn mean_load(&self) -> (Rate, f64) {
        (self.rate, mean_size(&self.packet).as_u64() as f64)
    }

    fn largest_packet(&self) -> Bytes {
        largest(&self.packet)
    }

    fn packet(&self) -> Option<&Dist<Bytes>> {
        Some(&self.packet)
    }

    fn random_start(&self, stream: &mut Stream) -> Time {
        Time::ZERO + stream.uniform_span(Span::ZERO, self.gap())
    }
}

impl CbrParams {
    /// The nominal time between the starts of two packets.
    pub fn gap(&self) -> Span {
        mean_time(self.rate, &self.packet)
    }
}

/// A running source of constant rate.
#[derive(Clone, Copy, Debug)]
pub struct CbrSource {
    size: u32,
    gap: Span,
    /// The maximum difference of a gap from the nominal one; `None` without dither.
    width: Option<Span>,
}

impl CbrSource {
    fn new(group: &CbrParams) -> Self {
        let gap = group.gap();
        let width = (gap.as_ps() as f64 * group.dither) as u64;
        Self {
            size: mean_size(&group.packet).as_u64() as u32,
            gap,
            width: (group.dither != 0.0).then(|| Span::from_ps(width)),
        }
    }
}

impl PacketSource for CbrSource {
    #[inline]
    fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
        let gap = match self.width {
            None => self.gap,
            Some(width) => stream.uniform_span(self.gap - width, self.gap + width),
        };
        (self.size, gap)
    }
}
