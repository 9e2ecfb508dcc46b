//! Proportional rate reduction: how much may be sent during a reduction of the window.
//!
//! Source: RFC 9937 (which replaces RFC 6937), section 6.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | RecoverFS | data in the network when recovery began | bytes |
//! | prr_delivered, prr_out | delivered and sent since then | bytes |
//! | DeliveredData | what this acknowledgement says was delivered | bytes |
//!
//! ```text
//! RecoverFS = outstanding - selectively acknowledged before the acknowledgement that began
//!             recovery + cumulatively acknowledged by it          (section 6.1)
//! inflight > ssthresh:  sndcnt = ceil(prr_delivered ssthresh / RecoverFS) - prr_out
//! otherwise:            sndcnt = min(ssthresh - inflight, limit)
//!                       limit  = max(prr_delivered - prr_out, DeliveredData) + MSS
//!                                (the MSS only if the acknowledgement is safe)
//! cwnd = inflight + sndcnt
//! ```
//!
//! Linux 6.1 (net/ipv4/tcp_input.c, `tcp_cwnd_reduction`) counts whole segments and takes the
//! window before the reduction for RecoverFS: [`SegmentPrr`].

/// The state of one recovery; all in bytes.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    recover_fs: f64,
    /// Whether the acknowledgement that began it is expected in.
    begun: bool,
    delivered: f64,
    sent: f64,
    cwnd: f64,
    /// A reduction because of marks ends when this is acknowledged.
    until: Option<u64>,
}

/// An acknowledgement in recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Bytes newly delivered.
    pub delivered: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// Whether it advanced and reported no further loss.
    pub safe: bool,
}

impl Prr {
    /// Recovery begins with `outstanding` bytes sent and not acknowledged, of which `sacked` are
    /// acknowledged selectively. If an acknowledgement began it, [`on_ack`](Self::on_ack) is called
    /// next with what that delivered; otherwise [`begin`](Self::begin) is called.
    pub(super) fn new(outstanding: u64, sacked: u64) -> Self {
        Self {
            recover_fs: outstanding.saturating_sub(sacked).max(1) as f64,
            begun: false,
            delivered: 0.0,
            sent: 0.0,
            cwnd: 0.0,
            until: None,
        }
    }

    /// A reduction because of marks begins, with data sent up to `next` (Linux's CWR state, which
    /// RFC 9937 does not specify). `outstanding` and `sacked` are the values before the
    /// acknowledgement that reports the marks.
    pub(super) fn for_marks(outstanding: u64, sacked: u64, next: u64) -> Self {
        Self {
            until: Some(next),
            begun: true,
            ..Self::new(outstanding, sacked)
        }
    }

    /// Recovery began without an acknowledgement.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// Whether an acknowledgement up to `ack` ends it.
    pub(super) fn ends_at(&self, ack: u64) -> bool {
        self.until.is_some_and(|until| ack >= until)
    }

    /// The congestion window of the reduction.
    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    pub(super) fn on_ack(&mut self, ack: Delivery, ssthresh: f64, mss: f64) {
        if !std::mem::replace(&mut self.begun, true) {
            self.recover_fs += ack.delivered as f64;
        }
        if ack.delivered == 0 {
            return; // section 6.2: an acknowledgement that delivers nothing allows nothing
        }
        let (fresh, in_flight) = (ack.delivered as f64, ack.in_flight as f64);
        self.delivered += fresh;
        let mut send = if in_flight > ssthresh {
            (self.delivered * ssthresh / self.recover_fs).ceil() - self.sent
        } else {
            let safe = if ack.safe { mss } else { 0.0 };
            let limit = (self.delivered - self.sent).max(fresh) + safe;
            (ssthresh - in_flight).min(limit)
        };
        if self.sent == 0.0 && self.until.is_none() {
            send = send.max(mss); // the fast retransmit itself
        }
        self.cwnd = in_flight + send.max(0.0);
    }

    pub(super) fn on_sent(&mut self, len: u32) {
        self.sent += f64::from(len);
    }
}

/// Linux's proportional rate reduction, for losses and for marks; in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentPrr {
    /// The window before the reduction (prior_cwnd).
    prior: f64,
    delivered: f64,
    sent: u64,
}

impl SegmentPrr {
    /// A reduction of a window of `prior` segments begins (`tcp_init_cwnd_reduction`).
    pub(super) fn new(prior: f64) -> Self {
        Self {
            prior,
            ..Self::default()
        }
    }

    /// The window in segments after an acknowledgement that delivers `delivered` segments;
    /// `ssthresh` is the target, in segments. `None` if the window does not change. `safe` if the
    /// acknowledgement advanced and reported no further loss.
    pub(super) fn on_ack(
        &mut self,
        delivered: u64,
        in_flight: u64,
        ssthresh: f64,
        safe: bool,
    ) -> Option<f64> {
        if delivered == 0 {
            return None;
        }
        let (fresh, in_flight) = (delivered as f64, in_flight as f64);
        self.delivered += fresh;
        let out = self.sent as f64;
        let room = ssthresh - in_flight;
        let send = if room < 0.0 {
            (ssthresh * self.delivered / self.prior).ceil() - out
        } else {
            let more = if safe { 1.0 } else { 0.0 };
            room.min((self.delivered - out).max(fresh) + more)
        };
        // At least one segment before the first was sent: the fast retransmit.
        let least = if self.sent == 0 { 1.0 } else { 0.0 };
        Some(in_flight + send.max(least))
    }

    /// A segment was sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_segments_a_reduction_rounds_up_and_sends_one_at_once() {
        // From 10 to 5 with ten in flight, a segment delivered at a time.
        let mut prr = SegmentPrr::new(10.0);
        let (mut in_flight, mut sent) = (10, Vec::new());
        for _ in 0..10 {
            in_flight -= 1;
            let cwnd = prr.on_ack(1, in_flight, 5.0, false).expect("delivered");
            let send = cwnd as u64 - in_flight;
            (0..send).for_each(|_| prr.on_sent());
            sent.push(send);
            in_flight += send;
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]); // the ninth leaves ssthresh in flight
        assert_eq!(prr.on_ack(0, in_flight, 5.0, true), None);
    }

    #[test]
    fn in_segments_the_flight_is_rebuilt_by_one_more_while_no_loss_is_reported() {
        let mut prr = SegmentPrr::new(20.0);
        assert_eq!(prr.on_ack(3, 4, 10.0, false), Some(7.0));
        (0..3).for_each(|_| prr.on_sent());
        assert_eq!(prr.on_ack(1, 6, 10.0, true), Some(8.0));
        assert_eq!(prr.on_ack(5, 9, 10.0, true), Some(10.0));
    }

    const MSS: f64 = 1000.0;

    /// Sends whole segments while the window allows; returns how many.
    fn send(prr: &mut Prr, in_flight: &mut u64) -> u64 {
        let mut count = 0;
        while (*in_flight + 1000) as f64 <= prr.cwnd() {
            prr.on_sent(1000);
            *in_flight += 1000;
            count += 1;
        }
        count
    }

    #[test]
    fn one_segment_leaves_for_every_two_delivered_when_the_window_is_halved() {
        let mut prr = Prr::new(20_000, 1000);
        let mut in_flight = 19_000;
        let mut sent = 0;
        for _ in 0..18 {
            in_flight -= 1000;
            let ack = Delivery {
                delivered: 1000,
                in_flight,
                safe: false,
            };
            prr.on_ack(ack, 10_000.0, MSS);
            sent += send(&mut prr, &mut in_flight);
        }
        assert!((9..=10).contains(&sent), "{sent}");
        assert!((10_000..=11_000).contains(&in_flight), "{in_flight}");
    }

    #[test]
    fn after_a_burst_of_losses_the_flight_is_rebuilt_by_one_more_segment_than_was_delivered() {
        let mut prr = Prr::new(20_000, 1000);
        let mut in_flight = 4000; // sixteen of twenty were lost
        prr.on_sent(1000);
        for _ in 0..3 {
            in_flight -= 1000;
            let ack = Delivery {
                delivered: 1000,
                in_flight,
                safe: true,
            };
            prr.on_ack(ack, 10_000.0, MSS);
            assert_eq!(send(&mut prr, &mut in_flight), 2);
        }
    }
    #[test]
    fn the_fast_retransmit_leaves_although_the_reduction_allows_less_than_a_segment() {
        // RFC 9937, section 6.2: the first transmission of a recovery has at least one segment.
        let mut prr = Prr::new(10_000, 0);
        let ack = |in_flight| Delivery {
            delivered: 1000,
            in_flight,
            safe: false,
        };
        prr.on_ack(ack(9000), 1000.0, MSS); // a tenth of a segment
        assert_eq!(prr.cwnd(), 10_000.0);
        prr.on_sent(1000);
        prr.on_ack(ack(9000), 1000.0, MSS);
        assert_eq!(prr.cwnd(), 9000.0); // no second one
    }
}
