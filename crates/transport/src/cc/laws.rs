//! The list of growth laws and models.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Span, Stream, schemars, serde};
use strum::{IntoStaticStr, VariantArray};

use crate::constants::law_tables;

use super::bbr::{Bbr, BbrParams};
use super::bbr3::{Bbr3, Bbr3Params};
use super::copa::{Copa, CopaParams, Program};
use super::model::ModelConfig;
use super::models::AnyModel;
use super::{ControllerConfig, GrowthLaw};
use super::{
    bic, cubic, highspeed, htcp, hybla, illinois, ledbat, linux_cubic, linux_reno, prague, reno,
    scalable, vegas, veno, westwood, yeah,
};

/// Generates from the list the choices of the experiment file ([`Growth`]), the enum that holds a
/// running law ([`Law`]) and the macro `law!`, which calls a method of the law in use. A `$` is
/// passed as an argument, because a macro that defines a macro cannot write one.
macro_rules! growth_laws {
    (
        $dollar:tt
        laws { $($(#[doc = $law_doc:literal])* $law:ident => $storage:ident<$type:ty>,)+ }
        models { $($(#[doc = $model_doc:literal])* $model:ident($params:ty $(, $usual:expr)?) => $kind:ident($new:expr),)+ }
    ) => {
        /// How the window grows in congestion avoidance, and by how much it is reduced.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray, IntoStaticStr,
        )]
        #[serde(crate = "serde", rename_all = "kebab-case")]
        #[schemars(crate = "schemars")]
        #[strum(serialize_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Growth {
            $($(#[doc = $law_doc])* $law,)+
            $($(#[doc = $model_doc])* $model,)+
        }

        law_tables! {
            /// How the window grows in congestion avoidance, with the constants of the law.
            pub enum GrowthParams of Growth {
                $($(#[doc = $law_doc])* $law(<$type as GrowthLaw>::Params),)+
                $($(#[doc = $model_doc])* $model($params $(, $usual)?),)+
            }
        }

        impl Growth {
            /// Every law, in the order of the definition.
            pub const LAWS: &'static [Self] = &[$(Self::$law),+];
            /// Every model of the path, in the order of the definition.
            pub const MODELS: &'static [Self] = &[$(Self::$model),+];
            /// Every law and every model.
            pub const ALL: &'static [Self] = Self::VARIANTS;

            /// Whether it is a model of the path rather than a law of growth.
            pub fn is_model(self) -> bool {
                matches!(self, $(Self::$model)|+)
            }
        }

        impl GrowthParams {
            /// Whether it is a model of the path rather than a law of growth.
            pub fn is_model(&self) -> bool {
                self.kind().is_model()
            }
        }

        /// Any of the laws, dispatched statically. A law with state is boxed, so that senders with
        /// another law stay small: thousands of them share a cache.
        #[derive(Clone, Debug)]
        pub(super) enum Law {
            $($law($storage<$type>),)+
            Model(Box<AnyModel>),
        }

        impl Law {
            /// The law that `config` selects, at the start of a connection.
            pub(super) fn new(config: &ControllerConfig) -> Self {
                match &config.growth {
                    $(GrowthParams::$law(params) => {
                        Self::$law(<$type as GrowthLaw>::start(config, params).into())
                    })+
                    $(GrowthParams::$model(params) => {
                        Self::Model(Box::new(AnyModel::$kind(($new)(model_config(config), params))))
                    })+
                }
            }
        }

        /// Calls a method of the law in use.
        macro_rules! law {
            ($dollar law:expr, $dollar l:ident => $dollar call:expr) => {
                match $dollar law {
                    $(Law::$law($dollar l) => $dollar call,)+
                    Law::Model($dollar l) => $dollar call,
                }
            };
        }
        pub(super) use law;
    };
}

growth_laws! {
    $
    laws {
        /// Grows by one segment per round trip; a loss halves the window (RFC 5681).
        Reno => Inline<reno::Reno>,
        /// A cubic function of the time since the last reduction; a loss reduces the window to 0.7 (RFC 9438).
        Cubic => Box<cubic::Cubic>,
        /// CUBIC as Linux computes it, in whole segments (Linux 6.1, tcp_cubic.c).
        LinuxCubic => Box<linux_cubic::LinuxCubic>,
        /// Reno as Linux computes it, in whole segments (Linux 6.1, tcp_cong.c).
        LinuxReno => Box<linux_reno::LinuxReno>,
        /// Keeps two to four segments in the bottleneck's queue, estimated from round-trip times; a loss halves the window (Brakmo and Peterson 1995).
        Vegas => Box<vegas::Vegas>,
        /// Keeps 100 ms of queueing delay, measured from round-trip times, and so yields to other traffic; a loss halves the window (RFC 6817).
        Ledbat => Box<ledbat::Ledbat>,
        /// As Reno, for data that arrives unmarked, and slower with round-trip times below 25 ms after `rtt_transition` round trips; a loss halves the window (draft-briscoe-iccrg-prague-congestion-control).
        Prague => Inline<prague::Prague>,
        /// As Reno in whole segments; after a reduction the window is the estimated bandwidth times the least round trip (Westwood+, Mascolo et al. 2001 and Grieco and Mascolo 2004, as in Linux 6.1, tcp_westwood.c).
        Westwood => Box<westwood::Westwood>,
        /// A binary search between the window after a loss and the window at the last loss; a loss reduces the window to 0.8 (BIC, Xu, Harfoush and Rhee 2004, as in Linux 6.1, tcp_bic.c).
        Bic => Box<bic::Bic>,
        /// Grows faster with the time since the last loss; a loss multiplies the window by the ratio of the least to the greatest round-trip time (H-TCP, Leith and Shorten 2004, as in Linux 6.1, tcp_htcp.c).
        Htcp => Box<htcp::Htcp>,
        /// As Reno with a round-trip time of 25 ms, for every round-trip time; a loss halves the window (Hybla, Caini and Firrincieli 2004, as in Linux 6.1, tcp_hybla.c).
        Hybla => Box<hybla::Hybla>,
        /// Grows by 10 segments per round trip with empty queues, and by down to 0.3 with long ones; a loss reduces the window by an eighth to a half (Illinois, Liu, Başar and Srikant 2008, as in Linux 6.1, tcp_illinois.c).
        Illinois => Box<illinois::Illinois>,
        /// Grows faster and is reduced by less with a larger window (HighSpeed TCP, RFC 3649, as in Linux 6.1, tcp_highspeed.c).
        Highspeed => Box<highspeed::HighSpeed>,
        /// Grows by one segment for each hundred acknowledged; a loss reduces the window by an eighth (Scalable TCP, Kelly 2003, as in Linux 6.1, tcp_scalable.c).
        Scalable => Box<scalable::Scalable>,
        /// As Reno, and half as fast while three segments or more wait in queues; with fewer, a loss reduces the window by a fifth (Veno, Fu and Liew 2003, as in Linux 6.1, tcp_veno.c).
        Veno => Box<veno::Veno>,
        /// As Scalable TCP while few segments wait in queues, otherwise as Reno (YeAH, Baiocchi, Castellani and Vacirca 2007, as in Linux 6.1, tcp_yeah.c).
        Yeah => Box<yeah::Yeah>,
    }
    models {
        /// BBR version 1: a model of the path instead of a growth law, with the path's greatest delivery rate and least round-trip time (Cardwell et al., ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux).
        Bbr(BbrParams) => Bbr(Bbr::new),
        /// BBR version 3: the same model with bounds learnt from losses (draft-ietf-ccwg-bbr-06).
        Bbr3(Bbr3Params) => Bbr3(Bbr3::new),
        /// A target rate in inverse proportion to the queueing delay, so that about two and a half of its own segments wait; beside traffic that fills queues, in proportion to 1/delta, which changes with losses (Copa, Arun and Balakrishnan 2018; the velocity as in the authors' code, genericCC).
        Copa(CopaParams) => Copa(|config, params| Copa::new(config, params, Program::Authors)),
        /// Copa without its competitive mode (the velocity as in the paper and in mvfst).
        CopaDefault(CopaParams) => Copa(|config, params| Copa::new(config, params, Program::Mvfst)),
        /// BBR version 3 as in Google's code, on which published measurements are based, with a response to marks (github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c).
        Bbr3Google(Bbr3Params, Bbr3Params::google()) => Bbr3(Bbr3::google),
    }
}

impl Growth {
    /// ABE's factor for a mark (RFC 8511, section 3.1; for Linux's CUBIC, which has no ABE, CUBIC's).
    pub fn abe_factor(self) -> f64 {
        match self {
            Self::Cubic | Self::LinuxCubic => 0.85,
            _ => 0.8,
        }
    }
}

impl GrowthParams {
    /// The shortest virtual round trip of Prague.
    pub fn least_round(&self) -> Span {
        match self {
            Self::Prague(params) => params.least_round,
            _ => prague::PragueParams::default().least_round,
        }
    }
}

impl Law {
    /// Becomes a copy of `fresh`.
    #[inline]
    pub(super) fn renew(&mut self, fresh: &Self) {
        match (self, fresh) {
            (Self::Reno(law), Self::Reno(fresh)) => law.clone_from(fresh),
            (law, _) => law.copy_other(fresh),
        }
    }

    #[inline(never)] // the caller is short without it
    fn copy_other(&mut self, fresh: &Self) {
        self.clone_from(fresh);
    }
}

/// Holds a small law without a box.
type Inline<T> = T;

fn model_config(config: &ControllerConfig) -> ModelConfig {
    let mss = f64::from(config.mss);
    ModelConfig {
        mss,
        initial_cwnd: f64::from(config.initial_window) * mss,
        stream: Stream::named(0, 0, "tcp"),
        lt_bw: config.lt_bw,
        ecn_max_rtt: config.ecn_max_rtt,
    }
}
