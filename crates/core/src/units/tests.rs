use proptest::prelude::*;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, F64Deserializer, I64Deserializer, StrDeserializer};

use super::*;

fn refusal<Q: FromStr<Err = UnitError> + fmt::Debug>(text: &str) -> String {
    text.parse::<Q>().unwrap_err().to_string()
}

#[test]
fn every_accepted_spelling_is_read() {
    for text in [
        "10 Mbit/s",
        "10Mbps",
        "10_000 kbit/s",
        "1e4 Kbit/s",
        "0.01 Gbit/s",
        "1e7 bit/s",
        " 10000 Kbps ",
        "10mbit",
        "10 Mbit",
        "10Mbit/s",
        "10 mbit/s",
        "10000kbit",
        "0.01gbit",
        "1e7bit",
        "10 Mbits/sec",
    ] {
        assert_eq!(text.parse(), Ok(Rate::from_bps(10_000_000)), "{text}");
    }
    assert_eq!("1gbit".parse(), Ok(Rate::from_bps(1_000_000_000)));
    assert_eq!(
        "1tbit".parse::<Rate>().unwrap(),
        "1000 Gbit/s".parse().unwrap()
    );
    assert_eq!("2 mibit".parse(), Ok(Rate::from_bps(2 << 20)));
    for text in [
        "90 s",
        "90 sec",
        "90secs",
        "1.5 minutes",
        "90000msecs",
        "90.0 seconds",
        "1.5 min",
        "0.025 h",
        "9e4 ms",
        "90_000ms",
        "9e+13 ps",
        "9e10 ns",
    ] {
        assert_eq!(text.parse(), Ok(Span::from_s(90)), "{text}");
    }
    for text in ["7 us", "7 \u{b5}s", "7 \u{3bc}s", "0.007 ms", "7usec"] {
        assert_eq!(text.parse(), Ok(Span::from_us(7)), "{text}");
    }
    for text in ["1 second", "1 s"] {
        assert_eq!(text.parse(), Ok(Time::from_ps(PS_PER_S)), "{text}");
    }
    for text in [
        "2048 B",
        "2048 byte",
        "2048 bytes",
        "2 KiB",
        "2.048 kB",
        "2.048 KB",
        "0.001953125 MiB",
    ] {
        assert_eq!(text.parse(), Ok(Bytes::new(2048)), "{text}");
    }
    assert_eq!("1 GiB".parse(), Ok(Bytes::new(1 << 30)));
    assert_eq!("1.5 GB".parse(), Ok(Bytes::new(1_500_000_000)));
    for text in ["300 packets", "300 packet", "300 pkt", "300pkts", "300p"] {
        assert_eq!(text.parse(), Ok(QueueSize::Packets(300)), "{text}");
    }
    assert_eq!("64 kB".parse(), Ok(QueueSize::Bytes(64_000)));
    for text in ["170 Hz", "0.17 kHz", "170_000 mHz"] {
        assert_eq!(text.parse(), Ok(Sampling::hz(170)), "{text}");
    }
    let interval = Sampling::Interval(Span::from_ms(10));
    assert_eq!("10 ms".parse(), Ok(interval));
}

#[test]
fn a_frequency_is_the_inverse_of_its_interval() {
    let interval = |text: &str| text.parse::<Sampling>().unwrap().interval();
    assert_eq!(interval("1 kHz"), Some(Span::from_ms(1)));
    assert_eq!(interval("0.5 Hz"), Some(Span::from_s(2)));
    assert_eq!(interval("170 Hz"), Some(Span::from_ps(5_882_352_941)));
    assert_eq!(interval("16 ms"), Some(Span::from_ms(16)));
    assert_eq!(interval("0 Hz"), None);
    assert_eq!(interval("0 s"), None);
    for text in ["170 Hz", "2500 Hz", "500 mHz", "16 ms", "0 Hz", "0 s"] {
        assert_eq!(text.parse::<Sampling>().unwrap().to_string(), text);
    }
    assert_eq!(
        refusal::<Sampling>("10 Mbit/s"),
        "\"10 Mbit/s\" is a rate; a frequency or a time is wanted, for example \"170 Hz\" or \"10 ms\""
    );
}

#[test]
fn print_is_the_shortest_exact_text_not_below_one() {
    for text in [
        "0 s",
        "1 ps",
        "100 ms",
        "1.5 s",
        "200 s",
        "1200 us",
        "121 ns",
        "36000 s",
        "0.000001000001 s",
        "1 s",
    ] {
        let expected = match text {
            "0.000001000001 s" => "1000001 ps",
            "1200 us" => "1.2 ms",
            other => other,
        };
        assert_eq!(text.parse::<Span>().unwrap().to_string(), expected);
    }
    for text in [
        "0 bit/s",
        "1 bit/s",
        "250 kbit/s",
        "1.5 Mbit/s",
        "10 Mbit/s",
        "2.5 Gbit/s",
        "100 Gbit/s",
    ] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    for text in ["0 B", "573 B", "1500 B", "292 kB", "65536 B", "1.5 GB"] {
        assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
    }
    for text in ["0 packets", "1 packet", "300 packets", "1500 B", "64 kB"] {
        assert_eq!(text.parse::<QueueSize>().unwrap().to_string(), text);
    }
    assert_eq!(Time::MAX.to_string(), "18446744073709551615 ps");
    assert_eq!(format!("{:>8}", Span::from_ms(5)), "    5 ms");
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(value: u64, shift in 0_u32..64) {
        let value = value >> shift;
        prop_assert_eq!(Time::from_ps(value).to_string().parse(), Ok(Time::from_ps(value)));
        prop_assert_eq!(Span::from_ps(value).to_string().parse(), Ok(Span::from_ps(value)));
        prop_assert_eq!(Rate::from_bps(value).to_string().parse(), Ok(Rate::from_bps(value)));
        prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
        for size in [QueueSize::Packets(value), QueueSize::Bytes(value)] {
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+_.eE0-9 ]{0,40}[a-zA-Z/\u{b5}]{0,6}") {
        let _ = text.parse::<Span>();
        let _ = text.parse::<QueueSize>();
    }

    #[test]
    fn transmission_time_is_the_nearest_picosecond(bytes in 0_u64..1 << 40, bps in 1_u64..1 << 40) {
        let (bytes, exact) = (Bytes::new(bytes), u128::from(bytes) * 8 * u128::from(PS_PER_S));
        let ps = u128::from(Rate::from_bps(bps).tx_time(bytes).as_ps());
        prop_assume!(ps < u128::from(u64::MAX));
        let (twice, bps) = (2 * ps * u128::from(bps), u128::from(bps));
        prop_assert!(twice <= 2 * exact + bps && 2 * exact < twice + bps);
    }
}

#[test]
fn wrong_units_are_refused_by_name() {
    assert_eq!(
        refusal::<Rate>("10 Mbyte/s"),
        r#""10 Mbyte/s": "Mbyte/s" is not a unit of rate; accepted: bit/s, kbit/s, Mbit/s, Gbit/s"#
    );
    assert_eq!(
        refusal::<Rate>("10 MBIT/S"),
        r#""10 MBIT/S": "MBIT/S" is not a unit of rate (did you mean "Mbit/s"?); accepted: bit/s, kbit/s, Mbit/s, Gbit/s"#
    );
    assert_eq!(
        refusal::<Rate>("10 MBps"),
        r#""10 MBps": "MBps" is not a unit of rate (bytes? a byte per second is 8 bit/s); accepted: bit/s, kbit/s, Mbit/s, Gbit/s"#
    );
    assert_eq!(
        refusal::<Rate>("10 Mb"),
        r#""10 Mb": "Mb" is not a unit of rate (bits or bytes?); accepted: bit/s, kbit/s, Mbit/s, Gbit/s"#
    );
    assert_eq!(
        refusal::<Rate>("10 Mb/s"),
        r#""10 Mb/s": "Mb/s" is not a unit of rate (bits or bytes?); accepted: bit/s, kbit/s, Mbit/s, Gbit/s"#
    );
    assert_eq!(
        refusal::<Span>("10 days"),
        r#""10 days": "days" is not a unit of time; accepted: ps, ns, us, ms, s"#
    );
    assert_eq!(
        refusal::<Bytes>("573 octets"),
        r#""573 octets": "octets" is not a unit of bytes; accepted: B, kB, MB, GB"#
    );
    assert_eq!(
        refusal::<QueueSize>("300 frames"),
        r#""300 frames": "frames" is not a unit of queue size; accepted: packets, B, kB, MB, GB, ps, ns, us, ms, s"#
    );
}

#[test]
fn what_tc_means_differently_is_refused() {
    assert_eq!(
        refusal::<Rate>("50mbps"),
        r#""50mbps": "mbps" is refused, because 1 mbps is 8 Mbit/s in tc and 1 Mbit/s elsewhere; accepted: bit/s, kbit/s, Mbit/s or Gbit/s"#
    );
    for text in ["9600 bps", "64 kbps", "1gbps", "1tbps"] {
        assert!(refusal::<Rate>(text).contains("in tc"), "{text}");
    }
    assert_eq!(
        refusal::<Bytes>("64kb"),
        r#""64kb": "kb" is refused, because 1 kb is 1024 B in tc and 1000 bits or 1000 B elsewhere; accepted: B, kB (1000 B) or KiB (1024 B)"#
    );
    assert_eq!(
        refusal::<QueueSize>("64kbit"),
        r#""64kbit": "kbit" is refused, because 1 kbit is 128 B in tc and 125 B elsewhere; accepted: B, kB (1000 B) or KiB (1024 B)"#
    );
    for text in ["1514b", "32Kb", "1m", "64k", "1mb", "10mbit", "1gb"] {
        assert!(refusal::<Bytes>(text).contains("in tc"), "{text}");
        assert!(refusal::<QueueSize>(text).contains("in tc"), "{text}");
    }
}

/// The pattern of the schema is made of the names of units: each of them, and no other, is read.
#[test]
fn no_spelling_is_both_read_and_refused() {
    for dimension in text::DIMENSIONS {
        let names: Vec<_> = dimension.units().map(|unit| unit.0).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
        }
        for unit in dimension.ambiguous {
            assert!(!names.contains(&unit.name), "{}", unit.name);
        }
    }
}

#[test]
fn another_dimension_is_told_apart_from_an_unknown_unit() {
    assert_eq!(
        refusal::<Rate>("100 ms"),
        r#""100 ms" is a time; a rate is wanted, for example "10 Mbit/s""#
    );
    assert_eq!(
        refusal::<Span>("300 packets"),
        r#""300 packets" is a number of packets; a time is wanted, for example "100 ms""#
    );
    assert_eq!(
        refusal::<Bytes>("3 packets"),
        r#""3 packets" is a number of packets; a number of bytes is wanted, for example "1500 B""#
    );
    assert_eq!(
        refusal::<QueueSize>("10 Mbit/s"),
        r#""10 Mbit/s" is a rate; a queue size is wanted, for example "300 packets", "64 kB" or "20 ms""#
    );
}

#[test]
fn numbers_without_a_unit_are_refused() {
    let expected = r#"10: a rate carries its unit, for example "10 Mbit/s""#;
    let from_i64: I64Deserializer<ValueError> = 10_i64.into_deserializer();
    assert_eq!(
        Rate::deserialize(from_i64).unwrap_err().to_string(),
        expected
    );
    let from_f64: F64Deserializer<ValueError> = 0.5.into_deserializer();
    assert_eq!(
        Span::deserialize(from_f64).unwrap_err().to_string(),
        r#"0.5: a time carries its unit, for example "100 ms""#
    );
    assert_eq!(refusal::<Rate>("10"), format!("\"10\"{}", &expected[2..]));
    assert_eq!(
        refusal::<QueueSize>("300"),
        r#""300": a queue size carries its unit, for example "300 packets", "64 kB" or "20 ms""#
    );
}

#[test]
fn values_that_cannot_be_held_exactly_are_refused() {
    assert_eq!(
        refusal::<Rate>("-10 Mbit/s"),
        r#""-10 Mbit/s": a rate cannot be negative; accepted: 0 or more, for example "10 Mbit/s""#
    );
    assert_eq!(
        refusal::<Bytes>("0.5 B"),
        r#""0.5 B" is not a whole number of bytes"#
    );
    assert_eq!(
        refusal::<QueueSize>("0.5 pkts"),
        r#""0.5 pkts" is not a whole number of packets"#
    );
    assert_eq!(
        refusal::<Rate>("1e-999999999999 bit/s"),
        r#""1e-999999999999 bit/s" is not a whole number of bit/s"#
    );
    assert_eq!(
        refusal::<Span>("0.1234567890123 s"),
        r#""0.1234567890123 s" is not a whole number of picoseconds"#
    );
    assert_eq!(
        refusal::<Span>("6000 h"),
        r#""6000 h" is too large for a time"#
    );
    assert_eq!(
        refusal::<Rate>("1e99999999999999999999 bit/s"),
        r#""1e99999999999999999999 bit/s" is too large for a rate"#
    );
}

#[test]
fn what_is_no_number_is_refused_with_an_example() {
    for text in [
        "",
        "fast",
        "Mbit/s",
        ".5 Mbit/s",
        "5. Mbit/s",
        "_5 Mbit/s",
        "5_ Mbit/s",
        "--5 Mbit/s",
        "+5 Mbit/s",
    ] {
        assert_eq!(
            refusal::<Rate>(text),
            format!(
                r#"{text:?} is not a rate: a number and a unit are wanted, for example "10 Mbit/s""#
            )
        );
    }
}

#[test]
fn exact_beyond_the_precision_of_floats() {
    assert_eq!("18446744.073709551615 s".parse(), Ok(Span::MAX));
    assert_eq!(
        "0.000000000931322574615478515625 GiB".parse(),
        Ok(Bytes::new(1))
    );
    assert_eq!(
        "1.000000000000000000000000000000000000000000000000 s".parse(),
        Ok(Span::from_s(1))
    );
    assert_eq!("-0 s".parse(), Ok(Span::ZERO));
    assert_eq!("0e999 s".parse(), Ok(Span::ZERO));
}

#[test]
fn transmission_time_rounds_halves_up() {
    assert_eq!(
        Rate::from_bps(10_000_000).tx_time(Bytes::new(1500)),
        Span::from_us(1200)
    );
    assert_eq!(
        Rate::from_bps(3_000_000_000_000).tx_time(Bytes::new(1)),
        Span::from_ps(3)
    ); // 2.67
    assert_eq!(
        Rate::from_bps(16_000_000_000_000).tx_time(Bytes::new(1)),
        Span::from_ps(1)
    ); // 0.5
    assert_eq!(
        Rate::from_bps(16_000_000_000_001).tx_time(Bytes::new(1)),
        Span::ZERO
    );
    // Past what 64 bits hold on the way, and past what a span holds.
    assert_eq!(
        Rate::from_bps(8_000_000_000).tx_time(Bytes::new(1 << 40)),
        Span::from_ns(1 << 40)
    );
    assert_eq!(Rate::from_bps(1).tx_time(Bytes::new(1 << 40)), Span::MAX);
}

#[test]
fn arithmetic_is_whole_and_sums_never_begin_at_zero_again() {
    let start = Time::from_ps(10);
    let later = start + Span::from_ps(5);
    assert_eq!(later - start, Span::from_ps(5));
    assert_eq!(start.saturating_since(later), Span::ZERO);
    assert_eq!(Span::from_ps(7) / 2 * 3, Span::from_ps(9));
    assert_eq!(Span::MAX.checked_mul(2), None);
    // What is due after the end of time is never due, and not at once.
    assert_eq!(Time::from_ps(7) + Span::MAX, Time::MAX);
    assert_eq!(Span::MAX + Span::from_ps(1), Span::MAX);
    assert_eq!(Span::MAX * 3, Span::MAX);
    assert_eq!([Span::MAX, Span::MAX].into_iter().sum::<Span>(), Span::MAX);
    assert_eq!(Bytes::new(u64::MAX) + Bytes::new(2), Bytes::new(u64::MAX));
    assert_eq!(Bytes::new(u64::MAX).bits(), u64::MAX);
    assert_eq!(Span::from_ms(1).saturating_sub(Span::from_s(1)), Span::ZERO);
    assert_eq!(Span::from_secs_f64(1e-12 * 2.5), Span::from_ps(3));
    assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
    assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    assert_eq!(Time::from_secs_f64(1.5).as_secs_f64(), 1.5);
    assert_eq!(Rate::from_bps(8_000).bytes_in(Span::from_ms(1500)), 1500.0);
    assert_eq!(
        [Bytes::new(1), Bytes::new(2)]
            .into_iter()
            .sum::<Bytes>()
            .bits(),
        24
    );
}

#[test]
fn serde_goes_through_the_text_form() {
    let text: StrDeserializer<ValueError> = "20 Mbit/s".into_deserializer();
    assert_eq!(Rate::deserialize(text).unwrap(), Rate::from_bps(20_000_000));
}

#[test]
fn the_schema_is_a_string_with_pattern_and_unit() {
    let schema = schemars::schema_for!(Rate);
    assert_eq!(schema.get("type").unwrap(), "string");
    assert_eq!(schema.get("x-unit").unwrap(), "rate");
    assert_eq!(
        schema.get("description").unwrap(),
        r#"a rate with its unit, for example "10 Mbit/s""#
    );
    assert_eq!(
        schema.get("pattern").unwrap(),
        r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?\s*(bit/s|kbit/s|Mbit/s|Gbit/s|Kbit/s|mbit/s|gbit/s|tbit/s|Tbit/s|bit|kbit|Kbit|mbit|Mbit|gbit|Gbit|tbit|Tbit|kibit|Kibit|mibit|Mibit|gibit|Gibit|bits/sec|Kbits/sec|Mbits/sec|Gbits/sec|Kbps|Mbps|Gbps|Tbps)\s*$"
    );
}

#[test]
fn the_nearest_whole_number_is_that_of_round() {
    let edges = [
        0.0,
        0.49999999999999994,
        0.5,
        1.5,
        2.5,
        4503599627370495.5,
        9007199254740993.0,
        18446744073709549568.0,
        18446744073709551616.0,
        36893488147419103232.0,
        f64::INFINITY,
    ];
    let others = (0..2000).map(|i| 1.37_f64.powi(i % 150) * f64::from(i) / 16.0);
    for number in edges.into_iter().chain(others) {
        for number in [number, -number] {
            assert_eq!(nearest_whole(number), number.round() as u64, "{number}");
        }
    }
    assert_eq!(nearest_whole(f64::NAN), 0);
}

#[test]
fn a_quantity_of_any_dimension_has_its_si_value() {
    for (text, wanted) in [
        ("1280 ms", (1.28, "s")),
        ("1.28 s", (1.28, "s")),
        ("20 \u{b5}s", (20e-6, "s")),
        ("2 min", (120.0, "s")),
        ("1 Gbit/s", (1e9, "bit/s")),
        ("100 Mbps", (1e8, "bit/s")),
        ("64 KiB", (65_536.0, "B")),
        ("1 packet", (1.0, "packets")),
        ("300 packets", (300.0, "packets")),
        ("0.5 Hz", (0.5, "Hz")),
        ("90 %", (0.9, "1")),
        ("12.5%", (0.125, "1")),
    ] {
        assert_eq!(text::si_value(text), Ok(wanted), "{text}");
    }
    for text in [
        "90",
        "0.9",
        "1 kb/s",
        "-1 s",
        "ms",
        "20 ms or 5 ms",
        "CoDel",
    ] {
        assert!(text::si_value(text).is_err(), "{text}");
    }
}
