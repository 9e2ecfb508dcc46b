//! A library that is loaded before QEMU's own (`LD_PRELOAD`, ld.so(8)), and makes its runs repeatable.
//!
//! It must know nothing of redtail, only functions of QEMU and of C. docs/decisions/0012-virtual-machines.md
//! has the reasons for it.
//!
//! With `-icount sleep=off` the processor's thread counts instructions, and when the guest idles the
//! main thread moves the clock on to the next timer (`icount_start_warp_timer`, softmmu/icount.c). The
//! guest idles for the main thread from the moment its processor halts; the instructions that it had
//! executed until then are added to the clock a little later (`rr_cpu_thread_fn`,
//! accel/tcg/tcg-accel-ops-rr.c). If the main thread comes in between, because it was woken twice or late, the
//! clock is moved too far by as many nanoseconds. Of 24 runs on a busy computer, 2 differed by that.
//!
//! So the main thread, when it wakes up, waits here until the processor's thread waits itself. Then all
//! that it executed is counted.
//!
//! To change threads whenever the guest idles takes longer than all that the guest does in between. So
//! while the main thread has nothing to do, the processor's thread calls the same functions of QEMU that
//! the main thread would. A QEMU without functions of these names does it in the slow way.
//!
//! Besides, QEMU ends with the command that started it.
#![allow(unsafe_code)] // functions of C are replaced and called

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use libc::{
    __errno_location, ETIMEDOUT, FUTEX_PRIVATE_FLAG, FUTEX_WAIT, FUTEX_WAKE, RTLD_DEFAULT,
    RTLD_NEXT, SYS_futex, SYS_gettid, dlsym, getpid, nfds_t, pollfd, pthread_cond_t,
    pthread_mutex_t, sigset_t, syscall, timespec,
};

/// One while the processor's thread waits, zero while it works.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Whether the main thread waits for events.
static POLLING: AtomicBool = AtomicBool::new(false);

/// Whether the processor's thread has moved the clock on by itself.
static JUMPED: AtomicBool = AtomicBool::new(false);

/// How long the main thread waits for events at least, when the processor's thread moves the clock on:
/// within this time it receives a timer of the computer's clock.
static LONG_POLL: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The main thread goes on after this time anyway: a guest may compute for long, and the command
/// must be heard meanwhile.
static LONGEST_WAIT: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;

static NEXT_WAIT: OnceLock<Wait> = OnceLock::new();
static NEXT_WRITE: OnceLock<Write> = OnceLock::new();
static NEXT_POLL: OnceLock<Poll> = OnceLock::new();

/// The environment variable with the number of the process that starts QEMU. What QEMU starts has it not.
const STARTED_BY: &CStr = c"REDTAIL_STARTED_BY";

/// Called when the library is loaded: the kernel ends this process with the one that started it.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = end_with_parent;

extern "C" fn end_with_parent() {
    // SAFETY: it takes a number.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // The one that started it may have ended before, which the kernel does not tell any more.
    // SAFETY: the name ends with a zero, and so does the value that is found; no other thread runs yet.
    unsafe {
        let value = libc::getenv(STARTED_BY.as_ptr());
        if value.is_null() {
            return;
        }
        let started_by = libc::atoi(value);
        libc::unsetenv(STARTED_BY.as_ptr());
        if libc::getppid() != started_by {
            libc::_exit(1);
        }
    }
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
        PROCESSOR.set(true);
        if POLLING.load(Ordering::SeqCst) && jump() {
            return 0; // as if woken: the caller looks again at what it waits for
        }
        tell();
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
    let main = is_main_thread();
    // SAFETY: the caller's argument, which may be null.
    let short = unsafe { timeout.as_ref() }
        .is_some_and(|it| it.tv_sec == 0 && (1..LONG_POLL.tv_nsec).contains(&it.tv_nsec));
    let timeout = if main && short && JUMPED.load(Ordering::SeqCst) {
        &raw const LONG_POLL
    } else {
        timeout
    };
    if main {
        POLLING.store(true, Ordering::SeqCst);
    }
    // SAFETY: the caller's arguments, or a constant.
    let result = unsafe { poll(descriptors, count, timeout, signals) };
    if main {
        POLLING.store(false, Ordering::SeqCst);
        // SAFETY: each thread has its own.
        let errno = unsafe { *__errno_location() };
        wait_for_processor();
        // SAFETY: as above; the caller reads the error of `poll`.
        unsafe { *__errno_location() = errno };
    }
    result
}

/// The number of the guest's clock (`QEMU_CLOCK_VIRTUAL`, qemu/timer.h).
const GUEST_CLOCK: c_int = 1;

type GetProcessor = unsafe extern "C" fn(c_int) -> *mut c_void;
type IsStopped = unsafe extern "C" fn(*mut c_void) -> bool;
type MoveClock = unsafe extern "C" fn();
type RunTimers = unsafe extern "C" fn(c_int) -> bool;

/// What QEMU's main loop does with an idle guest (`main_loop_wait`, util/main-loop.c).
struct Warp {
    get_processor: GetProcessor,
    is_stopped: IsStopped,
    move_clock: MoveClock,
    run_timers: RunTimers,
}

impl Warp {
    /// QEMU's functions; `None` if this build does not have them all under these names.
    fn find() -> Option<Self> {
        let find = |name: &CStr| {
            // SAFETY: the name ends with a zero.
            let found = unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let get_processor = find(c"qemu_get_cpu")?;
        let is_stopped = find(c"cpu_is_stopped")?;
        let move_clock = find(c"icount_start_warp_timer")?;
        let run_timers = find(c"qemu_clock_run_timers")?;
        // SAFETY: QEMU's functions of these names have these types since version 5.2.
        unsafe {
            Some(Self {
                get_processor: transmute::<*mut c_void, GetProcessor>(get_processor),
                is_stopped: transmute::<*mut c_void, IsStopped>(is_stopped),
                move_clock: transmute::<*mut c_void, MoveClock>(move_clock),
                run_timers: transmute::<*mut c_void, RunTimers>(run_timers),
            })
        }
    }
}

static WARP: OnceLock<Option<Warp>> = OnceLock::new();

thread_local! {
    /// Whether this thread is the processor's.
    static PROCESSOR: Cell<bool> = const { Cell::new(false) };
}

/// The event files to which the processor's thread would have written, by number.
static HELD_BACK: AtomicU64 = AtomicU64::new(0);

/// Those files that are known to be event files (eventfd(2)), by number. QEMU opens and closes none once the
/// processor's thread moves the clock.
static EVENT_FILES: AtomicU64 = AtomicU64::new(0);

/// The times that the clock was moved on since events were let out.
static JUMPS: AtomicU32 = AtomicU32::new(0);

/// Events are let out after the clock has been moved on so often.
const JUMPS_BETWEEN: u32 = 64;

/// Writes to a file (write(2)). Whenever the processor's thread moves the clock or meets a timer, QEMU
/// tells its other threads by events. They have no timers of that clock, and would only wait again: what
/// the processor's thread tells them is held back, until it waits itself or for a number of waits of the
/// guest, which does not depend on the computer.
///
/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
    let moves_clock = PROCESSOR.get() && JUMPED.load(Ordering::Relaxed);
    if moves_clock && count == size_of::<u64>() && is_event_file(file) {
        HELD_BACK.fetch_or(1 << file, Ordering::SeqCst);
        return count as isize;
    }
    // SAFETY: the caller's arguments.
    unsafe { write_now(file, bytes, count) }
}

/// # Safety
/// As write(2).
unsafe fn write_now(file: c_int, bytes: *const c_void, count: usize) -> isize {
    let write = NEXT_WRITE.get_or_init(|| {
        // SAFETY: the C library's function of this name has this type.
        unsafe { transmute::<*mut c_void, Write>(next(c"write")) }
    });
    // SAFETY: the caller's arguments.
    unsafe { write(file, bytes, count) }
}

/// Whether this is an event file with a number below 64. All others have a type.
fn is_event_file(file: c_int) -> bool {
    if !(0..64).contains(&file) {
        return false;
    }
    if EVENT_FILES.load(Ordering::Relaxed) >> file & 1 == 1 {
        return true;
    }
    // SAFETY: a stat is plain numbers, for all of which zero is a value.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a stat.
    let is_one =
        unsafe { libc::fstat(file, &raw mut about) } == 0 && about.st_mode & libc::S_IFMT == 0;
    if is_one {
        EVENT_FILES.fetch_or(1 << file, Ordering::Relaxed);
    }
    is_one
}

/// Lets out the events that were held back.
fn tell() {
    JUMPS.store(0, Ordering::Relaxed);
    let mut held_back = HELD_BACK.swap(0, Ordering::SeqCst);
    while held_back != 0 {
        let file = held_back.trailing_zeros() as c_int;
        held_back &= held_back - 1;
        let one = 1u64;
        // SAFETY: the number has as many bytes.
        unsafe { write_now(file, (&raw const one).cast(), size_of::<u64>()) };
    }
}

/// Moves the clock of an idle guest on to its next timer and runs that, in the processor's thread, which
/// holds QEMU's lock. Returns whether there was one.
fn jump() -> bool {
    let Some(warp) = WARP.get_or_init(Warp::find) else {
        return false;
    };
    // SAFETY: the lock is held. The guest has one processor, whose number is 0, and it exists in its thread.
    let jumped = unsafe {
        if (warp.is_stopped)((warp.get_processor)(0)) {
            return false;
        }
        (warp.move_clock)();
        (warp.run_timers)(GUEST_CLOCK)
    };
    JUMPED.store(jumped, Ordering::SeqCst);
    if JUMPS.fetch_add(1, Ordering::Relaxed) >= JUMPS_BETWEEN {
        tell();
    }
    jumped
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
