use libm::{erfc, exp, log, pow};
use proptest::prelude::*;
use redtail_core::{Bytes, Span, Stream};

use super::*;

/// Draws for each law.
const N: usize = 100_000;

fn dist<T: Drawn>(text: &str) -> Dist<T> {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn draws<T: Drawn>(dist: &Dist<T>) -> Vec<f64> {
    let mut stream = Stream::named(1, 0, "dist");
    (0..N).map(|_| dist.draw(&mut stream).number()).collect()
}

fn normal_cdf(z: f64) -> f64 {
    1.0 - 0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// A law as written, and its distribution function, written down anew.
type Case = (&'static str, fn(f64) -> f64);

const CONTINUOUS: &[Case] = &[
    ("exponential mean 50", |x| 1.0 - exp(-x / 50.0)),
    ("exponential mean 50 max 80", |x| {
        (1.0 - exp(-x / 50.0)) / (1.0 - exp(-80.0 / 50.0))
    }),
    // mean 12, shape 1.2: minimum 12 * 0.2 / 1.2 = 2
    ("pareto mean 12 shape 1.2", |x| 1.0 - pow(2.0 / x, 1.2)),
    ("pareto min 2.3 shape 1.3 max 900", |x| {
        (1.0 - pow(2.3 / x, 1.3)) / (1.0 - pow(2.3 / 900.0, 1.3))
    }),
    ("pareto min 1 shape 0.9", |x| 1.0 - pow(x, -0.9)),
    // mean 12, shape 1.5: scale 12 * 0.5 = 6
    ("lomax mean 12 shape 1.5", |x| {
        1.0 - pow(6.0 / (6.0 + x), 1.5)
    }),
    ("lomax scale 6 shape 1.5 max 40", |x| {
        (1.0 - pow(6.0 / (6.0 + x), 1.5)) / (1.0 - pow(6.0 / 46.0, 1.5))
    }),
    ("uniform 16..240", |x| (x - 16.0) / 224.0),
    ("uniform 16..240 max 128", |x| (x - 16.0) / 112.0),
    ("lognormal median 2 sigma 1.2", |x| {
        normal_cdf((log(x) - log(2.0)) / 1.2)
    }),
    ("lognormal median 2 sigma 1.2 max 10", |x| {
        normal_cdf(log(x / 2.0) / 1.2) / normal_cdf(log(5.0) / 1.2)
    }),
    ("weibull scale 3 shape 0.5", |x| {
        1.0 - exp(-pow(x / 3.0, 0.5))
    }),
    ("weibull scale 3 shape 2 max 4", |x| {
        (1.0 - exp(-x * x / 9.0)) / (1.0 - exp(-16.0 / 9.0))
    }),
    ("normal mean 10 std 2", |x| {
        let below = normal_cdf(-5.0);
        (normal_cdf((x - 10.0) / 2.0) - below) / (1.0 - below)
    }),
    ("normal mean 1 std 2 max 3", |x| {
        let below = normal_cdf(-0.5);
        (normal_cdf((x - 1.0) / 2.0) - below) / (normal_cdf(1.0) - below)
    }),
    ("gumbel location 55 scale 6", |x| {
        exp(-exp(-(x - 55.0) / 6.0))
    }),
    ("gumbel location 5 scale 6 max 30", |x| {
        let of = |x: f64| exp(-exp(-(x - 5.0) / 6.0));
        (of(x) - of(0.0)) / (of(30.0) - of(0.0))
    }),
    ("cdf 0 100, 0.5 2112, 1 1600000", |x| {
        if x <= 2112.0 {
            0.5 * (x - 100.0) / 2012.0
        } else {
            0.5 + 0.5 * (x - 2112.0) / 1_597_888.0
        }
    }),
];

/// The largest distance between the draws and a distribution function, which may have jumps where
/// draws are equal.
fn distance(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let mut worst = 0.0_f64;
    for (i, &x) in draws.iter().enumerate() {
        let is_last = draws.get(i + 1).is_none_or(|&next| next > x);
        let is_first = i == 0 || draws[i - 1] < x;
        if is_last {
            worst = worst.max(((i + 1) as f64 / n - cdf(x)).abs());
        }
        if is_first && is_last {
            worst = worst.max((i as f64 / n - cdf(x)).abs());
        }
    }
    worst
}

/// What the Kolmogorov-Smirnov distance of N draws exceeds with probability below 1e-6 if the law
/// is right: sqrt(ln(2/1e-6)/(2 N)) (Massart 1990). The seed is fixed.
fn critical() -> f64 {
    (log(2.0 / 1e-6) / (2.0 * N as f64)).sqrt()
}

#[test]
fn draws_follow_the_distribution_function_of_their_law() {
    for (text, cdf) in CONTINUOUS {
        let found = distance(draws(&dist::<f64>(text)), cdf);
        assert!(found < critical(), "{text}: {found} against {}", critical());
    }
}

#[test]
fn spans_and_bytes_follow_the_same_law_as_numbers() {
    // Rounding to a byte moves a value by 0.5 B of 1 MB, far below the critical distance.
    let spans = draws(&dist::<Span>("exponential mean 50 ms"));
    assert!(distance(spans, |x| 1.0 - exp(-x / 0.05)) < critical());
    let bytes = draws(&dist::<Bytes>("pareto min 1 MB shape 1.3"));
    assert!(distance(bytes, |x| 1.0 - pow(1e6 / x, 1.3)) < critical());
}

#[test]
fn geometric_draws_are_whole_and_follow_their_law() {
    let q = 1.0 - 1.0 / 3.0;
    let all = draws(&dist::<f64>("geometric mean 3"));
    assert!(all.iter().all(|x| *x >= 1.0 && x.fract() == 0.0));
    assert!(distance(all, |n| 1.0 - pow(q, n)) < critical());
    let cut = draws(&dist::<f64>("geometric mean 3 max 4"));
    assert!(cut.iter().all(|x| *x <= 4.0));
    let within = 1.0 - pow(q, 4.0);
    assert!(distance(cut, |n| (1.0 - pow(q, n)) / within) < critical());
    assert!(
        draws(&dist::<f64>("geometric mean 1"))
            .iter()
            .all(|&x| x == 1.0)
    );
}

#[test]
fn the_mean_of_draws_is_the_mean_said_where_the_variance_is_finite() {
    let finite = [
        "4",
        "exponential mean 50",
        "exponential mean 50 max 80",
        "pareto mean 12 shape 3.5",
        "pareto min 2.3 shape 1.3 max 900",
        "pareto min 1 shape 0.9 max 100",
        "lomax mean 12 shape 3.5",
        "lomax scale 6 shape 1.5 max 40",
        "uniform 16..240",
        "uniform 16..240 max 128",
        "lognormal median 2 sigma 0.8",
        "lognormal median 2 sigma 1.2 max 10",
        "weibull scale 3 shape 0.7",
        "weibull scale 3 shape 2 max 4",
        "normal mean 10 std 2",
        "normal mean 1 std 2",
        "normal mean 1 std 2 max 3",
        "gumbel location 55 scale 6",
        "gumbel location 5 scale 6 max 30",
        "geometric mean 3",
        "geometric mean 3 max 4",
        "cdf 0.25 100, 0.5 2112, 1 1600000",
    ];
    for text in finite {
        let dist = dist::<f64>(text);
        let draws = draws(&dist);
        let n = N as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let said = dist.mean().expect("the mean is finite");
        // Five standard errors: exceeded with probability 6e-7 (and the seed is fixed).
        let tolerance = 5.0 * (variance / n).sqrt() + 1e-9 * said;
        assert!(
            (mean - said).abs() <= tolerance,
            "{text}: {mean}, said {said}"
        );
    }
}

#[test]
fn means_agree_with_their_closed_forms() {
    let cases = [
        ("pareto mean 12 shape 1.2", 12.0),
        ("pareto min 2.3 shape 1.3", 2.3 * 1.3 / 0.3),
        ("lomax mean 12 shape 1.2", 12.0),
        // E[X; X <= M]/F(M) of a Pareto: a k^a (k^(1-a) - M^(1-a))/(a - 1)/(1 - (k/M)^a)
        (
            "pareto min 2 shape 1.2 max 1e6",
            1.2 * pow(2.0, 1.2) * (pow(2.0, -0.2) - pow(1e6, -0.2))
                / 0.2
                / (1.0 - pow(2.0 / 1e6, 1.2)),
        ),
        // m - M/(e^(M/m) - 1)
        (
            "exponential mean 50 max 300",
            50.0 - 300.0 / (exp(6.0) - 1.0),
        ),
        ("weibull scale 3 shape 0.5", 6.0),
        (
            "lognormal median 2 sigma 1.2 max 10",
            2.0 * exp(0.72) * normal_cdf(log(5.0) / 1.2 - 1.2) / normal_cdf(log(5.0) / 1.2),
        ),
        // Euler's constant; what is below 0 has probability exp(-exp(55/6)), nothing.
        (
            "gumbel location 55 scale 6",
            55.0 + 6.0 * 0.577_215_664_901_532_9,
        ),
        // (1 + 2 q + 3 q^2) p/(1 - q^3) with p = q = 1/2
        ("geometric mean 2 max 3", (0.5 + 0.5 + 0.375) / 0.875),
        ("cdf 0.5 10, 1 20", 12.5),
    ];
    for (text, expected) in cases {
        let mean = dist::<f64>(text).mean().expect("the mean is finite");
        assert!(
            (mean / expected - 1.0).abs() < 1e-9,
            "{text}: {mean}, not {expected}"
        );
    }
    assert_eq!(dist::<Bytes>("pareto min 2 kB shape 1").mean(), None);
    assert_eq!(dist::<Bytes>("lomax scale 2 kB shape 0.8").mean(), None);
    assert_eq!(dist::<Span>("20 ms").mean(), Some(0.02));
}

#[test]
fn the_quantile_is_the_inverse_of_the_distribution_function() {
    for (text, cdf) in CONTINUOUS {
        let dist = dist::<f64>(text);
        for p in [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9] {
            let back = cdf(dist.quantile(p));
            assert!((back - p).abs() < 1e-12, "{text}: {p} came back as {back}");
        }
    }
    assert_eq!(dist::<f64>("geometric mean 2").quantile(0.74), 2.0);
    assert_eq!(
        dist::<Span>("uniform 16..240 ms").quantile(0.0),
        Span::from_ms(16)
    );
    assert_eq!(
        dist::<Span>("uniform 16..240 ms").quantile(1.0),
        Span::from_ms(240)
    );
    assert_eq!(
        dist::<Bytes>("exponential mean 1 kB max 9 kB").quantile(1.0),
        Bytes::new(9000)
    );
    assert_eq!(
        dist::<Span>("exponential mean 1 s").quantile(1.0),
        Span::MAX
    );
}

#[test]
fn the_normal_quantile_inverts_the_complementary_error_function() {
    for s in [
        1e-300, 1e-20, 1e-9, 1e-3, 0.07, 0.3, 0.5, 0.8, 0.95, 0.999_999,
    ] {
        let back = law::upper_normal(law::upper_normal_inverse(s));
        // A relative error e in z is one of about z^2 e in the tail.
        assert!((back / s - 1.0).abs() < 1e-11, "{s} came back as {back}");
    }
}

#[test]
fn a_table_may_begin_above_zero_and_jump() {
    // Half the values are 10; none are between 20 and 30.
    let dist = dist::<f64>("cdf 0.5 10, 0.75 20, 0.75 30, 1 40");
    assert_eq!([0.2, 0.5].map(|p| dist.quantile(p)), [10.0, 10.0]);
    assert_eq!(dist.quantile(0.625), 15.0);
    assert_eq!(dist.quantile(0.875), 35.0);
    let all = draws(&dist);
    assert!(!all.iter().any(|&x| x > 20.0 && x < 30.0));
    let tens = all.iter().filter(|&&x| x == 10.0).count() as f64 / N as f64;
    // Five standard errors of a share of one half: exceeded with probability 6e-7.
    assert!((tens - 0.5).abs() < 5.0 * 0.5 / (N as f64).sqrt());
}

#[test]
fn every_draw_takes_one_number_from_its_stream() {
    let mut expected = Stream::named(1, 0, "aligned");
    expected.uniform();
    let next = expected.uniform();
    let texts = CONTINUOUS.iter().map(|case| case.0);
    for text in texts.chain(["4", "geometric mean 3"]) {
        let mut stream = Stream::named(1, 0, "aligned");
        dist::<f64>(text).draw(&mut stream);
        assert_eq!(stream.uniform(), next, "{text}");
    }
}

#[test]
fn what_is_read_from_a_file_is_a_text_a_table_or_a_plain_count() {
    let read = |json: &str| crate::from_json::<Dist<Bytes>>(json);
    let table = read(r#"{"cdf": [[0, "100 B"], [0.5, "2112 B"], [1.0, "1.6 MB"]]}"#).unwrap();
    assert_eq!(table, dist("cdf 0 100 B, 0.5 2112 B, 1 1.6 MB"));
    assert_eq!(
        serde_json::to_string(&table).unwrap(),
        r#""cdf 0 100 B, 0.5 2112 B, 1 1.6 MB""#
    );
    assert_eq!(
        read(r#""12 kB""#).unwrap(),
        Dist::constant(Bytes::new(12_000))
    );
    assert_eq!(
        crate::from_json::<Dist<f64>>("4").unwrap(),
        Dist::constant(4.0)
    );
    assert_eq!(
        crate::from_json::<Dist<f64>>("4.5").unwrap(),
        Dist::constant(4.5)
    );
}

#[test]
fn a_width_may_be_a_fraction_of_a_byte() {
    let text = "gumbel location 45 B scale 5.7 B max 1472 B";
    let dist = dist::<Bytes>(text);
    assert_eq!(dist.to_string(), text);
    let mean = dist.mean().expect("the mean is finite");
    assert!(
        (mean - (45.0 + 5.7 * 0.577_215_664_9)).abs() < 1e-6,
        "{mean}"
    );
}

#[test]
fn minutes_are_told_from_a_minimum() {
    assert_eq!(
        dist::<Span>("exponential mean 5 min"),
        dist("exponential mean 300 s")
    );
    assert_eq!(
        dist::<Span>("pareto min 2 min shape 1.3 max 10 min"),
        dist("pareto shape 1.3 min 120 s max 600 s")
    );
    assert_eq!(dist::<f64>("pareto min 2 shape 1.3").quantile(0.0), 2.0);
}

#[test]
fn what_is_wrong_is_said_with_the_forms_that_are_right() {
    let pareto = "accepted: \"pareto mean 12 kB shape 1.2\", \"pareto min 12 kB shape 1.2\"; a law may end with \"max 12 kB\"";
    let all = "accepted: \"12 kB\", \"exponential mean 12 kB\", \"pareto mean 12 kB shape 1.2\"";
    let cases = [
        ("12", "\"12\": a number of bytes carries its unit", all),
        ("cauchy median 3 kB", "\"cauchy\" is not a law", all),
        ("geometric mean 3 kB", "only counts can be geometric", all),
        ("pareto mean 12 kB", "its shape is missing", pareto),
        ("pareto shape 1.2", "its mean is missing", pareto),
        (
            "pareto median 12 kB shape 1.2",
            "it is not given by median",
            pareto,
        ),
        (
            "pareto mean 1 kB min 1 kB shape 2",
            "it is not given by mean and min",
            pareto,
        ),
        (
            "pareto mean 12 kB shape 1.2 sigma 2",
            "it has no sigma",
            pareto,
        ),
        (
            "pareto mean 12 kB shape 1.2 shape 2",
            "its shape is given twice",
            pareto,
        ),
        ("pareto mean 12 kB shape", "its shape has no value", pareto),
        (
            "pareto mean 12 kB shape steep",
            "its shape, \"steep\" is not a number",
            pareto,
        ),
        (
            "pareto mean 12 kB shape -2",
            "its shape, \"-2\" is negative",
            pareto,
        ),
        (
            "pareto mean 12 kB shape 0",
            "its shape must be above zero",
            pareto,
        ),
        (
            "pareto mean 12 kB shape 1",
            "its shape must be above 1, since with 1 the mean is infinite",
            pareto,
        ),
        (
            "pareto mean 12 s shape 2",
            "its mean, \"12 s\" is a time; a number of bytes is wanted",
            pareto,
        ),
        (
            "pareto min 0 B shape 2",
            "its min must be above zero",
            pareto,
        ),
        (
            "pareto about 12 kB",
            "\"about\" is not a parameter of a law",
            pareto,
        ),
        (
            "pareto min 5 kB shape 2 max 4 kB",
            "next to nothing is drawn below its max of \"4 kB\"",
            pareto,
        ),
        (
            "exponential mean 0 B",
            "its mean must be above zero",
            "\"exponential mean 12 kB\"",
        ),
        (
            "lomax mean 12 kB shape 0.9",
            "its shape must be above 1",
            "\"lomax scale 12 kB shape 1.2\"",
        ),
        (
            "lognormal median 0 B sigma 1",
            "its median must be above zero",
            "\"lognormal median 12 kB sigma 1.2\"",
        ),
        (
            "lognormal median 1 kB sigma 0",
            "its sigma must be above zero",
            "\"lognormal median",
        ),
        (
            "weibull scale 0 B shape 1",
            "its scale must be above zero",
            "\"weibull scale",
        ),
        (
            "normal mean 1 kB std 0 B",
            "its std must be above zero",
            "\"normal mean 12 kB std 12 kB\"",
        ),
        (
            "normal mean 1 MB std 1 kB max 5 kB",
            "next to nothing is drawn",
            "\"normal mean",
        ),
        (
            "gumbel location 1 kB scale 0 B",
            "its scale must be above zero",
            "\"gumbel location",
        ),
        (
            "uniform 5 kB",
            "its interval is written with \"..\"",
            "\"uniform 40..1500 B\"",
        ),
        (
            "uniform 5..5 kB",
            "the interval does not end after it begins",
            "\"uniform",
        ),
        (
            "uniform 9..5 kB",
            "the interval does not end after it begins",
            "\"uniform",
        ),
        (
            "cdf",
            "its cdf has no points",
            "a table { cdf = [[0.0, \"12 kB\"], ..., [1.0, \"12 kB\"]] }",
        ),
        (
            "cdf 0 1 kB, 0.9 2 kB",
            "its cdf ends at 0.9, not at 1",
            "a table",
        ),
        (
            "cdf 0 1 kB, 1.5 2 kB",
            "point 2 of its cdf: 1.5 is not between 0 and 1",
            "a table",
        ),
        (
            "cdf 0 2 kB, 1 1 kB",
            "point 2 of its cdf, 1 and \"1 kB\", is below the one before, 0 and \"2 kB\"",
            "a table",
        ),
        ("cdf 0", "\"0\" is not a probability and a value", "a table"),
    ];
    for (text, problem, accepted) in cases {
        let error = text.parse::<Dist<Bytes>>().expect_err(text);
        assert!(error.starts_with(&format!("{text:?}")), "{error}");
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.contains(accepted), "{text}: {error}");
    }
    let error = "geometric mean 0.5".parse::<Dist<f64>>().unwrap_err();
    assert!(
        error.contains("its mean must be at least 1, the least it draws"),
        "{error}"
    );
    let error = "-4".parse::<Dist<f64>>().unwrap_err();
    assert!(
        error.contains("\"-4\" is negative; accepted: \"4\""),
        "{error}"
    );
    let error = crate::from_json::<Dist<Span>>("5").unwrap_err().to_string();
    assert!(error.contains("5: a time carries its unit"), "{error}");
    let error = crate::from_json::<Dist<f64>>("-5").unwrap_err().to_string();
    assert!(error.contains("-5 is below zero"), "{error}");
    let error = crate::from_json::<Dist<Span>>("true")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a value or a law; accepted: \"50 s\""),
        "{error}"
    );
}

fn span() -> impl Strategy<Value = Span> {
    (1..1_000_000_000_000_000_u64).prop_map(Span::from_ps)
}

fn any_law() -> impl Strategy<Value = (Law<Span>, Option<Span>)> {
    let above_one = 1.01..8.0_f64;
    let positive = 0.1..8.0_f64;
    let law = prop_oneof![
        span().prop_map(Law::Exponential),
        (span(), above_one.clone()).prop_map(|(mean, shape)| Law::Pareto {
            by: Anchor::Mean(mean),
            shape
        }),
        (span(), positive.clone()).prop_map(|(min, shape)| Law::Pareto {
            by: Anchor::Scale(min),
            shape
        }),
        (span(), above_one).prop_map(|(mean, shape)| Law::Lomax {
            by: Anchor::Mean(mean),
            shape
        }),
        (span(), positive.clone()).prop_map(|(scale, shape)| Law::Lomax {
            by: Anchor::Scale(scale),
            shape
        }),
        (span(), span()).prop_map(|(low, width)| Law::Uniform(low, low + width)),
        (span(), positive.clone()).prop_map(|(median, sigma)| Law::Lognormal { median, sigma }),
        (span(), positive).prop_map(|(scale, shape)| Law::Weibull { scale, shape }),
        (span(), span()).prop_map(|(mean, std)| Law::Normal {
            mean,
            std: std.as_secs_f64()
        }),
        (span(), span()).prop_map(|(location, scale)| Law::Gumbel {
            location,
            scale: scale.as_secs_f64()
        }),
    ];
    (law, proptest::option::of(span()))
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back_as_the_same((law, max) in any_law(), points in proptest::collection::vec((0.0..1.0_f64, span()), 0..5)) {
        if let Ok(dist) = Dist::new(law, max) {
            prop_assert_eq!(dist.to_string().parse(), Ok(dist));
        }
        let (mut p, mut values): (Vec<_>, Vec<_>) = points.into_iter().unzip();
        p.sort_by(f64::total_cmp);
        values.sort();
        p.push(1.0);
        values.push(Span::MAX);
        let table = Dist::new(Law::Table(p.into_iter().zip(values).collect()), None).unwrap();
        prop_assert_eq!(table.to_string().parse(), Ok(table));
    }

    #[test]
    fn values_stay_in_their_bounds_and_grow_with_the_probability((law, max) in any_law()) {
        if let Ok(dist) = Dist::new(law, max) {
            let values: Vec<Span> = (0..=20).map(|i| dist.quantile(f64::from(i) / 20.0)).collect();
            prop_assert!(values.is_sorted(), "{:?}", values);
            prop_assert!(max.is_none_or(|max| values[20] <= max));
            // The mean of a law without end may be longer than a span can tell.
            if let (Some(mean), Some(max)) = (dist.mean(), max) {
                prop_assert!(mean >= 0.0 && mean <= max.as_secs_f64() * (1.0 + 1e-9));
            }
        }
    }
}
