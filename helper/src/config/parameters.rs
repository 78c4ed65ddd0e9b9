//! What `git -c name=value` hands to the programs that Git starts.

use bstr::{BStr, BString, ByteSlice};

/// The variable that holds it.
pub const VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// A value of the variable that Git would refuse too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bogus format in {VARIABLE}")]
pub struct ParametersError;

/// Names and values in order. A name without a value means true.
///
/// Each setting is `'name=value'`, `'name'='value'` or `'name'=`, quoted for a shell, and set apart by white space.
pub fn parse(text: &BStr) -> Result<Vec<(BString, Option<BString>)>, ParametersError> {
    let mut settings = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (first, after) = quoted(rest)?;
        let ends = |rest: &[u8]| rest.first().is_none_or(u8::is_ascii_whitespace);
        rest = if ends(after) {
            let setting = match first.split_once_str(b"=") {
                Some((name, value)) => (name.into(), Some(value.into())),
                None => (first, None),
            };
            settings.push(setting);
            after
        } else {
            let after = after.strip_prefix(b"=").ok_or(ParametersError)?;
            let (value, after) = if ends(after) {
                (None, after)
            } else {
                let (value, after) = quoted(after)?;
                (Some(value), after)
            };
            if !ends(after) {
                return Err(ParametersError);
            }
            settings.push((first, value));
            after
        }
        .trim_start();
    }
    Ok(settings)
}

/// One shell-quoted word, `'…'` with `'\''` and `'\!'` inside, and what follows it.
fn quoted(text: &[u8]) -> Result<(BString, &[u8]), ParametersError> {
    let mut out = BString::default();
    let mut rest = text.strip_prefix(b"'").ok_or(ParametersError)?;
    loop {
        let end = rest.find_byte(b'\'').ok_or(ParametersError)?;
        out.extend_from_slice(&rest[..end]);
        match &rest[end + 1..] {
            [b'\\', escaped @ (b'\'' | b'!'), b'\'', after @ ..] => {
                out.push(*escaped);
                rest = after;
            }
            after => return Ok((out, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn both_forms() {
        let text = r"'e2ee.key=/a b=c' 'remote.x.y.e2ee-key'='/it'\''s'\!''  'core.bare'= 'flag'";
        let expected = [
            ("e2ee.key", Some("/a b=c")),
            ("remote.x.y.e2ee-key", Some("/it's!")),
            ("core.bare", None),
            ("flag", None),
        ];
        let expected: Vec<(BString, Option<BString>)> = expected
            .iter()
            .map(|(name, value)| ((*name).into(), value.map(Into::into)))
            .collect();
        assert_eq!(parse(text.into()), Ok(expected));
        assert_eq!(parse("".into()), Ok(Vec::new()));
        assert_eq!(parse("  ".into()), Ok(Vec::new()));
    }

    #[test]
    fn bogus_text() {
        for text in ["plain", "'open", "'a'b", "'a'='b", "'a'='b'c", "'a'=b", r"'a'\x"] {
            assert_eq!(parse(text.into()), Err(ParametersError), "{text}");
        }
    }
}
