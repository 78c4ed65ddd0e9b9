//! Which local references follow which of a store.

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::exit::Failure;
use super::refspec::Refspec;
use crate::remote::decide::Refs;

/// One local reference that follows one of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// Full name in the store.
    pub source: String,
    /// Its value.
    pub id: ObjectId,
    /// Full name here.
    pub destination: BString,
    /// Moves even where history is given up.
    pub force: bool,
}

/// Everything that the refspecs map, and new tags.
pub fn all(specs: &[Refspec], refs: &Refs, tags_are_mapped: bool) -> Vec<Follow> {
    let mut follows = mapped(specs, refs);
    if !tags_are_mapped {
        let known: BTreeSet<BString> = follows.iter().map(|follow| follow.destination.clone()).collect();
        follows.extend(tags(refs).filter(|tag| !known.contains(&tag.destination)));
    }
    follows
}

/// What the refspecs map, by destination.
pub fn mapped(specs: &[Refspec], refs: &Refs) -> Vec<Follow> {
    let mut follows: BTreeMap<BString, Follow> = BTreeMap::new();
    for spec in specs.iter().filter(|spec| spec.destination.is_some()) {
        for (name, id) in refs {
            if let Some(destination) = spec.map(name.as_str().into()) {
                let follow = Follow {
                    source: name.clone(),
                    id: *id,
                    destination: destination.clone(),
                    force: spec.force,
                };
                follows.entry(destination).or_insert(follow);
            }
        }
    }
    follows.into_values().collect()
}

fn tags(refs: &Refs) -> impl Iterator<Item = Follow> {
    refs.iter()
        .filter(|(name, _)| name.starts_with("refs/tags/"))
        .map(|(name, id)| Follow {
            source: name.clone(),
            id: *id,
            destination: name.as_str().into(),
            force: false,
        })
}

/// Where things are to go, and what `FETCH_HEAD` is to hold.
pub type Chosen = (Vec<Follow>, Vec<(String, ObjectId)>);

/// Follows the words of a command line.
pub fn chosen(words: &[BString], specs: &[Refspec], refs: &Refs) -> Result<Chosen, Failure> {
    let mut follows = Vec::new();
    let mut merges = Vec::new();
    for word in words {
        let mut spec = Refspec::parse(word.as_bstr())?;
        let Some(source) = &spec.source else {
            return Err(Failure::usage(format!("a fetch cannot delete: {word}")));
        };
        if spec.is_pattern() {
            follows.extend(mapped(std::slice::from_ref(&spec), refs));
            continue;
        }
        let full = full_name(source.as_bstr(), refs).ok_or_else(|| {
            Failure::failed(format!("couldn't find remote ref {source}")).next("see: git-e2ee ls-remote")
        })?;
        let id = refs[&full];
        spec.source = Some(full.as_str().into());
        if let Some(destination) = &spec.destination
            && !destination.starts_with(b"refs/")
        {
            let kind = if full.starts_with("refs/tags/") {
                "refs/tags/"
            } else {
                "refs/heads/"
            };
            spec.destination = Some(bstr::concat([kind.as_bytes(), destination.as_bytes()]).into());
        }
        let only = Refs::from([(full.clone(), id)]);
        follows.extend(mapped(std::slice::from_ref(&spec), &only));
        // Remote-tracking branches are kept in step on the way.
        follows.extend(mapped(specs, &only));
        merges.push((full, id));
    }
    follows.dedup();
    Ok((follows, merges))
}

fn full_name(name: &BStr, refs: &Refs) -> Option<String> {
    let name = name.to_str().ok()?;
    if name == "HEAD" {
        return crate::remote::refnames::default_branch(refs).map(str::to_owned);
    }
    let candidates = [
        name.to_owned(),
        format!("refs/{name}"),
        format!("refs/tags/{name}"),
        format!("refs/heads/{name}"),
    ];
    candidates
        .into_iter()
        .find(|candidate| refs.contains_key(candidate))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::cli::exit::Code;

    fn refs(names: &[&str]) -> Refs {
        names
            .iter()
            .enumerate()
            .map(|(n, name)| ((*name).to_owned(), ObjectId::from([n as u8 + 1; 20])))
            .collect()
    }

    fn specs(texts: &[&str]) -> Vec<Refspec> {
        texts
            .iter()
            .map(|text| Refspec::parse((*text).into()).unwrap())
            .collect()
    }

    fn pairs(follows: &[Follow]) -> Vec<String> {
        follows
            .iter()
            .map(|follow| format!("{}:{}", follow.source, follow.destination))
            .collect()
    }

    #[test]
    fn branches_are_mapped_and_tags_are_followed() {
        let refs = refs(&["refs/heads/a/b", "refs/heads/main", "refs/tags/v1"]);
        let follows = all(&specs(&["+refs/heads/*:refs/remotes/o/*"]), &refs, false);
        let expected = [
            "refs/heads/a/b:refs/remotes/o/a/b",
            "refs/heads/main:refs/remotes/o/main",
            "refs/tags/v1:refs/tags/v1",
        ];
        assert_eq!(pairs(&follows), expected);
        assert!(!follows[2].force);
        let mirror = all(&specs(&["+refs/*:refs/*"]), &refs, false);
        assert_eq!(pairs(&mirror).len(), 3);
        assert!(mirror.iter().all(|follow| follow.force));
    }

    #[test]
    fn words_name_what_to_fetch() {
        let refs = refs(&["refs/heads/main", "refs/heads/x", "refs/tags/v1", "refs/tags/x"]);
        let tracking = specs(&["+refs/heads/*:refs/remotes/o/*"]);
        let choose = |word: &str| chosen(&[word.into()], &tracking, &refs);
        let (follows, merges) = choose("main").unwrap();
        assert_eq!(pairs(&follows), ["refs/heads/main:refs/remotes/o/main"]);
        assert_eq!(merges[0].0, "refs/heads/main");
        let (follows, _) = choose("main:mine").unwrap();
        assert_eq!(
            pairs(&follows),
            [
                "refs/heads/main:refs/heads/mine",
                "refs/heads/main:refs/remotes/o/main"
            ]
        );
        assert_eq!(choose("x").unwrap().1[0].0, "refs/tags/x");
        assert_eq!(choose("HEAD").unwrap().1[0].0, "refs/heads/main");
        assert_eq!(
            pairs(&choose("+v1:refs/tags/w").unwrap().0),
            ["refs/tags/v1:refs/tags/w"]
        );
        assert!(choose("absent").unwrap_err().to_string().contains("absent"));
        assert_eq!(choose(":gone").unwrap_err().code, Code::Usage);
    }
}
