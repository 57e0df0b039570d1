//! Feeds `sayso_fuzz::answer` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::answer::check(bytes));
