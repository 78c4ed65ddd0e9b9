//! Refs as a manifest carries them: full names and object ids, as text.
//!
//! The chain itself does not look into them; what a client may show or publish is checked here.

use std::collections::BTreeMap;

use bstr::ByteSlice as _;

/// Full ref name to object id, in byte order of the names.
pub type RefMap = BTreeMap<String, String>;

/// What one generation did to one ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// Full name.
    pub name: String,
    /// Object id before, `None` if the generation created the ref.
    pub before: Option<String>,
    /// Object id after, `None` if the generation deleted the ref.
    pub after: Option<String>,
}

/// A ref that no client accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Neither branch nor tag.
    #[error("unsupported ref namespace for {}; only refs/heads/* and refs/tags/* are supported", .0.escape_default())]
    Namespace(String),
    /// Git would not have it.
    #[error("invalid Git ref name {}", .0.escape_default())]
    Name(String),
    /// Not an object id.
    #[error("ref {name} has the value {}, which is not an object id", .value.escape_default())]
    Value {
        /// Full name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Object ids of two formats in one repository.
    #[error("ref {name} names a {seen} object in a {expected} repository")]
    MixedFormats {
        /// Full name.
        name: String,
        /// Format of its value.
        seen: gix_hash::Kind,
        /// Format of the refs before it.
        expected: gix_hash::Kind,
    },
}

/// Checks the name of a ref: a branch or a tag, and valid to Git.
pub fn check_name(name: &str) -> Result<(), Error> {
    if !(name.starts_with("refs/heads/") || name.starts_with("refs/tags/")) {
        return Err(Error::Namespace(name.to_owned()));
    }
    match gix_validate::reference::name(name.as_bytes().as_bstr()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Name(name.to_owned())),
    }
}

/// The object id that is a ref's value.
pub fn object_id(name: &str, value: &str) -> Result<gix_hash::ObjectId, Error> {
    let lower_case = !value.bytes().any(|byte| byte.is_ascii_uppercase());
    gix_hash::ObjectId::from_hex(value.as_bytes())
        .ok()
        .filter(|id| lower_case && !id.is_null())
        .ok_or_else(|| Error::Value {
            name: name.to_owned(),
            value: value.to_owned(),
        })
}

/// Checks all refs of a generation and gives the object format of the repository, `None` if it has no refs.
///
/// A store with a ref that fails here must not be listed, fetched from or pushed to.
pub fn check(refs: &RefMap) -> Result<Option<gix_hash::Kind>, Error> {
    let mut format = None;
    for (name, value) in refs {
        check_name(name)?;
        let seen = object_id(name, value)?.kind();
        let expected = *format.get_or_insert(seen);
        if seen != expected {
            return Err(Error::MixedFormats {
                name: name.clone(),
                seen,
                expected,
            });
        }
    }
    Ok(format)
}

/// What changed between two states, in byte order of the names.
pub(crate) fn changes(before: &RefMap, after: &RefMap) -> Vec<RefChange> {
    let mut changes = Vec::new();
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let value = |entry: Option<(&String, &String)>| entry.map(|(_, value)| value.clone());
        if before != after
            && let Some((name, _)) = before.or(after)
        {
            changes.push(RefChange {
                name: name.clone(),
                before: value(before),
                after: value(after),
            });
        }
    }
}

/// Takes changes back: from the refs after them to the refs before.
pub(crate) fn undo(refs: &mut RefMap, changes: &[RefChange]) {
    for change in changes {
        match &change.before {
            Some(value) => refs.insert(change.name.clone(), value.clone()),
            None => refs.remove(&change.name),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(refs: &[(&str, &str)]) -> RefMap {
        refs.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn changes_can_be_undone() {
        let before = map(&[("a", "1"), ("b", "2"), ("d", "4")]);
        let after = map(&[("b", "3"), ("c", "5"), ("d", "4")]);
        let list = changes(&before, &after);
        assert_eq!(
            list.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        let mut refs = after;
        undo(&mut refs, &list);
        assert_eq!(refs, before);
        assert!(changes(&before, &before).is_empty());
    }

    #[test]
    fn only_valid_branches_and_tags_of_one_format() {
        let (sha1, sha256) = ("1".repeat(40), "2".repeat(64));
        assert_eq!(check(&map(&[])), Ok(None));
        assert_eq!(
            check(&map(&[("refs/heads/a", &sha1)])),
            Ok(Some(gix_hash::Kind::Sha1))
        );
        assert_eq!(
            check(&map(&[("refs/tags/ü", &sha256)])),
            Ok(Some(gix_hash::Kind::Sha256))
        );
        let mixed = check(&map(&[("refs/heads/a", &sha1), ("refs/heads/b", &sha256)]));
        assert!(matches!(mixed, Err(Error::MixedFormats { .. })));
        for name in [
            "HEAD",
            "refs/notes/x",
            "refs/heads",
            "refs/headsx/a",
            "../refs/heads/a",
        ] {
            assert!(
                matches!(check(&map(&[(name, &sha1)])), Err(Error::Namespace(_))),
                "{name}"
            );
        }
        for name in [
            "refs/heads/",
            "refs/heads/../x",
            "refs/heads/a..b",
            "refs/heads/a.lock",
            "refs/heads/a b",
        ] {
            assert!(
                matches!(check(&map(&[(name, &sha1)])), Err(Error::Name(_))),
                "{name}"
            );
        }
        for value in ["", "abc", &"A".repeat(40), &"0".repeat(40), &"g".repeat(40)] {
            assert!(
                matches!(check(&map(&[("refs/heads/a", value)])), Err(Error::Value { .. })),
                "{value}"
            );
        }
    }
}
