//! Feeds `sayso_fuzz::ticket` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::ticket::check(bytes));
