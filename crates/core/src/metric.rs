//! The definition of a metric: its name, unit, titles and meaning, written once.
//!
//! A metric is defined where it is measured, with [`metrics!`](crate::metrics): in the file of the
//! queue or of the kind of traffic that reports it, or in the engine. Code that reports a value
//! names the definition, not a text, so a metric without a definition does not compile. Tables,
//! figures, column names, documentation and the check of stop rules are made from the definitions.

/// What a metric is called, what it means, and how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in results: the last part of a name such as `ftp.goodput`.
    pub name: &'static str,
    /// For the axis of a figure.
    pub title: &'static str,
    /// For the head of a table column.
    pub short: &'static str,
    /// Its unit in results, and the unit in which tables and figures show it.
    pub shown: Shown,
    /// What it is measured of.
    pub scope: Scope,
    /// What it is, in one or more sentences of Markdown.
    pub definition: &'static str,
}

/// The unit of a metric, and how tables and figures show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A share, shown in percent.
    Fraction,
    /// A ratio, an index or a score.
    Ratio,
    /// A number of things.
    Count,
    /// A short time in seconds, shown in milliseconds.
    Delay,
    /// A time in seconds.
    Time,
    /// A rate in bit/s, shown in Mbit/s.
    Rate,
    /// A number of events per second.
    PerSecond,
    /// A number of events per second, shown per minute.
    PerMinute,
    /// A length in packets.
    Packets,
    /// A length in bytes.
    Bytes,
    /// In the unit in which the experiment file gives the parameter.
    AsGiven,
}

/// A unit, and how a number in it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// Unit of the stored numbers; "1" for fractions, ratios and counts.
    pub unit: &'static str,
    /// The unit as the end of a column's name; may be empty.
    pub suffix: &'static str,
    /// A shown number is a stored number times this.
    pub scale: f64,
    /// Unit of a shown number; may be empty.
    pub shown_unit: &'static str,
}

impl Shown {
    /// The units of the stored and of the shown number.
    pub fn units(self) -> Units {
        let (unit, suffix, scale, shown_unit) = match self {
            Self::Fraction => ("1", "", 100.0, "%"),
            Self::Ratio | Self::Count => ("1", "", 1.0, ""),
            Self::Delay => ("s", "_s", 1e3, "ms"),
            Self::Time => ("s", "_s", 1.0, "s"),
            Self::Rate => ("bit/s", "_bit_per_s", 1e-6, "Mbit/s"),
            Self::PerSecond => ("1/s", "_per_s", 1.0, "1/s"),
            Self::PerMinute => ("1/s", "_per_s", 60.0, "/min"),
            Self::Packets => ("packets", "_packets", 1.0, "packets"),
            // The names of these metrics contain the word.
            Self::Bytes => ("bytes", "", 1.0, "bytes"),
            Self::AsGiven => ("", "", 1.0, ""),
        };
        Units {
            unit,
            suffix,
            scale,
            shown_unit,
        }
    }

    /// The unit in words, for lists and documentation.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fraction => "fraction",
            Self::Count => "count",
            Self::AsGiven => "that of the parameter",
            other => other.units().unit,
        }
    }
}

/// The units that a file can give for metrics of its own, each with the word that stands for it there. Programs print
/// values in them, and tables and figures show values in them.
pub const UNITS: [(&str, Units); 19] = [
    ("1", shown("1", "", 1.0, "")),
    ("%", shown("1", "", 100.0, "%")),
    ("s", shown("s", "_s", 1.0, "s")),
    ("ms", shown("s", "_s", 1e3, "ms")),
    ("us", shown("s", "_s", 1e6, "µs")),
    ("ns", shown("s", "_s", 1e9, "ns")),
    ("bit/s", shown("bit/s", "_bit_per_s", 1.0, "bit/s")),
    ("kbit/s", shown("bit/s", "_bit_per_s", 1e-3, "kbit/s")),
    ("Mbit/s", shown("bit/s", "_bit_per_s", 1e-6, "Mbit/s")),
    ("Gbit/s", shown("bit/s", "_bit_per_s", 1e-9, "Gbit/s")),
    ("bytes/s", shown("bit/s", "_bit_per_s", 0.125, "bytes/s")),
    ("kB/s", shown("bit/s", "_bit_per_s", 0.125e-3, "kB/s")),
    ("MB/s", shown("bit/s", "_bit_per_s", 0.125e-6, "MB/s")),
    ("bytes", shown("bytes", "", 1.0, "bytes")),
    ("kB", shown("bytes", "", 1e-3, "kB")),
    ("MB", shown("bytes", "", 1e-6, "MB")),
    ("GB", shown("bytes", "", 1e-9, "GB")),
    ("packets", shown("packets", "_packets", 1.0, "packets")),
    ("1/s", shown("1/s", "_per_s", 1.0, "1/s")),
];

const fn shown(
    unit: &'static str,
    suffix: &'static str,
    scale: f64,
    shown_unit: &'static str,
) -> Units {
    Units {
        unit,
        suffix,
        scale,
        shown_unit,
    }
}

/// What a metric is measured of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of all packets at a link and of each group's packets there; in each phase too.
    LinkAndGroup,
    /// Of all packets at a link; in each phase too.
    Link,
    /// Of all packets at a link, in the whole period alone.
    LinkInPeriod,
    /// Of a group, and of all TCP groups together; in each phase too.
    GroupAndAll,
    /// Of a group, and of all TCP groups together, in the whole period alone.
    GroupAndAllInPeriod,
    /// Of a group; in each phase too.
    GroupInPhases,
    /// Of a group, in the whole period alone.
    Group,
    /// Of a queue, in the whole period alone.
    Queue,
    /// Of a class in a queue, in the whole period alone.
    Class,
    /// Of a phase, and not of the whole period.
    Phase,
    /// Of the run itself, in the whole period alone.
    Run,
}

impl Scope {
    /// What it is measured of, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::LinkAndGroup => "link, and group at a link",
            Self::Link | Self::LinkInPeriod => "link",
            Self::GroupAndAll | Self::GroupAndAllInPeriod => "group, and all TCP groups",
            Self::GroupInPhases | Self::Group => "group",
            Self::Queue => "queue",
            Self::Class => "class of a queue",
            Self::Phase => "phase",
            Self::Run => "run",
        }
    }

    /// Whether each phase has it too.
    pub fn in_phases(self) -> bool {
        matches!(
            self,
            Self::LinkAndGroup | Self::Link | Self::GroupAndAll | Self::GroupInPhases
        )
    }

    /// The form of its full name, for documentation; `name` is the metric's.
    pub fn form(self, name: &str) -> String {
        match self {
            Self::LinkAndGroup | Self::Link | Self::LinkInPeriod | Self::Run => name.to_owned(),
            Self::GroupAndAll | Self::GroupAndAllInPeriod | Self::GroupInPhases | Self::Group => {
                format!("GROUP.{name}")
            }
            Self::Queue => format!("queue.{name}"),
            Self::Phase => format!("phase1.{name}"),
            Self::Class => format!("queue.CLASS.{name}"),
        }
    }
}

/// Defines metrics, and the list of them.
///
/// The first line names the list and what its metrics are measured of. Each metric then has its
/// definition as a doc comment, and name, unit ([`Shown`]), title and column head. An `impl` names
/// a metric by its constant.
///
/// ```
/// use redtail_core::metrics;
///
/// metrics! {
///     /// What the queue counts.
///     pub const METRICS of Queue;
///
///     /// Packets that were dropped because the queue had no room.
///     OVERLOAD_DROPS = "overload_drops", Count, "Packets dropped for the limit", "overload drops";
/// }
/// assert_eq!(METRICS[0].definition, "Packets that were dropped because the queue had no room.");
/// assert_eq!(OVERLOAD_DROPS.shown.units().unit, "1");
/// ```
#[macro_export]
macro_rules! metrics {
    (
        $(#[doc = $about:literal])+
        $vis:vis const $list:ident of $scope:ident;
        $(
            $(#[doc = $definition:literal])+
            $metric:ident = $name:literal, $shown:ident, $title:literal, $short:literal;
        )+
    ) => {
        $(
            $(#[doc = $definition])+
            $vis const $metric: &$crate::Metric = &$crate::Metric {
                name: $name,
                title: $title,
                short: $short,
                shown: $crate::metric::Shown::$shown,
                scope: $crate::metric::Scope::$scope,
                definition: concat!($($definition),+).trim_ascii(),
            };
        )+

        $(#[doc = $about])+
        $vis const $list: &[&$crate::Metric] = &[$($metric),+];
    };
}
