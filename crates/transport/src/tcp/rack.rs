//! What RACK knows: time instead of counting duplicates.
//!
//! Source: RFC 8985, sections 5 and 6. A segment is lost when one sent later has
//! been delivered and a round trip, with some room for reordering, has passed
//! since it was sent.
//!
//! | symbol | meaning |
//! |---|---|
//! | RACK.xmit_ts, RACK.end_seq | when the latest-sent delivered segment was sent, and its end |
//! | RACK.rtt | its round trip |
//! | RACK.fack | the highest byte delivered |
//! | RACK.min_RTT | the least round trip seen |
//! | RACK.reo_wnd | room for reordering |
//!
//! Without DSACK the reordering window does not widen beyond a quarter of the
//! least round trip (RFC 8985, section 6.2, step 4, with reo_wnd_mult held at 1).

use redtail_core::{Span, Time};

/// The state of RACK; kept with the scoreboard, whose records it judges.
#[derive(Clone, Debug)]
pub struct Rack {
    /// RACK.xmit_ts and RACK.end_seq; `None` before anything was delivered.
    latest: Option<(Time, u64)>,
    rtt: Span,
    min_rtt: Option<Span>,
    fack: u64,
    reordering_seen: bool,
}

/// A segment that has just been delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub sent: Time,
    pub end: u64,
    /// It had been retransmitted.
    pub resent: bool,
}

impl Rack {
    pub(super) fn new() -> Self {
        Self {
            latest: None,
            rtt: Span::ZERO,
            min_rtt: None,
            fack: 0,
            reordering_seen: false,
        }
    }

    /// RFC 8985, section 6.2, steps 1 to 3.
    pub(super) fn on_delivered(&mut self, segment: Delivered, now: Time) {
        let rtt = now - segment.sent;
        if segment.resent {
            // An early answer to a retransmission answers the original.
            if self.min_rtt.is_none_or(|min| rtt < min) {
                return;
            }
        } else {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.reordering_seen |= segment.end < self.fack;
        }
        self.fack = self.fack.max(segment.end);
        if self
            .latest
            .is_none_or(|latest| (segment.sent, segment.end) > latest)
        {
            self.latest = Some((segment.sent, segment.end));
            self.rtt = rtt;
        }
    }

    /// Room for reordering (section 6.2, step 4). `certain` when recovery is going
    /// on or enough is selectively acknowledged to rule reordering out.
    pub(super) fn reordering_window(&self, certain: bool, srtt: Option<Span>) -> Span {
        if certain && !self.reordering_seen {
            return Span::ZERO;
        }
        let window = self.min_rtt.unwrap_or(Span::ZERO) / 4;
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// For a segment sent at `sent` and ending at `end`: `None` if nothing sent
    /// later has been delivered, else when it will be taken for lost (step 5).
    pub(super) fn lost_at(&self, sent: Time, end: u64, window: Span) -> Option<Time> {
        let latest = self.latest?;
        (latest > (sent, end)).then(|| sent + self.rtt + window)
    }
}
