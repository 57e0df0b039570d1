//! Feeds `sayso_fuzz::metadata` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::metadata::check(bytes));
