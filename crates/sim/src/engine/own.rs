//! Endpoints of users in the engine.

use redtail_core::Ecn;
use redtail_network::{Address, Class, ContentId};

use super::Engine;
use crate::endpoint::Datagram;
use crate::own::Next;
use crate::packet::Content;

impl Engine<'_> {
    /// A flow between endpoints of users starts or stops, or a timer of an end expires.
    #[cold]
    pub(super) fn on_own_event(&mut self, index: u32) {
        let flows = &mut self.ends.flows;
        let stop = flows.stop(flows.own[index as usize].flow);
        let slot = &mut flows.own[index as usize];
        let called = slot.on_event(stop, self.now);
        for side in [0, 1] {
            if called[side] {
                self.own_acts(index, side);
            }
        }
    }

    /// A datagram reaches an endpoint of a user.
    #[cold]
    pub(super) fn reaches_own(
        &mut self,
        side: usize,
        index: u32,
        size: u32,
        content: ContentId,
        ecn: Ecn,
    ) {
        let packet = self.ends.contents.own(content);
        // Its endpoint gets a copy too, but no figure counts it.
        let counts = packet.sent >= self.ends.measure_from && !packet.copy;
        let size = if packet.copy { 0 } else { size };
        let flows = &mut self.ends.flows;
        let payload = flows.payloads.take(packet);
        let slot = &mut flows.own[index as usize];
        if counts && side == 1 {
            flows.delays[slot.group as usize].record(self.now - packet.sent);
        }
        slot.receive(side, Datagram { payload, ecn }, size, counts, self.now);
        self.own_acts(index, side);
    }

    /// Sends all datagrams that an end has to send, and sets its timer.
    fn own_acts(&mut self, index: u32, side: usize) {
        let flows = &mut self.ends.flows;
        let slot = &mut flows.own[index as usize];
        loop {
            match slot.next(side, self.now) {
                Next::Send(datagram, size) => {
                    let packet = slot.keep(side, datagram, &mut flows.payloads, self.now);
                    let end = &slot.ends[side];
                    let to = Address {
                        flow: slot.flow,
                        endpoint: index,
                        route: end.route,
                        id: end.passed.sent as u16,
                    };
                    let content = Content::Own(packet);
                    self.ends
                        .contents
                        .send(content, size, to, self.now, &mut self.links);
                }
                Next::Wait(deadline) => {
                    let scheduler = &mut self.links.scheduler;
                    return slot.ends[side].alarm.arm(
                        deadline,
                        Class::Source,
                        slot.flow,
                        scheduler,
                    );
                }
            }
        }
    }
}
