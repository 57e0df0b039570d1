//! Feeds `sayso_fuzz::message` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::message::check(bytes));
