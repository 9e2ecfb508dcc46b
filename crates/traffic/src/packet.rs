//! Sizes of packets on the link, where the file gives a law instead of a constant.
//!
//! A source sends packets of one size, which is the mean of the law to the byte, at the gaps that belong to it. The
//! network draws another size for each when the packet enters it. So a sender neither draws nor remembers sizes, and
//! a law costs nothing where it is a constant. The draw depends on the packet's number in its flow alone, so a segment
//! that is sent again has its size again.

use redtail_core::{Bytes, ParamError, Rate, Span};

use crate::dist::{Dist, Drawn};

/// Largest IP packet.
pub(crate) const LARGEST: u64 = 65_535;

/// What a file may give.
const ACCEPTED: &str =
    "\"1 B\" to \"65535 B\", or a law within them such as \"uniform 1400..1628 B\"";

/// The law of the sizes of a group's packets.
#[derive(Clone, Debug)]
pub struct DrawnSizes {
    law: Dist<Bytes>,
    mean: u32,
}

impl DrawnSizes {
    /// That of packets which are sent with `mean` bytes; `None` if there is no law, or it is a constant.
    pub(crate) fn of(law: Option<&Dist<Bytes>>, mean: Bytes) -> Option<Self> {
        let law = law.filter(|law| law.only().is_none())?;
        Some(Self {
            law: law.clone(),
            mean: mean.as_u64() as u32,
        })
    }

    /// Whether the size of a packet that is sent with `size` bytes is drawn.
    #[inline]
    pub fn replace(&self, size: u32) -> bool {
        size == self.mean
    }

    /// The size that is not exceeded with probability `p`, at least a byte.
    pub fn quantile(&self, p: f64) -> u32 {
        self.law.quantile(p).as_u64().clamp(1, LARGEST) as u32
    }
}

/// The size with which a source sends its packets: the mean, to the byte.
pub(crate) fn mean_size(law: &Dist<Bytes>) -> Bytes {
    Bytes::nearest(law.mean().unwrap_or(0.0))
}

/// The largest size that is drawn.
pub(crate) fn largest(law: &Dist<Bytes>) -> Bytes {
    law.quantile(1.0)
}

/// How long a source at `rate` takes for a packet on average.
pub(crate) fn mean_time(rate: Rate, law: &Dist<Bytes>) -> Span {
    match (law.only(), law.mean()) {
        (Some(size), _) => rate.tx_time(size),
        (None, Some(mean)) => Span::from_secs_f64(8.0 * mean / rate.as_bps() as f64),
        (None, None) => Span::MAX,
    }
}

/// Refuses packets that do not fit an IP packet, or that are empty.
pub(crate) fn check_packet(law: &Dist<Bytes>) -> Result<(), ParamError> {
    let problem = match largest(law).as_u64() {
        0 => "is empty",
        1..=LARGEST if mean_size(law) > Bytes::ZERO => return Ok(()),
        1..=LARGEST => "is empty on average",
        _ if law.only().is_none() => {
            return Err(ParamError::new(
                "packet",
                "may be more than fits an IP packet",
                format!("{ACCEPTED}; a law may end with \"max 1500 B\""),
            ));
        }
        _ => "does not fit an IP packet",
    };
    Err(ParamError::new("packet", problem, ACCEPTED))
}

/// Refuses sizes of full segments that do not belong to `full`, what `mss` and `header` are together.
pub(crate) fn check_segments(
    law: &Dist<Bytes>,
    full: Bytes,
    header: Bytes,
) -> Result<(), ParamError> {
    check_packet(law)?;
    let accepted = |also: String| {
        format!(
            "a size or a law with a mean of \"{full}\", which `mss` and `header` of `tcp` are together{also}"
        )
    };
    let mean = mean_size(law);
    if mean != full {
        let also = match mean > header {
            true => format!("; or tcp.mss = \"{}\" with this header", mean - header),
            false => String::new(),
        };
        return Err(ParamError::new(
            "packet",
            format!("has a mean of \"{mean}\""),
            accepted(also),
        ));
    }
    let least = law.quantile(0.0);
    if least <= header {
        return Err(ParamError::new(
            "packet",
            format!("may be \"{least}\", which leaves no room beside a header of \"{header}\""),
            accepted(format!(", and more than \"{header}\" in each case")),
        ));
    }
    Ok(())
}
