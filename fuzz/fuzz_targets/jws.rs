//! Feeds `sayso_fuzz::jws` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::jws::check(bytes));
