//! Feeds `sayso_fuzz::challenge` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::challenge::check(bytes));
