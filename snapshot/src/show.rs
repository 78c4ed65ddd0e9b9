//! Bytes of paths as people read them.

/// A path on one line: what is no printable text is escaped, so that no name can pass for another or reach a terminal.
pub fn path(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                character if is_unsafe(character) => text.extend(character.escape_default()),
                character => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Control characters, and those that turn the direction of text around.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A path for JSON: a string, and the bytes in hexadecimal where it is not UTF-8.
pub fn json(bytes: &[u8]) -> serde_json::Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => serde_json::json!({ "hex": data_encoding::HEXLOWER.encode(bytes) }),
    }
}

/// Bytes of a path for the system.
pub fn os(bytes: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt as _;
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(super::path(b"a/\xc3\xb6"), "a/\u{f6}");
        assert_eq!(super::path(b"a\nb\x1b[31m\\"), "a\\nb\\u{1b}[31m\\\\");
        assert_eq!(super::path(b"\xff\xfe"), "\\xff\\xfe");
        assert_eq!(super::path("\u{202e}x".as_bytes()), "\\u{202e}x");
    }
}
