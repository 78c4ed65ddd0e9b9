//! The conversions that gix does not make as Git does: identifiers, and the Unicode encodings.

use bstr::{BStr, ByteSlice as _};
use gix_hash::oid;

/// Writes the object's id into `$Id$` and into identifiers that stand there from before, as `$Id: <hex> $`. Leaves
/// alone what other systems may have written, which is what has blanks inside. `None` when there is nothing to do.
pub(super) fn identify(content: &[u8], id: &oid) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = content;
    while let Some(start) = rest.find(b"$Id") {
        let after = &rest[start + 3..];
        let end = match after.first() {
            Some(b'$') => 1,
            Some(b':') => match after.find_byteset(b"$\n") {
                Some(dollar) if after[dollar] == b'$' && is_ours(&after[1..dollar]) => dollar + 1,
                _ => 0,
            },
            _ => 0,
        };
        out.extend_from_slice(&rest[..start + 3]);
        if end > 0 {
            out.extend_from_slice(format!(": {id} $").as_bytes());
        }
        rest = &after[end..];
    }
    if out.is_empty() {
        return None;
    }
    out.extend_from_slice(rest);
    (out != content).then_some(out)
}

/// Whether the text between colon and dollar is one word, if any.
fn is_ours(text: &[u8]) -> bool {
    match text.get(1..).and_then(|text| text.find_byte(b' ')) {
        Some(blank) => blank + 2 == text.len(),
        None => true,
    }
}

/// A Unicode encoding with code units of more than one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    wide: bool,
    big_endian: bool,
    mark: bool,
}

impl Encoding {
    /// Understands the names that Git's `working-tree-encoding` takes for these encodings.
    pub fn by_name(name: &BStr) -> Option<Encoding> {
        let upper = name.to_ascii_uppercase();
        let rest = upper
            .strip_prefix(b"UTF")
            .map(|rest| rest.strip_prefix(b"-").unwrap_or(rest))?;
        let (wide, rest) = match (rest.strip_prefix(b"16"), rest.strip_prefix(b"32")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return None,
        };
        let (big_endian, mark) = match rest {
            // Without an order in its name, the byte order mark tells it.
            b"" => (false, true),
            b"LE" => (false, false),
            b"BE" => (true, false),
            b"LE-BOM" => (false, true),
            b"BE-BOM" => (true, true),
            _ => return None,
        };
        Some(Encoding {
            wide,
            big_endian,
            mark,
        })
    }

    /// Encodes UTF-8 text; `None` when it is none.
    pub fn encode(self, text: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(text).ok()?;
        let mark = self.mark.then_some('\u{feff}');
        let mut out = Vec::with_capacity(text.len() * if self.wide { 4 } else { 2 } + 4);
        let mut units = [0; 2];
        for character in mark.into_iter().chain(text.chars()) {
            if self.wide {
                let unit = u32::from(character);
                out.extend(if self.big_endian {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                });
            } else {
                for unit in character.encode_utf16(&mut units) {
                    out.extend(if self.big_endian {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    });
                }
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_written_as_git_writes_them() {
        let id = gix_hash::ObjectId::null(gix_hash::Kind::Sha1);
        let zeros = "0".repeat(40);
        for (before, after) in [
            ("$Id$", format!("$Id: {zeros} $")),
            ("a $Id$ b $Id:$ c", format!("a $Id: {zeros} $ b $Id: {zeros} $ c")),
            ("$Id: stale $", format!("$Id: {zeros} $")),
            ("$Id:stale$", format!("$Id: {zeros} $")),
            ("$Id: file.c,v 1.2 alice $", String::new()),
            ("$Id: not\nhere $", String::new()),
            ("$Idle$ $id$ $Id", String::new()),
            ("nothing", String::new()),
            ("$Id: x$Id$", format!("$Id: {zeros} $Id$")),
        ] {
            let found =
                identify(before.as_bytes(), &id).map(|out| String::from_utf8_lossy(&out).into_owned());
            assert_eq!(found.unwrap_or_default(), after, "{before}");
        }
    }

    #[test]
    fn encodings_differ_in_width_order_and_mark() {
        let encode = |name: &str| {
            Encoding::by_name(name.into()).and_then(|encoding| encoding.encode("a€𝄞".as_bytes()))
        };
        assert_eq!(
            encode("utf-16le"),
            Some(vec![0x61, 0, 0xac, 0x20, 0x34, 0xd8, 0x1e, 0xdd])
        );
        assert_eq!(
            encode("UTF16BE"),
            Some(vec![0, 0x61, 0x20, 0xac, 0xd8, 0x34, 0xdd, 0x1e])
        );
        assert_eq!(
            encode("UTF-16").map(|out| out[..4].to_vec()),
            Some(vec![0xff, 0xfe, 0x61, 0])
        );
        assert_eq!(
            encode("UTF-32BE-BOM").map(|out| out[..8].to_vec()),
            Some(vec![0, 0, 0xfe, 0xff, 0, 0, 0, 0x61])
        );
        assert_eq!(encode("UTF-8"), None);
        assert_eq!(encode("UTF-16X"), None);
        assert_eq!(
            Encoding::by_name("UTF-16".into()).and_then(|encoding| encoding.encode(b"\xff")),
            None
        );
    }
}
