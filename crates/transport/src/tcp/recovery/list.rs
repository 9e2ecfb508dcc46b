//! The list of recovery strategies.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{schemars, serde};
use strum::VariantArray;

use super::newreno::{NewReno, Style};
use super::rack::RackTlp;
use super::sack::Sack;
use super::sack1996::Sack1996;
use super::tahoe::Tahoe;
use super::{LossRecovery, RecoveryTraits};
use crate::tcp::rack::Rules;

/// Generates from the list the choices of the experiment file ([`RecoveryKind`]), the enum that
/// holds a running strategy ([`Recovery`]) and the macro `each!`, which calls a method of the
/// strategy in use. A `$` is passed as an argument, because a macro that defines a macro cannot
/// write one.
macro_rules! recoveries {
    (
        $dollar:tt
        strategies { $($strategy:ident,)+ }
        kinds { $($(#[$attribute:meta])* $kind:ident => $of:ident($new:expr),)+ }
    ) => {
        /// How losses are detected and repaired.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
        #[serde(crate = "serde", rename_all = "kebab-case")]
        #[schemars(crate = "schemars")]
        pub enum RecoveryKind {
            $($(#[$attribute])* $kind,)+
        }

        impl RecoveryKind {
            /// Every kind, in the order of the definition.
            pub const ALL: &'static [Self] = Self::VARIANTS;
        }

        /// Any of the strategies, dispatched statically.
        #[derive(Clone, Copy, Debug)]
        pub(in crate::tcp) enum Recovery {
            $($strategy($strategy),)+
        }

        impl Recovery {
            /// The strategy that `kind` selects, at the start of a connection.
            pub(in crate::tcp) fn new(kind: RecoveryKind) -> Self {
                match kind {
                    $(RecoveryKind::$kind => Self::$of($new),)+
                }
            }
        }

        /// Calls a method of the strategy in use.
        macro_rules! each {
            ($dollar recovery:expr, $dollar r:ident => $dollar call:expr) => {
                match $dollar recovery {
                    $(Recovery::$strategy($dollar r) => $dollar call,)+
                }
            };
        }
        pub(in crate::tcp) use each;
    };
}

recoveries! {
    $
    strategies { Tahoe, NewReno, Sack, RackTlp, Sack1996, }
    kinds {
        /// Fast retransmit, then slow start (4.3BSD Tahoe; Fall and Floyd 1996, section 2).
        Tahoe => Tahoe(Tahoe::new(Style::Rfc)),
        /// Fast retransmit and fast recovery that end with the first new acknowledgement (RFC 5681, section 3.2).
        Reno => NewReno(NewReno::ends_early(Style::Rfc)),
        /// A partial acknowledgement retransmits the next segment (RFC 6582).
        Newreno => NewReno(NewReno::to_the_end(Style::Rfc)),
        /// `tahoe` as in ns-2.35: limited transmit continues after the restart.
        Ns2Tahoe => Tahoe(Tahoe::new(Style::Ns2)),
        /// `reno` as in ns-2.35: limited transmit continues after a timeout, and the acknowledgement that ends recovery grows the window.
        Ns2Reno => NewReno(NewReno::ends_early(Style::Ns2)),
        /// `newreno` as in ns-2.35: in addition, the window keeps the size to which partial acknowledgements deflated it.
        Ns2Newreno => NewReno(NewReno::to_the_end(Style::Ns2)),
        /// Selective acknowledgements with a scoreboard (RFC 6675).
        Sack => Sack(Sack::default()),
        /// Losses are detected by time, with tail loss probes (RFC 8985).
        RackTlp => RackTlp(RackTlp::new(Rules::Rfc)),
        /// `rack-tlp` in the states of Linux 6.1 (`tcp_fastretrans_alert`): a retransmission lost after a timeout begins fast recovery, spurious losses are detected by timestamps (with `timestamps`), and a timeout within recovery does not reduce the window again.
        Linux => RackTlp(RackTlp::new(Rules::Linux)),
        /// Selective acknowledgements with the pipe estimate of Fall and Floyd 1996, as in ns-2's Sack1.
        #[serde(rename = "sack-1996")]
        #[schemars(rename = "sack-1996")]
        Sack1996 => Sack1996(Sack1996::default()),
    }
}

impl RecoveryKind {
    /// The fixed properties of the strategy.
    pub(crate) fn traits(self) -> RecoveryTraits {
        each!(Recovery::new(self), r => r.traits())
    }

    /// Whether the receiver sends selective acknowledgements.
    pub fn uses_sack(self) -> bool {
        self.traits().uses_sack
    }

    /// Whether losses are detected from the times at which segments were sent, rather than by
    /// counting acknowledgements.
    pub fn detects_by_time(self) -> bool {
        self.traits().by_time.is_some()
    }
}
