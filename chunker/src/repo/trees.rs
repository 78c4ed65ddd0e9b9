//! Trees as lists of files, and the index as trees.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::Mode;
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::object::tree::Entries;
use ingot_engine::pack::create::{Creator, Encoder};
use ingot_engine::store::{Cache, Store};

use crate::Error;

/// What one side has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The mode as the index has it.
    pub mode: Mode,
    /// The blob, or the commit of a submodule.
    pub id: ObjectId,
}

/// All files of a tree by path.
pub type Flat = BTreeMap<BString, Side>;

/// Reads a tree and those in it.
pub fn flatten(store: &Store, root: ObjectId) -> Result<Flat, Error> {
    let mut flat = Flat::new();
    let mut cache = Cache::new(4 << 20);
    let mut waiting = vec![(root, BString::default())];
    let mut bytes = Vec::new();
    while let Some((id, prefix)) = waiting.pop() {
        if id.is_empty_tree() {
            continue;
        }
        match store.read(&id, &mut cache, &mut bytes)? {
            Some(Kind::Tree) => {}
            Some(kind) => return Err(Error::Other(format!("{id} is a {kind} where a tree belongs"))),
            None => return Err(Error::Other(format!("tree {id} is missing"))),
        }
        for entry in Entries::new(&bytes, store.format()) {
            let entry = entry.map_err(|fault| Error::Other(format!("tree {id} is damaged: {fault}")))?;
            let mut path = prefix.clone();
            path.extend_from_slice(entry.name);
            if entry.is_tree() {
                path.push(b'/');
                waiting.push((entry.id.to_owned(), path));
                continue;
            }
            let mode = match entry.mode & 0o170_000 {
                0o120_000 => Mode::SYMLINK,
                0o160_000 => Mode::COMMIT,
                _ if entry.mode & 0o111 != 0 => Mode::FILE_EXECUTABLE,
                _ => Mode::FILE,
            };
            flat.insert(
                path,
                Side {
                    mode,
                    id: entry.id.to_owned(),
                },
            );
        }
    }
    Ok(flat)
}

/// Makes the trees of the index. What the store has is not written again.
pub fn write(
    state: &State,
    store: &Store,
    creator: &mut Creator,
    encoder: &mut Encoder,
) -> Result<ObjectId, Error> {
    let entries: Vec<(&BStr, Mode, ObjectId)> = state
        .entries()
        .iter()
        .map(|entry| (entry.path(state), entry.mode, entry.id))
        .collect();
    folder(&entries, 0, store, creator, encoder)
}

/// The tree of neighbouring entries that share the first `skip` bytes of their paths.
fn folder(
    entries: &[(&BStr, Mode, ObjectId)],
    skip: usize,
    store: &Store,
    creator: &mut Creator,
    encoder: &mut Encoder,
) -> Result<ObjectId, Error> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some((path, mode, id)) = entries.get(at) {
        let rest = &path[skip..];
        let (name, octal, id) = match rest.find_byte(b'/') {
            None => {
                at += 1;
                let octal: &[u8] = match *mode {
                    Mode::FILE_EXECUTABLE => b"100755",
                    Mode::SYMLINK => b"120000",
                    Mode::COMMIT => b"160000",
                    _ => b"100644",
                };
                (rest, octal, *id)
            }
            Some(slash) => {
                let prefix = &path[..skip + slash + 1];
                let count = entries[at..].partition_point(|(path, ..)| path.starts_with(prefix));
                let inner = folder(
                    &entries[at..at + count],
                    skip + slash + 1,
                    store,
                    creator,
                    encoder,
                )?;
                at += count;
                (&rest[..slash], b"40000".as_slice(), inner)
            }
        };
        bytes.extend_from_slice(octal);
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(id.as_bytes());
    }
    let id = encoder.id(Kind::Tree, &bytes);
    if !creator.contains(&id) && !store.contains(&id) {
        creator.add(&encoder.encode_as(id, Kind::Tree, &bytes))?;
    }
    Ok(id)
}
