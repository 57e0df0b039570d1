//! Feeds `sayso_fuzz::json` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::json::check(bytes));
