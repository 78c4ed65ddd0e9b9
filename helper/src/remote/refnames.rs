//! Which reference names the format carries, and which of them a clone checks out.

use bstr::{BStr, ByteSlice as _};

use super::decide::Refs;

/// Whether the full name is that of a branch.
pub fn is_branch(name: &str) -> bool {
    name.starts_with("refs/heads/")
}

/// Whether the full name is that of a tag.
pub fn is_tag(name: &str) -> bool {
    name.starts_with("refs/tags/")
}

/// Whether Git accepts the full name, and a reference file of that name stays inside its folder.
pub fn is_valid(name: &str) -> bool {
    gix_validate::reference::name(name.into()).is_ok() && name != "refs/heads/HEAD"
}

/// The branch that a clone checks out: main, else master, else the only one.
pub fn default_branch(refs: &Refs) -> Option<&str> {
    for name in ["refs/heads/main", "refs/heads/master"] {
        if let Some((name, _)) = refs.get_key_value(name) {
            return Some(name);
        }
    }
    let mut branches = refs.keys().filter(|name| is_branch(name));
    match (branches.next(), branches.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// A name in `refs` that cannot exist beside `name`, because one would be a folder of the other.
pub fn conflict<'a>(name: &str, refs: &'a Refs) -> Option<&'a str> {
    let below = format!("{name}/");
    if let Some((other, _)) = refs.range(below.clone()..).next()
        && other.starts_with(&below)
    {
        return Some(other);
    }
    name.match_indices('/')
        .find_map(|(at, _)| refs.get_key_value(&name[..at]))
        .map(|(other, _)| other.as_str())
}

/// A name for a message: escaped, and at most 200 characters of it.
pub fn shown(name: &BStr) -> String {
    let escaped = name.escape_bytes().to_string();
    match escaped.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &escaped[..at]),
        None => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(names: &[&str]) -> Refs {
        names
            .iter()
            .map(|name| ((*name).to_owned(), gix_hash::Kind::Sha1.null()))
            .collect()
    }

    #[test]
    fn the_default_branch_is_main_then_master_then_the_only_one() {
        let default = |names: &[&str]| default_branch(&refs(names)).map(str::to_owned);
        let (main, master) = ("refs/heads/main", "refs/heads/master");
        assert_eq!(default(&[master, main, "refs/heads/x"]).as_deref(), Some(main));
        assert_eq!(default(&[master, "refs/heads/x"]).as_deref(), Some(master));
        assert_eq!(
            default(&["refs/heads/x", "refs/tags/main"]).as_deref(),
            Some("refs/heads/x")
        );
        assert_eq!(default(&["refs/heads/x", "refs/heads/y"]), None);
        assert_eq!(default(&[]), None);
    }

    #[test]
    fn conflicts_are_found_in_both_directions_and_not_among_look_alikes() {
        let there = refs(&["refs/heads/a", "refs/heads/a-b", "refs/heads/dir/x"]);
        assert_eq!(conflict("refs/heads/a/b/c", &there), Some("refs/heads/a"));
        assert_eq!(conflict("refs/heads/dir", &there), Some("refs/heads/dir/x"));
        assert_eq!(conflict("refs/heads/a-", &there), None);
        assert_eq!(conflict("refs/heads/di", &there), None);
        assert_eq!(conflict("refs/heads/a", &there), None);
    }
}
