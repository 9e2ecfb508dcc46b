//! Endpoints that tests bring: a sender of constant rate, and one that answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redtail_core::Ecn;
use redtail_core::plugin::PluginError;
use redtail_sim::{Datagram, Endpoint, EndpointContext, EndpointSide, Plugins};

/// What the methods of an endpoint return.
pub type Outcome<T = ()> = Result<T, PluginError>;

/// A datagram that arrived: at which side, when, its number, and its ECN bits.
pub type Heard = (EndpointSide, Duration, u64, Ecn);

/// What the endpoints of a run have heard, in order.
#[derive(Clone, Default)]
pub struct Diary(Arc<Mutex<Vec<Heard>>>);

impl Diary {
    pub fn heard(&self) -> Vec<Heard> {
        self.0.lock().expect("no test has failed").clone()
    }

    fn note(&self, heard: Heard) {
        self.0.lock().expect("no test has failed").push(heard);
    }
}

/// Sends a datagram with its number each `gap` from start to stop; the other side counts.
struct Steady {
    context: EndpointContext,
    gap: Duration,
    payload: usize,
    ecn: Ecn,
    next: Option<Duration>,
    number: u64,
    delivered: u64,
    diary: Diary,
}

impl Steady {
    fn new(context: EndpointContext, ecn: Ecn, gap: Duration, diary: Diary) -> Self {
        Self {
            payload: context.largest_payload,
            context,
            gap,
            ecn,
            next: None,
            number: 0,
            delivered: 0,
            diary,
        }
    }
}

impl Endpoint for Steady {
    fn start(&mut self, now: Duration) -> Outcome {
        if self.context.side == EndpointSide::Sender {
            self.next = Some(now);
        }
        Ok(())
    }

    fn stop(&mut self, _now: Duration) -> Outcome {
        self.next = None;
        Ok(())
    }

    fn receive(&mut self, datagram: Datagram, now: Duration) -> Outcome {
        let number = u64::from_be_bytes(datagram.payload[..8].try_into().expect("eight bytes"));
        let fill = number as u8;
        if datagram.payload[8..].iter().any(|byte| *byte != fill) {
            return Err(PluginError::new(format!("datagram {number} is damaged")));
        }
        self.delivered += datagram.payload.len() as u64;
        self.diary
            .note((self.context.side, now, number, datagram.ecn));
        Ok(())
    }

    fn poll_transmit(&mut self, now: Duration) -> Outcome<Option<Datagram>> {
        let Some(next) = self.next.filter(|next| *next <= now) else {
            return Ok(None);
        };
        let mut payload = self.number.to_be_bytes().to_vec();
        payload.resize(self.payload, self.number as u8);
        self.number += 1;
        self.next = Some(next + self.gap);
        Ok(Some(Datagram {
            payload,
            ecn: self.ecn,
        }))
    }

    fn next_wakeup(&mut self, _now: Duration) -> Outcome<Option<Duration>> {
        Ok(self.next)
    }

    fn delivered(&self) -> Option<u64> {
        Some(self.delivered)
    }

    fn report(&self, _now: Duration, tell: &mut dyn FnMut(&str, f64)) -> Outcome {
        if self.context.side == EndpointSide::Sender {
            tell("sent", self.number as f64);
        }
        Ok(())
    }
}

/// One datagram is on the way at all times: each side answers what it hears, with the next number.
struct PingPong {
    context: EndpointContext,
    due: Option<u64>,
    diary: Diary,
}

impl Endpoint for PingPong {
    fn start(&mut self, _now: Duration) -> Outcome {
        self.due = (self.context.side == EndpointSide::Sender).then_some(0);
        Ok(())
    }

    fn receive(&mut self, datagram: Datagram, now: Duration) -> Outcome {
        let number = u64::from_be_bytes(datagram.payload[..8].try_into().expect("eight bytes"));
        self.diary
            .note((self.context.side, now, number, datagram.ecn));
        self.due = Some(number + 1);
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Duration) -> Outcome<Option<Datagram>> {
        let datagram = self.due.take().map(|number| {
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(972, 0);
            Datagram {
                payload,
                ..Datagram::default()
            }
        });
        Ok(datagram)
    }
}

/// `steady` (10 ms between datagrams, ECT(0) with `params.ecn`) and `ping-pong`, which write into the diary.
pub fn endpoints(diary: &Diary) -> Plugins {
    let (steady, ping_pong) = (diary.clone(), diary.clone());
    Plugins::new()
        .with_endpoint("steady", move |identity, context| {
            let ecn = match identity.params.get("ecn") {
                Some(_) => Ecn::Ect0,
                None => Ecn::NotEct,
            };
            let gap = identity.params.get("gap").and_then(|gap| gap.as_f64());
            let gap = Duration::from_secs_f64(gap.unwrap_or(0.01));
            Ok(Box::new(Steady::new(context, ecn, gap, steady.clone())))
        })
        .with_endpoint("ping-pong", move |_, context| {
            Ok(Box::new(PingPong {
                context,
                due: None,
                diary: ping_pong.clone(),
            }))
        })
}
