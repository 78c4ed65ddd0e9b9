#![no_main]
#[path = "../bodies/engine.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::pkt_line(data));
