//! A download through CoDel, by a sender that is ten lines long: `cargo run -p redtail-qdisc --example bottleneck`.
//!
//! The sender keeps a window of datagrams in flight and halves it when one is lost, at most once in a round trip. Nothing
//! of it is redtail's but the bottleneck in the way, and no clock is read: the time is that of the next event.

use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use redtail_core::{Bytes, Rate};
use redtail_qdisc::bottleneck::Counts;
use redtail_qdisc::queues::codel::CodelParams;
use redtail_qdisc::{Bottleneck, Datagram, QueueParams};

const SIZE: u64 = 1250;
const DELAY: Duration = Duration::from_millis(20);
const DURATION: Duration = Duration::from_secs(20);

/// The rate in Mbit/s at which datagrams arrived, and what became of them.
fn download() -> Result<(f64, Counts), Box<dyn Error>> {
    let queue = QueueParams::Codel(CodelParams::default());
    let rate = Rate::from_bps(10_000_000);
    let mut bottleneck = Bottleneck::new(&queue, rate, DELAY, 1)?;
    let (lost, losses) = mpsc::channel();
    bottleneck.on_drop(move |datagram: Datagram<Vec<u8>>, _| {
        // Nobody listens any more when the example ends.
        let _ = lost.send(datagram.into_payload().len());
    });

    #[allow(clippy::disallowed_methods)] // any instant is the start
    let start = Instant::now();
    let (mut now, mut halved) = (start, start);
    let (mut window, mut in_flight, mut arrived) = (10.0, 0, 0_u64);
    while now - start < DURATION {
        while f64::from(in_flight) < window {
            let datagram = Datagram::new(vec![0; SIZE as usize], Bytes::new(SIZE));
            bottleneck.send(datagram, now);
            in_flight += 1;
        }
        now = bottleneck.next_event().ok_or("nothing is on its way")?;
        if bottleneck.receive(now).is_some() {
            in_flight -= 1;
            arrived += 1;
            window += 1.0 / window;
        }
        for _ in losses.try_iter() {
            in_flight -= 1;
            if now - halved > 2 * DELAY {
                (halved, window) = (now, f64::max(window / 2.0, 1.0));
            }
        }
    }
    let rate = (arrived * SIZE * 8) as f64 / DURATION.as_secs_f64() / 1e6;
    Ok((rate, bottleneck.link().counts()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rate, counts) = download()?;
    println!(
        "{rate:.2} Mbit/s, {} of {} dropped",
        counts.dropped, counts.sent
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codel_drops_some_and_the_link_stays_busy() {
        let (rate, counts) = download().expect("it runs");
        assert!((8.0..=10.0).contains(&rate), "{rate}");
        assert!(
            (5..counts.sent / 50).contains(&counts.dropped),
            "{counts:?}"
        );
        assert_eq!(download().expect("it runs"), (rate, counts));
    }
}
