//! The event log of real hosts: what `TCP_INFO` shows of TCP flows, which is asked now and then.
//!
//! So events have the time at which they were seen, and what begins and ends between two looks is not seen.

use redtail_core::{Span, Time};
use redtail_network::EventRow;
use redtail_spec::{EventKind, Events};

use crate::sys::tcp_info::TcpInfo;

/// The time between two looks: ours, a twentieth of the shortest retransmission timeout of Linux (`TCP_RTO_MIN`,
/// include/net/tcp.h).
pub const LOOK: Span = Span::from_ms(10);

/// The names of `tcp_ca_state` (include/uapi/linux/tcp.h).
const STATES: [&str; 5] = ["open", "disorder", "reduction", "recovery", "loss"];
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// Whether `TCP_INFO` tells of events of this kind.
pub fn is_of_flow(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Timeout
            | EventKind::Retransmission
            | EventKind::Recovery
            | EventKind::RecoveryEnd
            | EventKind::LossEnd
            | EventKind::State
    )
}

/// Whether a run with real hosts can tell of events of this kind.
pub fn is_told(kind: EventKind) -> bool {
    is_of_flow(kind)
        || matches!(
            kind,
            EventKind::Drop
                | EventKind::Mark
                | EventKind::WireLoss
                | EventKind::Arrival
                | EventKind::Departure
                | EventKind::Page
                | EventKind::Response
                | EventKind::Stall
        )
}

/// An event of a flow.
pub type HostEvent = (EventKind, Time, EventRow);

/// What was seen of a flow at the latest look.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    info: TcpInfo,
    /// When the present episode of repair was first seen.
    since: Time,
}

/// The log of the TCP flows of all groups.
#[derive(Debug)]
pub struct HostLog {
    request: Events,
    seen: Vec<Seen>,
    /// The events so far.
    pub events: Vec<HostEvent>,
}

impl HostLog {
    /// A log without events of so many flows.
    pub fn new(flows: usize, request: &Events) -> Self {
        Self {
            request: request.clone(),
            seen: vec![Seen::default(); flows],
            events: Vec::new(),
        }
    }

    /// A user with this group and flow has a page or a response, of so many bytes, after `took`.
    pub fn on_user(&mut self, flow: (u32, u32), took: Span, response: Option<u64>, now: Time) {
        let row = EventRow {
            flow: Some(flow),
            bytes: response,
            value: took.as_secs_f64(),
            ..EventRow::default()
        };
        let kind = match response {
            Some(_) => EventKind::Response,
            None => EventKind::Page,
        };
        self.push(kind, now, row);
    }

    /// What a user with this group and flow watches goes on after it stood still for `took`.
    pub fn on_stall(&mut self, flow: (u32, u32), took: Span, now: Time) {
        let row = EventRow {
            reason: Some("video"),
            flow: Some(flow),
            value: took.as_secs_f64(),
            ..EventRow::default()
        };
        self.push(EventKind::Stall, now, row);
    }

    /// Adds an event. What is not wanted must not take the room of what is.
    fn push(&mut self, kind: EventKind, now: Time, row: EventRow) {
        let wanted = self.request.kinds.contains(&kind)
            && now >= Time::ZERO + self.request.from
            && self.request.to.is_none_or(|to| now < Time::ZERO + to);
        // One more than there is room for says that some are left out.
        if wanted && self.events.len() as u64 <= self.request.limit {
            self.events.push((kind, now, row));
        }
    }

    /// What the kernel tells now of the flow at this place, which has this group and number.
    pub fn look(&mut self, place: usize, flow: (u32, u32), info: TcpInfo, now: Time) {
        let was = std::mem::replace(&mut self.seen[place].info, info);
        let bytes = |segments: u32| f64::from(segments) * f64::from(info.mss);
        let of_flow = EventRow {
            flow: Some(flow),
            cwnd_bytes: bytes(info.cwnd),
            ssthresh_bytes: info.ssthresh.map_or(f64::INFINITY, bytes),
            ..EventRow::default()
        };
        let lasted = (now - self.seen[place].since).as_secs_f64();
        let mut tell = |kind, reason, value| {
            let row = EventRow {
                reason,
                value,
                ..of_flow
            };
            self.push(kind, now, row);
        };
        let timeouts = info.timeouts.unwrap_or(0);
        for _ in was.timeouts.unwrap_or(0)..timeouts {
            tell(EventKind::Timeout, None, f64::NAN);
        }
        if was.ca_state != info.ca_state {
            match was.ca_state {
                RECOVERY => {
                    let why = if info.ca_state == LOSS {
                        "timeout"
                    } else {
                        "acknowledged"
                    };
                    tell(EventKind::RecoveryEnd, Some(why), lasted);
                }
                LOSS => {
                    let recovers = info.ca_state == RECOVERY;
                    let why = if recovers { "recovery" } else { "acknowledged" };
                    tell(EventKind::LossEnd, Some(why), lasted);
                }
                _ => {}
            }
            if info.ca_state == RECOVERY {
                tell(EventKind::Recovery, None, f64::NAN);
            }
            tell(
                EventKind::State,
                STATES.get(usize::from(info.ca_state)).copied(),
                f64::NAN,
            );
        }
        for _ in was.retransmissions..info.retransmissions {
            tell(EventKind::Retransmission, None, f64::NAN);
        }
        if was.ca_state != info.ca_state {
            self.seen[place].since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_between_two_looks_is_told() {
        let mut log = HostLog::new(1, &Events::default());
        let mut at = Time::ZERO;
        let info = |ca_state, timeouts, retransmissions| TcpInfo {
            ca_state,
            retransmissions,
            timeouts: Some(timeouts),
            mss: 1000,
            cwnd: 10,
            ..TcpInfo::default()
        };
        for seen in [info(0, 0, 0), info(3, 0, 2), info(4, 1, 3), info(0, 1, 3)] {
            log.look(0, (0, 5), seen, at);
            at += LOOK;
        }
        let told: Vec<_> = log
            .events
            .iter()
            .map(|(kind, _, row)| (kind.meaning().name, row.reason.unwrap_or("")))
            .collect();
        let expected = [
            ("recovery", ""),
            ("state", "recovery"),
            ("retransmission", ""),
            ("retransmission", ""),
            ("timeout", ""),
            ("recovery_end", "timeout"),
            ("state", "loss"),
            ("retransmission", ""),
            ("loss_end", "acknowledged"),
            ("state", "open"),
        ];
        assert_eq!(told, expected);
        assert_eq!(log.events[0].2.cwnd_bytes, 10_000.0);
        assert_eq!(log.events[8].2.value, 0.01);
        let mut short = HostLog::new(
            1,
            &Events {
                limit: 1,
                ..Events::default()
            },
        );
        short.look(0, (0, 5), info(0, 0, 9), at);
        assert_eq!(short.events.len(), 2);
    }
}
