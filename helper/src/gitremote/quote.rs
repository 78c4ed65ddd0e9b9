//! C-style quoting, the form in which Git passes text that would break a line.

use bstr::{BStr, BString};

/// Text as the rest of a status line: as it is where that is unambiguous, quoted where it holds control characters
/// or looks quoted already.
pub fn if_needed(text: &BStr) -> BString {
    let plain = !text.starts_with(b"\"") && text.iter().all(|&byte| byte >= 0x20 && byte != 0x7f);
    if plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &BStr) -> BString {
    let mut out = BString::from("\"");
    for &byte in text.iter() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            0x0b => out.extend(b"\\v"),
            0x0c => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            0..0x20 | 0x7f => out.extend(format!("\\{byte:03o}").bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

/// Undoes the quoting of a whole value. A value that does not start with a double quote stands for itself;
/// `None` for one that starts with it and is not properly quoted to its end.
pub fn undo(value: &BStr) -> Option<BString> {
    let Some(mut rest) = value.strip_prefix(b"\"") else {
        return Some(value.to_owned());
    };
    let mut out = BString::default();
    loop {
        match rest {
            [b'"'] => return Some(out),
            [b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', after @ ..] => {
                out.push((rest[1] - b'0') << 6 | (rest[2] - b'0') << 3 | (rest[3] - b'0'));
                rest = after;
            }
            [b'\\', escape, after @ ..] => {
                out.push(match escape {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    _ => return None,
                });
                rest = after;
            }
            [b'"' | b'\\', ..] | [] => return None,
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bstr::ByteSlice;

    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in ["fetch first", "größer als \"erlaubt\"", "back\\slash"] {
            assert_eq!(if_needed(text.into()), text);
        }
    }

    #[test]
    fn every_byte_survives_a_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        let text = if_needed(all.as_bstr());
        assert!(!text.contains(&b'\n'));
        assert_eq!(undo(text.as_bstr()).unwrap(), all.as_bstr());
        assert_eq!(undo(if_needed("\"x\"".into()).as_bstr()).unwrap(), "\"x\"");
    }

    #[test]
    fn octal_escapes_as_git_writes_them() {
        assert_eq!(
            undo(r#""refs/heads/gr\303\274n:0""#.into()).unwrap(),
            "refs/heads/grün:0"
        );
    }

    #[test]
    fn broken_quoting_is_refused() {
        for text in [
            "\"",
            "\"open",
            "\"a\"b",
            "\"\\",
            "\"\\q\"",
            "\"\\400\"",
            "\"\\12\"",
        ] {
            assert_eq!(undo(text.into()), None, "{text}");
        }
    }
}
