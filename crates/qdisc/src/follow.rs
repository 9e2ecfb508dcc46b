//! Shapers whose rates follow the rate of their link.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | C_0, the key `rate` of the link | [`LinkCourse::rate`] | bit/s |
//! | C(t), rate of the link at t | [`RateCourse`] | bit/s |
//! | d, how long after the link the shaper changes | `follow_after` | s |
//! | r, a rate among the shaper's parameters | | bit/s |
//!
//! ```text
//! r(t) = r C(t - d) / C_0    from d on; before, r
//! ```
//!
//! How the rate of a link changes is known when a run begins, so a shaper knows the time of its next change, as it
//! knows when tokens suffice, and nobody has to tell it. It applies a change when it is next asked for a packet, with
//! the time at which the change was due: so the time of the question has no influence on the rate.

use std::fmt;
use std::sync::Arc;

use redtail_core::{ParamError, Rate, Span, Time};

use crate::LinkFacts;

/// The rates that a link has during a run.
pub trait RateCourse: fmt::Debug + Send + Sync {
    /// The rate with this number, counted from 0, and the time from which the link has it. Times increase.
    fn step(&self, number: u64) -> Option<(Time, Rate)>;
}

/// How the rate of a link changes.
#[derive(Clone, Debug)]
pub struct LinkCourse {
    /// The key `rate` of the link, which its queue is told.
    pub rate: Rate,
    /// The rates that it has.
    pub course: Arc<dyn RateCourse>,
}

/// The link's present rate as a part of its key `rate`.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    present: Rate,
    told: Rate,
}

impl Scale {
    /// A rate of the shaper while the link has its present rate; to the nearest bit/s.
    pub fn of(self, rate: Rate) -> Rate {
        let (present, told) = (
            u128::from(self.present.as_bps()),
            u128::from(self.told.as_bps()),
        );
        let scaled = (u128::from(rate.as_bps()) * present + told / 2) / told;
        Rate::from_bps(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

/// When the rates of a shaper change, and to what.
#[derive(Debug)]
pub struct Follower {
    /// When they change next; [`Time::MAX`] if they never do.
    next: Time,
    changes: Option<Changes>,
}

#[derive(Debug)]
struct Changes {
    link: LinkCourse,
    after: Span,
    /// The number of the next one.
    number: u64,
}

impl Changes {
    /// When the next rate applies to the shaper.
    fn next(&self) -> Time {
        match self.link.course.step(self.number) {
            // Later than every run ends.
            Some((at, _)) if at.as_ps() > u64::MAX - self.after.as_ps() => Time::MAX,
            Some((at, _)) => at + self.after,
            None => Time::MAX,
        }
    }
}

impl Follower {
    /// That of a shaper on this link with these keys, `follow_after` and `follow_hop`. It never changes without the
    /// first, or if the rate of the link that it follows does not.
    pub fn new(after: Option<Span>, hop: Option<u32>, link: &LinkFacts) -> Self {
        let hop = hop.map_or(link.hop, |hop| hop as usize - 1);
        let course = link.courses.get(hop).cloned().flatten();
        let changes = after.zip(course).map(|(after, link)| Changes {
            link,
            after,
            number: 0,
        });
        Self {
            next: changes.as_ref().map_or(Time::MAX, Changes::next),
            changes,
        }
    }

    /// When the rates change next; [`Time::MAX`] if they never do.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The first change that is due at `now` and was not returned before.
    #[cold]
    pub fn change(&mut self, now: Time) -> Option<(Time, Scale)> {
        let changes = self.changes.as_mut()?;
        let at = self.next;
        if at > now {
            return None;
        }
        let (_, present) = changes.link.course.step(changes.number)?;
        changes.number += 1;
        self.next = changes.next();
        let told = changes.link.rate;
        Some((at, Scale { present, told }))
    }
}

/// Refuses keys of a shaper that follows nothing on this link.
pub(crate) fn check(
    after: Option<Span>,
    hop: Option<u32>,
    link: &LinkFacts,
) -> Result<(), ParamError> {
    let Some(hop) = hop else {
        return Ok(());
    };
    let hops = link.hops as u32;
    if hop == 0 || hops > 0 && hop > hops {
        return Err(ParamError::new(
            "follow_hop",
            "is no hop",
            format!("1 to {}", hops.max(1)),
        ));
    }
    if after.is_none() {
        return Err(ParamError::new(
            "follow_hop",
            "has no meaning without follow_after",
            "both, or neither",
        ));
    }
    Ok(())
}
