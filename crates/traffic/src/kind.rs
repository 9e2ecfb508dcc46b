//! What a kind of traffic says of itself. The file of the kind implements it.
//!
//! Every kind implements [`TrafficKind`] and one more trait, which says what its flows are made of:
//! [`TcpKind`], [`UdpKind`] or [`UserKind`]. `group.rs` has the list of the kinds; the rest of the
//! program asks the group.

use redtail_core::{Bytes, Metric, ParamError, Rate, Span, Stream, Time};
use redtail_transport::ResolvedTcpParams;

use crate::access::Group;
use crate::application::Application;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::load::Load;
use crate::start::Start;
use crate::table::Traces;

/// A kind of traffic; a value is a group of flows of this kind.
pub trait TrafficKind: Group {
    /// The keys of a small group besides `name` and `kind`, as the experiment file has them: its flows
    /// end within some seconds. Tests run it.
    fn example() -> &'static str
    where
        Self: Sized;

    /// The metrics of the kind's own, which it adds to those of all groups with TCP, UDP or users.
    fn metrics() -> &'static [&'static Metric]
    where
        Self: Sized,
    {
        &[]
    }

    /// What a listing of the experiment calls one flow of the group, such as "bulk flow".
    fn noun(&self) -> &'static str;

    /// The number of flows or users in the group, of one activation.
    fn count(&self) -> u32 {
        self.access().flows_at_once
    }

    /// The key that says when flows start; `None` if it is left out or there is no such key.
    fn starts(&self) -> Option<&Dealt<Start>>;

    /// The key that says when flows stop; `None` if it is left out or there is no such key.
    fn stops(&self) -> Option<&Dealt<Start>>;

    /// Whether flows go on to the end of the run if they have no stop.
    fn needs_a_stop(&self) -> bool {
        true
    }

    /// Refuses values of the kind's own keys that cannot be run.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }

    /// Fills in the kind's own keys that were left out and whose default depends on other keys.
    fn fill_in(&mut self) {}

    /// Fills in when flows start, if that was left out and the default depends on how much of a run
    /// no statistics include.
    fn fill_in_starts(&mut self, _warmup: Span) {}

    /// The load that the group is to offer, if the file gives one instead of a number of users.
    fn requested_load(&self) -> Option<Load> {
        None
    }

    /// Removes the requested load.
    fn clear_load(&mut self) {}

    /// Whether each flow has a host of its own if the file does not say how many hosts there are.
    fn has_own_hosts(&self) -> bool {
        false
    }

    /// Whether a flow is a person, or what one does: `check` warns if several share a host behind a
    /// queue that counts hosts.
    fn is_person(&self) -> bool {
        false
    }

    /// How many of the group's hosts, the last ones, send their responses against the group's
    /// direction.
    fn reverse_hosts(&self) -> u32 {
        0
    }
}

/// A group whose data travels over TCP.
pub trait OverTcp {
    /// The parameters of TCP.
    fn tcp(&self) -> &ResolvedTcpParams;

    /// The law of the sizes on the link of packets with full segments, if the file gives one.
    fn packet(&self) -> Option<&Dist<Bytes>>;
}

/// A kind whose flows are TCP connections with data from one side.
pub trait TcpKind: TrafficKind + OverTcp {
    /// The payload that each flow transfers; `None` if flows always have more data to send.
    fn sizes(&self) -> Option<&Dealt<Bytes>> {
        None
    }
}

/// A kind whose flows are UDP sources.
pub trait UdpKind: TrafficKind {
    /// The running source of a flow.
    type Source: PacketSource
    where
        Self: Sized;

    /// A source that has not sent anything.
    fn source(&self) -> Self::Source
    where
        Self: Sized;

    /// What one flow sends on average, from its start: the rate on the link, and the mean size of a
    /// packet on the link in bytes.
    fn mean_load(&self) -> (Rate, f64);

    /// The highest rate at which one flow sends.
    fn peak(&self) -> Rate {
        self.mean_load().0
    }

    /// The size of the largest packet on the link.
    fn largest_packet(&self) -> Bytes;

    /// The law from which the network draws the size on the link of each packet, in place of the one that the source
    /// gives; `None` if the source's sizes stand.
    fn packet(&self) -> Option<&Dist<Bytes>> {
        None
    }

    /// When a flow sends its first packet if the file does not say; `stream` is the flow's own.
    fn random_start(&self, stream: &mut Stream) -> Time;
}

/// A running UDP source. It decides itself when to send; nothing that happens to a packet reaches it.
pub trait PacketSource {
    /// The size on the link of the packet that is sent now, in bytes, and the time to the next one.
    fn send(&mut self, stream: &mut Stream) -> (u32, Span);
}

impl<S: PacketSource> PacketSource for Box<S> {
    #[inline]
    fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
        (**self).send(stream)
    }
}

/// Makes user number `i` of a group, from its start, its stop, and what is left of the stream that
/// these were drawn from.
pub type MakeUser<U> = Box<dyn Fn(usize, Time, Time, Stream) -> U>;

/// A kind whose flows are users, who open TCP connections.
pub trait UserKind: TrafficKind + OverTcp {
    /// The program of a user.
    type User: Application
    where
        Self: Sized;

    /// What makes the users of the group; they share what they have in common. `traces` has the
    /// tables that groups name.
    ///
    /// # Panics
    /// When `traces` lacks the table of the group.
    fn make_users(&self, traces: &Traces) -> MakeUser<Self::User>
    where
        Self: Sized;

    /// About what a user receives, in bytes per second, if the network took no time; `None` if
    /// that is not bounded or not known.
    fn offered(&self) -> Option<f64>;

    /// The payload of all responses of the group in each direction, with the group and against it, if
    /// that is known before the run.
    fn total_payload(&self) -> Option<[u64; 2]> {
        None
    }

    /// Whether the responses on one connection are interleaved.
    fn is_multiplexed(&self) -> bool {
        false
    }
}
