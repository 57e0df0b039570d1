//! Feeds `sayso_fuzz::access_token` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::access_token::check(bytes));
