//! How soon the kernel runs the calling thread when it has something to do.

use std::num::NonZeroU64;

/// The time that the thread runs without being interrupted, in nanoseconds: the least that Linux
/// takes (`sched_setattr`, kernel/sched/syscalls.c). A thread with a shorter one is served sooner
/// when it wakes up (I. Stoica, H. Abdel-Wahab, "Earliest eligible virtual deadline first",
/// Old Dominion University TR-95-22, 1995).
const SLICE_NS: u64 = 100_000;

/// Asks the kernel to run the calling thread soon after it wakes up: timers expire when they are due
/// and not up to 50 us later (PR_SET_TIMERSLACK, prctl(2)), and the thread's slice is short. A
/// kernel before 6.12 ignores the latter; what cannot be had is left as it is. Programs that the thread
/// starts get the slice that others have (`SCHED_FLAG_RESET_ON_FORK`), but the thread's slack of timers.
#[allow(unsafe_code)]
pub fn wake_up_soon() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let calling: libc::pid_t = 0;
    let no_flags: libc::c_uint = 0;
    // SAFETY: a sched_attr is plain numbers, for all of which zero is a value.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: the kernel writes at most `size` bytes to `wanted`, which has as many.
    let got = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            calling,
            &raw mut wanted,
            size,
            no_flags,
        )
    };
    if got != 0 || wanted.sched_policy != libc::SCHED_OTHER as u32 {
        return; // a policy that the user has chosen stays
    }
    wanted.sched_runtime = SLICE_NS;
    wanted.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: the kernel reads `wanted`, which says how large it is.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            calling,
            &raw const wanted,
            no_flags,
        )
    };
}
