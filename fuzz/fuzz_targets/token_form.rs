//! Feeds `sayso_fuzz::token_form` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::token_form::check(bytes));
