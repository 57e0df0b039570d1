//! Feeds `sayso_fuzz::ext_authz` from libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sayso_fuzz::ext_authz::check(bytes));
