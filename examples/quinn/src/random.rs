//! Random bytes that a seed determines, for all crates that take theirs from `getrandom`.
//!
//! quinn takes connection identifiers, and its BBR the phase in which it begins to probe, from `rand::rng()`, which
//! cannot be given a seed. That generator belongs to a thread, and takes its first state from `getrandom`. So a run in a
//! thread of its own, with the function below in place of the operating system, is repeatable.

use std::cell::Cell;
use std::thread;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Runs `run` in a thread whose random bytes follow from `seed`.
pub fn with_seed<R: Send>(seed: u64, run: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            STATE.set(seed);
            run()
        });
        run.join().expect("the run does not panic")
    })
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn next() -> u64 {
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// What `getrandom` calls: see `.cargo/config.toml`.
///
/// # Safety
/// `bytes` points to `length` bytes that may be written.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    bytes: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: `getrandom` passes a slice that it owns; zeros make it one of initialised bytes.
    let bytes = unsafe {
        bytes.write_bytes(0, length);
        std::slice::from_raw_parts_mut(bytes, length)
    };
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&next().to_le_bytes()[..part.len()]);
    }
    Ok(())
}
