//! Feeds `sayso_fuzz::introduction` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::introduction::check(bytes));
