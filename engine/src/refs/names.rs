//! Names of references: which are allowed, and what short ones mean.

use bstr::{BStr, ByteSlice as _};
use gix_ref::FullName;

use super::Error;

/// Checks a full name, `HEAD` or `refs/…`, by Git's rules. Nothing that passes can leave the folder of references or
/// be taken for a lock file.
pub fn validate(name: impl AsRef<[u8]>) -> Result<FullName, Error> {
    let name = name.as_ref().as_bstr();
    let invalid = |reason: String| Error::Invalid {
        name: name.to_owned(),
        reason,
    };
    if name != "HEAD" && !name.starts_with(b"refs/") {
        return Err(invalid("it does not begin with 'refs/'".to_owned()));
    }
    FullName::try_from(name).map_err(|error| invalid(error.to_string()))
}

/// The places where Git looks for a short name: what comes before it and after it.
const RULES: [(&str, &str); 6] = [
    ("", ""),
    ("refs/", ""),
    ("refs/tags/", ""),
    ("refs/heads/", ""),
    ("refs/remotes/", ""),
    ("refs/remotes/", "/HEAD"),
];

/// What a short name stands for among given references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match<N> {
    /// Nothing.
    None,
    /// This one.
    One(N),
    /// Several, of which these are two; Git refuses to guess.
    Ambiguous(N, N),
}

/// Finds what the source or destination of a push refspec means among the references `names`, by Git's rules: branches
/// and tags by any ending that the rules allow, other references only by their full name or without `refs/`, unless
/// nothing better matches.
pub fn matching<'n>(names: impl IntoIterator<Item = &'n BStr>, short: &BStr) -> Match<&'n BStr> {
    let mut strong = Match::None;
    let mut weak = Match::None;
    for name in names {
        if !stands_for(name, short) {
            continue;
        }
        let clear = name == short
            || name.strip_prefix(b"refs/") == Some(short.as_ref())
            || name.starts_with(b"refs/heads/")
            || name.starts_with(b"refs/tags/");
        let slot = if clear { &mut strong } else { &mut weak };
        *slot = match *slot {
            Match::None => Match::One(name),
            Match::One(first) => Match::Ambiguous(first, name),
            both => both,
        };
    }
    match strong {
        Match::None => weak,
        found => found,
    }
}

fn stands_for(name: &BStr, short: &BStr) -> bool {
    RULES.iter().any(|(before, after)| {
        name.strip_prefix(before.as_bytes())
            .and_then(|rest| rest.strip_suffix(after.as_bytes()))
            == Some(short.as_ref())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_that_escape_or_confuse_are_refused() {
        for name in [
            "refs/heads/main",
            "HEAD",
            "refs/tags/v1.0",
            "refs/heads/ä/ö",
            "refs/x",
            "refs/heads/-",
        ] {
            validate(name).unwrap();
        }
        for name in [
            "",
            "main",
            "refs",
            "refs/",
            "refs//x",
            "refs/heads/",
            "refs/heads/../x",
            "refs/../config",
            "/refs/heads/x",
            "refs/heads/.x",
            "refs/heads/x.lock",
            "refs/heads/x.lock/y",
            "refs/heads/a b",
            "refs/heads/a\\b",
            "refs/heads/a\0b",
            "refs/heads/a\nb",
            "refs/heads/a:b",
            "refs/heads/a*",
            "refs/heads/a@{1}",
            "refs/heads/a.",
            "FETCH_HEAD",
            "worktrees/x/HEAD",
            "main-worktree/HEAD",
            "config",
        ] {
            assert!(validate(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn short_names_mean_what_they_mean_to_push() {
        let names = [
            "refs/heads/main",
            "refs/heads/both",
            "refs/tags/both",
            "refs/remotes/origin/main",
            "refs/remotes/origin/HEAD",
            "refs/notes/x",
            "refs/heads/deep/x",
            "refs/remotes/only",
            "HEAD",
        ]
        .map(BStr::new);
        let find = |short: &str| matching(names, short.into());
        let one = |name: &'static str| Match::One(BStr::new(name));
        assert_eq!(find("main"), one("refs/heads/main"));
        assert_eq!(find("heads/main"), one("refs/heads/main"));
        assert_eq!(find("refs/heads/main"), one("refs/heads/main"));
        assert_eq!(find("origin/main"), one("refs/remotes/origin/main"));
        assert_eq!(find("origin"), one("refs/remotes/origin/HEAD"));
        assert_eq!(find("only"), one("refs/remotes/only"));
        assert_eq!(find("notes/x"), one("refs/notes/x"));
        assert_eq!(find("HEAD"), one("HEAD"));
        assert_eq!(find("x"), Match::None);
        assert_eq!(find(""), Match::None);
        assert!(matches!(find("both"), Match::Ambiguous(..)));
        assert_eq!(find("tags/both"), one("refs/tags/both"));
    }
}
