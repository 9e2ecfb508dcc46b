//! What the packets of a call carry.

use redtail_core::{Span, Time};

/// A packet of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallPacket {
    /// When it left its host.
    pub sent: Time,
    /// What it carries.
    pub payload: CallPayload,
}

/// What a packet of a call carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallPayload {
    /// Voice, or a part of a frame of video.
    Media(Media),
    /// What the receiver tells the sender of the media.
    Report(Report),
}

/// Voice, or a part of a frame of video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Media {
    /// The number of the packet among all packets of media from this sender, from 0.
    pub sequence: u32,
    /// Its number among the packets of voice, or that of its frame of video.
    pub unit: u32,
    /// The number of packets of its frame; 0 for voice.
    pub parts: u16,
    /// Whether it is sent as ECN-capable.
    pub ecn: bool,
    /// When its frame was captured, or its voice was complete.
    pub captured: Time,
    /// The sender's round-trip time; zero if it is not known yet. RTP's receivers learn it from extended
    /// reports (RFC 3611, section 4.5).
    pub round_trip: Span,
}

impl Media {
    /// Whether it carries voice.
    pub fn is_audio(&self) -> bool {
        self.parts == 0
    }
}

/// What the receiver tells the sender of the media.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// The highest sequence number that arrived.
    pub highest: u32,
    /// Packets that have arrived since the start of the call.
    pub received: u32,
    /// Of these, the ones that were marked (ECN).
    pub marked: u32,
    /// When the packet with the highest number arrived.
    pub arrived: Time,
    /// The packets that have arrived among the 64 below the highest: bit i stands for `highest - 1 - i`.
    pub acknowledged: u64,
    /// The receiver's estimate of the available bandwidth, in bit/s; 0 if it has none (SCReAM).
    pub rate: u64,
}

impl CallPacket {
    /// Whether it carries media.
    pub fn is_media(&self) -> bool {
        matches!(self.payload, CallPayload::Media(_))
    }

    /// Whether it is sent as ECN-capable.
    pub fn ecn(&self) -> bool {
        matches!(self.payload, CallPayload::Media(Media { ecn: true, .. }))
    }
}

/// Which packets have arrived: the highest number, and the 64 below it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    highest: Option<u32>,
    below: u64,
    received: u32,
    marked: u32,
    arrived: Time,
}

impl Arrivals {
    /// Packet `sequence` arrives.
    pub fn add(&mut self, sequence: u32, marked: bool, now: Time) {
        self.received += 1;
        self.marked += u32::from(marked);
        let Some(highest) = self.highest else {
            (self.highest, self.arrived) = (Some(sequence), now);
            return;
        };
        if sequence > highest {
            let ahead = sequence - highest;
            // The former highest is now among those below.
            let below = self.below.checked_shl(ahead).unwrap_or(0);
            self.below = below | 1_u64.checked_shl(ahead - 1).unwrap_or(0);
            (self.highest, self.arrived) = (Some(sequence), now);
        } else if let Some(bit) = (highest - sequence).checked_sub(1) {
            self.below |= 1_u64.checked_shl(bit).unwrap_or(0);
        }
    }

    /// What is reported of them; `None` before the first.
    pub fn report(&self) -> Option<Report> {
        self.highest.map(|highest| Report {
            highest,
            received: self.received,
            marked: self.marked,
            arrived: self.arrived,
            acknowledged: self.below,
            rate: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_which_of_the_latest_packets_have_arrived() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.report(), None);
        for (sequence, marked) in [(0, false), (1, true), (4, false), (3, false)] {
            arrivals.add(
                sequence,
                marked,
                Time::ZERO + Span::from_ms(u64::from(sequence)),
            );
        }
        let report = arrivals.report().expect("packets have arrived");
        assert_eq!((report.highest, report.received, report.marked), (4, 4, 1));
        // 3, 1 and 0 have arrived and 2 has not.
        assert_eq!(report.acknowledged, 0b1101);
        assert_eq!(report.arrived, Time::ZERO + Span::from_ms(4));
        arrivals.add(68, false, Time::ZERO + Span::from_s(1));
        let report = arrivals.report().expect("packets have arrived");
        assert_eq!(report.acknowledged, 1 << 63, "only packet 4 is near enough");
        arrivals.add(500, false, Time::ZERO + Span::from_s(2));
        assert_eq!(arrivals.report().map(|it| it.acknowledged), Some(0));
    }
}
