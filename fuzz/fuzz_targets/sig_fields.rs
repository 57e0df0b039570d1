//! Feeds `sayso_fuzz::sig_fields` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::sig_fields::check(bytes));
