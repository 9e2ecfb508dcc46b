//! The event log: which kinds of events there are, what each says, and which of them a run records.
//!
//! What an event is, the unit of its `value` and the reasons that it may have are written here alone.
//! Validation, `redtail list events` and the reference page are made from this.

use redtail_core::{Span, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a kind of event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMeaning {
    /// Its name in files and tables.
    pub name: &'static str,
    /// What it is of: "flow", "queue", "link", "user" or "log".
    pub of: &'static str,
    /// What happened.
    pub meaning: &'static str,
    /// What its `value` is, with the unit; empty if it has none.
    pub value: &'static str,
    /// The reasons that it may have, and what each means.
    pub reasons: &'static [(&'static str, &'static str)],
    /// Whether it is recorded only if `kinds` names it.
    pub only_when_named: bool,
}

/// Defines the kinds of events from one list.
macro_rules! events {
    ($(
        $(#[doc = $meaning:literal])*
        $variant:ident = $name:literal of $of:literal
        $(, value $value:literal)?
        $(, reasons { $($reason:literal: $why:literal,)+ })?
        $(, only when named $only:literal)?;
    )+) => {
        /// A kind of events.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        pub enum EventKind {
            $($(#[doc = $meaning])* #[serde(rename = $name)] $variant,)+
        }

        impl EventKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// What the kind says.
            pub const fn meaning(self) -> EventMeaning {
                match self {$(
                    Self::$variant => EventMeaning {
                        name: $name,
                        of: $of,
                        meaning: concat!($($meaning,)*),
                        value: concat!($($value)?),
                        reasons: &[$($(($reason, $why),)+)?],
                        only_when_named: false $(|| $only)?,
                    },
                )+}
            }
        }
    };
}

events! {
    /// The flow begins: its first segment may leave.
    Start = "start" of "flow";
    /// All that the flow had to send was acknowledged.
    End = "end" of "flow", value "time since its start, s";
    /// The retransmission timer expired (RFC 6298, section 5).
    Timeout = "timeout" of "flow", value "the retransmission timeout that expired, s",
        reasons {
            "data": "data was outstanding",
            "handshake": "a SYN was not answered",
        };
    /// A tail loss probe was sent (RFC 8985, section 7.3). `sequence` is the place after the last byte of the probe.
    TailLossProbe = "tail_loss_probe" of "flow",
        reasons {
            "new_data": "it carries data that was never sent",
            "last_segment": "it repeats the last segment",
        };
    /// A segment was sent again. `sequence` and `bytes` are those of its data.
    Retransmission = "retransmission" of "flow";
    /// Fast recovery began: a loss was detected without a timeout. `sequence` is the first byte that is not acknowledged.
    Recovery = "recovery" of "flow";
    /// Recovery ended.
    RecoveryEnd = "recovery_end" of "flow", value "time since it began, s",
        reasons {
            "acknowledged": "the data sent before it was acknowledged",
            "timeout": "a timeout took its place",
            "undo": "it proved spurious",
        };
    /// The repair after a timeout ended.
    LossEnd = "loss_end" of "flow", value "time since the latest timeout, s",
        reasons {
            "acknowledged": "the data sent before it was acknowledged",
            "recovery": "fast recovery took its place",
            "undo": "the timeout proved spurious",
        };
    /// A reduction of the window was undone: `cwnd_bytes` is the window after it.
    Undo = "undo" of "flow", value "the window before it was undone, bytes",
        reasons {
            "timeout": "of a timeout",
            "fast_retransmit": "of fast recovery",
        };
    /// A timeout or a fast retransmit proved spurious.
    Spurious = "spurious" of "flow",
        reasons {
            "frto": "of a timeout: what was sent before it is acknowledged after it (RFC 5682)",
            "dsack": "each retransmission was reported as a duplicate (RFC 3708)",
            "eifel": "an acknowledgement echoes a timestamp from before the retransmission (RFC 3522)",
        };
    /// The sender answered congestion marks (ECN): it reduced its window.
    MarkAnswered = "mark_answered" of "flow", value "the window before, bytes";
    /// The congestion controller changed its state: of a model or a controller of yours its own, otherwise that of Linux (`tcp_ca_state`) where recovery is `linux`.
    State = "state" of "flow",
        reasons {
            "startup": "BBR: looks for the bandwidth",
            "drain": "BBR: empties the queue that its start made",
            "probe_bw_up": "BBR: sends faster than the bandwidth, to see whether there is more",
            "probe_bw_down": "BBR: sends slower, to empty the queue that this made",
            "probe_bw_cruise": "BBR: sends at the bandwidth",
            "probe_bw_refill": "BBRv3: fills the pipe before it sends faster",
            "probe_rtt": "BBR: empties the pipe to measure the round trip",
            "slow_start": "Copa: doubles its window each round trip",
            "default": "Copa: keeps the queue short",
            "competitive": "Copa: competes with flows that fill the queue",
            "open": "no loss and no marks",
            "disorder": "data is missing and not declared lost",
            "reduction": "a reduction because of marks is spread over a round trip (CWR)",
            "recovery": "fast recovery",
            "loss": "repair after a timeout",
        };
    /// The estimated share of marked bytes changed (DCTCP, Prague).
    Alpha = "alpha" of "flow", value "the share, 0 to 1";
    /// Slow start ended.
    SlowStartEnd = "slow_start_end" of "flow", value "the window, bytes",
        reasons {
            "threshold": "the window reached ssthresh",
            "loss": "a loss was detected",
            "timeout": "the retransmission timer expired",
            "mark": "marks were answered",
            "delay": "the controller lowered ssthresh itself, as HyStart does when round trips grow",
        };
    /// The window was reduced because the flow had been idle for longer than a retransmission timeout.
    IdleRestart = "idle_restart" of "flow", value "the window before, bytes";
    /// No data was acknowledged for more than 10 s although some was outstanding; told when it ends. Of a video: the picture stood still; told when it goes on.
    Stall = "stall" of "flow", value "how long, s",
        reasons {
            "acknowledgement": "the flow waited for an acknowledgement that advances",
            "video": "the player had nothing to show",
        };
    /// The queue dropped a packet. With `wait_s` it had waited so long; without, it was dropped on arrival.
    Drop = "drop" of "queue",
        reasons {
            "limit": "it would have exceeded the queue's limit",
            "early": "the control law chose it, below the point at which it drops every packet",
            "forced": "the control law drops every packet (RED with its average above max_th)",
            "redundant": "a later acknowledgement makes this one redundant (CAKE's ACK filter)",
            "policer": "the policer in front of the queue dropped it, because it was above the rate",
        };
    /// The queue marked a packet (ECN). With `wait_s` it had waited so long; without, it was marked on arrival.
    Mark = "mark" of "queue";
    /// The wire lost a packet after its transmission. Without a reason it is a loss of `wire.loss`.
    WireLoss = "wire_loss" of "link",
        reasons {
            "limit": "the delay line was full (`wire.limit`)",
        };
    /// A user's page was complete.
    Page = "page" of "user", value "time from the first request to the last byte, s";
    /// A user's response was complete. `bytes` is its size.
    Response = "response" of "user", value "time from the request to the last byte, s";
    /// A packet reached the link, before its queue admitted or dropped it.
    Arrival = "arrival" of "link", value "packets that waited before it", only when named true;
    /// The link had sent a packet completely. `wait_s` is how long it had waited for its transmission.
    Departure = "departure" of "link", value "packets that wait now", only when named true;
    /// The log reached its `limit`: the events from here on were left out.
    Full = "log_full" of "log", value "how many events were left out";
}

params! {
    /// The event log of each run: why flows and queues did what they did. Recording never changes a run.
    #[schemars(rename = "EventsRequest")]
    pub struct EventsParams {
        /// Which kinds of events; [the events](events.md) says what each means.
        kinds: Option<Vec<EventKind>>, "all but `arrival` and `departure`, which take a row for each packet.";
        /// Names of the groups whose events are recorded.
        groups: Option<Vec<String>>, "all.";
        /// Numbers of the flows whose events are recorded, counted over all groups in the order of the file.
        flows: Option<Vec<u32>>, "all.";
        /// Events before this time are left out.
        from: Span = Span::ZERO, "the start of the run, warm-up included: what happens then explains what follows.";
        /// Events from this time on are left out.
        to: Option<Span>, "the end of the run.";
        /// The most rows of a run; at most 10 million. Later events are counted and left out, which results say.
        #[schemars(range(min = 1))]
        limit: u64 = 200_000, "ours: about 25 MB of memory for each run, and 1 hour of 50 events a second.";
        /// Number of replications of each case that are recorded, counted from the first.
        #[schemars(range(min = 1))]
        replications: Option<u32>, "all.";
    }
}

/// The event log of one run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Which kinds, each once and in order.
    pub kinds: Vec<EventKind>,
    /// The names of the groups whose events are recorded; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// The numbers of the flows whose events are recorded; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<u32>>,
    /// Earlier events are left out.
    pub from: Span,
    /// Events from this time on are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Span>,
    /// The most rows.
    pub limit: u64,
}

/// The most rows that a log may be given.
pub const MOST_EVENTS: u64 = 10_000_000;

impl From<&EventsParams> for Events {
    fn from(params: &EventsParams) -> Self {
        let named = |kind: &EventKind| match &params.kinds {
            Some(kinds) => kinds.contains(kind) || *kind == EventKind::Full,
            None => !kind.meaning().only_when_named,
        };
        Self {
            kinds: EventKind::ALL.iter().copied().filter(named).collect(),
            groups: params.groups.clone(),
            flows: params.flows.clone(),
            from: params.from,
            to: params.to,
            limit: params.limit,
        }
    }
}

impl Default for Events {
    /// What `[events]` without a key records.
    fn default() -> Self {
        Self::from(&EventsParams::default())
    }
}
