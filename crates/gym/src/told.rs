//! What an agent is told after a step: numbers that were measured, an observation, and a reward.

/// Ratios and shares without a bound of their own are cut off here in observations.
pub const LARGEST_RATIO: f64 = 100.0;

/// A number that was measured in a step.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
}

/// A number of an observation: made of measures so that its bounds are known.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// The lower bound; if it is infinite, it is minus the duration of the run in s.
    pub low: f64,
    /// The upper bound; if it is infinite, it is the duration of the run in s.
    pub high: f64,
}

pub(crate) const fn measure(name: &'static str, meaning: &'static str) -> Measure {
    Measure { name, meaning }
}

pub(crate) const fn observed(meaning: &'static str, low: f64, high: f64) -> Observed {
    Observed { meaning, low, high }
}

/// How a step is rewarded:
///
/// ```text
/// use - delay_weight (queueing delay / target) - loss_weight (share lost)
/// ```
///
/// Use is the part of the link's capacity that was used. It and the others are of the queue or of the flow.
#[derive(Clone, Copy, Debug)]
pub struct Reward {
    /// The delay with which delays are compared, s; more than zero.
    pub target: f64,
    /// What a delay of the target costs, as a share of the link.
    pub delay_weight: f64,
    /// What the loss of everything costs, likewise.
    pub loss_weight: f64,
}

impl Reward {
    /// The reward for this use, this delay in s and this share of losses.
    pub(crate) fn of(&self, used: f64, delay: f64, lost: f64) -> f64 {
        used - self.delay_weight * delay / self.target - self.loss_weight * lost
    }
}

/// The places for what an agent is told.
pub struct Told<'a> {
    /// As many numbers as the knob has [`measures`](crate::Knob::measures).
    pub measures: &'a mut [f64],
    /// As many numbers as the knob has [`observed`](crate::Knob::observed).
    pub observation: &'a mut [f32],
    /// The reward; 0 before the first step.
    pub reward: &'a mut f64,
}

impl Told<'_> {
    /// Writes an observation, each number cut off at its bounds, in a run that takes this many seconds.
    pub(crate) fn observe(&mut self, numbers: &[f64], observed: &[Observed], duration: f64) {
        let places = self.observation.iter_mut().zip(numbers).zip(observed);
        for ((place, &number), observed) in places {
            let within = |bound: f64| bound.clamp(-duration, duration);
            let (low, high) = match observed.high.is_infinite() {
                true => (within(observed.low), within(observed.high)),
                false => (observed.low, observed.high),
            };
            *place = number.clamp(low, high) as f32;
        }
    }
}

/// `part / whole`; 0 where the whole is 0.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
