//! The text form of quantities in files: one table of units for each dimension, exact decimal
//! arithmetic, and one printer. No floating point is used, so a run uses exactly the value in the
//! file.

use std::fmt;

/// A unit: its name, and its size in base units.
pub(super) type Unit = (&'static str, u64);

/// A spelling that is refused: what one of it is in `tc` (tc(8), section UNITS; iproute2,
/// `get_rate64` and `get_size`), and what it is elsewhere.
pub(super) struct Ambiguous {
    pub name: &'static str,
    in_tc: &'static str,
    elsewhere: &'static str,
}

const fn ambiguous(name: &'static str, in_tc: &'static str, elsewhere: &'static str) -> Ambiguous {
    Ambiguous {
        name,
        in_tc,
        elsewhere,
    }
}

/// A dimension that a text may have, with its description for messages and the schema.
pub(super) struct Dimension {
    /// With its article, as in `"100 ms" is a time`.
    pub noun: &'static str,
    /// As in `"Mbit" is not a unit of rate`.
    pub unit_of: &'static str,
    /// An example value, quoted as in a file.
    pub example: &'static str,
    /// The units used in printing, from small to large, in powers of ten. The first is the base
    /// unit.
    printed: &'static [Unit],
    /// All other spellings that are read.
    also_read: &'static [Unit],
    /// Spellings that are refused, because `tc` and others mean different amounts by them.
    pub ambiguous: &'static [Ambiguous],
    /// What to write in place of an ambiguous spelling.
    instead: &'static str,
    /// The base unit in the message about a value that is too fine.
    pub base: &'static str,
    /// The SI unit, or what is counted; "1" for a share.
    pub si: &'static str,
    /// The number of base units in one SI unit.
    pub per_si: u64,
    /// The text for zero.
    pub zero: &'static str,
}

pub(super) const TIME: Dimension = Dimension {
    noun: "a time",
    unit_of: "time",
    example: "\"100 ms\"",
    printed: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
    also_read: &[
        ("\u{b5}s", 1_000_000),  // micro sign
        ("\u{3bc}s", 1_000_000), // Greek small mu, which looks the same
        ("nsec", 1_000),
        ("nsecs", 1_000),
        ("usec", 1_000_000),
        ("usecs", 1_000_000),
        ("msec", 1_000_000_000),
        ("msecs", 1_000_000_000),
        ("sec", 1_000_000_000_000),
        ("secs", 1_000_000_000_000),
        ("second", 1_000_000_000_000),
        ("seconds", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("minute", 60_000_000_000_000),
        ("minutes", 60_000_000_000_000),
        ("h", 3_600_000_000_000_000),
        ("hour", 3_600_000_000_000_000),
        ("hours", 3_600_000_000_000_000),
    ],
    ambiguous: &[],
    instead: "",
    base: "picoseconds",
    si: "s",
    per_si: 1_000_000_000_000,
    zero: "0 s",
};

pub(super) const RATE: Dimension = Dimension {
    noun: "a rate",
    unit_of: "rate",
    example: "\"10 Mbit/s\"",
    printed: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
    ],
    // "kb/s" and "MB/s" are left out on purpose, because they are used for bits and for bytes.
    also_read: &[
        ("Kbit/s", 1_000),
        ("mbit/s", 1_000_000),
        ("gbit/s", 1_000_000_000),
        ("tbit/s", 1_000_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        // As tc reads and prints rates.
        ("bit", 1),
        ("kbit", 1_000),
        ("Kbit", 1_000),
        ("mbit", 1_000_000),
        ("Mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("Gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("Tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("Kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("Mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("Gibit", 1 << 30),
        // As iperf prints them.
        ("bits/sec", 1),
        ("Kbits/sec", 1_000),
        ("Mbits/sec", 1_000_000),
        ("Gbits/sec", 1_000_000_000),
        ("Kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
    ],
    ambiguous: &[
        ambiguous("bps", "8 bit/s", "1 bit/s"),
        ambiguous("kbps", "8 kbit/s", "1 kbit/s"),
        ambiguous("mbps", "8 Mbit/s", "1 Mbit/s"),
        ambiguous("gbps", "8 Gbit/s", "1 Gbit/s"),
        ambiguous("tbps", "8000 Gbit/s", "1000 Gbit/s"),
    ],
    instead: "bit/s, kbit/s, Mbit/s or Gbit/s",
    base: "bit/s",
    si: "bit/s",
    per_si: 1,
    zero: "0 bit/s",
};

pub(super) const BYTES: Dimension = Dimension {
    noun: "a number of bytes",
    unit_of: "bytes",
    example: "\"1500 B\"",
    printed: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ],
    also_read: &[
        ("byte", 1),
        ("bytes", 1),
        ("KB", 1_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    ambiguous: &[
        ambiguous("b", "1 B", "1 bit"),
        ambiguous("k", "1024 B", "a thousand"),
        ambiguous("K", "1024 B", "a thousand"),
        ambiguous("kb", "1024 B", "1000 bits or 1000 B"),
        ambiguous("Kb", "1024 B", "1000 bits or 1000 B"),
        ambiguous("m", "1048576 B", "a million"),
        ambiguous("M", "1048576 B", "a million"),
        ambiguous("mb", "1048576 B", "10^6 bits or 10^6 B"),
        ambiguous("Mb", "1048576 B", "10^6 bits or 10^6 B"),
        ambiguous("g", "1073741824 B", "a billion"),
        ambiguous("G", "1073741824 B", "a billion"),
        ambiguous("gb", "1073741824 B", "10^9 bits or 10^9 B"),
        ambiguous("Gb", "1073741824 B", "10^9 bits or 10^9 B"),
        ambiguous("kbit", "128 B", "125 B"),
        ambiguous("Kbit", "128 B", "125 B"),
        ambiguous("mbit", "131072 B", "125000 B"),
        ambiguous("Mbit", "131072 B", "125000 B"),
        ambiguous("gbit", "134217728 B", "125000000 B"),
        ambiguous("Gbit", "134217728 B", "125000000 B"),
    ],
    instead: "B, kB (1000 B) or KiB (1024 B)",
    base: "bytes",
    si: "B",
    per_si: 1,
    zero: "0 B",
};

pub(super) const PACKETS: Dimension = Dimension {
    noun: "a number of packets",
    unit_of: "packets",
    example: "\"300 packets\"",
    printed: &[("packets", 1)],
    also_read: &[("packet", 1), ("pkt", 1), ("pkts", 1), ("p", 1)],
    ambiguous: &[],
    instead: "",
    base: "packets",
    si: "packets",
    per_si: 1,
    zero: "0 packets",
};

pub(super) const FREQUENCY: Dimension = Dimension {
    noun: "a frequency",
    unit_of: "frequency",
    example: "\"170 Hz\"",
    printed: &[("mHz", 1), ("Hz", 1_000), ("kHz", 1_000_000)],
    also_read: &[],
    ambiguous: &[],
    instead: "",
    base: "mHz",
    si: "Hz",
    per_si: 1_000,
    zero: "0 Hz",
};

pub(super) const SHARE: Dimension = Dimension {
    noun: "a share",
    unit_of: "share",
    example: "\"90 %\"",
    printed: &[("%", 10_000_000_000_000)],
    also_read: &[],
    ambiguous: &[],
    instead: "",
    base: "10^-13 %",
    si: "1",
    per_si: 1_000_000_000_000_000,
    zero: "0 %",
};

pub(super) const DIMENSIONS: [&Dimension; 6] = [&TIME, &RATE, &BYTES, &PACKETS, &FREQUENCY, &SHARE];

/// What a quantity of any dimension accepts.
const ANY: Wanted = Wanted {
    noun: "a quantity",
    unit_of: "quantity",
    example: "\"20 ms\", \"10 Mbit/s\", \"64 kB\", \"300 packets\", \"170 Hz\" or \"90 %\"",
    dimensions: &DIMENSIONS,
};

/// The value of a quantity of any dimension in its SI unit, and this unit: s, bit/s, B, packets, Hz, or 1 for a
/// share.
///
/// Texts of equal quantities have the same value, because it is rounded once, from a whole number of base units.
///
/// ```
/// use redtail_core::units::si_value;
///
/// assert_eq!(si_value("1.28 s"), si_value("1280 ms"));
/// assert_eq!(si_value("90 %"), Ok((0.9, "1")));
/// assert!(si_value("0.9").is_err());
/// ```
///
/// # Errors
/// The text is no number with a unit, or cannot be held exactly.
pub fn si_value(text: &str) -> Result<(f64, &'static str), UnitError> {
    let (index, value) = ANY.parse(text)?;
    let dimension = DIMENSIONS[index];
    Ok((value as f64 / dimension.per_si as f64, dimension.si))
}

impl Dimension {
    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.printed.iter().chain(self.also_read)
    }

    fn factor(&self, name: &str) -> Option<u64> {
        self.units().find(|unit| unit.0 == name).map(|unit| unit.1)
    }
}

/// The error about a text that is not the quantity wanted. Its display is a whole message that
/// begins with the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

/// The dimension that a key accepts; for the size of a queue, either of two.
pub(super) struct Wanted {
    pub noun: &'static str,
    pub unit_of: &'static str,
    pub example: &'static str,
    pub dimensions: &'static [&'static Dimension],
}

impl Wanted {
    pub const fn one(
        dimension: &'static Dimension,
        dimensions: &'static [&'static Dimension],
    ) -> Self {
        Wanted {
            noun: dimension.noun,
            unit_of: dimension.unit_of,
            example: dimension.example,
            dimensions,
        }
    }

    /// The number of base units that `text` stands for, and the index of its dimension.
    pub fn parse(&self, text: &str) -> Result<(usize, u64), UnitError> {
        let number = Decimal::read(text.trim()).map_err(|fault| self.number_error(text, fault))?;
        let name = number.rest.trim_start();
        if name.is_empty() {
            return Err(self.bare(format_args!("{text:?}")));
        }
        let found = self
            .dimensions
            .iter()
            .enumerate()
            .find_map(|(index, dimension)| Some((index, dimension.factor(name)?)));
        let Some((index, factor)) = found else {
            return Err(self.unit_error(text, name));
        };
        if number.negative && number.mantissa != 0 {
            return Err(UnitError(format!(
                "{text:?}: {} cannot be negative; accepted: 0 or more, for example {}",
                self.noun, self.example
            )));
        }
        match number.times(factor) {
            Ok(value) => Ok((index, value)),
            Err(Fault::TooFine) => Err(UnitError(format!(
                "{text:?} is not a whole number of {}",
                self.dimensions[index].base
            ))),
            Err(_) => Err(self.number_error(text, Fault::TooLarge)),
        }
    }

    /// The error about a number without a unit; `value` is as written in the file.
    pub fn bare(&self, value: impl fmt::Display) -> UnitError {
        UnitError(format!(
            "{value}: {} carries its unit, for example {}",
            self.noun, self.example
        ))
    }

    fn number_error(&self, text: &str, fault: Fault) -> UnitError {
        UnitError(match fault {
            Fault::TooLarge => format!("{text:?} is too large for {}", self.noun),
            _ => format!(
                "{text:?} is not {}: a number and a unit are wanted, for example {}",
                self.noun, self.example
            ),
        })
    }

    fn unit_error(&self, text: &str, name: &str) -> UnitError {
        if let Some((unit, instead)) = self.dimensions.iter().find_map(|dimension| {
            let mut known = dimension.ambiguous.iter();
            Some((known.find(|unit| unit.name == name)?, dimension.instead))
        }) {
            return UnitError(format!(
                "{text:?}: {name:?} is refused, because 1 {name} is {} in tc and {} elsewhere; \
                 accepted: {instead}",
                unit.in_tc, unit.elsewhere
            ));
        }
        if let Some(other) = DIMENSIONS
            .iter()
            .find(|dimension| dimension.factor(name).is_some())
        {
            return UnitError(format!(
                "{text:?} is {}; {} is wanted, for example {}",
                other.noun, self.noun, self.example
            ));
        }
        let accepted: Vec<_> = self
            .dimensions
            .iter()
            .flat_map(|dimension| dimension.printed)
            .map(|unit| unit.0)
            .collect();
        let hint = match name.to_ascii_lowercase().as_str() {
            "b/s" | "kb/s" | "mb/s" | "gb/s" | "b" | "kb" | "mb" | "gb" => {
                " (bits or bytes?)".to_owned()
            }
            "kbps" | "mbps" | "gbps" if name.contains('B') => {
                " (bytes? a byte per second is 8 bit/s)".to_owned()
            }
            lower => self
                .dimensions
                .iter()
                .flat_map(|dimension| dimension.units())
                .find(|unit| unit.0.to_ascii_lowercase() == lower)
                .map(|unit| format!(" (did you mean {:?}?)", unit.0))
                .unwrap_or_default(),
        };
        UnitError(format!(
            "{text:?}: {name:?} is not a unit of {}{hint}; accepted: {}",
            self.unit_of,
            accepted.join(", ")
        ))
    }

    /// A regular expression for the schema: what editors accept, close to what [`Wanted::parse`]
    /// accepts.
    #[cfg(feature = "schema")]
    pub fn pattern(&self) -> String {
        let names: Vec<_> = self
            .dimensions
            .iter()
            .flat_map(|dimension| dimension.units())
            .map(|unit| unit.0)
            .collect();
        format!(
            r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?\s*({})\s*$",
            names.join("|")
        )
    }

    /// The expected form, for serde visitors and for the schema.
    #[cfg(feature = "serde")]
    pub fn expectation(&self) -> String {
        format!("{} with its unit, for example {}", self.noun, self.example)
    }
}

enum Fault {
    NotANumber,
    TooLarge,
    TooFine,
}

/// `mantissa` times ten to the `power`, and the text after it.
struct Decimal<'a> {
    negative: bool,
    mantissa: u128,
    power: i64,
    rest: &'a str,
}

impl<'a> Decimal<'a> {
    /// Reads `-?digits(.digits)?(e[+-]?digits)?`; digits may be grouped with `_`, as in TOML.
    fn read(text: &'a str) -> Result<Self, Fault> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, text),
        };
        let (mut mantissa, mut power) = (0_u128, 0_i64);
        // Trailing zeros so far: they count only if another digit follows.
        let mut dropped_zeros = 0_u32;
        let mut push = |digits: &str| -> Result<(), Fault> {
            for digit in digits.bytes().filter(u8::is_ascii_digit) {
                if digit == b'0' {
                    dropped_zeros += 1;
                    continue;
                }
                mantissa = 10_u128
                    .checked_pow(dropped_zeros + 1)
                    .and_then(|scale| mantissa.checked_mul(scale))
                    .and_then(|scaled| scaled.checked_add(u128::from(digit - b'0')))
                    .ok_or(Fault::TooLarge)?;
                dropped_zeros = 0;
            }
            Ok(())
        };

        let (whole, mut rest) = split_digits(unsigned).ok_or(Fault::NotANumber)?;
        push(whole)?;
        if let Some(after) = rest.strip_prefix('.') {
            let (fraction, after) = split_digits(after).ok_or(Fault::NotANumber)?;
            push(fraction)?;
            power -= fraction.bytes().filter(u8::is_ascii_digit).count() as i64;
            rest = after;
        }
        power += i64::from(dropped_zeros);
        if let Some(after) = rest.strip_prefix(['e', 'E']) {
            let (sign, after) = match after.strip_prefix('-') {
                Some(after) => (-1, after),
                None => (1, after.strip_prefix('+').unwrap_or(after)),
            };
            if let Some((digits, after)) = split_digits(after) {
                let exponent: i64 = digits
                    .replace('_', "")
                    .parse()
                    .map_err(|_| Fault::TooLarge)?;
                power = power.saturating_add(sign * exponent);
                rest = after;
            }
        }
        Ok(Decimal {
            negative,
            mantissa,
            power,
            rest,
        })
    }

    /// This number of units of `factor` base units each, as a whole number of base units.
    fn times(&self, factor: u64) -> Result<u64, Fault> {
        let (mut mantissa, mut factor, mut power) = (self.mantissa, u128::from(factor), self.power);
        if mantissa == 0 {
            return Ok(0);
        }
        // Negative powers are cancelled prime by prime before the multiplication, so that no
        // intermediate value overflows if the result fits.
        while power < 0 {
            for prime in [2, 5] {
                if mantissa % prime == 0 {
                    mantissa /= prime;
                } else if factor % prime == 0 {
                    factor /= prime;
                } else {
                    return Err(Fault::TooFine);
                }
            }
            power += 1;
        }
        u32::try_from(power)
            .ok()
            .and_then(|power| 10_u128.checked_pow(power))
            .and_then(|scale| scale.checked_mul(mantissa))
            .and_then(|scaled| scaled.checked_mul(factor))
            .and_then(|value| u64::try_from(value).ok())
            .ok_or(Fault::TooLarge)
    }
}

/// Splits off the leading digits (`_` allowed between two of them); `None` if there are no digits.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let well_grouped = !digits.is_empty() && !digits.starts_with('_') && !digits.ends_with('_');
    well_grouped.then_some((digits, rest))
}

/// Prints exactly, in the unit that gives the shortest text with a number of at least one. Of two
/// texts with the same length it takes the smaller unit: `1500 B` rather than `1.5 kB`, but `1.5
/// Mbit/s` and `100 ms`.
pub(super) fn print(dimension: &Dimension, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = dimension
        .printed
        .iter()
        .filter(|unit| unit.1 <= value)
        .map(|(name, factor)| {
            let (whole, part) = (value / factor, value % factor);
            let digits = factor.ilog10() as usize; // printed units are powers of ten
            let fraction = format!("{part:0digits$}");
            match fraction.trim_end_matches('0') {
                "" => format!("{whole} {name}"),
                fraction => format!("{whole}.{fraction} {name}"),
            }
        })
        .min_by_key(String::len);
    f.pad(text.as_deref().unwrap_or(dimension.zero))
}
