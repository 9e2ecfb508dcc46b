//! Meters against colours that were computed by hand from RFC 2697 and RFC 2698, section 3.

use redtail_core::{Bytes, Rate, Span, Time};
use redtail_qdisc::laws::meter::Colour::{Green, Red, Yellow};
use redtail_qdisc::laws::meter::{Colour, Meter};

/// 1000 B/s.
const CIR: Rate = Rate::from_bps(8_000);

fn bytes(amount: u64) -> Bytes {
    Bytes::new(amount)
}

/// Gives the meter packets: each at so many milliseconds, of so many bytes, with a colour before and one that follows.
#[track_caller]
fn check(mut meter: Meter, packets: &[(u64, u64, Colour, Colour)]) {
    for (number, &(ms, size, before, after)) in packets.iter().enumerate() {
        let now = Time::ZERO + Span::from_ms(ms);
        let found = meter.colour(bytes(size), before, now);
        assert_eq!(found, after, "packet {} at {ms} ms", number + 1);
    }
}

#[test]
fn colours_of_one_rate() {
    // CBS 2000 B, EBS 1000 B. Behind each packet: Tc, Te.
    let packets = [
        (0, 1000, Green, Green),     // 1000, 1000
        (0, 1000, Green, Green),     // 0, 1000
        (0, 1000, Green, Yellow),    // 0, 0
        (0, 1000, Green, Red),       // 0, 0
        (1000, 1000, Green, Green),  // 1000 came: 0, 0
        (1500, 1000, Green, Red),    // 500 came: 500, 0
        (1500, 500, Green, Green),   // 0, 0
        (5500, 1000, Green, Green), // 4000 came, 2000 to each bucket, of which Te has room for 1000: 1000, 1000
        (5500, 1000, Green, Green), // 0, 1000
        (5500, 1001, Green, Red),   // 0, 1000
        (5500, 1000, Green, Yellow), // 0, 0
        (8000, 600, Green, Green),  // 2500 came, 2000 and 500: 1400, 500
        (8000, 600, Yellow, Red),   // Tc does not count for a yellow packet: 1400, 500
        (8000, 500, Yellow, Yellow), // 1400, 0
        (8000, 100, Red, Red),      // 1400, 0
        (8000, 1400, Green, Green), // 0, 0
    ];
    check(Meter::single_rate(CIR, bytes(2000), bytes(1000)), &packets);
}

#[test]
fn colours_of_two_rates() {
    // CBS 1000 B; PIR 2000 B/s, PBS 2000 B. Behind each packet: Tc, Tp.
    let packets = [
        (0, 1000, Green, Green),     // 0, 1000
        (0, 1000, Green, Yellow),    // 0, 0
        (0, 1, Green, Red),          // 0, 0
        (500, 1000, Green, Yellow),  // 500 and 1000 came: 500, 0
        (500, 500, Green, Red),      // 500, 0
        (1000, 1000, Green, Green),  // 500 and 1000 came: 0, 0
        (1250, 250, Green, Green),   // 250 and 500 came: 0, 250
        (1250, 500, Green, Red),     // 0, 250
        (3000, 800, Yellow, Yellow), // both full: 1000, 1200
        (3000, 200, Red, Red),       // 1000, 1200
        (3000, 1000, Green, Green),  // 0, 200
        (3000, 200, Yellow, Yellow), // 0, 0
    ];
    check(
        Meter::two_rate((CIR, bytes(1000)), (Rate::from_bps(16_000), bytes(2000))),
        &packets,
    );
}

#[test]
fn one_bucket_of_a_single_rate_may_be_empty() {
    let no_excess = Meter::single_rate(CIR, bytes(1000), bytes(0));
    check(
        no_excess,
        &[
            (0, 1000, Green, Green),
            (999, 1000, Green, Red),
            (1000, 1000, Green, Green),
        ],
    );
    let no_committed = Meter::single_rate(CIR, bytes(0), bytes(1000));
    check(
        no_committed,
        &[
            (0, 1000, Green, Yellow),
            (999, 1000, Green, Red),
            (1000, 1000, Green, Yellow),
        ],
    );
}
