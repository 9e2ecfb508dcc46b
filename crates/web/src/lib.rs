//! The engine for a web page: a WebAssembly module that checks and runs experiments.
//!
//! It must not know the page, and decides nothing: what an experiment means is said by `spec`, and what happens by `sim`.
//! The interface is a few functions over the module's memory (docs/decisions/0019-web-module.md): a request in, an
//! answer out, both JSON texts, and beside the answer its columns, numbers of 64 bits one after the other, to which the
//! answer refers as `{"column": [PLACE, LENGTH]}`. `lab/src/wasm.ts` is the other side.
//!
//! ```text
//! redtail_input(LENGTH)  where the page puts a request of this many bytes; 0 if that is too long
//! redtail_call()         carries the request out
//! redtail_output()       where the answer is; redtail_output_length() is its length
//! redtail_columns()      where the columns are; redtail_columns_length() is how many numbers they have
//! redtail_panic()        where the message of a panic is; redtail_panic_length() is its length, 0 without one
//! ```
//!
//! - `desk`: requests and answers; `check`: experiments, and what the page cannot run; `limits`: what bounds memory and
//!   time; `results`: the result of a run as an answer; `interval`: means with intervals, as `redtail.analysis` has them
//! - `catalog.json`: kinds of queues, presets and metrics, made from the Rust types by `make generate`

mod check;
mod desk;
mod interval;
mod limits;
mod results;

use std::cell::RefCell;
use std::sync::{Mutex, Once, PoisonError};

pub use desk::{Answer, Desk};

/// What the page and the module have in common.
#[derive(Default)]
struct Memory {
    input: Vec<u8>,
    answer: Answer,
    desk: Desk,
}

thread_local! {
    /// A module has one thread.
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// The message of a panic, which ends the module: it is read afterwards.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Makes a panic leave its message, once.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|about| {
            *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = about.to_string();
        }));
    });
}

/// Makes room for a request of `length` bytes and returns where; 0 if it is longer than the module takes.
#[allow(unsafe_code)] // the name has to be that by which the page calls it, as for those below
#[unsafe(no_mangle)]
pub extern "C" fn redtail_input(length: usize) -> usize {
    keep_panics();
    if length > limits::MOST_INPUT {
        return 0;
    }
    MEMORY.with_borrow_mut(|memory| {
        memory.input = vec![0; length];
        memory.input.as_mut_ptr() as usize
    })
}

/// Carries out the request in the input.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_call() {
    MEMORY.with_borrow_mut(|memory| {
        let request = std::mem::take(&mut memory.input);
        memory.answer = memory.desk.answer(&request);
    });
}

/// Where the text of the answer is.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_output() -> usize {
    MEMORY.with_borrow(|memory| memory.answer.text.as_ptr() as usize)
}

/// How many bytes the text of the answer has.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_output_length() -> usize {
    MEMORY.with_borrow(|memory| memory.answer.text.len())
}

/// Where the columns of the answer are.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_columns() -> usize {
    MEMORY.with_borrow(|memory| memory.answer.columns.as_ptr() as usize)
}

/// How many numbers the columns of the answer have.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_columns_length() -> usize {
    MEMORY.with_borrow(|memory| memory.answer.columns.len())
}

/// Where the message of a panic is.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_panic() -> usize {
    PANIC
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ptr() as usize
}

/// How many bytes the message of a panic has; 0 if there was none.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn redtail_panic_length() -> usize {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, take_hook};

    use super::*;

    #[test]
    fn a_request_is_answered_in_memory_and_a_panic_leaves_its_message() {
        assert_eq!(redtail_input(limits::MOST_INPUT + 1), 0);
        assert_ne!(redtail_input(3), 0);
        // The page would write here; what is there is no request.
        redtail_call();
        assert_ne!(redtail_output(), 0);
        let answered = redtail_output_length();
        assert!(answered > 0 && redtail_columns_length() == 0);
        assert_eq!(redtail_panic_length(), 0);
        let ended = catch_unwind(|| panic!("a queue broke its contract"));
        let _ = take_hook();
        assert!(ended.is_err() && redtail_panic_length() > 0);
        let message = PANIC.lock().expect("nobody panicked with it").clone();
        assert!(message.contains("a queue broke its contract"), "{message}");
        assert!(message.contains("lib.rs"), "{message}");
    }
}
