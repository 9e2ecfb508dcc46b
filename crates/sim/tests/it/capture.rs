//! Captures: whole pcapng blocks, headers whose lengths and checksums are right,
//! and a run that does not notice.
//!
//! The blocks and headers are read here by other code than wrote them.

use std::io::{self, Write};

use crate::common::{run, scenario};
use redtail_sim::capture::{Capture, CaptureError, End, IpVersion, Point};
use redtail_sim::{RunError, RunOptions, RunResult};

/// Four flows that lose and mark packets, UDP, and acknowledgements over a link.
const MIXED: &str = r#"
duration = "6 s"
warmup = "1 s"
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "red", limit = "20 packets", min_th = "4 packets", max_th = "12 packets", max_p = 0.1, w_q = 0.02, ecn = true }
[bottleneck.return]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "sack"
kind = "bulk"
flows = 2
tcp = { preset = "sack", ecn = true }
[[traffic]]
name = "plain"
kind = "bulk"
flows = 2
tcp = { preset = "newreno", receive_window = "40 kB", handshake = false }
[[traffic]]
name = "udp"
kind = "cbr"
rate = "200 kbit/s"
packet = "573 B"
"#;

fn points(texts: &[&str]) -> Vec<Point> {
    let parsed = texts.iter().map(|text| text.parse());
    parsed.collect::<Result<_, _>>().expect("points")
}

fn try_capture(text: &str, at: &[&str], ip: IpVersion) -> Result<(RunResult, Vec<u8>), RunError> {
    capture_with(text, at, ip, RunOptions::default())
}

/// As [`capture`], of a run with these options, which may fail.
pub fn capture_with(
    text: &str,
    at: &[&str],
    ip: IpVersion,
    options: RunOptions<'_>,
) -> Result<(RunResult, Vec<u8>), RunError> {
    let mut bytes = Vec::new();
    let files: Vec<(Vec<Point>, Box<dyn Write + Send + '_>)> =
        vec![(points(at), Box::new(&mut bytes))];
    let capture = Capture { ip, files };
    let result = redtail_sim::run(
        &scenario(text, 0),
        RunOptions {
            capture: Some(capture),
            ..options
        },
    )?;
    Ok((result, bytes))
}

pub fn capture(text: &str, at: &[&str], ip: IpVersion) -> (RunResult, Vec<u8>) {
    try_capture(text, at, ip).unwrap_or_else(|error| panic!("{error:?}"))
}

fn le32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(bytes[..2].try_into().expect("two bytes"))
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

/// The blocks of a pcapng file as (type, body).
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let mut found = Vec::new();
    while !file.is_empty() {
        let length = le32(&file[4..]) as usize;
        assert_eq!(length % 4, 0, "blocks are whole words");
        assert_eq!(le32(&file[length - 4..]) as usize, length);
        found.push((le32(file), &file[8..length - 4]));
        file = &file[length..];
    }
    found
}

#[derive(Debug)]
pub struct Captured {
    interface: u32,
    pub ns: u64,
    data: Vec<u8>,
    pub original: usize,
    comments: Vec<String>,
    /// Packets that the interface dropped since the one before.
    dropped: u64,
}

/// The packets of a pcapng file with `interfaces` interfaces.
pub fn packets(file: &[u8], interfaces: usize) -> Vec<Captured> {
    let all = blocks(file);
    assert_eq!(all[0].0, 0x0a0d_0d0a);
    assert_eq!(le32(all[0].1), 0x1a2b_3c4d);
    for (kind, body) in &all[1..=interfaces] {
        assert_eq!(*kind, 1);
        assert_eq!(le32(body) & 0xffff, 1, "Ethernet");
        let resolution = [9, 0, 1, 0, 9, 0, 0, 0]; // if_tsresol, 10^-9 s
        assert!(body.windows(8).any(|window| window == resolution));
    }
    let (packets, counted) = all[1 + interfaces..].split_at(all.len() - 1 - 2 * interfaces);
    assert!(counted.iter().all(|(kind, _)| *kind == 5));
    let packets = packets.iter().map(|(kind, body)| {
        assert_eq!(*kind, 6);
        let length = le32(&body[12..]) as usize;
        let (comments, dropped) = options(&body[20 + length.next_multiple_of(4)..]);
        Captured {
            comments,
            dropped,
            interface: le32(body),
            ns: (u64::from(le32(&body[4..])) << 32) | u64::from(le32(&body[8..])),
            data: body[20..20 + length].to_vec(),
            original: le32(&body[16..]) as usize,
        }
    });
    packets.collect()
}

/// The comments among the options of a packet, and the count of drops.
fn options(mut bytes: &[u8]) -> (Vec<String>, u64) {
    let (mut comments, mut dropped) = (Vec::new(), 0);
    while !bytes.is_empty() {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (code, length) = (half(0), usize::from(half(2)));
        let value = &bytes[4..4 + length];
        match code {
            0 => assert_eq!(bytes.len(), 4, "the end of options is the last"),
            1 => comments.push(String::from_utf8(value.to_vec()).expect("text")),
            4 => dropped = u64::from_le_bytes(value.try_into().expect("eight bytes")),
            other => panic!("option {other}"),
        }
        bytes = &bytes[4 + length.next_multiple_of(4)..];
    }
    (comments, dropped)
}

/// RFC 1071 over bytes, the last one padded: 0 if a checksum among them is right.
fn checksum(bytes: impl IntoIterator<Item = u8>) -> u16 {
    let bytes: Vec<u8> = bytes.into_iter().collect();
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) * 256 + u64::from(*pair.get(1).unwrap_or(&0));
    }
    !((sum % 0xffff) as u16).max(u16::from(sum > 0 && sum.is_multiple_of(0xffff)) * 0xffff)
}

/// A packet taken apart, its lengths and checksums checked.
struct Packet<'a> {
    protocol: u8,
    ecn: u8,
    source: &'a [u8],
    transport: &'a [u8],
    payload: usize,
}

/// A packet of which only headers are captured.
fn dissect(captured: &Captured) -> Packet<'_> {
    let (packet, data) = take_apart(captured);
    assert!(data.is_empty(), "headers, and nothing but headers");
    packet
}

/// The payload of a packet that is captured as a whole.
pub fn payload(captured: &Captured) -> &[u8] {
    let (packet, data) = take_apart(captured);
    assert_eq!((packet.protocol, packet.payload), (17, data.len()));
    data
}

/// A packet taken apart, and what is captured of its payload.
fn take_apart(captured: &Captured) -> (Packet<'_>, &[u8]) {
    let mut whole = captured.data.clone();
    whole.resize(captured.original, 0);
    let ip = &captured.data[14..];
    let (header, protocol, ecn, source, both, length) = match be16(&captured.data[12..]) {
        0x0800 => {
            assert_eq!(ip[0], 0x45);
            assert_eq!(be16(&ip[2..]) as usize, captured.original - 14);
            assert_eq!(checksum(ip[..20].iter().copied()), 0, "IPv4 checksum");
            let length = be16(&ip[2..]) as usize - 20;
            (20, ip[9], ip[1] & 3, &ip[12..16], &ip[12..20], length)
        }
        0x86dd => {
            assert_eq!(ip[0] >> 4, 6);
            let length = be16(&ip[4..]) as usize;
            assert_eq!(length, captured.original - 54);
            (40, ip[6], (ip[1] >> 4) & 3, &ip[8..24], &ip[8..40], length)
        }
        other => panic!("not IP: {other:#x}"),
    };
    let transport = &captured.data[14 + header..];
    let pseudo = both.iter().copied();
    let pseudo = pseudo.chain((length as u32).to_be_bytes());
    let pseudo = pseudo.chain([0, 0, 0, protocol]);
    let all = pseudo.chain(whole[14 + header..].iter().copied());
    assert_eq!(checksum(all), 0, "transport checksum");
    let size = match protocol {
        6 => usize::from(transport[12] >> 4) * 4,
        17 => {
            assert_eq!(be16(&transport[4..]) as usize, length);
            8
        }
        other => panic!("neither TCP nor UDP: {other}"),
    };
    let (transport, data) = transport.split_at(size);
    let packet = Packet {
        protocol,
        ecn,
        source,
        transport,
        payload: length - size,
    };
    (packet, data)
}

#[test]
fn the_checksum_of_this_test_knows_the_example_of_rfc_1071() {
    let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum(example), !0xddf2);
    assert_eq!(checksum(example.into_iter().chain([0x22, 0x0d])), 0);
}

#[test]
fn lengths_and_checksums_are_right_in_both_versions_of_ip() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let at = ["bottleneck:in", "bottleneck:out", "return:in", "return"];
        let (_, file) = capture(MIXED, &at, ip);
        let found = packets(&file, 4);
        assert!(found.len() > 2000, "{}", found.len());
        let mut seen = [0; 4];
        for packet in &found {
            let dissected = dissect(packet);
            seen[packet.interface as usize] += 1;
            assert!(dissected.payload == 0 || packet.original > 500);
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }
}

#[test]
fn stamps_never_go_back() {
    let (_, file) = capture(MIXED, &["bottleneck:in", "return"], IpVersion::V4);
    let found = packets(&file, 2);
    assert!(found.is_sorted_by_key(|packet| packet.ns));
    assert!(found.last().expect("packets").ns < 6_000_000_000);
}

#[test]
fn a_capture_does_not_change_the_run() {
    let at = ["bottleneck:in", "bottleneck:out", "return:in", "return:out"];
    let (captured, _) = capture(MIXED, &at, IpVersion::V4);
    // Without a capture links may be late, which takes fewer events.
    let events = captured.events;
    let free = RunResult {
        events,
        ..run(MIXED)
    };
    // Undefined values are NaN, which equals nothing; as text all digits that matter are compared.
    let same = format!("{captured:?}") == format!("{free:?}");
    assert!(same, "the results differ");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let twice = [(); 2].map(|()| capture(MIXED, &["bottleneck"], IpVersion::V4).1);
    assert_eq!(twice[0], twice[1]);
}

/// A transfer of two segments over 1 Mbit/s, its acknowledgements over the same.
const SMALL: &str = r#"
duration = "1 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[bottleneck.return]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "one"
kind = "transfer"
size = "2920 B"
access_rate = "10 Mbit/s"
tcp = { delayed_ack = false, receive_window = "100 kB" }
"#;

#[test]
fn arrivals_are_stamped_on_arrival_and_departures_at_the_end_of_their_transmission() {
    let both = ["bottleneck:in", "bottleneck:out"];
    let (_, file) = capture(SMALL, &both, IpVersion::V4);
    let stamps: Vec<(u32, u64)> = packets(&file, 2)
        .iter()
        .map(|packet| (packet.interface, packet.ns))
        .collect();
    // The SYN has 320 bit; the first data follows 20 ms there, 320 us and 20 ms back.
    let syn = 32_000;
    let data = syn + 320_000 + 20_000_000 + 32_000 + 320_000 + 20_000_000 + 1_200_000;
    let expected = [
        (0, syn),
        (1, syn + 320_000),
        (0, data),
        (0, data + 1_200_000),
        (1, data + 12_000_000),
        (1, data + 24_000_000),
        // The acknowledgement of the peer's FIN, which came as the data did.
        (0, data + 24_000_000 + 41_552_000),
        (1, data + 24_000_000 + 41_552_000 + 320_000),
    ];
    assert_eq!(stamps, expected);
}

#[test]
fn a_connection_reads_as_its_endpoints_mean_it() {
    let (_, file) = capture(SMALL, &["bottleneck:in", "return:out"], IpVersion::V4);
    let found = packets(&file, 2);
    let tcp: Vec<Packet<'_>> = found.iter().map(dissect).collect();
    let flags: Vec<u8> = tcp.iter().map(|packet| packet.transport[13]).collect();
    // The last data has FIN, its acknowledgement too.
    assert_eq!(flags, [0x02, 0x12, 0x10, 0x11, 0x10, 0x11, 0x10]);
    let seq = |i: usize| be32(&tcp[i].transport[4..]);
    let ack = |i: usize| be32(&tcp[i].transport[8..]);
    let (client, server) = (seq(0), seq(1));
    assert_eq!(ack(0), 0);
    assert_eq!(ack(1), client.wrapping_add(1));
    for (i, bytes) in [(2, 0), (3, 1460)] {
        assert_eq!(seq(i), client.wrapping_add(1 + bytes));
        assert_eq!(ack(i), server.wrapping_add(1));
        assert_eq!(tcp[i].payload, 1460);
    }
    for (i, bytes) in [(4, 1460), (5, 2921)] {
        assert_eq!(seq(i), server.wrapping_add(1));
        assert_eq!(ack(i), client.wrapping_add(1 + bytes));
        assert_eq!(tcp[i].payload, 0);
    }
    assert_eq!(seq(6), client.wrapping_add(1 + 2921));
    assert_eq!(ack(6), server.wrapping_add(2));
    assert_eq!(tcp[6].payload, 0);
    // MSS 1460, selective acknowledgements, windows in units of 2.
    let options = [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 1];
    assert_eq!(tcp[0].transport[20..], options);
    assert_eq!(tcp[1].transport[20..], options);
    let windows: Vec<u16> = tcp
        .iter()
        .map(|packet| be16(&packet.transport[14..]))
        .collect();
    assert_eq!(windows, [65535, 65535, 50000, 50000, 50000, 50000, 50000]);
    assert_eq!(tcp[0].source, [10, 0, 0, 0]);
    assert_eq!(tcp[1].source, [10, 128, 0, 0]);
    assert!(
        found[0].data[18..20] < found[2].data[18..20],
        "identification"
    );
}

/// Go-back-N after timeouts, so that data arrives twice, and reports of that.
const TWICE: &str = r#"
duration = "20 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "5 packets" }
[bottleneck.return]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 12
tcp = { preset = "ns2-sack", dsack = true }
"#;

#[test]
fn a_block_below_the_acknowledgement_reports_data_that_arrived_twice() {
    // RFC 2883, section 4.
    let (_, file) = capture(TWICE, &["bottleneck:out", "return:in"], IpVersion::V4);
    let mut arrived = Vec::new();
    let mut reports = 0;
    for captured in &packets(&file, 2) {
        let packet = dissect(captured);
        let flow = be16(&packet.source[2..]);
        if captured.interface == 0 {
            arrived.push((flow, be32(&packet.transport[4..])));
            continue;
        }
        let [1, 1, 5, length, left @ ..] = &packet.transport[20..] else {
            continue;
        };
        assert_eq!(usize::from(*length) - 2, left.len());
        let (left, right) = (be32(left), be32(&left[4..]));
        let ack = be32(&packet.transport[8..]);
        if (ack.wrapping_sub(right) as i32) < 0 {
            continue;
        }
        let times = arrived.iter().filter(|&&data| data == (flow, left));
        assert!(times.count() >= 2, "{left} of flow {flow} arrived once");
        assert_eq!(right.wrapping_sub(left), 1460);
        reports += 1;
    }
    assert!(reports > 10, "{reports}");
}

#[test]
fn marks_show_at_the_end_of_the_link_and_echoes_on_the_way_back() {
    let (_, file) = capture(
        MIXED,
        &["bottleneck:in", "bottleneck:out", "return"],
        IpVersion::V4,
    );
    let found = packets(&file, 3);
    let with = |interface: u32, test: &dyn Fn(&Packet<'_>) -> bool| {
        let here = found.iter().filter(|packet| packet.interface == interface);
        here.filter(|packet| test(&dissect(packet))).count()
    };
    let tcp_flag = |bit: u8| move |p: &Packet<'_>| p.protocol == 6 && p.transport[13] & bit != 0;
    assert_eq!(
        with(0, &|packet| packet.ecn == 3),
        0,
        "the first queue marks"
    );
    assert!(with(0, &|packet| packet.ecn == 2) > 100, "ECT(0)");
    assert!(with(1, &|packet| packet.ecn == 3) > 10, "CE");
    assert!(with(2, &tcp_flag(0x40)) > 10, "ECE");
    assert!(with(0, &tcp_flag(0x80)) > 5, "CWR");
    // UDP and two of the groups do not take part.
    let udp = |packet: &Packet<'_>| packet.protocol == 17 && packet.payload == 573 - 28;
    assert!(with(1, &udp) > 100);
    assert_eq!(with(1, &|packet| udp(packet) && packet.ecn != 0), 0);
}

#[test]
fn selective_acknowledgements_name_what_lies_above_the_acknowledgement() {
    let (_, file) = capture(MIXED, &["return"], IpVersion::V4);
    let mut blocks = 0;
    for packet in &packets(&file, 1) {
        let tcp = dissect(packet).transport.to_vec();
        let options = &tcp[20..];
        if options.len() >= 12 && options[..3] == [1, 1, 5] {
            assert_eq!(usize::from(options[3]), options.len() - 2);
            let mut above = be32(&tcp[8..]);
            let mut edges: Vec<(u32, u32)> = options[4..]
                .chunks(8)
                .map(|block| (be32(block), be32(&block[4..])))
                .collect();
            edges.sort_by_key(|(left, _)| left.wrapping_sub(above));
            for (left, right) in edges {
                assert!((left.wrapping_sub(above) as i32) > 0);
                assert!((right.wrapping_sub(left) as i32) > 0);
                above = right;
                blocks += 1;
            }
        }
    }
    assert!(blocks > 20, "{blocks}");
}

#[test]
fn the_headers_of_any_point_are_those_of_the_same_packets() {
    let (_, file) = capture(SMALL, &["bottleneck:in", "bottleneck:out"], IpVersion::V4);
    let found = packets(&file, 2);
    let at = |interface: u32| -> Vec<&[u8]> {
        let here = found.iter().filter(|packet| packet.interface == interface);
        here.map(|packet| &*packet.data).collect()
    };
    assert_eq!(at(0), at(1));
}

#[test]
fn a_point_is_a_link_and_an_end() {
    let parse = |text: &str| text.parse::<Point>();
    let point = |link: &str, end| Point {
        link: link.to_owned(),
        end,
    };
    assert_eq!(parse("return"), Ok(point("return", End::Out)));
    assert_eq!(parse("hop1.return:in"), Ok(point("hop1.return", End::In)));
    assert_eq!(parse("hop1:out"), Ok(point("hop1", End::Out)));
    let message = parse("hop1:middle").expect_err("no such end");
    assert!(
        message.contains("no end \"middle\"; accepted: hop1:in"),
        "{message}"
    );
}

#[test]
fn a_link_that_does_not_exist_is_refused_with_those_that_do() {
    let refused = try_capture(SMALL, &["hop1"], IpVersion::V4);
    let Err(RunError::Capture(CaptureError::Impossible(message))) = refused else {
        panic!("not refused");
    };
    assert!(
        message.starts_with("no link is called \"hop1\"; this experiment has: bottleneck, return")
    );
}

#[test]
fn segments_beyond_an_ip_packet_are_refused() {
    let text = SMALL.replace("delayed_ack = false", "mss = \"65436 B\"");
    let refused = try_capture(&text, &["bottleneck"], IpVersion::V4);
    let Err(RunError::Capture(CaptureError::Impossible(message))) = refused else {
        panic!("not refused");
    };
    assert!(
        message.contains("traffic.one.tcp.mss = \"65436 B\""),
        "{message}"
    );
    assert!(
        message.ends_with("accepted: up to \"65435 B\""),
        "{message}"
    );
}

/// A disk with room for some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_with_the_file_it_struck() {
    for room in [10, 5000] {
        let files: Vec<(Vec<Point>, Box<dyn Write + Send>)> = vec![
            (points(&["bottleneck:in"]), Box::new(io::sink())),
            (points(&["bottleneck"]), Box::new(Full(room))),
        ];
        let capture = Capture {
            files,
            ..Capture::default()
        };
        let failed = redtail_sim::run(
            &scenario(MIXED, 0),
            RunOptions {
                capture: Some(capture),
                ..RunOptions::default()
            },
        );
        let Err(RunError::Capture(CaptureError::Io { file: 1, error })) = failed else {
            panic!("not reported");
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

/// A queue that drops and marks on arrival, and one that does so when packets leave it.
#[test]
fn comments_tell_of_each_packet_once_what_became_of_it() {
    let codel = MIXED.replace("kind = \"red\", limit = \"20 packets\", min_th = \"4 packets\", max_th = \"12 packets\", max_p = 0.1, w_q = 0.02", "kind = \"codel\", target = \"2 ms\", limit = \"20 packets\"");
    let cases = [
        (MIXED, "red", "average", false),
        (&codel, "codel", "in the queue", true),
    ];
    for (text, kind, says, waited) in cases {
        let points = ["bottleneck:in", "bottleneck:out"];
        let (_, file) = capture(text, &points, IpVersion::V4);
        let packets = packets(&file, 2);
        assert!(packets.windows(2).all(|pair| pair[0].ns <= pair[1].ns));
        let of = |interface: u32| packets.iter().filter(move |it| it.interface == interface);
        let told = |interface: u32, what: &str| {
            let it = of(interface).flat_map(|it| &it.comments);
            it.filter(|text| text.starts_with(what)).count()
        };
        let dropped = format!("dropped at bottleneck: {kind}, ");
        let marked = format!("marked CE at bottleneck: {kind}");
        let drops = told(0, &dropped);
        let left = of(0).count() - of(1).count() - drops;
        assert!(
            drops > 10 && left <= 21,
            "{kind}: {drops} dropped, {left} left"
        );
        assert_eq!(told(1, "dropped"), 0);
        // Those behind the last packet that was sent are not counted yet.
        let counted: u64 = of(1).map(|it| it.dropped).sum();
        assert!(counted <= drops as u64 && counted + 10 > drops as u64);
        // Marks are seen where packets have left, and told at both ends.
        let ce = of(1).filter(|it| dissect(it).ecn == 3);
        let ce = ce.map(|it| it.comments.len()).collect::<Vec<_>>();
        assert!(ce.len() > 10 && ce.iter().all(|&comments| comments == 1));
        assert_eq!(told(1, &marked), ce.len());
        assert!(told(0, &marked) >= ce.len());
        let comment = of(0)
            .flat_map(|it| &it.comments)
            .find(|it| it.starts_with(&dropped));
        let comment = comment.expect("there are drops");
        assert!(comment.contains(says), "{comment}");
        let waits = of(0)
            .flat_map(|it| &it.comments)
            .any(|it| it.contains("in the queue"));
        assert_eq!(waits, waited, "{kind}");
    }
}

#[test]
fn what_the_wire_loses_is_told_where_it_was_sent() {
    let text = MIXED.replacen(
        "delay = \"10 ms\"",
        "delay = \"10 ms\"\nwire.loss = 0.05",
        1,
    );
    let (_, file) = capture(&text, &["bottleneck:out"], IpVersion::V4);
    let packets = packets(&file, 1);
    let lost = packets.iter().flat_map(|it| &it.comments);
    let lost = lost.filter(|text| *text == "lost on the wire after bottleneck (wire.loss)");
    // 5 % of about 1000; the chance of fewer than 20 is below 10^-6.
    assert!(lost.count() > 20);
}
