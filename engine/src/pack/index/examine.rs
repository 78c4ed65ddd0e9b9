//! What is done with each object while it is in memory: its id, its references, its names, its double in the store.

use std::sync::Arc;

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_validate::path::component;

use super::bases::Base;
use super::error::Error;
use super::references::{Collector, References};
use crate::object::tree::Entry;
use crate::object::tree_delta::{self, Starts};
use crate::object::{self, links};
use crate::store::{Cache, LooseFolders, Store};

/// How much one thread remembers of the store that objects are compared with.
const COMPARE_CACHE: usize = 1024 * 1024;

/// Reads objects as they come by. Each thread has its own.
pub(super) struct Examiner<'a> {
    format: gix_hash::Kind,
    existing: Option<Existing<'a>>,
    safe_names: bool,
    cache: Option<Cache>,
    other: Vec<u8>,
    references: Collector<'a>,
}

/// How an object came about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    /// It is stored as a whole.
    Whole,
    /// It was made from `base` by `delta`; `base` was examined.
    Delta {
        /// The base.
        base: &'a Base,
        /// The delta with its header.
        delta: &'a [u8],
    },
}

/// What is known of an object afterwards.
#[derive(Debug)]
pub(super) struct Examined {
    pub(super) id: ObjectId,
    /// Of a tree, where its entries start.
    pub(super) starts: Option<Arc<Starts>>,
}

/// Objects that were there before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Existing<'a> {
    pub(super) store: &'a Store,
    /// Taken when indexing began: an object that gets a file in the meantime is not compared.
    pub(super) loose: LooseFolders,
}

impl<'a> Existing<'a> {
    pub(super) fn of(store: &'a Store) -> Existing<'a> {
        Existing {
            store,
            loose: LooseFolders::of(store),
        }
    }
}

impl<'a> Examiner<'a> {
    pub(super) fn new(
        format: gix_hash::Kind,
        existing: Option<Existing<'a>>,
        safe_names: bool,
        references: &'a References,
    ) -> Examiner<'a> {
        Examiner {
            format,
            existing,
            safe_names,
            cache: None,
            other: Vec::new(),
            references: Collector::new(references),
        }
    }

    /// Computes the id of an object whose entry starts at `offset`, collects what it refers to, and compares it with an
    /// object of the same id in the store.
    pub(super) fn object(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        origin: Origin<'_>,
        offset: u64,
    ) -> Result<Examined, Error> {
        let mut hasher = hasher(self.format, kind, bytes.len() as u64);
        hasher.update(bytes);
        let id = finish(hasher, offset)?;
        let malformed = |source| Error::Malformed { id, kind, source };
        let starts = match kind {
            Kind::Blob => None,
            Kind::Tree => Some(Arc::new(self.tree(id, bytes, origin)?)),
            Kind::Commit => {
                object::links(kind, bytes, self.format, |link| {
                    self.references.add(link.id, link.kind)
                })
                .map_err(|source| malformed(source.into()))?;
                None
            }
            Kind::Tag => {
                let (target, kind) =
                    links::tag(bytes, self.format).map_err(|source| malformed(source.into()))?;
                self.references.add(&target, Some(kind));
                None
            }
        };
        self.compare(kind, id, bytes)?;
        Ok(Examined { id, starts })
    }

    /// Collects what a tree refers to, unless its base refers to it too and was examined. Names are checked likewise.
    fn tree(&mut self, id: ObjectId, bytes: &[u8], origin: Origin<'_>) -> Result<Starts, Error> {
        let id_length = self.format.len_in_bytes();
        let (mut refused, safe_names) = (None, self.safe_names);
        let mut entry = |entry: Entry<'_>| {
            if safe_names && let Err(reason) = safe_name(entry.name, entry.mode) {
                refused.get_or_insert_with(|| (entry.name.to_owned(), reason));
            }
            if !entry.is_gitlink() {
                let kind = if entry.is_tree() { Kind::Tree } else { Kind::Blob };
                self.references.add(entry.id, Some(kind));
            }
        };
        let mut starts = Starts::default();
        match origin {
            Origin::Whole => tree_delta::all_entries(bytes, id_length, &mut starts, &mut entry),
            Origin::Delta { base, delta } => match &base.starts {
                Some(known) => {
                    tree_delta::changed_entries_from(known, delta, bytes, id_length, &mut starts, &mut entry)
                }
                None => {
                    let mut base_starts = Starts::default();
                    tree_delta::all_entries(&base.bytes, id_length, &mut base_starts, |_| ()).and_then(|()| {
                        tree_delta::changed_entries_from(
                            &base_starts,
                            delta,
                            bytes,
                            id_length,
                            &mut starts,
                            &mut entry,
                        )
                    })
                }
            },
        }
        .map_err(|source| Error::Malformed {
            id,
            kind: Kind::Tree,
            source,
        })?;
        match refused {
            Some((name, reason)) => Err(Error::UnsafeName { id, name, reason }),
            None => Ok(starts),
        }
    }

    /// An object that exists already must be the same.
    fn compare(&mut self, kind: Kind, id: ObjectId, bytes: &[u8]) -> Result<(), Error> {
        let Some(Existing { store, loose }) = self.existing else {
            return Ok(());
        };
        if store.find(&id).is_none() && !(loose.may_hold(&id) && store.contains_loose(&id)) {
            return Ok(());
        }
        let cache = self.cache.get_or_insert_with(|| Cache::new(COMPARE_CACHE));
        let found = store
            .read(&id, cache, &mut self.other)
            .map_err(|source| Error::Existing {
                id,
                source: Box::new(source),
            })?;
        // What vanished in the meantime cannot differ.
        match found {
            Some(other) if other != kind || self.other != bytes => Err(Error::Collision { id }),
            _ => Ok(()),
        }
    }
}

/// SHA-256 as a [`std::io::Write`].
#[derive(Default)]
pub(super) struct Digest(pub(super) sha2::Sha256);

impl std::io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        sha2::Digest::update(&mut self.0, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A hasher that has seen the header of an object.
pub(super) fn hasher(format: gix_hash::Kind, kind: Kind, size: u64) -> gix_hash::Hasher {
    let mut hasher = gix_hash::hasher(format);
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = size;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    hasher.update(kind.as_bytes());
    hasher.update(b" ");
    hasher.update(&digits[at..]);
    hasher.update(b"\0");
    hasher
}

/// The id of the object whose entry starts at `offset`.
pub(super) fn finish(hasher: gix_hash::Hasher, offset: u64) -> Result<ObjectId, Error> {
    hasher
        .try_finalize()
        .map_err(|_| Error::CollisionAttack { offset })
}

/// Refuses the names that Git's transfer checks refuse because a checkout could leave its tree or write into `.git`:
/// empty, `.`, `..`, anything with a slash, and `.git` in every spelling that HFS+ or NTFS take for it.
fn safe_name(name: &bstr::BStr, mode: u32) -> Result<(), component::Error> {
    // Nothing else can be one of them: every spelling starts with a dot, a `g` of `git~1`, or, on HFS+, an ignored
    // code point before the dot.
    let suspicious = match name.first() {
        None | Some(b'.' | b'g' | b'G') => true,
        Some(first) => !first.is_ascii(),
    };
    if !suspicious && !name.contains(&b'/') {
        return Ok(());
    }
    let mode = (mode & 0o170000 == 0o120000).then_some(component::Mode::Symlink);
    let options = component::Options {
        protect_windows: false,
        protect_hfs: true,
        protect_ntfs: true,
    };
    gix_validate::path::component(name, mode, options).map(|_| ())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use bstr::ByteSlice as _;

    use super::*;

    #[test]
    fn names_that_a_checkout_must_not_write() {
        for name in [
            "",
            ".",
            "..",
            ".git",
            ".GIT",
            ".Git",
            "a/b",
            "/",
            "git~1",
            "GIT~1",
            ".git ",
            ".git.",
            ".g\u{200c}it",
            "\u{200c}.git",
            ".git::$INDEX_ALLOCATION",
        ] {
            assert!(
                safe_name(name.as_bytes().as_bstr(), 0o100644).is_err(),
                "{name:?}"
            );
        }
        for name in [
            "a",
            "...",
            ".gitignore",
            ".gitmodules",
            "git",
            "g",
            ".gitx",
            "git~10",
            "con",
            "a\\b",
            "\u{200c}git",
        ] {
            assert!(safe_name(name.as_bytes().as_bstr(), 0o100644).is_ok(), "{name:?}");
        }
        assert!(safe_name(b".gitmodules".as_bstr(), 0o120000).is_err());
    }

    #[test]
    fn ids_are_those_of_whole_objects() {
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            for size in [0usize, 1, 9, 10, 99, 100, 12345] {
                let bytes = vec![b'x'; size];
                let mut hasher = hasher(format, Kind::Blob, size as u64);
                hasher.update(&bytes);
                let expected = gix_object::compute_hash(format, Kind::Blob, &bytes).unwrap();
                assert_eq!(finish(hasher, 0).unwrap(), expected);
            }
        }
    }
}
