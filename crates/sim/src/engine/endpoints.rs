//! TCP endpoints and UDP sources in the engine.

use super::Engine;
use crate::flows::Source;
use crate::packet::{Content, Datagram};
use redtail_network::Address;
use redtail_network::{Class, Event};

impl Engine<'_> {
    /// Sends all segments that a sender may send now.
    #[inline]
    pub(super) fn sender_transmits(&mut self, index: u32) {
        let slot = &mut self.flows.senders[index as usize];
        while let Some(segment) = slot.sender.poll_transmit(self.now) {
            slot.passed.sent += 1;
            let size = segment.len + slot.header;
            let to = Address {
                flow: slot.flow,
                endpoint: index,
                route: slot.route,
                id: slot.passed.sent as u16,
            };
            let content = Content::Segment(segment);
            self.contents
                .send(content, size, to, self.now, &mut self.links);
        }
        if slot.sender.is_complete() && slot.completed.is_none() {
            slot.completed = Some(self.now);
        }
        let deadline = slot.sender.next_timer();
        slot.alarm.arm(
            deadline,
            Class::SenderTimer,
            index,
            &mut self.links.scheduler,
        );
        // Releases have a separate alarm, so that the distant timer of the other one is not
        // rescheduled.
        if let Some(release) = slot.sender.next_release() {
            let alarm = &mut self.releases[index as usize];
            alarm.arm(
                Some(release),
                Class::SenderTimer,
                index,
                &mut self.links.scheduler,
            );
        }
    }

    #[inline]
    pub(super) fn receiver_transmits(&mut self, index: u32) {
        let slot = &mut self.flows.receivers[index as usize];
        let mut delivered = false;
        while let Some(segment) = slot.receiver.poll_transmit(self.now) {
            slot.passed.sent += 1;
            if slot.at_once {
                // A return path without delay needs no event.
                self.flows.senders[index as usize].hear(&segment, self.now);
                delivered = true;
                continue;
            }
            let to = Address {
                flow: slot.flow,
                endpoint: index,
                route: slot.route,
                id: slot.passed.sent as u16,
            };
            let content = Content::Segment(segment);
            self.contents
                .send(content, slot.header, to, self.now, &mut self.links);
        }
        let deadline = slot.receiver.next_wakeup();
        slot.alarm.arm(
            deadline,
            Class::ReceiverTimer,
            index,
            &mut self.links.scheduler,
        );
        if delivered {
            self.sender_transmits(index);
        }
    }

    pub(super) fn on_sender_timer(&mut self, index: u32) {
        let slot = &mut self.flows.senders[index as usize];
        let released = self.releases[index as usize].rings(self.now);
        if slot.alarm.rings(self.now) || released {
            slot.sender.on_wakeup(self.now);
            self.sender_transmits(index);
        }
    }

    pub(super) fn on_receiver_timer(&mut self, index: u32) {
        let slot = &mut self.flows.receivers[index as usize];
        if slot.alarm.rings(self.now) {
            slot.receiver.on_wakeup(self.now);
            self.receiver_transmits(index);
        }
    }

    /// A TCP flow starts or stops, a UDP source sends, or a user acts.
    pub(super) fn on_source(&mut self, flow: u32) {
        match self.flows.sources[flow as usize] {
            Source::User(user) => self.on_user(user),
            Source::Tcp(i) => {
                let slot = &mut self.flows.senders[i as usize];
                if self.now < self.flows.stops[flow as usize] {
                    slot.sender.open(slot.handshake);
                } else {
                    slot.sender.close();
                }
                self.sender_transmits(i);
            }
            Source::Udp(i) => {
                let slot = &mut self.flows.udp[i as usize];
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
                self.contents
                    .send(content, size, to, self.now, &mut self.links);
                if again < self.flows.stops[flow as usize] {
                    self.links
                        .scheduler
                        .add(Event::new(again, Class::Source, flow));
                }
            }
        }
    }
}
