//! Feeds `sayso_fuzz::asked` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::asked::check(bytes));
