//! Feeds `sayso_fuzz::engine` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::engine::check(bytes));
