//! What is said about a secret, without saying it.

use serde::Serialize;

use super::rule::Rule;

/// Bytes of a fingerprint; twice as many hexadecimal digits.
const FINGERPRINT_BYTES: usize = 16;
/// Separates the fingerprints of this use from every other use of BLAKE3.
const CONTEXT: &str = "ingot rivet secret fingerprint v1";

/// A secret, or what looks like one. Nothing in it gives the secret away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the rule that found it.
    pub rule: &'static str,
    /// What the rule finds, in a few words.
    pub what: &'static str,
    /// The line where it begins, from 1; 0 for a file that may not be captured because of its path.
    pub line: u64,
    /// The public part of the match, and the length of what was left out.
    pub redacted: String,
    /// Names this secret under this rule, wherever it stands. Cannot be turned back into the secret, but whoever has
    /// it can test guesses: a short password stays guessable.
    pub fingerprint: String,
    /// How to capture the file all the same, in one line.
    pub how_to_allow: String,
}

/// The fingerprint of a secret: BLAKE3, derived for this purpose, over the rule's name, a zero byte and the secret,
/// cut to 16 bytes, in hexadecimal.
pub(super) fn fingerprint(rule: &str, secret: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(rule.as_bytes()).update(&[0]).update(secret);
    let hash = hasher.finalize().to_hex();
    hash[..2 * FINGERPRINT_BYTES].to_owned()
}

/// The literal that gave the match away, if the match begins with it, and how much follows.
pub(super) fn redact(rule: &Rule, matched: &[u8], secret: &[u8]) -> String {
    let public = rule
        .literals
        .iter()
        .filter(|literal| {
            let start = matched.get(..literal.len());
            start.is_some_and(|start| {
                start == literal.as_bytes() || !rule.exact && start.eq_ignore_ascii_case(literal.as_bytes())
            })
        })
        .max_by_key(|literal| literal.len())
        .copied()
        .unwrap_or_default();
    let public = public.trim_matches(['"', '\'', ' ', '\t', '\n']);
    let hidden = secret.len()
        - if secret.starts_with(public.as_bytes()) {
            public.len()
        } else {
            0
        };
    format!("{public}…({hidden} bytes)")
}

/// What to do about a finding in a file.
pub(super) fn how_to_allow(path: &[u8], line: Option<u64>, fingerprint: &str) -> String {
    let comment = line.map_or_else(String::new, |line| {
        format!("add the comment {} to line {line}, ", super::allow::COMMENT)
    });
    format!(
        "if it may be stored: {comment}put \"{fingerprint}\" into secrets.allow of config.toml; otherwise: rivet untrack {}",
        quoted(path)
    )
}

/// A path as it can be pasted into a shell, with everything that is no printable ASCII escaped.
fn quoted(path: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,@%".contains(byte);
    if !path.is_empty() && path.iter().all(plain) && path[0] != b'-' {
        return String::from_utf8_lossy(path).into_owned();
    }
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let escaped: String = path
                .iter()
                .map(|byte| match byte {
                    b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                    b' '..=b'~' => char::from(*byte).to_string(),
                    other => format!("\\x{other:02x}"),
                })
                .collect();
            format!("$'{escaped}'")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_depend_on_rule_and_secret() {
        let one = fingerprint("rule", b"secret");
        assert_eq!(one.len(), 32);
        assert_eq!(one, fingerprint("rule", b"secret"));
        assert_ne!(one, fingerprint("rule", b"secreT"));
        assert_ne!(one, fingerprint("rul", b"e\0secret"));
    }

    #[test]
    fn paths_can_be_pasted() {
        assert_eq!(quoted(b".config/a.toml"), ".config/a.toml");
        assert_eq!(quoted(b"it's mine"), r"'it'\''s mine'");
        assert_eq!(quoted("größe".as_bytes()), "'größe'");
        assert_eq!(quoted(b"a\nb'\xff"), r"$'a\x0ab\'\xff'");
        assert_eq!(quoted(b"-rf"), "'-rf'");
        assert_eq!(quoted(b""), "''");
    }
}
