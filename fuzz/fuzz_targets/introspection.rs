//! Feeds `sayso_fuzz::introspection` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::introspection::check(bytes));
