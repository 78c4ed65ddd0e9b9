//! From a tree to the entries of an index.

use bstr::{BString, ByteSlice as _};
use gix::index::entry::{Flags, Mode, Stat};
use gix_hash::ObjectId;
use gix_object::Kind;
use gix_object::tree::EntryKind;

use super::Error;
use crate::progress::Progress;
use crate::store::{Cache, Store};

/// Git's limit for trees in trees.
const DEEPEST: usize = 2048;
/// Decoded trees that are kept as delta bases, in bytes.
const CACHE: usize = 4 << 20;

struct Level {
    entries: std::vec::IntoIter<(EntryKind, BString, ObjectId)>,
    /// The length of the path of this tree, with its slash.
    path: usize,
}

/// Reads a tree and all trees in it. The entries come in the order of the trees; nothing is checked but that each
/// name is one.
pub(super) fn collect(
    store: &Store,
    root: ObjectId,
    progress: &dyn Progress,
) -> Result<gix::index::State, Error> {
    let mut index = gix::index::State::new(store.format());
    if root.is_empty_tree() && !store.contains(&root) {
        return Ok(index);
    }
    let mut reader = Reader {
        store,
        cache: Cache::new(CACHE),
        bytes: Vec::new(),
    };
    let mut path = BString::default();
    let mut open = vec![Level {
        entries: reader.tree(root)?,
        path: 0,
    }];
    while let Some(level) = open.last_mut() {
        path.truncate(level.path);
        let Some((kind, name, id)) = level.entries.next() else {
            open.pop();
            continue;
        };
        path.extend_from_slice(&name);
        if name.is_empty() || name.contains(&b'/') {
            return Err(Error::Name {
                path,
                reason: "a name in a tree is empty or contains a slash".to_owned(),
            });
        }
        let mode = match kind {
            EntryKind::Blob => Mode::FILE,
            EntryKind::BlobExecutable => Mode::FILE_EXECUTABLE,
            EntryKind::Link => Mode::SYMLINK,
            EntryKind::Commit => Mode::COMMIT,
            EntryKind::Tree => {
                if open.len() == DEEPEST {
                    return Err(Error::Tree {
                        id: root,
                        message: format!("its folders are more than {DEEPEST} deep"),
                    });
                }
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                path.push(b'/');
                open.push(Level {
                    entries: reader.tree(id)?,
                    path: path.len(),
                });
                continue;
            }
        };
        if u32::try_from(index.entries().len()).is_ok_and(|count| count == u32::MAX) {
            return Err(Error::Tree {
                id: root,
                message: "it has more files than an index can hold".to_owned(),
            });
        }
        index.dangerously_push_entry(Stat::default(), id, Flags::empty(), mode, path.as_bstr());
    }
    Ok(index)
}

struct Reader<'s> {
    store: &'s Store,
    cache: Cache,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    fn tree(&mut self, id: ObjectId) -> Result<std::vec::IntoIter<(EntryKind, BString, ObjectId)>, Error> {
        match self.store.read(&id, &mut self.cache, &mut self.bytes)? {
            Some(Kind::Tree) => {}
            Some(kind) => return Err(Error::NoTree { id, kind }),
            None => return Err(Error::Missing { id }),
        }
        let mut entries = Vec::new();
        for entry in gix_object::TreeRefIter::from_bytes(&self.bytes, self.store.format()) {
            let entry = entry.map_err(|error| Error::Tree {
                id,
                message: error.to_string(),
            })?;
            entries.push((entry.mode.kind(), entry.filename.to_owned(), entry.oid.to_owned()));
        }
        Ok(entries.into_iter())
    }
}
