//! Groups of like flows, as the experiment file describes them.
//!
//! Adding a model: one struct here (or in a file of its own), one line in
//! [`TrafficGroup`], and the engine's part in `sim`'s sources.

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;

use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Dscp, Metric, ParamError, Rate, Span, Stream, Time, kinded, metrics, schemars, serde,
};
use redtail_transport::TcpSpec;

use crate::access::{Access, Direction};
use crate::arrivals::ArrivalsGroup;
use crate::bounds::{MAX_FLOWS, check_host_jitter, refuse_fast};
use crate::cbr::CbrGroup;
use crate::dealt::Dealt;
use crate::game::GameGroup;
use crate::keys::groups;
use crate::load::Load;
use crate::on_off::OnOffGroup;
use crate::start::Start;
use crate::trace::TraceGroup;
use crate::transactions::TransactionGroup;
use crate::user::User;
use crate::video::VideoGroup;
use crate::voip::VoipGroup;
use crate::web::WebGroup;

groups! {
    /// TCP senders that always have data to send.
    pub struct BulkGroup {
        /// The TCP they use: a preset, or a table with a preset and what departs from it.
        /// Source: the `sack` preset.
        #[serde(default)]
        pub tcp: TcpSpec,
        /// When flows start; dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When flows stop: they send no new data, and close when what they have sent is acknowledged; dealt out. Left out, they go on to the end of the run.
        /// Source: none, always data to send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }

    /// TCP transfers of a given size, one for each flow.
    pub struct TransferGroup {
        /// Payload to transfer; dealt out.
        pub size: Dealt<Bytes>,
        /// The TCP they use: a preset, or a table with a preset and what departs from it.
        /// Source: the `sack` preset.
        #[serde(default)]
        pub tcp: TcpSpec,
        /// When transfers start; dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
    }
}

metrics! {
    /// What a group of kind `transfer` reports of the transfers that were in progress when the period began or that started in it.
    pub const OF_TRANSFERS of Group;

    /// Share of the transfers that completed before the period ended. The transfers are those that were in progress when the period began or that started in it.
    COMPLETED = "completed", Fraction, "Transfers completed", "completed";
    /// Mean time from the start of a transfer until the acknowledgement of the last byte reaches the sender, whether or not it acknowledges the FIN.
    COMPLETION_TIME_MEAN = "completion_time_mean", Time, "Mean completion time of transfers", "completion";
    /// Mean time from the start (the first SYN) until the SYN-ACK reaches the sender; undefined without a handshake.
    HANDSHAKE_TIME_MEAN = "handshake_time_mean", Time, "Mean handshake time of transfers", "handshake";
    /// Mean time from the start until the receiver delivers the first byte.
    FIRST_BYTE_TIME_MEAN = "first_byte_time_mean", Time, "Mean time to first byte of transfers", "first byte";
}

kinded! {
    /// A group of like flows, chosen by `kind`.
    pub enum TrafficGroup {
        /// TCP senders that always have data to send.
        "bulk" => Bulk(BulkGroup),
        /// TCP transfers of a given size, one for each flow.
        "transfer" => Transfer(TransferGroup),
        /// UDP sources of constant rate.
        "cbr" => Cbr(CbrGroup),
        /// Telephone calls: voice over UDP, with the quality that the listener gets.
        "voip" => Voip(VoipGroup),
        /// UDP sources that send at a constant rate for a while and then pause.
        "on-off" => OnOff(OnOffGroup),
        /// Players of a fast network game: small UDP packets at short intervals.
        "game" => Game(GameGroup),
        /// Users who ask and are answered, over and over (netperf's CRR and RR).
        "transactions" => Transactions(TransactionGroup),
        /// Web users.
        "web" => Web(WebGroup),
        /// Users who watch adaptive video (DASH, HLS).
        "video" => Video(VideoGroup),
        /// Connections that arrive by themselves: one request and response each.
        "arrivals" => Arrivals(ArrivalsGroup),
        /// Connections from a table.
        "trace" => Trace(TraceGroup),
    }
}

/// Makes a user from its start, its stop, and what is left of the stream that these were drawn from.
pub type MakeUser = Box<dyn Fn(Time, Time, Stream) -> User>;

impl TrafficGroup {
    /// The metrics that a kind of group adds to those of all groups with TCP, UDP or users.
    pub const METRICS: &'static [(&'static str, &'static [&'static Metric])] = &[
        ("transfer", OF_TRANSFERS),
        ("voip", crate::voip::METRICS),
        ("web", crate::web::METRICS),
        ("video", crate::video::METRICS),
    ];

    /// The metrics that this kind adds ([`METRICS`](Self::METRICS)).
    pub fn own_metrics(&self) -> &'static [&'static Metric] {
        let own = Self::METRICS.iter().find(|(kind, _)| *kind == self.kind());
        own.map_or(&[], |(_, list)| list)
    }

    /// What every group has.
    pub fn access(&self) -> Access<'_> {
        match self {
            Self::Bulk(group) => group.access(),
            Self::Transfer(group) => group.access(),
            Self::Cbr(group) => group.access(),
            Self::Transactions(group) => group.access(),
            Self::Web(group) => group.access(),
            Self::Voip(group) => group.access(),
            Self::OnOff(group) => group.access(),
            Self::Game(group) => group.access(),
            Self::Video(group) => group.access(),
            Self::Arrivals(group) => group.access(),
            Self::Trace(group) => group.access(),
        }
    }

    /// The group's TCP, if it uses one.
    pub fn tcp(&self) -> Option<&TcpSpec> {
        match self {
            Self::Bulk(group) => Some(&group.tcp),
            Self::Transfer(group) => Some(&group.tcp),
            Self::Transactions(group) => Some(&group.tcp),
            Self::Web(group) => Some(&group.tcp),
            Self::Video(group) => Some(&group.tcp),
            Self::Arrivals(group) => Some(&group.tcp),
            Self::Trace(group) => Some(&group.tcp),
            Self::Cbr(_) | Self::Voip(_) | Self::OnOff(_) | Self::Game(_) => None,
        }
    }

    /// What one flow of a UDP group sends on average, from its start: its rate, and the size of
    /// its packets in bytes.
    pub fn udp_load(&self) -> Option<(Rate, f64)> {
        match self {
            Self::Cbr(group) => Some((group.rate, group.packet.as_u64() as f64)),
            Self::Voip(group) => Some(group.load()),
            Self::OnOff(group) => Some(group.load()),
            Self::Game(group) => Some(group.load()),
            _ => None,
        }
    }

    /// The most that one flow of a UDP group sends while it sends.
    pub fn udp_peak(&self) -> Option<Rate> {
        match self {
            Self::Voip(group) => Some(group.talking_rate()),
            Self::OnOff(group) => Some(group.rate),
            _ => self.udp_load().map(|(rate, _)| rate),
        }
    }

    /// The most that the UDP flows on the busiest host send together; zero for TCP.
    pub fn host_peak(&self) -> Rate {
        let access = self.access();
        let flows = u64::from(access.flows).div_ceil(access.host_count() as u64);
        let peak = self.udp_peak().map_or(0, Rate::as_bps);
        Rate::from_bps(peak.saturating_mul(flows))
    }

    /// Size on the link of the group's largest packet.
    pub fn packet_size(&self) -> Bytes {
        match (self, self.tcp()) {
            (_, Some(tcp)) => tcp.params.wire_size(tcp.params.mss.as_u64() as u32),
            (Self::Cbr(group), None) => group.packet,
            (Self::Voip(group), None) => group.packet(),
            (Self::OnOff(group), None) => group.packet,
            (Self::Game(group), None) => group.largest_packet(),
            (_, None) => unreachable!("they use TCP"),
        }
    }

    /// When its flows start, as the file says; `None` where a flow decides itself.
    fn starts(&self) -> Option<&Dealt<Start>> {
        match self {
            Self::Bulk(group) => Some(&group.start),
            Self::Transfer(group) => Some(&group.start),
            Self::Transactions(group) => Some(&group.start),
            Self::Video(group) => Some(&group.start),
            Self::Arrivals(group) => Some(&group.start),
            Self::Cbr(group) => group.start.as_ref(),
            Self::Voip(group) => group.start.as_ref(),
            Self::OnOff(group) => group.start.as_ref(),
            Self::Game(group) => group.start.as_ref(),
            Self::Web(group) => group.start.as_ref(),
            Self::Trace(_) => None,
        }
    }

    /// When its flows stop, as the file says; `None` where they do not.
    fn stops(&self) -> Option<&Dealt<Start>> {
        match self {
            Self::Bulk(group) => group.stop.as_ref(),
            Self::Transfer(_) | Self::Trace(_) => None,
            Self::Transactions(group) => group.stop.as_ref(),
            Self::Video(group) => group.stop.as_ref(),
            Self::Arrivals(group) => group.stop.as_ref(),
            Self::Cbr(group) => group.stop.as_ref(),
            Self::Voip(group) => group.stop.as_ref(),
            Self::OnOff(group) => group.stop.as_ref(),
            Self::Game(group) => group.stop.as_ref(),
            Self::Web(group) => group.stop.as_ref(),
        }
    }

    /// The latest that a flow of the group may start.
    pub fn latest_start(&self) -> Span {
        let starts = self.starts().into_iter().flat_map(Dealt::values);
        starts.map(|start| start.latest()).max().unwrap_or_default()
    }

    /// The latest that a flow of the group may stop; `None` if they do not.
    pub fn latest_stop(&self) -> Option<Span> {
        let stops = self.stops()?.values();
        stops.iter().map(|stop| stop.latest()).max()
    }

    /// The times at which flows start or stop that are not drawn.
    pub fn fixed_times(&self) -> Vec<Span> {
        let times = self.starts().into_iter().chain(self.stops());
        let fixed = times.flat_map(Dealt::values).filter_map(|time| match time {
            Start::At(at) => Some(*at),
            Start::Uniform { .. } => None,
        });
        fixed.collect()
    }

    /// When flow `i` starts; for a user who begins by thinking, the start of the run. `stream` is
    /// the flow's own.
    pub fn start(&self, i: usize, stream: &mut Stream) -> Time {
        if let Some(starts) = self.starts() {
            return starts.get(i).draw(stream);
        }
        match self {
            Self::Cbr(group) => Time::ZERO + stream.uniform_span(Span::ZERO, group.gap()),
            Self::Voip(group) => group.start(stream),
            Self::OnOff(group) => group.start(stream),
            Self::Game(group) => group.start(stream),
            _ => Time::ZERO,
        }
    }

    /// When flow `i` stops, if it does. `stream` is the flow's own, after its start was
    /// drawn.
    pub fn stop(&self, i: usize, stream: &mut Stream) -> Option<Time> {
        let stop = self.stops()?;
        Some(stop.get(i).draw(stream))
    }

    /// Whether responses of host `host` go against the group's direction.
    pub fn is_reverse(&self, host: usize) -> bool {
        match self {
            Self::Trace(group) => group.table.is_some_and(|facts| {
                host % group.flows as usize >= (group.flows - facts.reverse) as usize
            }),
            _ => false,
        }
    }

    /// Whether any responses go the group's way, and whether any go the other way.
    pub fn ways(&self) -> [bool; 2] {
        match self {
            Self::Trace(TraceGroup {
                table: Some(facts),
                flows,
                ..
            }) => [facts.reverse < *flows, facts.reverse > 0],
            _ => [true, false],
        }
    }

    /// Whether its flows are connections that users open and close.
    pub fn has_users(&self) -> bool {
        matches!(
            self,
            Self::Transactions(_)
                | Self::Web(_)
                | Self::Video(_)
                | Self::Arrivals(_)
                | Self::Trace(_)
        )
    }

    /// What makes the users of a group that has users and no table; they share what they have in
    /// common.
    pub fn make_user(&self) -> Option<MakeUser> {
        Some(match self {
            Self::Transactions(group) => {
                let group = Arc::new(group.clone());
                Box::new(move |start, stop, stream| {
                    User::Transactions(group.user(start, stop, stream))
                })
            }
            Self::Web(group) => {
                let browser = Arc::new(group.browser());
                let (starts, hosts) = (group.start.is_some(), group.access().host_count() as u32);
                Box::new(move |start, stop, stream| {
                    let start = starts.then_some(start);
                    User::Web(WebGroup::user(&browser, start, stop, hosts, stream))
                })
            }
            Self::Video(group) => {
                let group = Arc::new(group.clone());
                Box::new(move |start, stop, stream| User::Video(group.user(start, stop, stream)))
            }
            Self::Arrivals(group) => {
                let group = Arc::new(group.clone());
                Box::new(move |start, stop, stream| {
                    User::Arrivals(group.source(start, stop, stream))
                })
            }
            _ => return None,
        })
    }

    /// About what a user is sent, in bytes per second, if the network took no time; `None` if
    /// that is not bounded.
    pub fn offered_by_user(&self) -> Option<f64> {
        match self {
            Self::Transactions(group) => group.offered(),
            Self::Web(group) => group.offered(),
            Self::Video(group) => group.offered(),
            Self::Arrivals(group) => group.offered(),
            _ => None,
        }
    }

    /// The load asked for, where the number of users is to be found.
    pub fn load(&self) -> Option<Load> {
        match self {
            Self::Web(group) => group.load,
            _ => None,
        }
    }

    /// Gives a group that has users so many, whatever load was asked for.
    pub fn set_users(&mut self, users: u32) {
        match self {
            Self::Web(group) => (group.flows, group.load) = (users, None),
            Self::Transactions(group) => group.flows = users,
            _ => debug_assert!(false, "a group without users"),
        }
    }

    /// Whether a connection's responses come interleaved.
    pub fn is_multiplexed(&self) -> bool {
        matches!(self, Self::Web(group) if group.browser().multiplexed)
    }

    /// The key that gives the number of its flows.
    pub fn count_key(&self) -> &'static str {
        if self.has_users() { "users" } else { "flows" }
    }

    /// Refuses values that cannot be run.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted. Errors of
    /// the `tcp` table are those of [`TcpParams::check`](redtail_transport::TcpParams::check).
    pub fn check(&self) -> Result<(), ParamError> {
        let access = self.access();
        let counts = [
            (self.count_key(), Some(access.flows)),
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
        match self {
            Self::Bulk(_) => Ok(()),
            Self::Transfer(group) => group.check(),
            Self::Cbr(group) => group.check(),
            Self::Voip(group) => group.check(),
            Self::OnOff(group) => group.check(),
            Self::Game(group) => group.check(),
            Self::Transactions(group) => group.check(),
            Self::Web(group) => group.check(),
            Self::Video(group) => group.check(),
            Self::Arrivals(group) => group.check(),
            Self::Trace(group) => group.check(),
        }?;
        self.check_stops()
    }

    /// Refuses a flow that may stop before it has started.
    fn check_stops(&self) -> Result<(), ParamError> {
        let Some(stops) = self.stops() else {
            return Ok(());
        };
        for i in 0..self.access().flows as usize {
            let start = self
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

impl TransferGroup {
    fn check(&self) -> Result<(), ParamError> {
        if self.size.values().iter().any(|size| size.as_u64() == 0) {
            return Err(ParamError::new(
                "size",
                "is zero",
                "a size such as \"292 kB\"",
            ));
        }
        Ok(())
    }
}
