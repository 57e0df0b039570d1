//! Feeds `sayso_fuzz::credential` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::credential::check(bytes));
