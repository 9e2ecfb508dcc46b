//! The list of the kinds of traffic, and groups of flows as the experiment file describes them.

use redtail_core::{Bytes, Metric, ParamError, Rate, Span, Stream, Time, kinded};
use redtail_transport::ResolvedTcpParams;

use crate::access::{Access, AccessFilling};
use crate::application::{Answer, Application, Network};
use crate::arrivals::ArrivalsParams;
use crate::bounds::{MAX_FLOWS, check_host_jitter, refuse_fast};
use crate::bulk::BulkParams;
use crate::call::{CallEnd, CallParams};
use crate::cbr::CbrParams;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::endpoint::EndpointParams;
use crate::game::GameParams;
use crate::hop::ChainHop;
use crate::hosts::TakenHosts;
use crate::kind::{MakeUser, PacketSource, TcpKind, TrafficKind, UdpKind, UserKind};
use crate::load::Load;
use crate::on_off::OnOffParams;
use crate::packet::{DrawnSizes, check_segments, largest, mean_size};
use crate::program::{self, ProgramParams};
use crate::start::Start;
use crate::table::Traces;
use crate::trace::TraceParams;
use crate::transactions::TransactionParams;
use crate::transfer::TransferParams;
use crate::video::VideoParams;
use crate::voip::VoipParams;
use crate::web::WebParams;

/// A group by what its flows are made of.
enum MadeOf<'a> {
    Tcp(&'a dyn TcpKind),
    Udp(&'a dyn UdpKind),
    Users(&'a dyn UserKind),
    Calls(&'a CallParams),
    Own(&'a EndpointParams),
    Programs(&'a ProgramParams),
}

/// What one flow of a group is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// A TCP sender and its receiver.
    Tcp {
        /// Payload to transfer; `None` if there is always more data to send.
        size: Option<Bytes>,
    },
    /// A UDP source and its sink.
    Udp,
    /// A user, who opens TCP connections.
    User,
    /// A call, whose two ends send media and reports over UDP.
    Call,
    /// Two endpoints of the user's own, which send datagrams over UDP.
    Own,
    /// A pair of programs, which send what they want. The simulator has none.
    Programs,
}

/// Generates from the list the enum of the experiment file ([`TrafficParams`]), the enums that hold a
/// running source ([`UdpSource`]) or user ([`User`]), and the dispatch. The kinds are listed by what
/// their flows are made of.
macro_rules! traffic_kinds {
    (
        tcp { $($(#[$tcp_doc:meta])* $tcp_key:literal => $tcp:ident($tcp_group:ty),)+ }
        udp { $($(#[$udp_doc:meta])* $udp_key:literal => $udp:ident($udp_group:ty),)+ }
        users { $($(#[$user_doc:meta])* $user_key:literal => $user:ident($user_group:ty),)+ }
        calls { $($(#[$call_doc:meta])* $call_key:literal => $call:ident($call_group:ty),)+ }
        own { $($(#[$own_doc:meta])* $own_key:literal => $own:ident($own_group:ty),)+ }
        programs { $($(#[$program_doc:meta])* $program_key:literal => $program:ident($program_group:ty),)+ }
    ) => {
        kinded! {
            /// A group of like flows, chosen by `kind`.
            #[schemars(rename = "TrafficGroup")]
            pub enum TrafficParams {
                $($(#[$tcp_doc])* $tcp_key => $tcp($tcp_group),)+
                $($(#[$udp_doc])* $udp_key => $udp($udp_group),)+
                $($(#[$user_doc])* $user_key => $user($user_group),)+
                $($(#[$call_doc])* $call_key => $call($call_group),)+
                $($(#[$own_doc])* $own_key => $own($own_group),)+
                $($(#[$program_doc])* $program_key => $program($program_group),)+
            }
        }

        impl TrafficParams {
            /// The kinds that only a real kernel runs.
            pub const OF_KERNELS: &[&str] = &[$($program_key),+];

            /// The kinds of which the number of flows is one of users.
            const OF_USERS: &[&str] = &[$($user_key),+];

            /// Every `kind` with the keys of a small group of it, as the experiment file has them.
            pub fn examples() -> Vec<(&'static str, &'static str)> {
                vec![
                    $(($tcp_key, <$tcp_group>::example()),)+
                    $(($udp_key, <$udp_group>::example()),)+
                    $(($user_key, <$user_group>::example()),)+
                    $(($call_key, <$call_group>::example()),)+
                    $(($own_key, <$own_group>::example()),)+
                    $(($program_key, <$program_group>::example()),)+
                ]
            }

            /// Every `kind` with the metrics of its own.
            pub fn metrics() -> Vec<(&'static str, &'static [&'static Metric])> {
                vec![
                    $(($tcp_key, <$tcp_group>::metrics()),)+
                    $(($udp_key, <$udp_group>::metrics()),)+
                    $(($user_key, <$user_group>::metrics()),)+
                    $(($call_key, <$call_group>::metrics()),)+
                    $(($own_key, <$own_group>::metrics()),)+
                    $(($program_key, <$program_group>::metrics()),)+
                ]
            }

            pub(crate) fn as_kind(&self) -> &dyn TrafficKind {
                match self {
                    $(Self::$tcp(group) => group,)+
                    $(Self::$udp(group) => group,)+
                    $(Self::$user(group) => group,)+
                    $(Self::$call(group) => group,)+
                    $(Self::$own(group) => group,)+
                    $(Self::$program(group) => group,)+
                }
            }

            pub(crate) fn as_kind_mut(&mut self) -> &mut dyn TrafficKind {
                match self {
                    $(Self::$tcp(group) => group,)+
                    $(Self::$udp(group) => group,)+
                    $(Self::$user(group) => group,)+
                    $(Self::$call(group) => group,)+
                    $(Self::$own(group) => group,)+
                    $(Self::$program(group) => group,)+
                }
            }

            /// The group's TCP, if it uses one.
            pub fn tcp_mut(&mut self) -> Option<&mut ResolvedTcpParams> {
                match self {
                    $(Self::$tcp(group) => Some(&mut group.tcp),)+
                    $(Self::$user(group) => Some(&mut group.tcp),)+
                    _ => None,
                }
            }

            fn made_of(&self) -> MadeOf<'_> {
                match self {
                    $(Self::$tcp(group) => MadeOf::Tcp(group),)+
                    $(Self::$udp(group) => MadeOf::Udp(group),)+
                    $(Self::$user(group) => MadeOf::Users(group),)+
                    $(Self::$call(group) => MadeOf::Calls(group),)+
                    $(Self::$own(group) => MadeOf::Own(group),)+
                    $(Self::$program(group) => MadeOf::Programs(group),)+
                }
            }

            /// What makes the users of a group that has users. `traces` has the tables that groups
            /// name.
            ///
            /// # Panics
            /// When `traces` lacks the table of the group.
            pub fn make_users(&self, traces: &Traces) -> Option<MakeUser<User>> {
                match self {
                    $(Self::$user(group) => {
                        let make = group.make_users(traces);
                        Some(Box::new(move |i, start, stop, stream| {
                            User::$user(make(i, start, stop, stream))
                        }))
                    })+
                    _ => None,
                }
            }
        }

        /// A running source of UDP packets.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each is documented with its group
        pub enum UdpSource {
            $($udp(<$udp_group as UdpKind>::Source),)+
        }

        impl UdpSource {
            /// A flow of this group; `None` if the group does not use UDP.
            pub fn of(group: &TrafficParams) -> Option<Self> {
                match group {
                    $(TrafficParams::$udp(group) => Some(Self::$udp(group.source())),)+
                    _ => None,
                }
            }

            /// The size on the link of the packet sent now, in bytes, and the time to the next.
            #[inline]
            pub fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
                match self {
                    $(Self::$udp(source) => source.send(stream),)+
                }
            }
        }

        /// A user, dispatched by the kind of traffic.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each is documented with its group
        #[allow(clippy::large_enum_variant)] // there is one for each user, on the heap as a whole
        pub enum User {
            $($user(<$user_group as UserKind>::User),)+
        }

        impl Application for User {
            fn next_wakeup(&self) -> Option<Time> {
                match self {
                    $(Self::$user(user) => user.next_wakeup(),)+
                }
            }

            fn on_wakeup(&mut self, network: &mut impl Network) {
                match self {
                    $(Self::$user(user) => user.on_wakeup(network),)+
                }
            }

            fn on_answer(&mut self, answer: Answer, network: &mut impl Network) {
                match self {
                    $(Self::$user(user) => user.on_answer(answer, network),)+
                }
            }

            fn start_measuring(&mut self, now: Time) {
                match self {
                    $(Self::$user(user) => user.start_measuring(now),)+
                }
            }

            fn unfinished_pages(&self, each: &mut impl FnMut(Time)) {
                match self {
                    $(Self::$user(user) => user.unfinished_pages(each),)+
                }
            }

            fn report(&self, now: Time, add: &mut impl FnMut(&'static Metric, f64, f64)) {
                match self {
                    $(Self::$user(user) => user.report(now, add),)+
                }
            }
        }
    };
}

traffic_kinds! {
    tcp {
        /// TCP senders that always have data to send.
        "bulk" => Bulk(BulkParams),
        /// TCP transfers of a given size, one for each flow.
        "transfer" => Transfer(TransferParams),
    }
    udp {
        /// UDP sources of constant rate.
        "cbr" => Cbr(CbrParams),
        /// Telephone calls: voice over UDP, with the quality that the listener gets.
        "voip" => Voip(VoipParams),
        /// UDP sources that alternate between sending at a constant rate and pausing.
        "on-off" => OnOff(OnOffParams),
        /// Players of a fast network game: small UDP packets at short intervals.
        "game" => Game(GameParams),
    }
    users {
        /// Users who repeatedly send a request and receive a response (netperf's CRR and RR).
        "transactions" => Transactions(TransactionParams),
        /// Web users.
        "web" => Web(WebParams),
        /// Users who watch adaptive video (DASH, HLS).
        "video" => Video(VideoParams),
        /// Connections that arrive independently of users: one request and response each.
        "arrivals" => Arrivals(ArrivalsParams),
        /// Connections from a table.
        "trace" => Trace(TraceParams),
    }
    calls {
        /// Video calls that adapt to the network: media over UDP with a rate controller.
        "call" => Call(CallParams),
    }
    own {
        /// Flows over UDP between endpoints of your own: a program that uses redtail as a library gives them.
        "endpoint" => Endpoint(EndpointParams),
    }
    programs {
        /// Pairs of programs of the user, a client and perhaps its server, on a real kernel.
        "program" => Program(ProgramParams),
    }
}

/// Size on the link of a packet with a full segment.
fn full_packet(tcp: &ResolvedTcpParams) -> Bytes {
    tcp.params.wire_size(tcp.params.mss.as_u64() as u32)
}

impl TrafficParams {
    /// The metrics that this kind adds to those of all groups with TCP, UDP or users.
    pub fn own_metrics(&self) -> &'static [&'static Metric] {
        let all = Self::metrics().into_iter();
        let mut own = all.filter(|(kind, _)| *kind == self.kind());
        own.next().map_or(&[], |(_, list)| list)
    }

    /// What every group has.
    pub fn access(&self) -> Access<'_> {
        let kind = self.as_kind();
        let access = kind.access();
        let is_own = kind.has_own_hosts() && access.hosts_of.is_none();
        let own = is_own.then_some(access.flows_at_once);
        Access {
            hosts: access.hosts.or(own),
            ..access
        }
    }

    /// Whether a flow is a person, or what one does.
    pub fn is_of_people(&self) -> bool {
        self.as_kind().is_person()
    }

    /// What flow `i` is made of.
    pub fn flow_kind(&self, i: usize) -> FlowKind {
        match self.made_of() {
            MadeOf::Tcp(group) => FlowKind::Tcp {
                size: group.sizes().map(|sizes| *sizes.get(self.in_activation(i))),
            },
            MadeOf::Udp(_) => FlowKind::Udp,
            MadeOf::Users(_) => FlowKind::User,
            MadeOf::Calls(_) => FlowKind::Call,
            MadeOf::Own(_) => FlowKind::Own,
            MadeOf::Programs(_) => FlowKind::Programs,
        }
    }

    /// Whether its flows have equally much data to send, as far as that is known.
    pub fn has_one_size(&self) -> bool {
        match self.made_of() {
            MadeOf::Tcp(group) => group.sizes().is_none_or(|sizes| sizes.values().len() == 1),
            MadeOf::Udp(_)
            | MadeOf::Users(_)
            | MadeOf::Calls(_)
            | MadeOf::Own(_)
            | MadeOf::Programs(_) => true,
        }
    }

    /// Whether its flows always have more data to send.
    pub fn always_sends(&self) -> bool {
        self.flow_kind(0) == FlowKind::Tcp { size: None }
    }

    /// What a listing of the experiment calls a flow of the group, and how many it has.
    pub fn noun_and_count(&self) -> (&'static str, u32) {
        (self.as_kind().noun(), self.as_kind().count())
    }

    /// The group's TCP, if it uses one.
    pub fn tcp(&self) -> Option<&ResolvedTcpParams> {
        match self.made_of() {
            MadeOf::Tcp(group) => Some(group.tcp()),
            MadeOf::Users(group) => Some(group.tcp()),
            MadeOf::Udp(_) | MadeOf::Calls(_) | MadeOf::Own(_) | MadeOf::Programs(_) => None,
        }
    }

    /// What one flow of a UDP group sends on average, from its start: its rate, and the size of
    /// its packets in bytes; `None` for endpoints of the user's own, of which nothing is known.
    pub fn udp_load(&self) -> Option<(Rate, f64)> {
        match self.made_of() {
            MadeOf::Udp(group) => Some(group.mean_load()),
            MadeOf::Calls(group) => Some(group.mean_load()),
            MadeOf::Tcp(_) | MadeOf::Users(_) | MadeOf::Own(_) | MadeOf::Programs(_) => None,
        }
    }

    /// The most that one flow of a UDP group sends while it sends.
    pub fn udp_peak(&self) -> Option<Rate> {
        match self.made_of() {
            MadeOf::Udp(group) => Some(group.peak()),
            MadeOf::Calls(group) => Some(group.mean_load().0),
            MadeOf::Tcp(_) | MadeOf::Users(_) | MadeOf::Own(_) | MadeOf::Programs(_) => None,
        }
    }

    /// The most that the UDP flows on the busiest host send together; zero for TCP.
    pub fn host_peak(&self) -> Rate {
        let access = self.access();
        let flows = u64::from(access.flows_at_once).div_ceil(access.host_count() as u64);
        let peak = self.udp_peak().map_or(0, Rate::as_bps);
        Rate::from_bps(peak.saturating_mul(flows))
    }

    /// About what the group sends in so many seconds in its direction, if `forward`, or against it:
    /// bytes and packets. `None` if its flows always have more to send, or it is not known how much.
    pub fn offered(&self, seconds: f64, forward: bool) -> Option<(f64, f64)> {
        let flows = f64::from(self.access().flows);
        let seconds = self.active(seconds);
        let packet = self.mean_packet().as_u64() as f64;
        Some(match self.made_of() {
            MadeOf::Tcp(group) => {
                let sizes = group.sizes()?.values();
                let mss = group.tcp().params.mss.as_u64() as f64;
                let each = |size: &Bytes| (size.as_u64() as f64 / mss).ceil();
                let segments = flows * sizes.iter().map(each).sum::<f64>() / sizes.len() as f64;
                (segments * packet, segments)
            }
            MadeOf::Udp(group) => {
                let (rate, packet) = group.mean_load();
                let bytes = flows * rate.as_bps() as f64 / 8.0 * seconds;
                (bytes, bytes / packet)
            }
            MadeOf::Calls(group) => {
                let (rate, packet) = group.mean_load();
                let goes = forward || group.goes_both_ways();
                let bytes = flows * rate.as_bps() as f64 / 8.0 * seconds;
                let bytes = if goes { bytes } else { 0.0 };
                (bytes, bytes / packet)
            }
            MadeOf::Own(_) | MadeOf::Programs(_) => return None,
            MadeOf::Users(group) => match group.total_payload() {
                Some(payload) => {
                    let mss = group.tcp().params.mss.as_u64().max(1);
                    let segments = payload[usize::from(!forward)] as f64 / mss as f64;
                    (segments * packet, segments)
                }
                None => {
                    let bytes = flows * group.offered().unwrap_or(0.0) * seconds;
                    (bytes, bytes / packet)
                }
            },
        })
    }

    /// Size on the link of the group's largest packet.
    pub fn packet_size(&self) -> Bytes {
        match self.made_of() {
            MadeOf::Udp(group) => group.largest_packet(),
            MadeOf::Calls(group) => group.largest_packet(),
            MadeOf::Own(group) => group.packet,
            MadeOf::Programs(_) => program::PACKET,
            MadeOf::Tcp(_) | MadeOf::Users(_) => self
                .packet_law()
                .map_or_else(|| self.mean_packet(), largest),
        }
    }

    /// Size on the link with which the group sends its packets: of TCP those with full segments, of UDP the largest of
    /// those whose sizes are not drawn.
    fn mean_packet(&self) -> Bytes {
        match (self.made_of(), self.packet_law()) {
            (_, Some(law)) => mean_size(law),
            (MadeOf::Tcp(group), None) => full_packet(group.tcp()),
            (MadeOf::Users(group), None) => full_packet(group.tcp()),
            (MadeOf::Udp(group), None) => group.largest_packet(),
            (MadeOf::Calls(group), None) => group.largest_packet(),
            (MadeOf::Own(group), None) => group.packet,
            (MadeOf::Programs(_), None) => program::PACKET,
        }
    }

    /// The law of the sizes of its packets, if the file gives one.
    fn packet_law(&self) -> Option<&Dist<Bytes>> {
        match self.made_of() {
            MadeOf::Tcp(group) => group.packet(),
            MadeOf::Users(group) => group.packet(),
            MadeOf::Udp(group) => group.packet(),
            MadeOf::Calls(_) | MadeOf::Own(_) | MadeOf::Programs(_) => None,
        }
    }

    /// The sizes that the network draws for its packets; `None` if it draws none.
    pub fn drawn_sizes(&self) -> Option<DrawnSizes> {
        DrawnSizes::of(self.packet_law(), self.mean_packet())
    }

    /// The latest that a flow of the group may start.
    pub fn latest_start(&self) -> Span {
        let starts = self.as_kind().starts().into_iter().flat_map(Dealt::values);
        let latest = starts.map(|start| start.latest()).max();
        latest.map_or(Span::ZERO, |latest| latest + self.last_shift())
    }

    /// The latest that a flow of the group may stop; `None` if they do not.
    pub fn latest_stop(&self) -> Option<Span> {
        let stops = self.as_kind().stops()?.values();
        let latest = stops.iter().map(|stop| stop.latest()).max()?;
        Some(latest + self.last_shift())
    }

    /// The times at which flows start or stop that are not drawn.
    pub fn fixed_times(&self) -> Vec<Span> {
        let kind = self.as_kind();
        let times = kind.starts().into_iter().chain(kind.stops());
        let flows = self.access().flows_at_once as usize;
        let given = times.flat_map(|times| times.values().iter().take(flows));
        let fixed = given.filter_map(|time| match time {
            Start::At(at) => Some(*at),
            Start::Uniform { .. } => None,
        });
        self.in_all_activations(fixed.collect())
    }

    /// When flow `i` starts; for a user who begins by thinking, the start of the run. `stream` is
    /// the flow's own.
    pub fn start(&self, i: usize, stream: &mut Stream) -> Time {
        if let Some(starts) = self.as_kind().starts() {
            return starts.get(self.in_activation(i)).draw(stream) + self.shift(i);
        }
        match self.made_of() {
            MadeOf::Udp(group) => group.random_start(stream),
            MadeOf::Tcp(_)
            | MadeOf::Users(_)
            | MadeOf::Calls(_)
            | MadeOf::Own(_)
            | MadeOf::Programs(_) => Time::ZERO,
        }
    }

    /// The two ends of a call that starts and stops at these times, with what is left of its stream: the
    /// one that the group's direction begins at, and its peer. `None` if the group has no calls.
    pub fn make_call(&self, start: Time, stop: Time, stream: &Stream) -> Option<[CallEnd; 2]> {
        match self.made_of() {
            MadeOf::Calls(group) => Some(CallEnd::pair(group, start, stop, stream)),
            MadeOf::Tcp(_)
            | MadeOf::Udp(_)
            | MadeOf::Users(_)
            | MadeOf::Own(_)
            | MadeOf::Programs(_) => None,
        }
    }

    /// When flow `i` stops, if it does. `stream` is the flow's own, after its start was
    /// drawn.
    pub fn stop(&self, i: usize, stream: &mut Stream) -> Option<Time> {
        let stop = self.as_kind().stops()?;
        Some(stop.get(self.in_activation(i)).draw(stream) + self.shift(i))
    }

    /// Whether responses of host `host` go against the group's direction.
    pub fn is_reverse(&self, host: usize) -> bool {
        let (flows, reverse) = (self.access().flows, self.as_kind().reverse_hosts());
        reverse > 0 && host % flows as usize >= (flows - reverse) as usize
    }

    /// Whether any responses go in the group's direction, and whether any go against it.
    pub fn ways(&self) -> [bool; 2] {
        if let MadeOf::Calls(group) = self.made_of() {
            return [true, group.goes_both_ways()];
        }
        match self.as_kind().reverse_hosts() {
            0 => [true, false],
            reverse => [reverse < self.access().flows, true],
        }
    }

    /// Its programs, if its flows are pairs of programs.
    pub fn programs(&self) -> Option<&ProgramParams> {
        match self.made_of() {
            MadeOf::Programs(group) => Some(group),
            _ => None,
        }
    }

    /// Whether its flows are connections that users open and close.
    pub fn has_users(&self) -> bool {
        matches!(self.made_of(), MadeOf::Users(_))
    }

    /// About what a user is sent, in bytes per second, if the network took no time; `None` if
    /// that is not bounded.
    pub fn offered_by_user(&self) -> Option<f64> {
        match self.made_of() {
            MadeOf::Users(group) => group.offered(),
            MadeOf::Tcp(_)
            | MadeOf::Udp(_)
            | MadeOf::Calls(_)
            | MadeOf::Own(_)
            | MadeOf::Programs(_) => None,
        }
    }

    /// The load that the group is to offer, if the file gives one instead of a number of users.
    pub fn load(&self) -> Option<Load> {
        self.as_kind().requested_load()
    }

    /// Sets the number of users of a group that has users, and removes its requested load.
    pub fn set_users(&mut self, users: u32) {
        debug_assert!(self.has_users(), "a group without users");
        let kind = self.as_kind_mut();
        kind.set_flows(users);
        kind.clear_load();
    }

    /// Whether the responses on one connection are interleaved.
    pub fn is_multiplexed(&self) -> bool {
        match self.made_of() {
            MadeOf::Users(group) => group.is_multiplexed(),
            MadeOf::Tcp(_)
            | MadeOf::Udp(_)
            | MadeOf::Calls(_)
            | MadeOf::Own(_)
            | MadeOf::Programs(_) => false,
        }
    }

    /// The key that gives the number of flows of this `kind`.
    pub fn count_key_of(kind: &str) -> &'static str {
        match Self::OF_USERS.contains(&kind) {
            true => "users",
            false => "flows",
        }
    }

    /// The key that gives the number of its flows.
    pub fn count_key(&self) -> &'static str {
        if self.has_users() { "users" } else { "flows" }
    }

    /// Fills in what the file left out, with `access` for the keys that all groups have.
    pub fn fill_in(&mut self, access: &AccessFilling) {
        let kind = self.as_kind_mut();
        kind.fill_in_access(access);
        kind.fill_in();
    }

    /// Fills in when flows start, if the file left it out and the default depends on `warmup`.
    pub fn fill_in_starts(&mut self, warmup: Span) {
        self.as_kind_mut().fill_in_starts(warmup);
    }

    /// Takes over hosts of another group, if its flows sit on such.
    pub fn take_hosts(&mut self, taken: TakenHosts) {
        self.as_kind_mut().take_hosts(taken);
    }

    /// Lets its flows sit on the hosts of this group, of whose number it knows.
    pub fn sit_on(&mut self, group: &str) {
        self.as_kind_mut().sit_on(group);
    }

    /// Sets the number of the hosts of another group that its flows sit on, if they do.
    pub fn count_taken_hosts(&mut self, number: u32) {
        self.as_kind_mut().count_taken_hosts(number);
    }

    /// Gives it so many hosts of its own, with the links and delays that it has.
    pub fn own_hosts(&mut self, count: u32) {
        self.as_kind_mut().own_hosts(count);
    }

    /// The first and the last hop that the file gives.
    pub fn hops_mut(&mut self) -> [&mut Option<ChainHop>; 2] {
        self.as_kind_mut().hops_mut()
    }

    /// Sets the random delays of the group's hosts.
    pub fn set_host_jitter(&mut self, host_jitter: Option<Span>) {
        self.as_kind_mut().set_host_jitter(host_jitter);
    }

    /// Refuses values that cannot be run.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted. Errors of
    /// the `tcp` table are those of [`TcpParams::check`](redtail_transport::TcpParams::check).
    pub fn check(&self) -> Result<(), ParamError> {
        let access = self.access();
        let counts = [
            (self.count_key(), Some(access.flows_at_once)),
            ("hosts", access.hosts),
        ];
        for (key, count) in counts {
            let problem = match count {
                Some(0) => "is zero",
                Some(count) if count > MAX_FLOWS => "is more than can be run",
                _ => continue,
            };
            let accepted = format!("1 to {MAX_FLOWS}");
            return Err(ParamError::new(key, problem, accepted));
        }
        check_host_jitter(access.host_jitter)?;
        let rates = [
            ("access_rate", access.access_rate),
            ("exit_rate", access.exit_rate),
        ];
        for (key, rate) in rates {
            if rate.is_some_and(|rate| rate.values().iter().any(|rate| rate.as_bps() == 0)) {
                return Err(ParamError::new(
                    key,
                    "is zero",
                    "a rate such as \"100 Mbit/s\"",
                ));
            }
            for &rate in rate.into_iter().flat_map(Dealt::values) {
                refuse_fast(key, rate)?;
            }
        }
        self.as_kind().check()?;
        if let (Some(law), Some(tcp)) = (self.packet_law(), self.tcp()) {
            check_segments(law, full_packet(tcp), tcp.params.header)?;
        }
        self.check_stops()?;
        self.check_repeat()
    }

    /// Refuses a flow that may stop before it has started.
    fn check_stops(&self) -> Result<(), ParamError> {
        let Some(stops) = self.as_kind().stops() else {
            return Ok(());
        };
        for i in 0..self.access().flows_at_once as usize {
            let start = self
                .as_kind()
                .starts()
                .map_or(Span::ZERO, |start| start.get(i).latest());
            if stops.get(i).earliest() <= start {
                return Err(ParamError::new(
                    "stop",
                    format!("is not after \"{start}\", when flow {i} may start"),
                    "times after the start, or none",
                ));
            }
        }
        Ok(())
    }
}
