//! The secret scan on whole files: what it must not depend on, what it must let pass, how much work it is.

#[path = "secrets/effort.rs"]
mod effort;
#[path = "secrets/look_alikes.rs"]
mod look_alikes;
#[path = "secrets/pieces.rs"]
mod pieces;

use ingot_snapshot::secrets::{AllowList, Finding, Scanner};

/// The findings of a file that is fed at once.
fn scan(path: &str, content: &[u8]) -> Vec<Finding> {
    let scanner = Scanner::new(&AllowList::default());
    let mut file = scanner.file(path.as_bytes());
    file.feed(content);
    file.finish()
}

/// Bytes that look like chance and are the same every time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(next).collect();
    bytes.truncate(length);
    bytes
}

/// The same in hexadecimal digits.
fn hex(seed: u64, digits: usize) -> String {
    let text: String = noise(seed, digits.div_ceil(2))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    text[..digits].to_owned()
}

/// Secrets of several kinds, put together when the test runs.
fn secrets() -> Vec<String> {
    let dashes = "-".repeat(5);
    vec![
        format!("gh{}_{}", "p", &hex(1, 36)),
        format!("password{}k9{}", " = ", &hex(2, 10)),
        format!("AK{}Q2W3E4R5T6Y7U2I3", "IA"),
        format!("postgres{}app:{}@db.lan/x", "://", &hex(3, 12)),
        format!("api_{}: '{}'", "key", &hex(4, 32)),
        format!(
            "{dashes}BEGIN {} KEY{dashes}\n{}\n{}\n",
            "PRIVATE",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDx1y2Z3a4b5c6d",
            &hex(5, 64)
        ),
        format!(
            "eyJhbGciOiJIUzI1NiJ9.{}.{}",
            "eyJzdWIiOiI0NzExIiwiYWRtaW4iOnRydWV9",
            &hex(6, 43)
        ),
        format!("{}:A{}x7Lq2Wz4Rt6Yb8Nm0Vc3Kj5Hg1Fd9Sa", "5176239478", "AE"),
    ]
}
