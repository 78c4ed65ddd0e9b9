#![no_main]
#[path = "../bodies/snapshot.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::package_database(data));
