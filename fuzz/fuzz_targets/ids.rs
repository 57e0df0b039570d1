//! Feeds `sayso_fuzz::ids` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::ids::check(bytes));
