//! Feeds `sayso_fuzz::token_answer` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::token_answer::check(bytes));
