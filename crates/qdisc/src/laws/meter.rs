//! Meters: each packet gets a colour by the rates and the bursts of those before it.
//!
//! Sources: RFC 2697, section 3 (a single-rate three-colour marker, srTCM) and RFC 2698, section 3 (a two-rate one, trTCM);
//! Linux act_police for the token bucket.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | CIR, CBS: committed rate and burst | `committed` | bit/s, bytes |
//! | EBS: excess burst | `excess`, `most_excess` | 10^-12 bit |
//! | PIR, PBS: peak rate and burst | `peak` | bit/s, bytes |
//! | Tc, Te, Tp: present tokens | levels of these | 10^-12 bit |
//!
//! ```text
//! token bucket:  B <= Tc: green, Tc -= B;             otherwise red
//! srTCM:         B <= Tc: green, Tc -= B;  B <= Te: yellow, Te -= B;             otherwise red
//! trTCM:         Tp < B: red;  Tc < B: yellow, Tp -= B;                otherwise green, Tp -= B, Tc -= B
//! ```
//!
//! All buckets are full at first. In srTCM, tokens that the committed bucket has no room for go to the excess bucket. A
//! colour-aware meter gives no packet a better colour than it had. The RFCs add tokens byte by byte; here they are
//! added as time passes, to the picosecond, as in [`token_bucket`](super::token_bucket).

use redtail_core::{Bytes, Rate, Time};

use super::token_bucket::{TokenBucket, cost};

/// What a meter says of a packet, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// Within the committed rate and burst.
    Green,
    /// Above these, within the excess burst or the peak rate.
    Yellow,
    /// Above all.
    Red,
}

/// A meter at work.
///
/// ```
/// use redtail_core::{Bytes, Rate, Span, Time};
/// use redtail_qdisc::laws::meter::{Colour, Meter};
///
/// let packet = Bytes::new(1500);
/// let mut meter = Meter::bucket(Rate::from_bps(1_000_000), packet);
/// assert_eq!(meter.colour(packet, Colour::Green, Time::ZERO), Colour::Green);
/// assert_eq!(meter.colour(packet, Colour::Green, Time::ZERO), Colour::Red);
/// let later = Time::ZERO + Span::from_ms(12);
/// assert_eq!(meter.colour(packet, Colour::Green, later), Colour::Green);
/// ```
#[derive(Clone, Debug)]
pub struct Meter {
    committed: TokenBucket,
    further: Further,
}

/// What decides about packets above the committed rate.
#[derive(Clone, Debug)]
enum Further {
    /// They are red.
    Nothing,
    /// The excess bucket.
    Excess { level: i128, most: i128 },
    /// The bucket of the peak rate.
    Peak(TokenBucket),
}

impl Meter {
    /// A token bucket.
    pub fn bucket(rate: Rate, burst: Bytes) -> Self {
        Self {
            committed: TokenBucket::full(rate, burst),
            further: Further::Nothing,
        }
    }

    /// A single-rate three-colour marker (RFC 2697).
    pub fn single_rate(cir: Rate, cbs: Bytes, ebs: Bytes) -> Self {
        Self {
            committed: TokenBucket::full(cir, cbs),
            further: Further::Excess {
                level: cost(ebs),
                most: cost(ebs),
            },
        }
    }

    /// A two-rate three-colour marker (RFC 2698).
    pub fn two_rate((cir, cbs): (Rate, Bytes), (pir, pbs): (Rate, Bytes)) -> Self {
        Self {
            committed: TokenBucket::full(cir, cbs),
            further: Further::Peak(TokenBucket::full(pir, pbs)),
        }
    }

    /// The colour of a packet of this size that had the colour `before`, which is green where the meter is colour-blind.
    pub fn colour(&mut self, size: Bytes, before: Colour, now: Time) -> Colour {
        let needed = cost(size);
        match &mut self.further {
            Further::Nothing => {
                if before != Colour::Green || self.committed.level(now) < needed {
                    return Colour::Red;
                }
            }
            Further::Excess { level, most } => {
                *level = (*most).min(*level + self.committed.fill(now));
                if before != Colour::Green || self.committed.level(now) < needed {
                    if before == Colour::Red || *level < needed {
                        return Colour::Red;
                    }
                    *level -= needed;
                    return Colour::Yellow;
                }
            }
            Further::Peak(peak) => {
                if before == Colour::Red || peak.level(now) < needed {
                    return Colour::Red;
                }
                peak.charge(size, now);
                if before == Colour::Yellow || self.committed.level(now) < needed {
                    return Colour::Yellow;
                }
            }
        }
        self.committed.charge(size, now);
        Colour::Green
    }
}
