//! A hint to the processor's cache.

/// Asks the processor to bring `value` into its cache. It changes nothing that
/// can be observed but time, and does nothing on processors without such a hint.
///
/// The engine knows which packets arrive next; with thousands of flows their
/// endpoints are not in the cache, and fetching them ahead hides the wait
/// (docs/performance.md has what it is worth).
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let start = std::ptr::from_ref(value).cast::<i8>();
        // The last byte may lie in a line more than the size suggests.
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
