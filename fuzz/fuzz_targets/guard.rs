//! Feeds `sayso_fuzz::guard` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::guard::check(bytes));
