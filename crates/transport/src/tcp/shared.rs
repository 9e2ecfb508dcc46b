//! Values that the endpoints of a group share.

use std::ops::Deref;
use std::sync::Arc;

/// A value that does not change, in one place for all copies.
#[derive(Debug)]
pub(super) struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Becomes a copy of `fresh`. It is mostly one already, and then its place is not touched.
    pub(super) fn renew(&mut self, fresh: &Self) {
        if !Arc::ptr_eq(&self.0, &fresh.0) {
            self.0 = Arc::clone(&fresh.0);
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
