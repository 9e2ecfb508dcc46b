//! The engine of this process: how modules are compiled, and how calls are bounded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::{Config, Engine};

/// Bytes of memory that an instance may have.
pub const MAX_MEMORY: usize = 64 << 20;
/// The time that one call may take.
pub const MAX_CALL: Duration = Duration::from_secs(5);
/// How often calls are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Returns the engine of this process.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut config = Config::new();
        config
            .cranelift_nan_canonicalization(true)
            .wasm_relaxed_simd(false)
            .wasm_memory64(false)
            .wasm_multi_memory(false)
            .epoch_interruption(true);
        Engine::new(&config).expect("this configuration is supported wherever the engine is")
    })
}

/// Starts the thread that lets calls be looked at, once in each process: a process that was forked has none of its
/// parent's threads.
pub(crate) fn start_ticks() {
    static STARTED: Mutex<Option<u32>> = Mutex::new(None);
    static TICKS: AtomicU32 = AtomicU32::new(0);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let this = std::process::id();
    if *started == Some(this) {
        return;
    }
    *started = Some(this);
    thread::spawn(|| {
        loop {
            thread::sleep(TICK);
            TICKS.fetch_add(1, Ordering::Relaxed);
            engine().increment_epoch();
        }
    });
}
