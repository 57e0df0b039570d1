//! Feeds `sayso_fuzz::coaz` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::coaz::check(bytes));
