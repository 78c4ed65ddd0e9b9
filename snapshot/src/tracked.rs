//! Which paths below the root a snapshot is of.
//!
//! A pattern is a path in which names may have wildcards (`*`, `?`, `[…]`, `{…}`), and `**` stands for any number of
//! folders. What a pattern names is tracked with everything below it. While the walk descends, it keeps for each folder
//! the places in the patterns that lead further, so folders that lead nowhere are never listed, and names without
//! wildcards are looked up instead of searched.

use globset::{GlobBuilder, GlobMatcher};

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It leads out of the root, or is no path.
    #[error("'{0}' is no path below the root: it may not be absolute or contain '..'")]
    Outside(String),
    /// A wildcard that cannot be parsed.
    #[error("'{pattern}': {reason}")]
    Wildcard {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Debug, Clone)]
enum Part {
    /// This very name.
    Name(Vec<u8>),
    /// Names of this form.
    Form(Box<GlobMatcher>),
    /// Any number of folders.
    Any,
}

/// The patterns of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Tracked {
    patterns: Vec<Vec<Part>>,
}

/// What is tracked of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything in it.
    All,
    /// What the patterns say from these places on.
    Some(Vec<(usize, usize)>),
}

impl Tracked {
    /// Compiles patterns, which are relative to the root.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Tracked, Error> {
        let patterns = patterns.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(Tracked { patterns })
    }

    /// What is tracked of the root.
    pub fn root(&self) -> Scope {
        let mut places: Vec<_> = (0..self.patterns.len()).map(|pattern| (pattern, 0)).collect();
        if self.close(&mut places) {
            return Scope::All;
        }
        Scope::Some(places)
    }

    /// What is tracked of `name` in a folder of this scope; `None` if nothing is.
    pub fn enter(&self, scope: &Scope, name: &[u8]) -> Option<Scope> {
        let Scope::Some(places) = scope else {
            return Some(Scope::All);
        };
        let mut next = Vec::new();
        for &(pattern, at) in places {
            match &self.patterns[pattern][at] {
                Part::Name(wanted) if wanted == name => next.push((pattern, at + 1)),
                Part::Form(form) if form.is_match(to_path(name)) => next.push((pattern, at + 1)),
                Part::Any => next.push((pattern, at)),
                _ => {}
            }
        }
        if self.close(&mut next) {
            return Some(Scope::All);
        }
        (!next.is_empty()).then_some(Scope::Some(next))
    }

    /// The only names that can be tracked in a folder of this scope, sorted; `None` if the folder has to be listed.
    pub fn names(&self, scope: &Scope) -> Option<Vec<&[u8]>> {
        let Scope::Some(places) = scope else { return None };
        let mut names = Vec::with_capacity(places.len());
        for &(pattern, at) in places {
            match &self.patterns[pattern][at] {
                Part::Name(name) => names.push(name.as_slice()),
                _ => return None,
            }
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    }

    /// Lets `**` stand for no folder. True if a pattern is at its end.
    fn close(&self, places: &mut Vec<(usize, usize)>) -> bool {
        let mut at = 0;
        while let Some(&(pattern, part)) = places.get(at) {
            match self.patterns[pattern].get(part) {
                None => return true,
                Some(Part::Any) => {
                    let next = (pattern, part + 1);
                    if !places.contains(&next) {
                        places.push(next);
                    }
                }
                Some(_) => {}
            }
            at += 1;
        }
        places.sort_unstable();
        places.dedup();
        false
    }
}

fn parse(pattern: &str) -> Result<Vec<Part>, Error> {
    let outside = || Error::Outside(pattern.to_owned());
    if pattern.starts_with('/') || pattern.is_empty() || pattern.contains('\0') {
        return Err(outside());
    }
    let mut parts = Vec::new();
    for name in pattern.split('/') {
        match name {
            "" | "." => {}
            ".." => return Err(outside()),
            "**" => {
                if !matches!(parts.last(), Some(Part::Any)) {
                    parts.push(Part::Any);
                }
            }
            _ if !is_wild(name) => parts.push(Part::Name(unescape(name).into_bytes())),
            _ => {
                let glob = GlobBuilder::new(name)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .build();
                let glob = glob.map_err(|error| Error::Wildcard {
                    pattern: pattern.to_owned(),
                    reason: error.kind().to_string(),
                })?;
                parts.push(Part::Form(Box::new(glob.compile_matcher())));
            }
        }
    }
    Ok(parts)
}

/// Whether a name has a wildcard that no backslash takes away.
fn is_wild(name: &str) -> bool {
    let mut escaped = false;
    for character in name.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '*' | '?' | '[' | '{' => return true,
            _ => {}
        }
    }
    false
}

/// The name that a pattern without wildcards stands for.
fn unescape(pattern: &str) -> String {
    let mut name = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => name.extend(characters.next()),
            character => name.push(character),
        }
    }
    name
}

/// The pattern that names exactly this path.
pub fn escape(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for character in path.chars() {
        if "*?[]{}\\".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

fn to_path(name: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt as _;
    std::path::Path::new(std::ffi::OsStr::from_bytes(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    fn is_tracked(patterns: &[&str], path: &str) -> bool {
        let tracked = Tracked::new(patterns.iter().copied()).unwrap();
        let mut scope = tracked.root();
        for name in path.split('/') {
            match tracked.enter(&scope, name.as_bytes()) {
                Some(next) => scope = next,
                None => return false,
            }
        }
        scope == Scope::All
    }

    #[test]
    fn patterns_and_what_they_track() {
        for (pattern, yes, no) in [
            (".bashrc", vec![".bashrc"], vec![".bashrc2", "a/.bashrc"]),
            (
                ".config/app",
                vec![".config/app", ".config/app/x/y"],
                vec![".config", ".config/apple"],
            ),
            (
                ".config/*/settings.json",
                vec![".config/a/settings.json"],
                vec![".config/settings.json", ".config/a/b/settings.json"],
            ),
            (
                "**/*.conf",
                vec!["a.conf", "x/y/a.conf", "a.conf/inside"],
                vec!["a.con", "x/y"],
            ),
            ("a/**/z", vec!["a/z", "a/b/c/z"], vec!["a", "z", "b/z"]),
            ("[ab]/{x,y}", vec!["a/x", "b/y"], vec!["c/x", "a/z"]),
            (r"odd\*name", vec!["odd*name"], vec!["oddxname"]),
            (".", vec!["anything", "any/thing"], vec![]),
            ("./a/", vec!["a", "a/b"], vec!["b"]),
        ] {
            for path in yes {
                assert!(is_tracked(&[pattern], path), "{pattern} {path}");
            }
            for path in no {
                assert!(!is_tracked(&[pattern], path), "{pattern} {path}");
            }
        }
        assert!(is_tracked(&["a/b", "a/c"], "a/c"));
        assert!(is_tracked(&[&escape("we[ir]d*/{x}\\y")], "we[ir]d*/{x}\\y"));
    }

    #[test]
    fn folders_are_listed_only_for_wildcards() {
        let tracked = Tracked::new([".a", "b/c", "d/*"]).unwrap();
        let root = tracked.root();
        assert_eq!(tracked.names(&root), Some(vec![&b".a"[..], b"b", b"d"]));
        assert_eq!(tracked.names(&tracked.enter(&root, b"d").unwrap()), None);
        assert_eq!(tracked.enter(&root, b"e"), None);
        assert_eq!(tracked.enter(&Scope::All, b"e"), Some(Scope::All));
    }

    #[test]
    fn what_is_no_path_below_the_root() {
        for pattern in ["/etc", "../x", "a/../../b", ""] {
            assert!(Tracked::new([pattern]).is_err(), "{pattern}");
        }
        assert!(Tracked::new(["a["]).unwrap_err().to_string().contains("a["));
    }
}
