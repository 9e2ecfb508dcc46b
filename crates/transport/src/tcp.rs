//! The two endpoints of a connection and their parts.

/// Makes a value a copy of another one, field by field and in its place. A copy that is made elsewhere and then
/// moved takes twice the instructions, which matters where a connection opens. The first fields have a `renew` of
/// their own. A field that is not named does not compile.
macro_rules! copy_fields {
    ($to:ident, $from:expr; $($renewed:ident),*; $($field:ident),+ $(,)?) => {
        let Self { $($renewed,)* $($field,)+ } = $to;
        $($renewed.renew(&$from.$renewed);)*
        $($field.clone_from(&$from.$field);)+
    };
}

pub mod ack_policy;
pub(crate) mod adaptive_acks;
pub(crate) mod closing;
pub mod delivery_rate;
mod disorder;
pub mod ecn;
pub mod endpoint;
pub(crate) mod frto;
mod maybe_offset;
pub(crate) mod pacing;
pub(crate) mod progress;
pub(crate) mod prr;
pub mod rack;
pub mod ranges;
mod receive_buffer;
pub mod receiver;
pub mod recovery;
pub mod rto;
pub mod scoreboard;
pub mod sender;
mod shared;
pub(crate) mod slow_reader;
mod timer_wheel;
mod timestamps;
pub(crate) mod undo;
