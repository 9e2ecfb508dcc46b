//! Pacing, and what a model-based controller is given.

use redtail_core::{Span, Time};

use super::Sender;
use crate::cc::as_f64;
use crate::tcp::delivery_rate::{AckContext, Unfinished};
use crate::tcp::pacing::Pacer;

impl Sender {
    /// Passes the rate sample of an acknowledgement to the model, and the model's rate to the
    /// pacer. Before the acknowledgement, data up to `una` was acknowledged and `in_flight` bytes
    /// were in flight; it newly reports `marked` bytes as marked. Without a model, the pacer gets the rate of the window.
    #[inline]
    pub(super) fn tell_model(&mut self, una: u64, in_flight: u64, marked: u64, now: Time) {
        match self.board.rates() {
            Some(_) => self.tell_sample(una, in_flight, marked, now),
            None => self.update_pacing(),
        }
    }

    /// Passes the rate sample of an acknowledgement to the model.
    #[inline(never)] // so that other senders are not burdened
    fn tell_sample(&mut self, una: u64, in_flight: u64, marked: u64, now: Time) {
        let context = AckContext {
            prior_in_flight: in_flight,
            in_flight: self.board.pipe(),
            una,
            advanced: self.board.una() - una,
            srtt: self.timer.rtt.srtt(),
            episode: self.phase,
            marked,
            held_for: (self.pacer.as_ref()).map_or(Span::ZERO, |pacer| pacer.held_for(now)),
        };
        let Some(rates) = self.board.rates() else {
            return;
        };
        if rates.has_losses() {
            for lost in rates.losses() {
                self.controller.on_lost(&lost, now);
            }
        }
        let sample = Unfinished {
            rates,
            context,
            now,
        };
        let controls = self.controller.on_rate_sample(sample);
        if let Some(controls) = controls {
            if controls.probes_rtt {
                rates.mark_app_limited(context.in_flight);
            }
            match (&mut self.pacer, controls.pacing_rate) {
                (Some(pacer), Some(rate)) => pacer.set(rate, controls.quantum),
                _ => self.update_pacing(),
            }
        }
    }

    /// Passes losses to the model that were not detected by an acknowledgement.
    pub(super) fn tell_losses(&mut self, now: Time) {
        if let Some(rates) = self.board.rates() {
            for lost in rates.losses() {
                self.controller.on_lost(&lost, now);
            }
            rates.settle_losses();
            self.update_pacing();
        }
    }

    /// Sets the pacing rate: the model's, or that of the window and the round trip.
    #[inline(never)] // so that unpaced senders are not burdened
    pub(super) fn update_pacing(&mut self) {
        let Some(pacer) = &mut self.pacer else {
            return;
        };
        if let Some((rate, quantum)) = self.controller.pacing() {
            pacer.set(rate, quantum);
        } else if let Some(srtt) = self.timer.rtt.srtt() {
            pacer.follow(self.controller.window(), srtt);
        }
    }

    /// Records that the window, not the pacer, prevents sending.
    #[inline(never)]
    pub(super) fn note_full_window(&mut self) {
        self.release();
        let next = self.board.next();
        if let Some(pacer) = &mut self.pacer {
            pacer.on_full_window(next);
        }
        if let Some(rates) = self.board.rates() {
            rates.mark_window_limited(next);
        }
    }

    /// There is room in the window and no data to send.
    #[inline(never)]
    pub(super) fn note_app_limited(&mut self) {
        let in_flight = self.board.pipe();
        if let Some(rates) = self.board.rates()
            && as_f64(in_flight) < self.controller.window().cwnd
        {
            rates.mark_app_limited(in_flight);
        }
    }

    /// No segment waits for the pacer any more.
    pub(super) fn release(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release();
        }
    }

    /// Whether pacing holds back the next segment; its release is then scheduled.
    #[inline]
    pub(super) fn is_held_back(&mut self, now: Time) -> bool {
        if self.pacer.is_none() {
            return false;
        }
        if self.board.pipe() == 0 {
            self.restart_model(now);
        }
        let passes = |pacer: &mut Box<Pacer>| pacer.lets_pass(now);
        !self.pacer.as_mut().is_none_or(passes) && self.hold_back()
    }

    /// Nothing is in flight. Tells the model if that is because there was no data to send.
    #[cold]
    fn restart_model(&mut self, now: Time) {
        if let Some(rates) = self.board.rates()
            && rates.is_app_limited()
        {
            let delivered = rates.delivered();
            self.controller.on_restart(now, delivered);
            self.update_pacing();
        }
    }

    /// The pacer does not let the next segment pass. Schedules its release, and returns whether there is one.
    #[inline(never)]
    fn hold_back(&mut self) -> bool {
        let more = self.has_more();
        if let Some(pacer) = &mut self.pacer {
            pacer.hold_back(more);
        }
        more
    }
}
