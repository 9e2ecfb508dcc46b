//! The E-model: the quality of a call, computed from the delay and the loss of the network.
//!
//! R = Ro - Is - Id - Ie,eff + A, on a scale from 0 to 100, and from it the mean opinion score (MOS)
//! from 1 to 4.5.
//!
//! Source: ITU-T G.107 (06/2015), equations 7-1 to 7-29 and Annex B. Parameters that do not depend
//! on the network have the recommendation's defaults (its Table 2), the advantage factor A = 0.
//!
//! | symbol | unit | what |
//! |---|---|---|
//! | Ta, T | ms | one-way delay from mouth to ear, with and without echo in mind; the same here |
//! | Tr | ms | round-trip delay, 2 T |
//! | Ppl | % | packets that the decoder misses: lost on the way or too late |
//! | Ie, Bpl | 1 | impairment by the codec, and its robustness to losses (ITU-T G.113, Appendix I) |
//! | BurstR | 1 | burst ratio; 1: losses are taken to be random |

use libm::{exp, log10, pow, sqrt};
use redtail_core::Span;

/// Sending and receiving loudness rating, dB.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
/// Sidetone masking rating and listener's sidetone rating, dB.
const STMR: f64 = 15.0;
const LSTR: f64 = 18.0;
/// D-value of the sender's telephone.
const DS: f64 = 3.0;
/// Talker echo loudness rating, and weighted echo path loss, dB.
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
/// Number of quantization distortion units.
const QDU: f64 = 1.0;
/// Circuit noise (dBm0p), noise floor at the receiver (dBmp), room noise at both sides (dB(A)).
const NC: f64 = -70.0;
const N_FOR: f64 = -64.0;
const PS: f64 = 35.0;
const PR: f64 = 35.0;

/// The parameters of a codec in the E-model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Equipment impairment factor without losses, Ie.
    pub ie: f64,
    /// Packet-loss robustness factor, Bpl.
    pub bpl: f64,
}

/// The transmission rating factor R of a call with this one-way delay from mouth to ear, in which
/// the share `loss` of the packets is missing, at random. The scale ends at 0, but R may be below.
pub fn r_factor(delay: Span, loss: f64, codec: Impairment) -> f64 {
    let t = delay.as_secs_f64() * 1e3;
    let no = noise();
    let ro = 15.0 - 1.5 * (SLR + no);
    ro - simultaneous(t, ro, no) - delayed(t, ro, no) - effective_equipment(loss, codec)
}

/// The mean opinion score of a call with rating `r` (Annex B).
pub fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        // The cubic dips below 1 for ratings under 6.5; the scale of opinions ends there.
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

fn decibels(power: f64) -> f64 {
    10.0 * log10(power)
}

fn power(decibels: f64) -> f64 {
    pow(10.0, decibels / 10.0)
}

/// No, the sum of all noise, dBm0p (7-3 to 7-7).
fn noise() -> f64 {
    let olr = SLR + RLR;
    let sent = PS - SLR - DS - 100.0 + 0.004 * pow(PS - olr - DS - 14.0, 2.0);
    let room = PR + decibels(1.0 + power(10.0 - LSTR));
    let received = RLR - 121.0 + room + 0.008 * pow(room - 35.0, 2.0);
    let floor = N_FOR + RLR;
    decibels(power(NC) + power(sent) + power(received) + power(floor))
}

/// Is, the impairments that occur together with the voice (7-8 to 7-17).
fn simultaneous(t: f64, ro: f64, no: f64) -> f64 {
    let x = SLR + RLR + 0.2 * (64.0 + no - RLR);
    let too_loud = 20.0 * (pow(1.0 + pow(x / 8.0, 8.0), 1.0 / 8.0) - x / 8.0);
    let stmr = -decibels(power(-STMR) + exp(-t / 4.0) * power(-TELR));
    let sidetone = 12.0 * pow(1.0 + pow((stmr - 13.0) / 6.0, 8.0), 1.0 / 8.0)
        - 28.0 * pow(1.0 + pow((stmr + 1.0) / 19.4, 35.0), 1.0 / 35.0)
        - 13.0 * pow(1.0 + pow((stmr - 3.0) / 33.0, 13.0), 1.0 / 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * log10(QDU);
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantization = 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z));
    too_loud + sidetone + quantization
}

/// Id: talker echo, listener echo, and delay itself (7-18 to 7-28).
fn delayed(t: f64, ro: f64, no: f64) -> f64 {
    let terv = TELR - 40.0 * log10((1.0 + t / 10.0) / (1.0 + t / 150.0)) + 6.0 * exp(-0.3 * t * t);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let roe = -1.5 * (no - RLR);
    let half = (roe - re) / 2.0;
    let talker = (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-t));
    let rle = 10.5 * (WEPL + 7.0) * pow(2.0 * t + 1.0, -0.25);
    let half = (ro - rle) / 2.0;
    let listener = half + sqrt(half * half + 169.0);
    talker + listener + absolute(t)
}

/// Idd, the impairment by delay without echo: zero up to 100 ms (7-27, 7-28).
fn absolute(ta: f64) -> f64 {
    if ta <= 100.0 {
        return 0.0;
    }
    let x = log10(ta / 100.0) / log10(2.0);
    let sixth = |x: f64| pow(1.0 + pow(x, 6.0), 1.0 / 6.0);
    25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0)
}

/// Ie,eff (7-29), with a burst ratio of 1.
fn effective_equipment(loss: f64, codec: Impairment) -> f64 {
    let percent = 100.0 * loss;
    codec.ie + (95.0 - codec.ie) * percent / (percent + codec.bpl)
}

#[cfg(test)]
mod tests {
    use super::*;

    const G711: Impairment = Impairment { ie: 0.0, bpl: 25.1 };

    fn rating(ms: u64) -> f64 {
        r_factor(Span::from_ms(ms), 0.0, G711)
    }

    #[test]
    fn with_defaults_and_no_delay_the_rating_is_93_2_and_the_score_4_41() {
        // G.107, 7.7: "R = 93.2" with all parameters at their default.
        assert_eq!((rating(0) * 10.0).round(), 932.0);
        assert_eq!((mos(rating(0)) * 100.0).round(), 441.0);
    }

    #[test]
    fn ratings_become_the_scores_of_the_recommendations_table() {
        // G.107, Table B.1.
        let table = [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
        ];
        for (r, expected) in table {
            // The table has two digits, and was not rounded everywhere (80: 4.024).
            assert!((mos(r) - expected).abs() < 0.0061, "{r}: {}", mos(r));
        }
        assert_eq!(
            [mos(-5.0), mos(0.0), mos(3.0), mos(100.0), mos(120.0)],
            [1.0, 1.0, 1.0, 4.5, 4.5]
        );
    }

    #[test]
    fn delay_hurts_as_in_the_fit_by_cole_and_rosenbluth() {
        // R. Cole, J. Rosenbluth, "Voice over IP Performance Monitoring", ACM CCR 31(2), 2001:
        // Id = 0.024 d + 0.11 (d - 177.3) H(d - 177.3), two straight lines through G.107
        // with its defaults, which leave it near 400 ms.
        for ms in [25, 50, 100, 150, 177, 200, 250, 300] {
            let d = ms as f64;
            let fit = 0.024 * d + 0.11 * (d - 177.3).max(0.0);
            let found = rating(0) - rating(ms);
            assert!((found - fit).abs() < 2.5, "{ms} ms: {found}, fit {fit}");
        }
        // By hand at 400 ms: 24.07 for the delay, 5.81 for the talker's and 1.09 more than without
        // delay for the listener's echo.
        let found = rating(0) - rating(400);
        assert!((found - 30.97).abs() < 0.02, "{found}");
        assert!((0..60).all(|i| rating(10 * i) > rating(10 * (i + 1))));
    }

    #[test]
    fn losses_hurt_by_the_codec_s_robustness() {
        // Ppl = Bpl takes half of what the codec leaves of 95.
        let at = |loss, codec| rating(0) - r_factor(Span::ZERO, loss, codec);
        assert!((at(0.251, G711) - 47.5).abs() < 1e-9);
        let g729 = Impairment {
            ie: 11.0,
            bpl: 19.0,
        };
        assert!((at(0.0, g729) - 11.0).abs() < 1e-9);
        assert!((at(0.19, g729) - (11.0 + 42.0)).abs() < 1e-9);
        assert!((at(1.0, G711) - 95.0 * 100.0 / 125.1).abs() < 1e-9);
    }
}
