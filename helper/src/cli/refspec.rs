//! Refspecs: which references a push or a fetch is about.

use bstr::{BStr, BString, ByteSlice};
use gix_hash::ObjectId;

use crate::remote::decide::Refs;
use crate::remote::refnames::shown;

/// `[+]source[:destination]` as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refspec {
    /// Starts with `+`.
    pub force: bool,
    /// What stands before the colon; empty text counts as nothing.
    pub source: Option<BString>,
    /// What stands behind it.
    pub destination: Option<BString>,
}

/// Why a refspec cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its form is wrong.
    #[error("invalid refspec {0}")]
    Syntax(String),
    /// There is no such local reference or revision.
    #[error("src refspec {0} does not match any")]
    NoSource(String),
    /// HEAD names no branch.
    #[error("HEAD is detached; name the destination, as in HEAD:refs/heads/main")]
    Detached,
    /// The destination is short and could mean several references.
    #[error("dst refspec {0} matches more than one reference; write it whole, as in refs/heads/{0}")]
    Ambiguous(String),
    /// The destination is short and nothing tells whether it is a branch or a tag.
    #[error("destination {0} is not a full reference name; write it whole, as in refs/heads/{0}")]
    Unqualified(String),
}

impl Refspec {
    /// Takes a refspec apart. With one `*` on each side, or on the only side, it is a pattern.
    pub fn parse(text: &BStr) -> Result<Refspec, Error> {
        let invalid = || Error::Syntax(shown(text));
        let (force, rest) = match text.strip_prefix(b"+") {
            Some(rest) => (true, rest),
            None => (false, text.as_bytes()),
        };
        let (source, destination) = match rest.rsplit_once_str(b":") {
            Some((source, destination)) => (source, Some(destination)),
            None => (rest, None),
        };
        let nonempty = |text: &[u8]| (!text.is_empty()).then(|| BString::from(text));
        let spec = Refspec {
            force,
            source: nonempty(source),
            destination: destination.and_then(nonempty),
        };
        let stars = |side: &Option<BString>| side.as_ref().map_or(0, |side| side.find_iter(b"*").count());
        let (source_stars, destination_stars) = (stars(&spec.source), stars(&spec.destination));
        let matching = spec.destination.is_none() || source_stars == destination_stars;
        let meaningful = spec.source.is_some() || spec.destination.is_some();
        if rest.starts_with(b"^") || source_stars > 1 || destination_stars > 1 || !matching || !meaningful {
            return Err(invalid());
        }
        Ok(spec)
    }

    /// Whether one side has a `*`.
    pub fn is_pattern(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.contains(&b'*'))
    }

    /// The destination for a full name that the source matches. A spec without destination maps to itself.
    pub fn map(&self, name: &BStr) -> Option<BString> {
        let source = self.source.as_ref()?;
        let Some((before, after)) = source.split_once_str(b"*") else {
            return (source == name).then(|| self.destination.clone().unwrap_or_else(|| name.to_owned()));
        };
        let middle = name.strip_prefix(before)?.strip_suffix(after)?;
        match &self.destination {
            None => Some(name.to_owned()),
            Some(destination) => Some(destination.replacen(b"*", middle, 1).into()),
        }
    }
}

/// What the expansion asks about the local repository.
pub trait Local {
    /// The full name of the branch that HEAD names, even when it has no commit yet.
    fn head(&self) -> Option<BString>;
    /// The object that a revision means; tags are not peeled.
    fn resolve(&self, revision: &BStr) -> Option<ObjectId>;
    /// The full name of the reference that a short or full name means.
    fn full_name(&self, name: &BStr) -> Option<BString>;
    /// Full names and values of all branches and tags, and whatever else lies below `prefix`.
    fn list(&self, prefix: &str) -> Vec<(BString, ObjectId)>;
}

/// One reference to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How the user would call what is pushed; `None` for a deletion.
    pub source: Option<BString>,
    /// Its value.
    pub id: Option<ObjectId>,
    /// Full name in the store.
    pub destination: BString,
    /// Give up what is there.
    pub force: bool,
}

/// Follows push refspecs. `remote` is what the store has: short destinations prefer what exists there.
pub fn expand(specs: &[Refspec], local: &impl Local, remote: &Refs) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for spec in specs {
        match (&spec.source, &spec.destination) {
            (None, Some(destination)) => items.push(Item {
                source: None,
                id: None,
                destination: match existing(destination.as_ref(), remote)? {
                    Some(name) => name,
                    None if destination.starts_with(b"refs/") => destination.clone(),
                    // Git would call this an unqualified destination; a branch is what can be meant.
                    None => bstr::concat([b"refs/heads/", destination.as_bytes()]).into(),
                },
                force: spec.force,
            }),
            (Some(source), _) if spec.is_pattern() => {
                let prefix = source
                    .split_once_str(b"*")
                    .map_or(source.as_bytes(), |(before, _)| before);
                for (name, id) in local.list(&prefix.to_str_lossy()) {
                    if let Some(destination) = spec.map(name.as_ref()) {
                        items.push(Item {
                            source: Some(name),
                            id: Some(id),
                            destination,
                            force: spec.force,
                        });
                    }
                }
            }
            (Some(source), destination) => {
                items.push(single(source, destination.as_ref(), spec.force, local, remote)?)
            }
            (None, None) => return Err(Error::Syntax(":".into())),
        }
    }
    Ok(items)
}

fn single(
    source: &BString,
    destination: Option<&BString>,
    force: bool,
    local: &impl Local,
    remote: &Refs,
) -> Result<Item, Error> {
    let id = local
        .resolve(source.as_ref())
        .ok_or_else(|| Error::NoSource(shown(source.as_ref())))?;
    let full = if source == "HEAD" || source == "@" {
        local.head()
    } else {
        local.full_name(source.as_ref())
    };
    let destination = match destination {
        None => match &full {
            Some(full) => full.clone(),
            None if source == "HEAD" || source == "@" => return Err(Error::Detached),
            None => return Err(Error::Unqualified(shown(source.as_ref()))),
        },
        Some(name) if name.starts_with(b"refs/") => name.clone(),
        Some(name) => match existing(name.as_ref(), remote)? {
            Some(existing) => existing,
            None => {
                let kind = ["refs/heads/", "refs/tags/"]
                    .into_iter()
                    .find(|kind| {
                        full.as_ref()
                            .is_some_and(|full| full.starts_with(kind.as_bytes()))
                    })
                    .ok_or_else(|| Error::Unqualified(shown(name.as_ref())))?;
                bstr::concat([kind.as_bytes(), name.as_bytes()]).into()
            }
        },
    };
    Ok(Item {
        source: Some(source.clone()),
        id: Some(id),
        destination,
        force,
    })
}

/// The reference of the store that a short or full name means.
fn existing(name: &BStr, remote: &Refs) -> Result<Option<BString>, Error> {
    let Ok(text) = name.to_str() else { return Ok(None) };
    let full = [
        text.to_owned(),
        format!("refs/{text}"),
        format!("refs/tags/{text}"),
        format!("refs/heads/{text}"),
    ];
    let mut there = full.into_iter().filter(|full| remote.contains_key(full));
    match (there.next(), there.next()) {
        (Some(_), Some(_)) => Err(Error::Ambiguous(text.to_owned())),
        (found, _) => Ok(found.map(Into::into)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn id(n: u8) -> ObjectId {
        ObjectId::from([n; 20])
    }

    /// Branches main (1) and topic (2), tag v1 (3), a remote-tracking branch (4), HEAD on main.
    struct Repo {
        head: Option<&'static str>,
    }

    const REFS: [(&str, u8); 4] = [
        ("refs/heads/main", 1),
        ("refs/heads/topic", 2),
        ("refs/tags/v1", 3),
        ("refs/remotes/o/main", 4),
    ];

    impl Local for Repo {
        fn head(&self) -> Option<BString> {
            self.head.map(Into::into)
        }
        fn resolve(&self, revision: &BStr) -> Option<ObjectId> {
            match revision.as_bytes() {
                b"HEAD" | b"@" | b"main~0" => Some(id(1)),
                _ if revision.len() == 40 => ObjectId::from_hex(revision).ok(),
                _ => self
                    .full_name(revision)
                    .map(|full| id(REFS.iter().find(|(name, _)| full == *name).unwrap().1)),
            }
        }
        fn full_name(&self, name: &BStr) -> Option<BString> {
            ["", "refs/tags/", "refs/heads/", "refs/remotes/"]
                .into_iter()
                .map(|prefix| format!("{prefix}{name}"))
                .find(|full| REFS.iter().any(|(name, _)| full == name))
                .map(Into::into)
        }
        fn list(&self, prefix: &str) -> Vec<(BString, ObjectId)> {
            REFS.iter()
                .filter(|(name, _)| name.starts_with(prefix))
                .map(|(name, n)| ((*name).into(), id(*n)))
                .collect()
        }
    }

    fn expanded(specs: &[&str], remote: &[&str]) -> Result<Vec<(String, String)>, Error> {
        let specs: Vec<_> = specs
            .iter()
            .map(|spec| Refspec::parse((*spec).into()).unwrap())
            .collect();
        let remote: Refs = remote.iter().map(|name| ((*name).to_owned(), id(9))).collect();
        let items = expand(
            &specs,
            &Repo {
                head: Some("refs/heads/main"),
            },
            &remote,
        )?;
        Ok(items
            .into_iter()
            .map(|item| {
                let plus = if item.force { "+" } else { "" };
                (
                    format!("{plus}{}", item.source.unwrap_or_default()),
                    item.destination.to_string(),
                )
            })
            .collect())
    }

    #[track_caller]
    fn one(spec: &str, remote: &[&str]) -> String {
        let items = expanded(&[spec], remote).unwrap();
        assert_eq!(items.len(), 1);
        format!("{}:{}", items[0].0, items[0].1)
    }

    #[test]
    fn destinations_that_are_not_written_out() {
        assert_eq!(one("main", &[]), "main:refs/heads/main");
        assert_eq!(one("+v1", &[]), "+v1:refs/tags/v1");
        assert_eq!(one("HEAD", &[]), "HEAD:refs/heads/main");
        assert_eq!(one("HEAD:x", &[]), "HEAD:refs/heads/x");
        assert_eq!(one("v1:x", &[]), "v1:refs/tags/x");
        assert_eq!(one("main:x", &["refs/tags/x"]), "main:refs/tags/x");
        assert_eq!(
            one("refs/heads/topic:refs/heads/a/b", &[]),
            "refs/heads/topic:refs/heads/a/b"
        );
        assert_eq!(one("main~0:refs/heads/x", &[]), "main~0:refs/heads/x");
        assert_eq!(one("main~0:x", &["refs/heads/x"]), "main~0:refs/heads/x");
        let raw = "ab".repeat(20);
        assert_eq!(
            one(&format!("{raw}:refs/tags/x"), &[]),
            format!("{raw}:refs/tags/x")
        );
    }

    #[test]
    fn deletions() {
        assert_eq!(one(":topic", &["refs/heads/topic"]), ":refs/heads/topic");
        assert_eq!(one("+:v1", &["refs/tags/v1"]), "+:refs/tags/v1");
        assert_eq!(one(":gone", &[]), ":refs/heads/gone");
        assert_eq!(one(":refs/tags/gone", &[]), ":refs/tags/gone");
    }

    #[test]
    fn patterns() {
        let items = expanded(&["+refs/heads/*:refs/heads/copy/*"], &[]).unwrap();
        let expected = [
            ("+refs/heads/main", "refs/heads/copy/main"),
            ("+refs/heads/topic", "refs/heads/copy/topic"),
        ];
        assert_eq!(items, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(one("refs/tags/*", &[]), "refs/tags/v1:refs/tags/v1");
        let spec = Refspec::parse("refs/*/x:refs/y/*".into()).unwrap();
        assert_eq!(spec.map("refs/a/b/x".into()).unwrap(), "refs/y/a/b");
        assert_eq!(spec.map("refs/a".into()), None);
    }

    #[test]
    fn what_cannot_be_meant() {
        assert_eq!(
            expanded(&["nothing"], &[]),
            Err(Error::NoSource("nothing".into()))
        );
        assert_eq!(expanded(&["main~0:x"], &[]), Err(Error::Unqualified("x".into())));
        assert_eq!(
            expanded(&["main~0"], &[]),
            Err(Error::Unqualified("main~0".into()))
        );
        let both = ["refs/heads/x", "refs/tags/x"];
        assert_eq!(expanded(&["main:x"], &both), Err(Error::Ambiguous("x".into())));
        assert_eq!(expanded(&[":x"], &both), Err(Error::Ambiguous("x".into())));
        let detached = expand(
            &[Refspec::parse("HEAD".into()).unwrap()],
            &Repo { head: None },
            &Refs::new(),
        );
        assert_eq!(detached, Err(Error::Detached));
    }

    #[test]
    fn malformed_specs() {
        for text in [
            "",
            "+",
            ":",
            "+:",
            "a*b*",
            "a*:b",
            "a:b*",
            "^refs/heads/x",
            "a*:b*c*",
        ] {
            assert_eq!(
                Refspec::parse(text.into()),
                Err(Error::Syntax(text.into())),
                "{text}"
            );
        }
    }
}
