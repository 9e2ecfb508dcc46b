//! Fast network games: small UDP packets at short intervals, in either direction.
//!
//! The server tells every client the state of the world, and each client tells the server what its
//! player does. One group is one direction; a game takes two, one of them with `direction =
//! "reverse"`.
//!
//! | sent by | gap | payload |
//! |---|---|---|
//! | server, to each client | Gumbel, location 55 ms, scale 6 ms | Gumbel, location 120 B, scale 36 B |
//! | client | 40 ms | Gumbel, location 45 B, scale 5.7 B |
//!
//! Source: NGMN Alliance, "Radio Access Performance Evaluation Methodology", version 1.0, 2008,
//! Annex A.2.5, whose law (largest extreme value) and server's parameters are those fitted to
//! Counter-Strike by J. Färber, "Network Game Traffic Modelling", NetGames 2002.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, ParamError, Rate, Span, Stream, Time, schemars, serde};

use crate::access::Direction;
use crate::bounds::in_range;
use crate::bounds::refuse_short_gap;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{PacketSource, TrafficKind, UdpKind};
use crate::start::Start;

/// Sender of the packets of a game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Player {
    /// The server, to each of its clients.
    #[default]
    Server,
    /// A client, to the server.
    Client,
}

groups! {
    /// Players of a fast network game: small UDP packets at short intervals.
    pub struct GameParams {
        /// Sender of the packets, which sets the defaults of `gap` and `payload`.
        /// Source: the server, whose packets are the larger part.
        #[serde(default)]
        pub sender: Player,
        /// Time from one packet to the next, drawn for each; at least "1 ns" on average.
        /// Source: NGMN 2008 after Färber 2002: "gumbel location 55 ms scale 6 ms" for the server, "40 ms" for a client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gap: Option<Dist<Span>>,
        /// Payload of a packet, drawn for each.
        /// Source: NGMN 2008 after Färber 2002: "gumbel location 120 B scale 36 B" for the server, "gumbel location 45 B scale 5.7 B" for a client, both within one Ethernet frame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub payload: Option<Dist<Bytes>>,
        /// Bytes that headers add to each packet on the link.
        /// Source: IPv4 and UDP, 20 B and 8 B (RFC 791, RFC 768).
        #[serde(default = "ip_and_udp")]
        pub header: Bytes,
        /// When flows start; dealt out. Left out, each starts at a random phase of a mean gap.
        /// Source: a random phase keeps like sources out of lockstep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Dealt<Start>>,
        /// When flows stop; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

fn ip_and_udp() -> Bytes {
    Bytes::new(28)
}

/// Reads a law that is known to be valid.
fn law<T: crate::dist::Drawn>(text: &str) -> Dist<T> {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

impl TrafficKind for GameParams {
    fn example() -> &'static str {
        r#"flows = 3
stop = "2 s""#
    }

    fn is_person(&self) -> bool {
        true
    }

    fn noun(&self) -> &'static str {
        "game flow"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        self.start.as_ref()
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn fill_in(&mut self) {
        let (gap, payload) = match self.sender {
            Player::Server => (
                "gumbel location 55 ms scale 6 ms",
                "gumbel location 120 B scale 36 B max 1472 B",
            ),
            Player::Client => ("40 ms", "gumbel location 45 B scale 5.7 B max 1472 B"),
        };
        self.gap.get_or_insert_with(|| law(gap));
        self.payload.get_or_insert_with(|| law(payload));
    }

    fn check(&self) -> Result<(), ParamError> {
        let (gap, _) = self.filled_in();
        let accepted = "a time such as \"40 ms\" or \"gumbel location 55 ms scale 6 ms\"";
        if gap.mean().is_none() {
            return Err(ParamError::new("gap", "has an infinite mean", accepted));
        }
        refuse_short_gap("gap", &gap, accepted)?;
        if self.header.as_u64() == 0 {
            return Err(ParamError::new(
                "header",
                "is zero",
                "at least \"1 B\", IPv4 and UDP take \"28 B\"",
            ));
        }
        if self.largest_packet().as_u64() > 65_535 {
            return Err(ParamError::new(
                "payload",
                "may be more than fits an IP packet with its header",
                "up to \"65535 B\" together; a law may end with \"max 1472 B\"",
            ));
        }
        Ok(())
    }
}

impl UdpKind for GameParams {
    type Source = Box<Self>;

    fn source(&self) -> Box<Self> {
        Box::new(self.clone())
    }

    fn mean_load(&self) -> (Rate, f64) {
        let (gap, payload) = self.filled_in();
        // Checked to be finite, and the gaps to take some time.
        let size = payload.mean().unwrap_or(0.0) + self.header.as_u64() as f64;
        let rate = 8.0 * size / gap.mean().unwrap_or(f64::INFINITY);
        (Rate::from_bps(rate.round() as u64), size)
    }

    fn largest_packet(&self) -> Bytes {
        let payload = self.filled_in().1.quantile(1.0).as_u64();
        Bytes::new(payload.saturating_add(self.header.as_u64()))
    }

    fn random_start(&self, stream: &mut Stream) -> Time {
        let mean = self.filled_in().0.mean().unwrap_or(0.0);
        Time::ZERO + stream.uniform_span(Span::ZERO, Span::from_secs_f64(mean))
    }
}

/// The source is the group itself, whose keys are all filled in.
impl PacketSource for GameParams {
    fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
        let (gap, payload) = (self.gap.as_ref(), self.payload.as_ref());
        let (gap, payload) = gap.zip(payload).expect("a plan fills in what was left out");
        let size = payload.draw(stream) + self.header;
        (size.as_u64() as u32, in_range(gap.draw(stream)))
    }
}

impl GameParams {
    fn filled_in(&self) -> (Dist<Span>, Dist<Bytes>) {
        let mut group = self.clone();
        group.fill_in();
        let GameParams { gap, payload, .. } = group;
        (gap.expect("filled in"), payload.expect("filled in"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(more: &str) -> GameParams {
        let mut group: GameParams =
            crate::from_json(&format!(r#"{{"name": "g"{more}}}"#)).expect("the file's form");
        group.fill_in();
        group
    }

    #[test]
    fn both_sides_send_what_their_source_says() {
        let euler = 0.577_215_664_9;
        for (more, gap, payload) in [
            ("", 0.055 + 0.006 * euler, 120.0 + 36.0 * euler),
            (r#", "sender": "client""#, 0.040, 45.0 + 5.7 * euler),
        ] {
            let mut group = group(more);
            let (rate, size) = group.mean_load();
            // The cut at nothing takes 4 % of the server's payload law away below, exp(-e^3.3).
            assert!((size - 28.0 - payload).abs() < 1e-6, "{size}");
            assert!(
                (rate.as_bps() as f64 - 8.0 * size / gap).abs() < 1.0,
                "{rate}"
            );
            let mut stream = Stream::named(3, 0, "game");
            let n = 100_000;
            let (mut bytes, mut squares, mut seconds) = (0.0, 0.0, 0.0);
            for _ in 0..n {
                let (size, gap) = group.send(&mut stream);
                bytes += f64::from(size);
                squares += f64::from(size).powi(2);
                seconds += gap.as_secs_f64();
            }
            let n = f64::from(n);
            let (mean, gaps) = (bytes / n, seconds / n);
            let error = ((squares / n - mean * mean) / n).sqrt();
            // Five standard errors, exceeded with probability 6e-7; a gap varies less than its
            // mean.
            assert!((mean - size).abs() < 5.0 * error, "{mean}, said {size}");
            assert!(
                (gaps - gap).abs() < 5.0 * gap / n.sqrt(),
                "{gaps}, said {gap}"
            );
        }
        assert_eq!(group("").largest_packet(), Bytes::new(1500));
    }
}
