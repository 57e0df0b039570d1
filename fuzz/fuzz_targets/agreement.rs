//! Feeds `sayso_fuzz::agreement` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::agreement::check(bytes));
