//! Feeds `sayso_fuzz::jsonrpc` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::jsonrpc::check(bytes));
