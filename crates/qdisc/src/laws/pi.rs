//! The proportional-integral controller of PI, PI2, DualPI2 and PIE, and the design of its gains after
//! Hollot et al.
//!
//! Source: C. V. Hollot, V. Misra, D. Towsley and W. Gong, "On Designing Improved
//! Controllers for AQM Routers Supporting TCP Flows", IEEE INFOCOM 2001: the controller,
//! its discrete form and its design (proposition 2). RFC 8033, section 4.2, and RFC 9332, appendix A, have
//! the same controller with the difference as a term of its own.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | x | controlled quantity: backlog or queueing delay | packets or s |
//! | x_old | x at the update before | the same |
//! | x_ref | reference of x | the same |
//! | p | probability | 1 |
//! | a, b | gains of the discrete form | 1 / unit of x |
//! | alpha, beta | integral and proportional gain: alpha = a - b, beta = b | 1 / unit of x |
//! | T | time between updates | s |
//! | C | rate of the link | packets/s |
//! | N | smallest number of flows | 1 |
//! | R | longest round-trip time with queueing | s |
//! | K, z | gain and zero of the continuous controller K (s/z + 1) / s | 1/(packet s), 1/s |
//! | w_g | crossover: frequency at which the loop's gain is 1 | rad/s |
//!
//! ```text
//! p <- p + a (x - x_ref) - b (x_old - x_ref)
//!    = p + alpha (x - x_ref) + beta (x - x_old)            within [0, 1]
//!
//! z = 2 N / (R^2 C)                     the slower pole of TCP's window is cancelled
//! K = z sqrt((R z)^2 + 1) (2 N)^2 / (R C)^3          so that the loop crosses over at z
//! a = K (1/z + T/2),   b = K (1/z - T/2)                              trapezoid rule
//!
//! L(s) = K (s/z + 1)/s  (C^2 / 2 N) e^(-s (R + T/2)) / ((s + 2 N/(R^2 C)) (s + 1/R))
//! phase margin = 180 degrees + arg L(j w) where |L(j w)| = 1
//! ```
//!
//! T/2 is the delay because the probability is constant between updates; the paper leaves it out.
//!
//! # Deviation
//!
//! With the paper's design the phase margin is 90 degrees - z R - atan(z R), and z R = 2 N / (R C) is 2
//! divided by the packets in a window. The paper's example has 0.13; above 0.86, with less than 2.3 packets
//! in a window, the margin is negative and the designed loop is unstable. Therefore the crossover of
//! [`design`] is at
//!
//! ```text
//! w_g = min(z, 0.5 / (R + T/2))         margin >= 90 degrees - 0.5 rad - atan 0.5 = 34.8
//! K   = z w_g sqrt(w_g^2 + 1/R^2) 2 N / C^2
//! ```
//!
//! which is the paper's design without a change if 2 N / (R C) is 0.5 or less (and T is short compared with
//! R).

/// The parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiConfig {
    /// The reference x_ref, in the unit of x.
    pub reference: f64,
    /// The integral gain alpha, per unit of x.
    pub integral: f64,
    /// The proportional gain beta, per unit of x.
    pub proportional: f64,
}

/// The controller with its state: the probability and the latest x.
///
/// ```
/// use redtail_qdisc::laws::pi::{PiConfig, PiLaw};
///
/// // x is a delay in seconds, so the gains are in 1/s.
/// let mut law = PiLaw::new(PiConfig { reference: 0.015, integral: 0.16, proportional: 3.2 });
/// law.update(0.025);
/// // 0.16 (0.025 - 0.015) + 3.2 (0.025 - 0)
/// assert!((law.probability() - 0.0816).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct PiLaw {
    config: PiConfig,
    old: f64,
    probability: f64,
}

impl PiLaw {
    /// A controller in its initial state: probability 0, x 0.
    pub fn new(config: PiConfig) -> Self {
        Self {
            config,
            old: 0.0,
            probability: 0.0,
        }
    }

    /// Returns the change of p for this x.
    #[inline]
    pub fn change(&self, x: f64) -> f64 {
        let PiConfig {
            reference,
            integral,
            proportional,
        } = self.config;
        integral * (x - reference) + proportional * (x - self.old)
    }

    /// Stores x and changes p by `change`, within 0 and `most`.
    #[inline]
    pub fn take(&mut self, x: f64, change: f64, most: f64) {
        self.probability = (self.probability + change).clamp(0.0, most);
        self.old = x;
    }

    /// Makes one update, T after the one before.
    #[inline]
    pub fn update(&mut self, x: f64) {
        self.take(x, self.change(x), 1.0);
    }

    /// Multiplies p by a factor.
    pub fn scale(&mut self, factor: f64) {
        self.probability *= factor;
    }

    /// Returns the probability p.
    #[inline]
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Returns x of the latest update.
    #[inline]
    pub fn old(&self) -> f64 {
        self.old
    }

    /// Whether further updates with this x would change nothing: p is 0 and stays 0.
    #[inline]
    pub fn rests_at(&self, x: f64) -> bool {
        self.probability == 0.0 && self.old == x && x <= self.config.reference
    }
}

/// The path for which the gains are designed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// The rate of the link C, in packets/s.
    pub capacity: f64,
    /// The smallest number of flows N.
    pub flows: f64,
    /// The longest round-trip time R with queueing, in seconds.
    pub round_trip: f64,
}

/// Returns the gains a and b, per packet, for updates every `interval` seconds (Hollot et al. 2001,
/// proposition 2, and the trapezoid rule).
pub fn hollot(path: Path, interval: f64) -> (f64, f64) {
    let Path {
        capacity,
        flows,
        round_trip,
    } = path;
    let z = 2.0 * flows / (round_trip * round_trip * capacity);
    let window = round_trip * capacity;
    let rz = round_trip * z;
    let k =
        z * libm::sqrt(rz * rz + 1.0) * (2.0 * flows) * (2.0 * flows) / (window * window * window);
    (
        k * (1.0 / z + interval / 2.0),
        k * (1.0 / z - interval / 2.0),
    )
}

/// Returns the gains of a loop with its crossover at `crossover`, in rad/s, instead of z: with few packets
/// in a window, the delay of the round trip does not allow a crossover at z.
///
/// The zero cancels the window's pole here too, so the phase margin before sampling is
/// 90 degrees - w R - atan(w R), and |L(j w)| = 1 gives
/// K = z w sqrt(w^2 + 1/R^2) 2 N / C^2.
pub fn hollot_at(path: Path, crossover: f64, interval: f64) -> (f64, f64) {
    let Path {
        capacity,
        flows,
        round_trip,
    } = path;
    let z = 2.0 * flows / (round_trip * round_trip * capacity);
    let plant_pole = libm::sqrt(crossover * crossover + 1.0 / (round_trip * round_trip));
    let k = z * crossover * plant_pole * 2.0 * flows / (capacity * capacity);
    (
        k * (1.0 / z + interval / 2.0),
        k * (1.0 / z - interval / 2.0),
    )
}

/// The largest product of the crossover and R + T/2: it leaves a phase margin of 90 degrees - 0.5 rad -
/// atan 0.5, which is 35 degrees.
/// Source: ours; see the deviation at the top.
const CROSSOVER: f64 = 0.5;

/// Returns the crossover of the loop of [`design`], in rad/s: z, or a smaller value to leave a phase
/// margin.
pub fn crossover(path: Path, interval: f64) -> f64 {
    let Path {
        capacity,
        flows,
        round_trip,
    } = path;
    let z = 2.0 * flows / (round_trip * round_trip * capacity);
    z.min(CROSSOVER / (round_trip + interval / 2.0))
}

/// Returns the gains a and b, per packet, for updates every `interval` seconds, that make a stable loop on
/// this path: those of [`hollot`] if they leave a phase margin, otherwise those of a slower crossover.
pub fn design(path: Path, interval: f64) -> (f64, f64) {
    let z = 2.0 * path.flows / (path.round_trip * path.round_trip * path.capacity);
    let crossover = crossover(path, interval);
    if crossover < z {
        hollot_at(path, crossover, interval)
    } else {
        hollot(path, interval)
    }
}

/// Returns the phase margin, in radians, of the loop of this path and the gains a and b, per packet, which
/// are applied every `interval` seconds. The loop is unstable if the margin is 0 or less. `None` if a is
/// not greater than b, because the gains are then not those of a PI controller.
pub fn phase_margin(path: Path, a: f64, b: f64, interval: f64) -> Option<f64> {
    let Path {
        capacity,
        flows,
        round_trip,
    } = path;
    let k = (a - b) / interval;
    if k <= 0.0 || a + b <= 0.0 {
        return None;
    }
    let z = 2.0 * k / (a + b);
    let pole = 2.0 * flows / (round_trip * round_trip * capacity);
    let gain = |w: f64| {
        let controller = k * libm::sqrt((w / z) * (w / z) + 1.0) / w;
        let plant = capacity * capacity
            / (2.0 * flows)
            / (libm::sqrt(w * w + pole * pole)
                * libm::sqrt(w * w + 1.0 / (round_trip * round_trip)));
        controller * plant
    };
    // The gain falls with w: bisection on the logarithm finds where it is 1.
    let (mut low, mut high) = (-30.0, 30.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if gain(libm::exp(middle)) > 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let w = libm::exp(low);
    let phase = -core::f64::consts::FRAC_PI_2 + libm::atan(w / z)
        - w * (round_trip + interval / 2.0)
        - libm::atan(w / pole)
        - libm::atan(w * round_trip);
    Some(core::f64::consts::PI + phase)
}
