//! State that most senders do without.

use super::linux::LinuxStates;
use super::loss_probe::RackTimers;
use super::persist::Persist;
use crate::tcp::ecn::EcnResponse;
use crate::tcp::prr::Prr;
use crate::tcp::renew_boxed;
use crate::tcp::undo::Undo;

/// The response to marks of a sender without optional state.
static NO_ECN: EcnResponse = EcnResponse::None;

/// The state that most senders do without, behind one pointer, so that they stay small.
#[derive(Clone, Debug, Default)]
pub(super) struct Optional(Option<Box<OptionalState>>);

/// Defines the state and for each of its parts the functions that return it, if it is there: as it is, and to be
/// changed.
macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident, $changed:ident: $type:ty,)+) => {
        /// The parts.
        #[derive(Debug, Default)]
        pub(super) struct OptionalState {
            $($(#[$doc])* pub $part: Option<Box<$type>>,)+
            /// The response to marks.
            pub ecn: EcnResponse,
        }

        impl Clone for OptionalState {
            fn clone(&self) -> Self {
                Self {
                    $($part: self.$part.clone(),)+
                    ecn: self.ecn.clone(),
                }
            }

            // Connections become copies of others, and keep the memory of the parts.
            fn clone_from(&mut self, from: &Self) {
                $(self.$part.clone_from(&from.$part);)+
                self.ecn.clone_from(&from.ecn);
            }
        }

        impl Optional {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $part(&self) -> Option<&$type> {
                    self.0.as_ref()?.$part.as_deref()
                }

                $(#[$doc])*
                #[inline]
                pub fn $changed(&mut self) -> Option<&mut $type> {
                    self.0.as_mut()?.$part.as_deref_mut()
                }
            )+
        }
    };
}

parts! {
    /// The reduction that is being spread over a round trip, if there is one.
    prr, prr_mut: Prr,
    /// Set if losses are detected by time.
    timers, timers_mut: RackTimers,
    /// Set if spurious reductions are detected.
    undo, undo_mut: Undo,
    /// Set if losses are repaired in the states of Linux.
    linux, linux_mut: LinuxStates,
    /// Set while the peer's window prevents sending.
    persist, persist_mut: Persist,
}

impl Optional {
    /// This state, or none if no part is there.
    pub fn new(state: OptionalState) -> Self {
        let OptionalState {
            prr,
            timers,
            undo,
            linux,
            persist,
            ecn,
        } = &state;
        let is_needed = prr.is_some()
            || timers.is_some()
            || undo.is_some()
            || linux.is_some()
            || persist.is_some()
            || ecn.enabled();
        Self(is_needed.then(|| Box::new(state)))
    }

    /// Becomes a copy of `fresh`. Keeps memory.
    #[inline]
    pub fn renew(&mut self, fresh: &Self) {
        renew_boxed(&mut self.0, &fresh.0);
    }

    /// The parts, to which one is added.
    pub fn add(&mut self) -> &mut OptionalState {
        self.0.get_or_insert_default()
    }

    /// Ends the reduction that is being spread.
    pub fn drop_prr(&mut self) {
        if let Some(state) = &mut self.0 {
            state.prr = None;
        }
    }

    /// Ends the reduction that is being spread if `ack` ends it. Returns whether it does.
    #[inline]
    pub fn end_prr_at(&mut self, ack: u64) -> bool {
        let state = self.0.as_mut();
        state.is_some_and(|state| state.prr.take_if(|prr| prr.ends_at(ack)).is_some())
    }

    /// Takes the states of Linux out, while the sender that has them is used as a whole.
    #[inline]
    pub fn take_linux(&mut self) -> Option<Box<LinuxStates>> {
        self.0.as_mut()?.linux.take()
    }

    /// The peer's window no longer prevents sending. Returns whether it did.
    pub fn drop_persist(&mut self) -> bool {
        let state = self.0.as_mut();
        state.is_some_and(|state| state.persist.take().is_some())
    }

    /// The response to marks.
    #[inline]
    pub fn ecn(&self) -> &EcnResponse {
        self.0.as_ref().map_or(&NO_ECN, |state| &state.ecn)
    }

    /// The response to marks, unless there is certainly none.
    #[inline]
    pub fn ecn_mut(&mut self) -> Option<&mut EcnResponse> {
        Some(&mut self.0.as_mut()?.ecn)
    }
}
