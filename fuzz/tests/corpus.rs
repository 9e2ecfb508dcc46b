//! The inputs that a fuzzer found to reach different code, run again.

use std::path::Path;
use std::{fs, panic};

use redtail_fuzz::fuzz_one;
use redtail_transport::SenderCounters;

/// Every committed input keeps every invariant, and between them they go everywhere.
#[test]
fn the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/endpoints");
    let mut paths: Vec<_> = fs::read_dir(corpus)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 20, "{} inputs", paths.len());
    let mut all = SenderCounters::default();
    for path in paths {
        let data = fs::read(&path).expect("a readable input");
        let Ok(done) = panic::catch_unwind(|| fuzz_one(&data)) else {
            panic!("{} fails", path.display());
        };
        all += done.unwrap_or_default();
    }
    assert!(all.recoveries > 0 && all.timeouts > 0 && all.ecn_reductions > 0);
    assert!(all.spurious_timeouts > 0 && all.spurious_fast_retransmits > 0);
}

/// A xorshift generator: enough to see that the harness runs at all.
#[test]
fn any_bytes_are_an_input() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for length in 0..2000 {
        let mut bytes = Vec::new();
        for _ in 0..length % 400 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push((state >> 32) as u8);
        }
        if panic::catch_unwind(|| fuzz_one(&bytes)).is_err() {
            panic!("{bytes:?}");
        }
    }
}
