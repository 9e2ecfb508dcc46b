//! UDP sources: when each sends its next packet, and how large that is.

use redtail_core::{Span, Stream};

use crate::cbr::CbrSource;
use crate::game::GameGroup;
use crate::group::TrafficGroup;
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
            Self::Cbr(source) => source.send(stream),
            Self::Voip(source) => source.send(stream),
            Self::OnOff(source) => source.send(stream),
            Self::Game(group) => group.send(stream),
        }
    }
}
