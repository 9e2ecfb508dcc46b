//! The quality of a video call by a parametric model.
//!
//! Source: ITU-T G.1070 (07/2012), "Opinion model for video-telephony applications", clause 11 and
//! Annexes A and B. The model was chosen because it is a recommendation for two-way calls: it has the delay
//! of both media, and the loss of packets. ITU-T P.1203 is for streaming over TCP, which loses nothing.
//!
//! ```text
//! Vq   = 1 + Icoding exp(-PplV / DPplV)                           video
//! Icoding = IOfr exp(-(ln Fr - ln Ofr)^2 / (2 DFr^2))
//! Ofr  = v1 + v2 Br          IOfr  = v3 - v3 / (1 + (Br / v4)^v5)
//! DFr  = v6 + v7 Br          DPplV = v10 + v11 exp(-Fr / v8) + v12 exp(-Br / v9)
//! MMq  = m1 MMsv + m2 MMt + m3 MMsv MMt + m4                      both media
//! MMsv = m5 Sq + m6 Vq + m7 Sq Vq + m8
//! MMt  = max(AD + MS, 1)     AD = m9 (Ts + Tv) + m10
//! MS   = min(m11 (Ts - Tv) + m12, 0) if Ts >= Tv, else min(m13 (Tv - Ts) + m14, 0)
//! ```
//!
//! | symbol | unit | what |
//! |---|---|---|
//! | Br, Fr | kbit/s, 1/s | bit rate and frame rate of the video |
//! | PplV | % | video packets lost |
//! | Sq | 1 | quality of the voice (the E-model, [`crate::e_model`]) |
//! | Ts, Tv | ms | one-way delay of voice and of video, from end to end |
//!
//! Coefficients v1 to v12: H.264, VGA, 9.2 inches (Annex A, set 5, found for 400 to 2000 kbit/s, frame
//! rates up to 30 and up to 5 % loss). m1 to m14: the larger of the two displays that Annex B has, 4.2 inches.

use libm::{exp, log, pow};

/// v1 to v12 (Annex A).
const V: [f64; 12] = [
    5.517, 1.29e-2, 3.459, 178.53, 1.02, 1.15, 3.55e-4, 0.114, 513.77, 0.736, -6.451, 13.684,
];

/// m1 to m14 (Annex B).
const M: [f64; 14] = [
    -0.4457, -0.6638, 0.4042, 2.321, -0.3255, 0.3309, 0.1494, 0.5457, -3.235e-4, 3.915, -1.377e-3,
    0.0, -1.095e-3, 0.0,
];

/// Scores are from 1 to 5.
fn score(value: f64) -> f64 {
    value.clamp(1.0, 5.0)
}

/// Vq, the quality of video of this rate in bit/s and frame rate, of whose packets the share `loss` is lost.
pub fn video(bitrate: f64, frame_rate: f64, loss: f64) -> f64 {
    let (br, fr) = (bitrate / 1e3, frame_rate);
    if br <= 0.0 || fr <= 0.0 {
        return 1.0;
    }
    let [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12] = V;
    let best_rate = v1 + v2 * br;
    let best = v3 - v3 / (1.0 + pow(br / v4, v5));
    let robustness = v6 + v7 * br;
    let distance = log(fr) - log(best_rate);
    let coding = best * exp(-distance * distance / (2.0 * robustness * robustness));
    let to_loss = v10 + v11 * exp(-fr / v8) + v12 * exp(-br / v9);
    // At less than a frame in some seconds, where nothing was measured, the sum is below zero.
    score(1.0 + coding * exp(-100.0 * loss / to_loss.max(1e-9)))
}

/// MMq, the quality of a call with these scores of voice and video, and these one-way delays in seconds.
pub fn call(voice: f64, video: f64, voice_delay: f64, video_delay: f64) -> f64 {
    let [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = M;
    let (ts, tv) = (voice_delay * 1e3, video_delay * 1e3);
    let both = score(m5 * voice + m6 * video + m7 * voice * video + m8);
    let absolute = m9 * (ts + tv) + m10;
    let apart = match ts >= tv {
        true => (m11 * (ts - tv) + m12).min(0.0),
        false => (m13 * (tv - ts) + m14).min(0.0),
    };
    let delays = (absolute + apart).max(1.0);
    score(m1 * both + m2 * delays + m3 * both * delays + m4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 0.005, "{found}, not {expected}");
    }

    #[test]
    fn scores_of_video_are_those_of_the_equations_by_hand() {
        // At 1000 kbit/s: Ofr = 18.417, IOfr = 3.459 - 3.459 / (1 + 5.6013^1.02) = 2.9497, DFr = 1.505.
        // At 30 frames: (ln 30 - ln 18.417)^2 = 0.2381, Icoding = 2.9497 exp(-0.05256) = 2.7987.
        near(video(1e6, 30.0, 0.0), 3.80);
        // DPplV = 0.736 + 13.684 exp(-1.94640) = 2.690: 1 % of loss leaves exp(-0.3717) of it.
        near(video(1e6, 30.0, 0.01), 1.0 + 2.7987 * 0.6896);
        assert_eq!(video(0.0, 30.0, 0.0), 1.0);
        assert_eq!(video(1e6, 0.0, 0.0), 1.0);
    }

    #[test]
    fn more_rate_is_better_and_more_loss_is_worse() {
        let rates = [200e3, 400e3, 800e3, 1.5e6];
        assert!(
            rates
                .windows(2)
                .all(|r| video(r[0], 30.0, 0.0) < video(r[1], 30.0, 0.0))
        );
        let losses = [0.0, 0.01, 0.02, 0.05];
        assert!(
            losses
                .windows(2)
                .all(|p| video(1e6, 30.0, p[0]) > video(1e6, 30.0, p[1]))
        );
        assert!(video(1e6, 30.0, 0.0) > video(1e6, 5.0, 0.0));
    }

    #[test]
    fn scores_of_calls_are_those_of_the_equations_by_hand() {
        // Sq = 4, Vq = 4: MMsv = -1.302 + 1.3236 + 2.3904 + 0.5457 = 2.9577; without delay MMt = 3.915:
        // -1.31825 - 2.59878 + 4.68032 + 2.321 = 3.084.
        near(call(4.0, 4.0, 0.0, 0.0), 3.084);
        // 200 ms each: MMt = 3.7856, which gives -1.31825 - 2.51288 + 4.52562 + 2.321 = 3.0155.
        near(call(4.0, 4.0, 0.2, 0.2), 3.016);
        // Video 400 ms behind the voice: MMt = 3.915 - 0.19410 - 0.4380 = 3.2829 (200 ms and 600 ms:
        // AD = 3.6562, MS = -0.438).
        let mmt = 3.915 - 3.235e-4 * 800.0 - 0.438;
        let expected = -0.4457 * 2.9577 - 0.6638 * mmt + 0.4042 * 2.9577 * mmt + 2.321;
        near(call(4.0, 4.0, 0.2, 0.6), expected);
        assert!(call(4.0, 4.0, 0.1, 0.1) > call(4.0, 4.0, 0.8, 0.8));
        assert!(call(4.0, 4.0, 0.1, 0.1) > call(2.0, 4.0, 0.1, 0.1));
    }
}
