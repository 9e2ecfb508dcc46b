//! A hint to the processor's cache.

/// Asks the processor to load `value` into its cache. It affects only the speed, and does nothing
/// on processors without such a hint.
///
/// The engine knows which packets arrive next. With thousands of flows their endpoints are not in
/// the cache, and prefetching them hides the latency of memory (measured in docs/performance.md).
#[inline]
pub fn prefetch<T>(value: &T) {
    prefetch_start(value, size_of::<T>());
}

/// As [`prefetch`], but only the first `bytes` of `value`.
#[inline]
pub fn prefetch_start<T>(value: &T, bytes: usize) {
    let bytes = bytes.min(size_of::<T>());
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = std::ptr::from_ref(value).cast::<i8>();
        let one = |offset: usize| {
            // SAFETY: a prefetch of any address is allowed and cannot fault; this
            // one lies within `value`, or at it if it has no size.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch(start.add(offset), _MM_HINT_T0);
            }
        };
        let mut offset = 0;
        while offset < bytes {
            one(offset);
            offset += LINE;
        }
        // A value may reach into one more cache line than its size suggests.
        if align_of::<T>() < LINE {
            one(bytes.saturating_sub(1));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, bytes);
}

/// As [`prefetch`], but the place behind `values`, to which the next one will be written.
#[inline]
pub fn prefetch_behind<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let next = values.as_ptr_range().end.cast::<i8>();
        // SAFETY: a prefetch of any address is allowed and cannot fault.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch(next, _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
