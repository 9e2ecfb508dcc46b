//! The list of models of the path.

use super::bbr::Bbr;
use super::bbr3::Bbr3;
use super::copa::Copa;
use super::model::Model;
use super::{AckSample, GrowthLaw};
use crate::plugin::Plugin;

/// Any of the models, dispatched statically.
#[derive(Clone, Debug)]
pub(super) enum AnyModel {
    Bbr(Bbr),
    Bbr3(Bbr3),
    Copa(Copa),
    Plugin(Plugin),
}

/// Calls a method of the model in use.
macro_rules! model {
    ($model:expr, $m:ident => $call:expr) => {
        match $model {
            AnyModel::Bbr($m) => $call,
            AnyModel::Bbr3($m) => $call,
            AnyModel::Copa($m) => $call,
            AnyModel::Plugin($m) => $call,
        }
    };
}
pub(super) use model;

/// As a growth law a model does not change the window, because it sets the window itself.
impl GrowthLaw for Box<AnyModel> {
    fn grown(&mut self, cwnd: f64, _sample: &AckSample, _mss: f64) -> f64 {
        cwnd
    }

    fn beta(&self) -> f64 {
        1.0
    }

    fn undo(&mut self) {
        model!(&mut **self, m => m.on_undo());
    }
}
