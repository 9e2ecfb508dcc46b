//! A hint to the processor's cache.

/// Asks the processor to load `value` into its cache. It affects only the speed, and does nothing
/// on processors without such a hint.
///
/// The engine knows which packets arrive next. With thousands of flows their endpoints are not in
/// the cache, and prefetching them hides the latency of memory (measured in docs/performance.md).
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = std::ptr::from_ref(value).cast::<i8>();
        // An unaligned value may reach into one more cache line than its size suggests.
        let last = size_of::<T>().saturating_sub(1);
        for offset in (0..last).step_by(LINE).chain([last]) {
            // SAFETY: a prefetch of any address is allowed and cannot fault; this
            // one lies within `value`.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch(start.add(offset), _MM_HINT_T0);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
