//! UDP sources: when each sends its next packet, and how large that is.

use redtail_core::{Span, Stream};

use crate::game::GameGroup;
use crate::group::{CbrGroup, TrafficGroup};
use crate::on_off::OnOffSource;
use crate::voip::VoipSource;

/// A source of UDP packets. It paces itself: nothing that happens to a packet reaches it.
#[derive(Clone, Debug)]
pub enum UdpSource {
    /// Constant rate.
    Cbr(CbrSource),
    /// The talker of a call.
    Voip(Box<VoipSource>),
    /// Constant rate for a while, then nothing.
    OnOff(Box<OnOffSource>),
    /// A game's server or client.
    Game(Box<GameGroup>),
}

/// A source of constant rate at work.
#[derive(Clone, Copy, Debug)]
pub struct CbrSource {
    size: u32,
    gap: Span,
    /// How far a gap may be from the nominal one; none without dither.
    width: Option<Span>,
}

impl CbrSource {
    fn new(group: &CbrGroup) -> Self {
        let gap = group.gap();
        let width = (gap.as_ps() as f64 * group.dither) as u64;
        Self {
            size: group.packet.as_u64() as u32,
            gap,
            width: (group.dither != 0.0).then(|| Span::from_ps(width)),
        }
    }

    #[inline]
    fn draw_gap(&self, stream: &mut Stream) -> Span {
        match self.width {
            None => self.gap,
            Some(width) => stream.uniform_span(self.gap - width, self.gap + width),
        }
    }
}

/// No gap is longer, so that times of events stay in range: 53 days.
pub(crate) const LONGEST_GAP: Span = Span::from_ps(u64::MAX / 4);

impl UdpSource {
    /// A flow of this group; none if the group does not use UDP.
    pub fn of(group: &TrafficGroup) -> Option<Self> {
        match group {
            TrafficGroup::Cbr(group) => Some(Self::Cbr(CbrSource::new(group))),
            TrafficGroup::Voip(group) => Some(Self::Voip(Box::new(VoipSource::new(group)))),
            TrafficGroup::OnOff(group) => Some(Self::OnOff(Box::new(OnOffSource::new(group)))),
            TrafficGroup::Game(group) => Some(Self::Game(Box::new(group.clone()))),
            _ => None,
        }
    }

    /// The size on the link of the packet sent now, in bytes, and the time to the next.
    #[inline]
    pub fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
        match self {
            Self::Cbr(source) => (source.size, source.draw_gap(stream)),
            Self::Voip(source) => source.send(stream),
            Self::OnOff(source) => source.send(stream),
            Self::Game(group) => group.send(stream),
        }
    }
}

/// A gap that keeps the times of events in range.
pub(crate) fn in_range(gap: Span) -> Span {
    gap.min(LONGEST_GAP)
}
