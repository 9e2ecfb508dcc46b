//! A memory allocator that asks for large pages.

use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of the system. On Linux it also asks the kernel to back large allocations with large pages: a run with
/// many flows reads its endpoints in a random order, and each page of 4 KiB that it comes to costs the processor a walk
/// through page tables (measured in docs/performance-log.md). It affects only the speed.
///
/// The kernel grants this unless `/sys/kernel/mm/transparent_hugepage/enabled` says `never`; with `always` it needs no
/// request ("Transparent Hugepage Support" in the kernel's documentation).
#[derive(Clone, Copy, Debug, Default)]
pub struct LargePages;

/// A large page, in bytes: that of x86-64, and of AArch64 with pages of 4 KiB.
const PAGE: usize = 2 << 20;

/// The least allocation for which large pages are asked for, in bytes. Memory that is allocated as zeros is left as it is,
/// because perhaps only a few of its pages will be written.
const LEAST: usize = 2 * PAGE;

// SAFETY: all memory is that of `System`, whose contract is the same. Advice does not change it.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for LargePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same contract.
        let start = unsafe { System.alloc(layout) };
        advise(start, layout.size());
        start
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`.
        unsafe { System.dealloc(start, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size < LEAST || size < layout.size() {
            // SAFETY: as for `alloc`.
            return unsafe { System.realloc(start, layout, size) };
        }
        // The system would move the pages as they are, and most of them are small.
        // SAFETY: the caller ensures that the size is valid for this alignment, and that `layout` is that of what is
        // at `start`, which is as long as what is copied and does not overlap what is allocated here.
        unsafe {
            let larger = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !larger.is_null() {
                std::ptr::copy_nonoverlapping(start, larger, layout.size());
                self.dealloc(start, layout);
            }
            larger
        }
    }
}

/// Asks for large pages for an allocation that begins at `start`, if it is large.
#[inline]
fn advise(start: *mut u8, size: usize) {
    if size >= LEAST && !start.is_null() {
        advise_large(start, size);
    }
}

/// As [`advise`], for a large allocation.
#[cold]
fn advise_large(start: *mut u8, size: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let before = start.align_offset(PAGE);
        if let Some(whole) = size.checked_sub(before).map(|left| left / PAGE * PAGE) {
            let first = start.wrapping_add(before).cast();
            // SAFETY: the range is within the allocation, and the advice changes nothing in it. A refusal changes
            // nothing either.
            #[allow(unsafe_code)]
            let _ = unsafe { madvise(first, whole, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, size);
}
