//! A library that is loaded before QEMU's own (`LD_PRELOAD`, ld.so(8)), and makes its runs repeatable.
//!
//! With `-icount sleep=off` the processor's thread counts instructions, and when the guest idles the
//! main thread moves the clock on to the next timer (`icount_start_warp_timer`, softmmu/icount.c). The
//! guest idles for the main thread from the moment its processor halts; the instructions that it had
//! executed until then are added to the clock a little later (`rr_cpu_thread_fn`,
//! accel/tcg/tcg-accel-ops-rr.c). If the main thread comes in between, because it was woken twice or late, the
//! clock is moved too far by as many nanoseconds. Of 24 runs on a busy computer, 2 differed by that.
//!
//! So the main thread, when it wakes up, waits here until the processor's thread waits itself. Then all
//! that it executed is counted. Besides, QEMU ends with the command that started it.
#![allow(unsafe_code)] // functions of C are replaced and called

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{
    __errno_location, ETIMEDOUT, FUTEX_PRIVATE_FLAG, FUTEX_WAIT, FUTEX_WAKE, RTLD_NEXT, SYS_futex,
    SYS_gettid, dlsym, getpid, nfds_t, pollfd, pthread_cond_t, pthread_mutex_t, sigset_t, syscall,
    timespec,
};

/// One while the processor's thread waits, zero while it works.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// The main thread goes on after this time anyway: a guest may compute for long, and the command
/// must be heard meanwhile.
static LONGEST_WAIT: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;

static NEXT_WAIT: OnceLock<Wait> = OnceLock::new();
static NEXT_POLL: OnceLock<Poll> = OnceLock::new();

/// Called when the library is loaded: the kernel ends this process with the one that started it.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = end_with_parent;

extern "C" fn end_with_parent() {
    // SAFETY: it takes a number.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

fn is_main_thread() -> bool {
    // SAFETY: both only return a number.
    unsafe { syscall(SYS_gettid) == i64::from(getpid()) }
}

/// The function of this name that would have been called without this library.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    let found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "the C library has this function");
    found
}

/// Waits for a condition (pthread_cond_wait(3)). The processor's thread is the one that does so besides
/// the main thread, while the guest idles.
///
/// # Safety
/// As pthread_cond_wait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    let wait = NEXT_WAIT.get_or_init(|| {
        // SAFETY: the C library's function of this name has this type.
        unsafe { transmute::<*mut c_void, Wait>(next(c"pthread_cond_wait")) }
    });
    let processor = !is_main_thread();
    if processor {
        WAITING.store(1, Ordering::SeqCst);
        // SAFETY: the futex is a static.
        unsafe {
            syscall(
                SYS_futex,
                WAITING.as_ptr(),
                FUTEX_WAKE | FUTEX_PRIVATE_FLAG,
                1,
            )
        };
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { wait(condition, mutex) };
    if processor {
        WAITING.store(0, Ordering::SeqCst);
    }
    result
}

/// Waits for events (ppoll(2)), and in the main thread until the processor's thread waits as well.
///
/// # Safety
/// As ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    let poll = NEXT_POLL.get_or_init(|| {
        // SAFETY: the C library's function of this name has this type.
        unsafe { transmute::<*mut c_void, Poll>(next(c"ppoll")) }
    });
    // SAFETY: the caller's arguments.
    let result = unsafe { poll(descriptors, count, timeout, signals) };
    if is_main_thread() {
        // SAFETY: each thread has its own.
        let errno = unsafe { *__errno_location() };
        wait_for_processor();
        // SAFETY: as above; the caller reads the error of `poll`.
        unsafe { *__errno_location() = errno };
    }
    result
}

/// Waits until the processor's thread waits, at most for [`LONGEST_WAIT`] at a time.
fn wait_for_processor() {
    while WAITING.load(Ordering::SeqCst) == 0 {
        // SAFETY: the futex and the time are statics.
        let waited = unsafe {
            syscall(
                SYS_futex,
                WAITING.as_ptr(),
                FUTEX_WAIT | FUTEX_PRIVATE_FLAG,
                0,
                &raw const LONGEST_WAIT,
                ptr::null::<u32>(),
                0,
            )
        };
        // SAFETY: each thread has its own.
        if waited != 0 && unsafe { *__errno_location() } == ETIMEDOUT {
            return;
        }
    }
}
