//! Feeds `sayso_fuzz::keys` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::keys::check(bytes));
