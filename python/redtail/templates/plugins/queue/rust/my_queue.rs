//! A queue that drops the packets that have waited for longer than `deadline` seconds, when their turn comes.
//!
//! Replace the law in `dequeue`. The interface is described in redtail_plugin.rs.

mod redtail_plugin;

use std::collections::VecDeque;

use redtail_plugin::{Context, Packet, Queue, Reason, SECOND, Time};

struct Deadline {
    context: Context,
    deadline: Time,
    /// The packets in order of arrival, each with its time.
    waiting: VecDeque<(u64, Time)>,
    late: u64,
}

impl Queue for Deadline {
    fn new(context: &Context) -> Self {
        let deadline = redtail_plugin::number("deadline", 0.05) * SECOND as f64;
        if deadline < 1.0 {
            redtail_plugin::fail("params.deadline is 0; accepted: seconds, more than 0");
        }
        Self {
            context: *context,
            deadline: deadline as Time,
            waiting: VecDeque::new(),
            late: 0,
        }
    }

    fn enqueue(&mut self, packet: &Packet, now: Time) -> bool {
        let fits = self.context.admits(packet);
        if fits {
            self.waiting.push_back((packet.id, now));
        }
        fits
    }

    fn dequeue(&mut self, now: Time) -> Option<u64> {
        loop {
            let (id, enqueued) = self.waiting.pop_front()?;
            // The last one is sent in any case, so that the link does not idle.
            if now - enqueued <= self.deadline || self.waiting.is_empty() {
                return Some(id);
            }
            redtail_plugin::drop(id, Reason::Early);
            self.late += 1;
        }
    }

    fn start_measuring(&mut self, _now: Time) {
        self.late = 0;
    }

    fn report(&mut self, _now: Time) {
        redtail_plugin::report("late", self.late as f64);
    }
}

queue!(my_queue: Deadline);
