use super::*;
use std::collections::BTreeMap;

const SECONDS: u64 = 20;

fn group(more: &str) -> CallParams {
    crate::from_json(&format!(r#"{{"name": "c"{more}}}"#)).expect("the file's form")
}

/// What the two ends did to each other.
#[derive(Debug, Default)]
struct Talk {
    /// Bytes of media sent by each end, and packets.
    sent: [u64; 2],
    packets: [u64; 2],
    reports: [u64; 2],
    wakeups: u64,
}

/// Joins two ends by a channel of 20 ms that loses a share of the packets, marks another, and delays each by
/// up to `jitter` more, so that packets overtake each other.
fn talk(group: &CallParams, loss: f64, marks: f64, jitter: Span) -> (Talk, [CallEnd; 2]) {
    let stop = Time::ZERO + Span::from_s(SECONDS);
    let stream = Stream::named(3, 0, "call");
    let mut random = Stream::named(4, 0, "channel");
    let mut ends = CallEnd::pair(group, Time::ZERO, stop, &stream);
    // Packets on their way, by the time of their arrival and a number.
    let mut way: BTreeMap<(Time, u64), (usize, Outgoing)> = BTreeMap::new();
    let mut talk = Talk::default();
    let (mut now, mut number) = (Time::ZERO, 0);
    loop {
        let arrival = way.keys().next().map(|(at, _)| *at);
        let next = ends.iter().filter_map(CallEnd::next_wakeup).chain(arrival);
        let Some(next) = next.min() else {
            return (talk, ends);
        };
        assert!(next < stop + Span::from_s(10), "it goes on after its end");
        now = now.max(next);
        for end in &mut ends {
            if end.next_wakeup().is_some_and(|at| at <= now) {
                end.on_wakeup(now);
                talk.wakeups += 1;
            }
        }
        while let Some(((at, _), (to, out))) = way.first_key_value().map(|(k, v)| (*k, *v))
            && at <= now
        {
            way.pop_first();
            let marked = out.packet.ecn() && random.uniform() < marks;
            ends[to].receive(&out.packet, out.size, marked, true, now);
        }
        for (from, end) in ends.iter_mut().enumerate() {
            while let Some(out) = end.poll_transmit() {
                match out.packet.is_media() {
                    true => {
                        talk.sent[from] += u64::from(out.size);
                        talk.packets[from] += 1;
                    }
                    false => talk.reports[from] += 1,
                }
                assert!((29..=1240).contains(&out.size), "{}", out.size);
                number += 1;
                if random.uniform() >= loss {
                    let more = random.uniform_span(Span::ZERO, jitter);
                    way.insert((now + Span::from_ms(20) + more, number), (1 - from, out));
                }
            }
        }
        assert!(talk.wakeups < 200_000, "it is woken without end");
    }
}

fn rate(bytes: u64) -> f64 {
    8.0 * bytes as f64 / SECONDS as f64
}

#[test]
fn two_ends_reach_their_highest_rate_over_a_good_channel() {
    for controller in ["gcc", "scream"] {
        let group = group(&format!(
            r#", "controller": "{controller}", "start_rate": "1 Mbit/s", "max_rate": "1.2 Mbit/s""#
        ));
        let (talk, ends) = talk(&group, 0.0, 0.0, Span::ZERO);
        for side in [0, 1] {
            let sent = rate(talk.sent[side]);
            assert!((0.95e6..1.25e6).contains(&sent), "{controller}: {sent}");
            let (received, lost) = ends[1 - side].packets();
            assert_eq!((received, lost), (talk.packets[side], 0));
            let figures = ends[side].figures(Time::ZERO + Span::from_s(SECONDS));
            assert!(
                figures
                    .frame_rate
                    .is_some_and(|it| (29.0..31.0).contains(&it))
            );
            assert_eq!(figures.frozen, Some(0.0));
        }
    }
}

#[test]
fn reports_come_as_often_as_the_sources_say() {
    let (gcc, _) = talk(&group(""), 0.0, 0.0, Span::ZERO);
    // One in a second, with the last of what was sent.
    assert!((19..=21).contains(&gcc.reports[0]), "{:?}", gcc.reports);
    let scream = group(r#", "controller": "scream", "start_rate": "1.5 Mbit/s""#);
    let (scream, _) = talk(&scream, 0.0, 0.0, Span::ZERO);
    // 50 in a second at 500 kbit/s and more.
    assert!(
        (800..=1000).contains(&scream.reports[0]),
        "{:?}",
        scream.reports
    );
}

#[test]
fn one_end_alone_sends_media_if_the_call_is_one_way() {
    let (talk, ends) = talk(&group(r#", "media": "one-way""#), 0.0, 0.0, Span::ZERO);
    assert!(talk.sent[0] > 0 && talk.sent[1] == 0);
    assert!(talk.reports[0] == 0 && talk.reports[1] > 0);
    assert_eq!(
        ends[0].figures(Time::ZERO + Span::from_s(20)),
        Figures::default()
    );
}

#[test]
fn losses_marks_and_packets_that_overtake_each_other_leave_rates_within_their_bounds() {
    for (controller, ecn) in [("gcc", false), ("scream", false), ("scream", true)] {
        let group = group(&format!(r#", "controller": "{controller}", "ecn": {ecn}"#));
        for (loss, marks, jitter) in [
            (0.0, 0.2, 0),
            (0.0, 0.0, 40),
            (0.05, 0.1, 10),
            (0.5, 0.5, 100),
            (1.0, 0.0, 0),
        ] {
            let (talk, ends) = talk(&group, loss, marks, Span::from_ms(jitter));
            for side in [0, 1] {
                let sent = rate(talk.sent[side]);
                let case = format!("{controller}, {loss}, {marks}, {jitter} ms: {sent}");
                // SCReAM sends voice, and a packet of video now and then, when no report arrives.
                assert!((75e3..1.55e6).contains(&sent), "{case}");
                let figures = ends[side].figures(Time::ZERO + Span::from_s(SECONDS));
                let scores = [figures.video, figures.voice, figures.quality];
                let scores = scores.into_iter().flatten();
                assert!(
                    scores.into_iter().all(|it| (1.0..=5.0).contains(&it)),
                    "{case}"
                );
                assert!(
                    figures.frozen.is_some_and(|it| (0.0..=1.0).contains(&it)),
                    "{case}"
                );
                if loss == 1.0 {
                    assert_eq!(figures.frozen, Some(1.0), "{case}");
                }
            }
        }
    }
}

#[test]
fn the_same_numbers_are_drawn_whatever_the_network_does() {
    // Frames leave their encoder at the same times, with losses and without.
    let frames = |loss: f64| {
        let (_, ends) = talk(&group(r#", "controller": "gcc""#), loss, 0.0, Span::ZERO);
        let sending = ends[0].sending.as_ref().expect("it sends");
        (sending.frame, sending.stream.clone().uniform())
    };
    assert_eq!(frames(0.0), frames(0.3));
}
