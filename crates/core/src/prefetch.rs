//! A hint to the processor's cache.

/// Asks the processor to load `value` into its cache. It affects only the speed, and does nothing
/// on processors without such a hint.
///
/// The engine knows which packets arrive next. With thousands of flows their endpoints are not in
/// the cache, and prefetching them hides the latency of memory (measured in docs/performance-log.md).
#[inline]
pub fn prefetch<T>(value: &T) {
    prefetch_start(value, size_of::<T>());
}

/// As [`prefetch`], but only the first `bytes` of `value`.
#[inline]
pub fn prefetch_start<T>(value: &T, bytes: usize) {
    const LINE: usize = 64;
    let bytes = bytes.min(size_of::<T>());
    let start = std::ptr::from_ref(value).cast::<i8>();
    let mut offset = 0;
    while offset < bytes {
        prefetch_line(start.wrapping_add(offset));
        offset += LINE;
    }
    // A value may reach into one more cache line than its size suggests.
    if align_of::<T>() < LINE {
        prefetch_line(start.wrapping_add(bytes.saturating_sub(1)));
    }
}

/// As [`prefetch`], but the place behind `values`, to which the next one will be written.
#[inline]
pub fn prefetch_behind<T>(values: &[T]) {
    prefetch_line(values.as_ptr_range().end.cast());
}

/// The line of the cache with this address.
#[inline]
fn prefetch_line(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is allowed and cannot fault.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch(address, _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
