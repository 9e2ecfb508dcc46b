//! TCP endpoints and UDP sources in the engine.

use super::Engine;
use super::ends::EngineEnds;
use crate::flows::Source;
use crate::packet::{Content, Datagram};
use redtail_core::{Ecn, prefetch};
use redtail_network::{Address, ContentId};
use redtail_network::{Class, Event};
use redtail_traffic::call::Outgoing;
use redtail_transport::Way;

impl Engine<'_> {
    /// Sends all segments that a sender may send now.
    #[inline]
    pub(super) fn sender_transmits(&mut self, index: u32) {
        match self.ends.flows.senders[index as usize].sender.way() {
            Way::New => self.sends_new(index),
            Way::InBursts => self.sends_in_bursts(index),
            Way::Held => self.after_sending(index),
            Way::Any => self.sends_any(index),
        }
    }

    /// A sender that sends only new data sends it. Nearly all segments are full.
    #[inline(never)] // one copy of the most frequent path
    fn sends_new(&mut self, index: u32) {
        let slot = &mut self.ends.flows.senders[index as usize];
        while slot.sender.has_room() {
            let Some(segment) = slot.sender.next_full(self.now) else {
                return self.sends_any(index);
            };
            slot.send(
                segment,
                index,
                self.now,
                &mut self.ends.contents,
                &mut self.links,
            );
        }
        if slot.sender.is_complete() || !slot.sender.is_quiet_until(slot.alarm.armed()) {
            self.after_sending(index);
        }
    }

    /// A sender that sends new data in bursts sends it.
    #[inline(never)]
    fn sends_in_bursts(&mut self, index: u32) {
        let slot = &mut self.ends.flows.senders[index as usize];
        while let Some(segment) = slot.sender.next_in_burst(self.now) {
            slot.send(
                segment,
                index,
                self.now,
                &mut self.ends.contents,
                &mut self.links,
            );
        }
        // It is not complete, because its application has not closed.
        let deadline = slot.sender.next_timer_before(slot.alarm.armed());
        slot.set_timers(deadline, index, &mut self.links.scheduler);
    }

    /// Any sender sends what it may.
    #[inline(never)] // the registers of the functions above are not enough for both
    fn sends_any(&mut self, index: u32) {
        let slot = &mut self.ends.flows.senders[index as usize];
        while let Some(segment) = slot.sender.poll_transmit(self.now) {
            slot.send(
                segment,
                index,
                self.now,
                &mut self.ends.contents,
                &mut self.links,
            );
            if slot.sender.is_held_by_window() {
                break;
            }
        }
        self.after_sending(index);
    }

    /// Sets the timer of a sender that has sent what it may, and notes whether it is complete.
    #[inline(never)]
    fn after_sending(&mut self, index: u32) {
        let slot = &mut self.ends.flows.senders[index as usize];
        if slot.sender.is_complete() {
            let moments = self.ends.flows.moments.change(slot.flow);
            moments.completed.get_or_insert(self.now);
        }
        let deadline = slot.sender.next_timer_before(slot.alarm.armed());
        slot.set_timers(deadline, index, &mut self.links.scheduler);
    }

    /// A segment reaches a receiver.
    #[inline(always)] // into the two that call it for each packet
    pub(super) fn reaches_receiver(&mut self, index: u32, content: ContentId, ecn: Ecn) {
        let EngineEnds {
            contents, flows, ..
        } = &mut self.ends;
        let slot = &mut flows.receivers[index as usize];
        if slot.answers_plainly() {
            return self.receiver_answers(index, content, ecn);
        }
        let segment = contents.segment_on_arrival(content, ecn);
        slot.receive(segment, self.now, &mut flows.moments);
        self.receiver_transmits(index);
    }

    /// A segment reaches a sender.
    #[inline]
    pub(super) fn reaches_sender(&mut self, index: u32, content: ContentId, ecn: Ecn) {
        let EngineEnds {
            contents, flows, ..
        } = &mut self.ends;
        let segment = contents.segment_on_arrival(content, ecn);
        let slot = &mut flows.senders[index as usize];
        slot.receive(segment, self.now, &mut flows.moments);
        self.sender_transmits(index);
    }

    /// A datagram reaches the end of its flow.
    #[inline]
    pub(super) fn reaches_udp_sink(&mut self, index: u32, size: u32, content: ContentId) {
        let EngineEnds {
            contents,
            flows,
            measure_from,
            ..
        } = &mut self.ends;
        let slot = &mut flows.udp[index as usize];
        let Some(datagram) = contents.datagram(content) else {
            slot.passed.delivered += 1;
            return;
        };
        let took = slot.receive(datagram, size, self.now, *measure_from);
        if let Some(took) = took {
            flows.delays[slot.group as usize].record(took);
        }
    }

    /// A segment reaches a receiver that answers plainly, and its acknowledgement the sender.
    #[inline(never)] // one copy of the most frequent path
    pub(super) fn receiver_answers(&mut self, index: u32, content: ContentId, ecn: Ecn) {
        let now = self.now;
        let EngineEnds {
            contents, flows, ..
        } = &mut self.ends;
        let segment = contents.segment_on_arrival(content, ecn);
        let slot = &mut flows.receivers[index as usize];
        let Some(ack) = slot.answer(segment, now, &mut flows.moments) else {
            return self.receiver_transmits(index);
        };
        // No segment is built for it, and no event is needed.
        let slot = &mut flows.senders[index as usize];
        if slot.hear_plain_ack(ack, now) {
            self.sends_new(index);
        } else {
            self.sender_transmits(index);
        }
    }

    /// Sends all segments that a receiver may send now.
    #[inline(never)]
    pub(super) fn receiver_transmits(&mut self, index: u32) {
        let slot = &self.ends.flows.receivers[index as usize];
        if slot.receiver.has_due() {
            self.receiver_sends(index);
        } else {
            self.set_receiver_timer(index);
        }
    }

    /// Sends the segments of a receiver that are due.
    #[inline(never)] // so that the function above is short: every second segment is not acknowledged at once
    fn receiver_sends(&mut self, index: u32) {
        let slot = &mut self.ends.flows.receivers[index as usize];
        if slot.at_once {
            self.receiver_sends_at_once(index);
            self.set_receiver_timer(index);
            return self.sender_transmits(index);
        }
        while let Some(segment) = slot.receiver.poll_transmit(self.now) {
            slot.sent = slot.sent.wrapping_add(1);
            let to = Address {
                flow: slot.flow,
                endpoint: index,
                route: slot.route,
                id: slot.sent as u16,
            };
            let size = slot.headers.size(&segment);
            self.ends
                .contents
                .send_segment(segment, size, to, self.now, &mut self.links);
        }
        self.set_receiver_timer(index);
    }

    /// Hands the segments of a receiver that are due to the sender: a return path without delay needs no event.
    #[inline(always)] // into the one that calls it
    fn receiver_sends_at_once(&mut self, index: u32) {
        let flows = &mut self.ends.flows;
        let slot = &mut flows.receivers[index as usize];
        let sender = &mut flows.senders[index as usize];
        while let Some(segment) = slot.receiver.poll_other(self.now) {
            slot.sent = slot.sent.wrapping_add(1);
            sender.receive(&segment, self.now, &mut flows.moments);
        }
        if slot.receiver.is_ack_due() {
            // It is not an option, so that it is not copied.
            let segment = slot.receiver.acknowledgement(self.now);
            slot.sent = slot.sent.wrapping_add(1);
            sender.receive(&segment, self.now, &mut flows.moments);
            if self.ends.watches {
                self.measure_at_once(index, &segment);
            }
        }
    }

    /// Sets the timer of a receiver that has sent what it may.
    #[inline(always)] // into the two that call it
    fn set_receiver_timer(&mut self, index: u32) {
        let slot = &mut self.ends.flows.receivers[index as usize];
        let deadline = slot.receiver.next_wakeup_before(slot.alarm.armed());
        slot.alarm.arm(
            deadline,
            Class::ReceiverTimer,
            index,
            &mut self.links.scheduler,
        );
    }

    pub(super) fn on_sender_timer(&mut self, index: u32) {
        if self.many_flows {
            self.prefetch_for_timer();
        }
        let slot = &mut self.ends.flows.senders[index as usize];
        if slot.alarm.rings(self.now) {
            slot.sender.on_wakeup(self.now);
        } else if slot.sender.next_release() == Some(self.now) {
            // The alarm is armed for no later than any timer.
            slot.sender.on_release();
        } else {
            return;
        }
        self.sender_transmits(index);
    }

    pub(super) fn on_receiver_timer(&mut self, index: u32) {
        if self.many_flows {
            self.prefetch_for_timer();
        }
        let slot = &mut self.ends.flows.receivers[index as usize];
        if slot.alarm.rings(self.now) {
            slot.receiver.on_wakeup(self.now);
            self.receiver_transmits(index);
        }
    }

    /// Prefetches into the cache the endpoint whose timer expires next. There are several packets between the
    /// timers of two of many flows.
    #[inline(never)] // timers are rare, and the loop of events is large
    fn prefetch_for_timer(&self) {
        let next = self.links.scheduler.first_timer();
        let index = next.index() as usize;
        match next.class() {
            Class::SenderTimer => self.ends.flows.senders[index].prefetch(),
            Class::ReceiverTimer => prefetch(&self.ends.flows.receivers[index]),
            _ => {}
        }
    }

    /// A TCP flow starts or stops, a UDP source sends, or a user acts.
    pub(super) fn on_source(&mut self, flow: u32) {
        let scheduler = &mut self.links.scheduler;
        self.ends.flows.note_start(flow, &self.scenario, scheduler);
        match self.ends.flows.source(flow) {
            Source::User(user) => self.on_user(user),
            Source::Call(call) => self.on_call_timer(call),
            Source::Own(i) => self.on_own_event(i),
            Source::Tcp(i) => {
                let stop = self.ends.flows.stop(flow);
                let slot = &mut self.ends.flows.senders[i as usize];
                if self.now < stop {
                    slot.sender.open(slot.handshake);
                } else {
                    slot.sender.close();
                }
                self.sender_transmits(i);
            }
            Source::Udp(i) => {
                let slot = &mut self.ends.flows.udp[i as usize];
                let (size, gap) = slot.send();
                let content = Content::Datagram(Datagram {
                    number: slot.next,
                    sent: self.now,
                });
                slot.next += 1;
                slot.passed.sent += 1;
                let to = Address {
                    flow,
                    endpoint: i,
                    route: slot.route,
                    id: slot.passed.sent as u16,
                };
                let again = self.now + gap;
                self.ends
                    .contents
                    .send(content, size, to, self.now, &mut self.links);
                if again < self.ends.flows.stop(flow) {
                    self.links
                        .scheduler
                        .add(Event::new(again, Class::Source, flow));
                }
            }
        }
    }

    fn on_call_timer(&mut self, call: u32) {
        for side in [0, 1] {
            let slot = &mut self.ends.flows.calls[call as usize];
            if slot.alarms[side].rings(self.now) {
                slot.ends[side].on_wakeup(self.now);
                self.call_transmits(call, side);
            }
        }
    }

    /// A packet of a call reaches the end of this side.
    pub(super) fn reaches_call(
        &mut self,
        side: usize,
        call: u32,
        size: u32,
        content: ContentId,
        ecn: Ecn,
    ) {
        let slot = &mut self.ends.flows.calls[call as usize];
        let Some(&content) = self.ends.contents.of_call(content) else {
            slot.passed[side].delivered += 1;
            return;
        };
        let counts = content.sent >= self.ends.measure_from;
        let marked = ecn == Ecn::Ce;
        slot.passed[side].delivered += 1;
        if side == 1 {
            slot.heard_bytes += u64::from(size);
        }
        slot.ends[side].receive(&content, size, marked, counts, self.now);
        if counts && content.is_media() {
            let group = slot.group as usize;
            let delays = match side {
                0 => &mut self.ends.flows.back_delays,
                _ => &mut self.ends.flows.delays,
            };
            delays[group].record(self.now - content.sent);
        }
        self.call_transmits(call, side);
    }

    /// Sends all packets that an end of a call has to send, and sets its timer.
    pub(super) fn call_transmits(&mut self, call: u32, side: usize) {
        let slot = &mut self.ends.flows.calls[call as usize];
        while let Some(Outgoing { packet, size }) = slot.ends[side].poll_transmit() {
            slot.passed[side].sent += 1;
            let to = Address {
                flow: slot.flow,
                endpoint: call,
                route: slot.routes[side],
                id: slot.passed[side].sent as u16,
            };
            let content = Content::Call(packet);
            self.ends
                .contents
                .send(content, size, to, self.now, &mut self.links);
        }
        let deadline = slot.ends[side].next_wakeup();
        let scheduler = &mut self.links.scheduler;
        slot.alarms[side].arm(deadline, Class::Source, slot.flow, scheduler);
    }
}
