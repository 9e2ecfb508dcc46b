//! Flows between endpoints of users: the two ends with their place in the network, and the payloads in flight.

use std::fmt;
use std::time::Duration;

use redtail_core::plugin::{PluginError, PluginFailure, Role};
use redtail_core::{Ecn, Span, Stream, Time};
use redtail_network::HostRoutes;
use redtail_network::scheduler::Alarm;
use redtail_traffic::EndpointParams;

use crate::endpoint::{Datagram, Endpoint, EndpointContext, EndpointSide, Endpoints};
use crate::packet::Passed;

/// Most datagrams that an endpoint may send at one instant: more than the window of a flow on any link that is
/// simulated in practice, and less than a computer's memory.
const MOST_AT_ONCE: u32 = 1 << 16;

/// Most wakeups of an endpoint at one instant: more than there are timers in a connection.
const MOST_WAKEUPS: u32 = 1000;

/// Most bytes of payloads in flight, of all endpoints together.
const MOST_BYTES: usize = 1 << 30;

const PS_PER_NS: u64 = 1000;

/// What a packet of an endpoint carries.
#[derive(Clone, Copy, Debug)]
pub struct OwnPacket {
    /// Where the payload is.
    payload: u32,
    /// When it was sent.
    pub sent: Time,
    /// The ECN bits with which it was sent.
    pub ecn: Ecn,
    /// Whether a wire has made it, as a copy of another one.
    pub copy: bool,
}

/// The payloads of the datagrams in flight. Places are reused.
#[derive(Debug, Default)]
pub struct Payloads {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    bytes: usize,
}

impl Payloads {
    /// Keeps the payload of a datagram that is sent now.
    ///
    /// # Errors
    /// When more is in flight than a run may keep.
    pub fn put(&mut self, datagram: Datagram, now: Time) -> Result<OwnPacket, PluginError> {
        self.bytes += datagram.payload.len();
        if self.bytes > MOST_BYTES {
            return Err(PluginError::new(format!(
                "more than {MOST_BYTES} bytes are in flight, more than a run may keep"
            )));
        }
        let payload = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = datagram.payload;
                place
            }
            None => {
                self.places.push(datagram.payload);
                self.places.len() as u32 - 1
            }
        };
        Ok(OwnPacket {
            payload,
            sent: now,
            ecn: datagram.ecn,
            copy: false,
        })
    }

    /// Keeps the payload of a copy of a datagram in flight.
    pub fn copy(&mut self, packet: OwnPacket) -> OwnPacket {
        let payload = self.places[packet.payload as usize].clone();
        self.bytes += payload.len();
        let place = self.free.pop();
        let place = place.unwrap_or_else(|| {
            self.places.push(Vec::new());
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = payload;
        OwnPacket {
            payload: place,
            copy: true,
            ..packet
        }
    }

    /// The payload of a datagram in flight.
    pub fn get(&self, packet: OwnPacket) -> &[u8] {
        &self.places[packet.payload as usize]
    }

    /// Takes the payload of a datagram that has left the network.
    pub fn take(&mut self, packet: OwnPacket) -> Vec<u8> {
        self.free.push(packet.payload);
        let payload = std::mem::take(&mut self.places[packet.payload as usize]);
        self.bytes -= payload.len();
        payload
    }

    /// How many there are.
    pub fn held(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

/// What an endpoint has done at one instant, as endpoints see it.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    at: Duration,
    datagrams: u32,
    wakeups: u32,
}

/// One end of a flow, with its place in the network.
pub struct OwnEnd {
    endpoint: Box<dyn Endpoint>,
    /// Its timer.
    pub alarm: Alarm,
    /// Route of the packets that it sends.
    pub route: u32,
    /// Packets that it has sent and that were delivered to it.
    pub passed: Passed,
    done: Done,
    /// What an error is put behind: which endpoint it is.
    name: String,
}

/// What an endpoint does next at the present instant.
pub enum Next {
    /// It sends a datagram, of so many bytes on the link.
    Send(Datagram, u32),
    /// It waits for a datagram, or for this time if there is one.
    Wait(Option<Time>),
}

/// The two ends of a flow: the one at which its group's direction begins, and its peer.
pub struct OwnSlot {
    /// The ends.
    pub ends: [OwnEnd; 2],
    class: String,
    /// Bytes that headers add to a datagram.
    header: u64,
    /// The largest packet.
    largest: u64,
    /// Number of its flow.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// Whether it has started, and whether it has stopped.
    began: [bool; 2],
    /// Bytes that the receiver has received over the whole run.
    pub heard_bytes: u64,
    /// Bytes received that were sent in the measurement period.
    pub received_bytes: u64,
    /// Packets received that were sent in the measurement period.
    pub received: u64,
    /// Packets lost that were sent in the measurement period.
    pub lost: u64,
    /// The bytes delivered to the receiver's application when the measurement began.
    delivered_before: u64,
}

/// Where a flow is: its number, that of its group, its number in its group, and its routes.
#[derive(Clone, Copy, Debug)]
pub struct OwnPlace {
    /// Number of the flow.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// Its number in its group.
    pub number: u32,
    /// The routes of its hosts.
    pub host: HostRoutes,
}

/// A time as endpoints see it: to the nanosecond.
fn seen(time: Time) -> Duration {
    Duration::from_nanos((time - Time::ZERO).as_ps() / PS_PER_NS)
}

/// The time at which an endpoint wants to be woken; [`Time::MAX`] if it is beyond what the clock has.
fn meant(wakeup: Duration) -> Time {
    let ps = u64::try_from(wakeup.as_nanos()).ok();
    let ps = ps.and_then(|ns| ns.checked_mul(PS_PER_NS));
    ps.map_or(Time::MAX, |ps| Time::ZERO + Span::from_ps(ps))
}

/// Ends the run with the failure of an endpoint.
#[cold]
fn fail(class: &str, name: &str, method: &'static str, at: Option<Time>, error: PluginError) -> ! {
    let failure = PluginFailure {
        role: Role::Endpoint,
        class: class.to_owned(),
        method,
        at,
        error: error.of(name),
    };
    failure.raise()
}

impl OwnSlot {
    /// The ends of a flow that starts and stops at these times; `stream` is the flow's own.
    pub fn new(
        params: &EndpointParams,
        place: OwnPlace,
        [start, stop]: [Time; 2],
        duration: Span,
        endpoints: &Endpoints,
        stream: &Stream,
    ) -> Self {
        let end = |side, word: &str, route| {
            let name = format!("the {word} of flow {} of {:?}", place.number, params.name);
            let context = EndpointContext {
                side,
                group: params.name.clone(),
                flow: place.number,
                start: seen(start),
                stop: (stop < Time::MAX).then(|| seen(stop)),
                duration: seen(Time::ZERO + duration),
                largest_payload: (params.packet - params.header).as_u64() as usize,
                stream: stream.child(word),
            };
            let made = endpoints.make(&params.identity(), context);
            OwnEnd {
                endpoint: made
                    .unwrap_or_else(|error| fail(&params.class, &name, "new", None, error)),
                alarm: Alarm::default(),
                route,
                passed: Passed::default(),
                done: Done::default(),
                name,
            }
        };
        Self {
            ends: [
                end(EndpointSide::Sender, "sender", place.host.data),
                end(EndpointSide::Receiver, "receiver", place.host.back),
            ],
            class: params.class.clone(),
            header: params.header.as_u64(),
            largest: params.packet.as_u64(),
            flow: place.flow,
            group: place.group,
            began: [false; 2],
            heard_bytes: 0,
            received_bytes: 0,
            received: 0,
            lost: 0,
            delivered_before: 0,
        }
    }

    /// Calls a method of an end. Its failure ends the run.
    fn call<R>(
        &mut self,
        side: usize,
        method: &'static str,
        now: Time,
        call: impl FnOnce(&mut dyn Endpoint, Duration) -> Result<R, PluginError>,
    ) -> R {
        let end = &mut self.ends[side];
        call(&mut *end.endpoint, seen(now))
            .unwrap_or_else(|error| fail(&self.class, &end.name, method, Some(now), error))
    }

    /// An event of the flow happens: it starts, or stops, or timers of its ends expire. Returns which ends have been
    /// called.
    pub fn on_event(&mut self, stop: Time, now: Time) -> [bool; 2] {
        let is_end = now >= stop;
        if !self.began[usize::from(is_end)] {
            self.began[usize::from(is_end)] = true;
            for side in [0, 1] {
                match is_end {
                    false => self.call(side, "start", now, |end, now| end.start(now)),
                    true => self.call(side, "stop", now, |end, now| end.stop(now)),
                }
            }
            return [true; 2];
        }
        [0, 1].map(|side| {
            let rings = self.ends[side].alarm.rings(now);
            if rings {
                self.wake(side, now);
            }
            rings
        })
    }

    fn wake(&mut self, side: usize, now: Time) {
        self.call(side, "on_wakeup", now, |end, now| end.on_wakeup(now));
    }

    /// A datagram of `size` bytes on the link arrives at an end.
    pub fn receive(&mut self, side: usize, datagram: Datagram, size: u32, counts: bool, now: Time) {
        self.ends[side].passed.delivered += 1;
        if side == 1 {
            self.heard_bytes += u64::from(size);
            self.received += u64::from(counts);
            self.received_bytes += u64::from(size) * u64::from(counts);
        }
        self.call(side, "receive", now, |end, now| end.receive(datagram, now));
    }

    /// What an end does next.
    pub fn next(&mut self, side: usize, now: Time) -> Next {
        loop {
            if let Some(datagram) = self.call(side, "poll_transmit", now, |end, now| {
                end.poll_transmit(now)
            }) {
                let size = self.size(side, &datagram, now);
                self.count(side, "poll_transmit", now);
                return Next::Send(datagram, size);
            }
            let wakeup = self.call(side, "next_wakeup", now, |end, now| end.next_wakeup(now));
            match wakeup {
                Some(wakeup) if wakeup <= seen(now) => {
                    self.count(side, "next_wakeup", now);
                    self.wake(side, now);
                }
                wakeup => return Next::Wait(wakeup.map(meant)),
            }
        }
    }

    /// The size on the link of a datagram that an end sends.
    fn size(&self, side: usize, datagram: &Datagram, now: Time) -> u32 {
        let size = datagram.payload.len() as u64 + self.header;
        if size > self.largest {
            let error = PluginError::new(format!(
                "a datagram of {} B is {size} B on the link; accepted: up to {} B, the group's key `packet`",
                datagram.payload.len(),
                self.largest
            ));
            fail(
                &self.class,
                &self.ends[side].name,
                "poll_transmit",
                Some(now),
                error,
            );
        }
        size as u32
    }

    /// Counts what an end does at one instant, and ends the run if it does not end.
    fn count(&mut self, side: usize, method: &'static str, now: Time) {
        let done = &mut self.ends[side].done;
        if done.at != seen(now) {
            *done = Done {
                at: seen(now),
                ..Done::default()
            };
        }
        let is_datagram = method == "poll_transmit";
        done.datagrams += u32::from(is_datagram);
        done.wakeups += u32::from(!is_datagram);
        let problem = if done.datagrams > MOST_AT_ONCE {
            format!("it sends more than {MOST_AT_ONCE} datagrams at one instant")
        } else if done.wakeups > MOST_WAKEUPS {
            format!(
                "it asks more than {MOST_WAKEUPS} times at one instant to be woken at a time that has come"
            )
        } else {
            return;
        };
        fail(
            &self.class,
            &self.ends[side].name,
            method,
            Some(now),
            PluginError::new(problem),
        );
    }

    /// Keeps the payload of a datagram that an end sends.
    pub fn keep(
        &mut self,
        side: usize,
        datagram: Datagram,
        payloads: &mut Payloads,
        now: Time,
    ) -> OwnPacket {
        self.ends[side].passed.sent += 1;
        let kept = payloads.put(datagram, now);
        kept.unwrap_or_else(|error| {
            fail(
                &self.class,
                &self.ends[side].name,
                "poll_transmit",
                Some(now),
                error,
            )
        })
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self, now: Time) {
        self.delivered_before = self.ends[1].endpoint.delivered().unwrap_or(0);
        for side in [0, 1] {
            self.call(side, "start_measuring", now, |end, now| {
                end.start_measuring(now)
            });
        }
    }

    /// The bytes delivered to the receiver's application since the measurement began; `None` if it does not count them.
    pub fn delivered(&self) -> Option<u64> {
        let delivered = self.ends[1].endpoint.delivered()?;
        Some(delivered.saturating_sub(self.delivered_before))
    }

    /// Tells the metrics that the ends name themselves.
    pub fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) {
        for end in &self.ends {
            if let Err(error) = end.endpoint.report(seen(now), tell) {
                fail(&self.class, &end.name, "report", Some(now), error);
            }
        }
    }
}

impl fmt::Debug for OwnSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnSlot")
            .field("class", &self.class)
            .field("flow", &self.flow)
            .finish_non_exhaustive()
    }
}
