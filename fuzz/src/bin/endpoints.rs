//! Looks for inputs of [`redtail_fuzz::fuzz_one`] with libFuzzer: `make fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    redtail_fuzz::fuzz_one(data);
});
