//! A download through FQ-CoDel by the TCP of Linux: `cargo run -p redtail-transport --example download`.
//!
//! Two endpoints, and a link of `redtail-qdisc` in each direction: what carries a segment owns it.

use std::error::Error;

use redtail_core::{Rate, Span, Time};
use redtail_qdisc::bottleneck::{Counts, Link};
use redtail_qdisc::queues::fq_codel::FqCodelParams;
use redtail_qdisc::{Datagram, QueueParams};
use redtail_transport::{Endpoint, Preset, Segment};

const SIZE: u64 = 20_000_000;

/// The segments that `from` may send now enter the link.
fn transmit(from: &mut Endpoint, link: &mut Link<Datagram<Segment>>, header: u64, now: Time) {
    while let Some(segment) = from.poll_transmit(now) {
        let size = u64::from(segment.len) + header;
        link.send(
            Datagram::new(segment, size.into()).with_ecn(segment.ecn),
            now,
        );
    }
}

/// The segments that have left the link arrive.
fn receive(to: &mut Endpoint, link: &mut Link<Datagram<Segment>>, now: Time) {
    while let Some(datagram) = link.receive(now) {
        // The queue may have marked it.
        let ecn = redtail_core::Packet::ecn(&datagram);
        let segment = Segment {
            ecn,
            ..datagram.into_payload()
        };
        to.on_segment(&segment, now);
    }
}

/// When the last byte arrived, and what became of the client's segments.
fn download() -> Result<(Time, Counts), Box<dyn Error>> {
    let params = Preset::Linux.params();
    let header = params.header.as_u64();
    let mut client = Endpoint::client(&params);
    let mut server = Endpoint::server(&params);
    client.open(&params);
    client.write(SIZE);

    let queue = QueueParams::FqCodel(FqCodelParams::default());
    let delay = Span::from_ms(20);
    let mut up = Link::new(&queue, Rate::from_bps(10_000_000), delay, 1)?;
    let mut down = Link::new(&queue, Rate::from_bps(100_000_000), delay, 2)?;
    let mut now = Time::ZERO;
    while server.delivered() < SIZE {
        transmit(&mut client, &mut up, header, now);
        transmit(&mut server, &mut down, header, now);
        let events = [up.next_event(), down.next_event()];
        let timers = [client.next_wakeup(), server.next_wakeup()];
        let due = events.into_iter().chain(timers).flatten().min();
        now = due.ok_or("nobody has anything to do")?.max(now);
        receive(&mut server, &mut up, now);
        receive(&mut client, &mut down, now);
        client.on_wakeup(now);
        server.on_wakeup(now);
    }
    Ok((now, up.counts()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (end, counts) = download()?;
    println!(
        "{:.2} Mbit/s; {} of {} packets dropped",
        (SIZE * 8) as f64 / end.as_secs_f64() / 1e6,
        counts.dropped,
        counts.sent
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_download_ends_in_time_although_packets_are_dropped() {
        let (end, counts) = download().expect("it runs");
        // 16 s at the rate of the link, without headers.
        assert!((16.0..20.0).contains(&end.as_secs_f64()), "{end}");
        assert!(counts.dropped > 0, "{counts:?}");
        assert_eq!(download().expect("it runs"), (end, counts));
    }
}
