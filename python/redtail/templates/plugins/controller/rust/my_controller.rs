//! Reno (RFC 5681) as a congestion controller of your own.
//!
//! There is an instance for each sender. redtail_plugin.rs describes the methods and structures.

mod redtail_plugin;

use redtail_plugin::{Connection, Control, Controller, Event, RECOVERY, Sample, Time};

struct Reno {
    mss: f64,
    beta: f64,
    cwnd: f64,
    ssthresh: f64,
    recovering: bool,
    reductions: u64,
}

impl Reno {
    /// Equation 4; what limited transmit sent does not count.
    fn reduce(&mut self, event: &Event) {
        let flight = self.cwnd.min(event.flight_size as f64);
        self.ssthresh = (self.beta * flight).max(2.0 * self.mss);
        self.reductions += 1;
    }
}

impl Controller for Reno {
    fn new(connection: &Connection) -> Self {
        Self {
            mss: f64::from(connection.mss),
            beta: redtail_plugin::number("beta", 0.5),
            cwnd: connection.initial_cwnd,
            ssthresh: f64::INFINITY,
            recovering: false,
            reductions: 0,
        }
    }

    fn control(&self) -> Control {
        Control::window(self.cwnd, self.ssthresh)
    }

    fn on_ack(&mut self, sample: &Sample) {
        if self.recovering {
            // The window stays until fast recovery ends.
            self.recovering = sample.episode == RECOVERY;
        } else if sample.advanced > 0 && sample.window_limited == 1 {
            // No duplicate, and the window was in use.
            self.cwnd += if self.cwnd < self.ssthresh {
                self.mss.min(sample.advanced as f64) // slow start
            } else {
                self.mss * self.mss / self.cwnd // congestion avoidance (equation 3)
            };
        }
    }

    fn on_recovery(&mut self, event: &Event) {
        self.reduce(event);
        self.cwnd = self.ssthresh;
        self.recovering = true;
    }

    fn on_timeout(&mut self, event: &Event) {
        if event.repeated == 0 {
            self.reduce(event);
        }
        self.cwnd = self.mss;
        self.recovering = false;
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    fn report(&mut self, _now: Time) {
        redtail_plugin::report("reductions", self.reductions as f64);
    }
}

controller!(my_controller: Reno);
