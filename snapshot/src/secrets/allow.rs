//! What may be stored all the same: by fingerprint, or by a comment on the line.

use std::collections::BTreeSet;

use super::rule::Rule;

/// The comment that allows what is found on its line. `rivet:allow-next` allows the line after it, and names in
/// brackets, as in `rivet:allow(jwt)`, allow the findings of these rules alone.
pub(super) const COMMENT: &str = "rivet:allow";

/// Why an allow-list was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AllowError {
    /// Not a fingerprint as findings show it.
    #[error("{0:?} is not a fingerprint; copy the 32 hexadecimal digits that the finding shows")]
    NotAFingerprint(String),
}

/// Fingerprints of findings that do not block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(BTreeSet<String>);

impl AllowList {
    /// An allow-list of fingerprints as findings show them. Anything after `#` is a remark.
    pub fn new<S: AsRef<str>>(fingerprints: impl IntoIterator<Item = S>) -> Result<AllowList, AllowError> {
        fingerprints
            .into_iter()
            .map(|line| {
                let line = line.as_ref();
                let fingerprint = line.split('#').next().unwrap_or_default().trim();
                if fingerprint.len() == 32 && fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    Ok(fingerprint.to_ascii_lowercase())
                } else {
                    Err(AllowError::NotAFingerprint(line.to_owned()))
                }
            })
            .collect::<Result<_, _>>()
            .map(AllowList)
    }

    /// Whether a finding with this fingerprint may be stored.
    pub fn contains(&self, fingerprint: &str) -> bool {
        self.0.contains(fingerprint)
    }

    /// Names the content of the list, in any order of its entries. A file that was cleared with one list is not
    /// cleared with another that lacks an entry, so whoever remembers that a file was clean remembers this with it.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("ingot rivet allow list v1");
        for fingerprint in &self.0 {
            hasher.update(fingerprint.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}

/// A comment that allows findings on one line.
#[derive(Debug)]
pub(super) struct Comment {
    /// The line whose findings are allowed.
    pub line: u64,
    /// The names in brackets; none for all rules.
    rules: Option<Vec<u8>>,
}

impl Comment {
    /// Reads the comment at the start of `text`, which stands on `line`.
    pub fn read(text: &[u8], line: u64) -> Comment {
        let rest = text.get(COMMENT.len()..).unwrap_or_default();
        let (rest, line) = match rest.strip_prefix(b"-next") {
            Some(rest) => (rest, line + 1),
            None => (rest, line),
        };
        let rules = rest.strip_prefix(b"(").map(|names| {
            let end = names.iter().position(|byte| *byte == b')').unwrap_or(0);
            names[..end].to_vec()
        });
        Comment { line, rules }
    }

    /// Whether it allows this rule.
    pub fn covers(&self, rule: &Rule) -> bool {
        self.rules.as_ref().is_none_or(|names| {
            names
                .split(|byte| *byte == b',')
                .any(|name| name.trim_ascii() == rule.name.as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_checked() {
        let good = "0123456789abcdef0123456789ABCDEF";
        let list = AllowList::new([format!(" {good}  # test key")]).expect("a fingerprint");
        assert!(list.contains(&good.to_ascii_lowercase()));
        for bad in ["", "0123", "g123456789abcdef0123456789abcdef", "# only a remark"] {
            assert!(AllowList::new([bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_digest_follows_the_entries_alone() {
        let (one, two) = ("1".repeat(32), "2".repeat(32));
        let digest = |list: &[&String]| AllowList::new(list).expect("fingerprints").digest();
        assert_eq!(digest(&[&one, &two]), digest(&[&two, &one, &one]));
        assert_ne!(digest(&[&one]), digest(&[&two]));
        assert_ne!(digest(&[]), digest(&[&two]));
    }
}
