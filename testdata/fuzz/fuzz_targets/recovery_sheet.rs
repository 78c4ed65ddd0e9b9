#![no_main]
#[path = "../bodies/helper.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::recovery_sheet(data));
