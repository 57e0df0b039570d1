//! Feeds `sayso_fuzz::mirrors` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::mirrors::check(bytes));
