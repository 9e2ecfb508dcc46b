//! The bottleneck that other programs use does what the simulator does.

use std::sync::mpsc;

use redtail_core::{Bytes, Rate, Span, Time};
use redtail_qdisc::Datagram;
use redtail_qdisc::bottleneck::Link;
use redtail_spec::queue_from_text;

use crate::common::{metric, run};

const DURATION: Span = Span::from_s(20);

/// Packets that a link of 10 Mbit/s has sent, and the share that its queue has dropped, of 12 Mbit/s that arrive.
fn simulated(queue: &str) -> (u64, f64) {
    let result = run(&format!(
        r#"
duration = "{DURATION}"
warmup = "0 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = {queue}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "12 Mbit/s"
packet = "1500 B"
start = "0 s"
access_rate = "12000 Mbit/s"
"#
    ));
    let loss = metric(&result, "loss");
    (result.bottleneck_packets, loss)
}

/// The same of a link whose packets arrive at the same times.
fn linked(queue: &str) -> (u64, f64) {
    let queue = queue_from_text(queue).expect("it is a queue");
    let delay = Span::from_ms(5);
    let mut link = Link::new(&queue, Rate::from_bps(10_000_000), delay, 1).expect("it can be run");
    let (drop, drops) = mpsc::channel();
    link.on_drop(move |_, _, at| drop.send(at).expect("is heard"));
    let end = Time::ZERO + DURATION;
    // The first arrives when its last bit has left its host.
    let mut now = Time::ZERO + Span::from_us(1);
    let (mut sent, mut received) = (0, 0);
    while now < end {
        link.send(Datagram::new((), Bytes::new(1500)), now);
        sent += 1;
        now += Span::from_ms(1);
    }
    while link.receive(end + delay).is_some() {
        received += 1;
    }
    let dropped = drops.try_iter().filter(|&at| at < end).count();
    (received, dropped as f64 / f64::from(sent))
}

#[test]
fn it_sends_and_drops_what_the_simulator_does() {
    for queue in [
        "{ kind = \"tail-drop\", limit = \"20 packets\" }",
        "{ kind = \"codel\" }",
        "{ kind = \"fq-codel\", limit = \"1000 packets\" }",
        "{ kind = \"head-drop\", limit = \"20 packets\" }",
        "{ kind = \"tbf\", rate = \"9 Mbit/s\", burst = \"15 kB\", queue = { kind = \"tail-drop\", limit = \"20 packets\" } }",
    ] {
        let (received, loss) = linked(queue);
        assert!(loss > 0.01, "{queue}: {loss}");
        assert_eq!((received, loss), simulated(queue), "{queue}");
    }
}
