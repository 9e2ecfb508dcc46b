//! Explicit congestion notification between the endpoints.
//!
//! Source: RFC 3168, section 6.1. The receiver echoes a mark (ECE) on every
//! acknowledgement until the sender says that it reduced (CWR); the sender
//! reduces at most once per window of data.

/// The sender's response.
#[derive(Clone, Debug)]
pub enum EcnResponse {
    /// Packets are not ECN-capable; echoes are ignored.
    None,
    /// RFC 3168: react as to a loss, once per window.
    Rfc3168 {
        /// Highest data sent when the window was last reduced; `None` before.
        reduced_at: Option<u64>,
        /// CWR is still to be sent.
        cwr: bool,
    },
}

impl EcnResponse {
    /// A response in its initial state.
    pub fn new(enabled: bool) -> Self {
        if enabled {
            Self::Rfc3168 {
                reduced_at: None,
                cwr: false,
            }
        } else {
            Self::None
        }
    }

    /// Whether data packets are ECN-capable.
    #[inline]
    pub fn enabled(&self) -> bool {
        matches!(self, Self::Rfc3168 { .. })
    }

    /// Whether an echo on an acknowledgement up to `ack` calls for a reduction:
    /// only when data sent after the last one is being acknowledged.
    #[inline]
    pub fn calls_for_reduction(&self, ack: u64) -> bool {
        match self {
            Self::None => false,
            Self::Rfc3168 { reduced_at, .. } => reduced_at.is_none_or(|at| ack > at),
        }
    }

    /// Whether the window that includes byte `una` was already reduced.
    pub fn covers(&self, una: u64) -> bool {
        matches!(self, Self::Rfc3168 { reduced_at: Some(at), .. } if una <= *at)
    }

    /// The window was reduced, for whatever reason, with data sent up to `highest`.
    pub fn on_reduction(&mut self, highest: u64) {
        if let Self::Rfc3168 { reduced_at, cwr } = self {
            *reduced_at = Some(highest);
            *cwr = true;
        }
    }

    /// Whether to set CWR on the data segment about to be sent; asks once.
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Rfc3168 { cwr, .. } => std::mem::take(cwr),
        }
    }
}
