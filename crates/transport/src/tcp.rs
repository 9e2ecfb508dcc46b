//! The two endpoints of a connection and their parts.

/// Makes a value a copy of another one, field by field and in its place. A copy that is made elsewhere and then
/// moved takes twice the instructions, which matters where a connection opens. The first fields have a `renew` of
/// their own, and the next ones are perhaps in a box. A field that is not named does not compile.
macro_rules! copy_fields {
    ($to:ident, $from:expr; $($renewed:ident),*; $($boxed:ident),*; $($field:ident),+ $(,)?) => {
        let Self { $($renewed,)* $($boxed,)* $($field,)+ } = $to;
        $($renewed.renew(&$from.$renewed);)*
        $($crate::tcp::renew_boxed($boxed, &$from.$boxed);)*
        $($field.clone_from(&$from.$field);)+
    };
}

pub(crate) use copy_fields;

/// Makes what is perhaps in a box a copy of `fresh`, in its place. Most connections have it neither before nor after,
/// and then nothing is done.
#[inline(always)]
pub(crate) fn renew_boxed<T: Clone>(boxed: &mut Option<Box<T>>, fresh: &Option<Box<T>>) {
    if boxed.is_some() | fresh.is_some() {
        copy_boxed(boxed, fresh);
    }
}

#[inline(never)] // the callers are short without it
fn copy_boxed<T: Clone>(boxed: &mut Option<Box<T>>, fresh: &Option<Box<T>>) {
    boxed.clone_from(fresh);
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
pub(crate) mod receive_buffer;
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
