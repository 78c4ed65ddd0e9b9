//! Checks that everything that snapshots promise is there, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use gix_hash::ObjectId;
use gix_object::Kind as ObjectKind;
use ingot_engine::object::tree::Entries;
use ingot_engine::pack::create::StreamDigest;
use ingot_engine::progress::{Progress, Unit};
use ingot_engine::store::{Cache, Store};
use rayon::prelude::*;

use crate::archive::{self, Reader, Snapshot, tree};
use crate::manifest::{self, Kind, Manifest};
use crate::names;

/// What is wrong with one file of one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The newest snapshot that has it.
    pub snapshot: ObjectId,
    /// The file; empty where the snapshot as a whole is meant.
    pub path: Vec<u8>,
    /// What is wrong.
    pub reason: String,
}

/// What was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Snapshots.
    pub snapshots: u64,
    /// Different contents, each read once however many snapshots have it.
    pub contents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// Where a content is promised first.
struct Promise<'a> {
    snapshot: ObjectId,
    path: Vec<u8>,
    size: u64,
    /// BLAKE3 of a file's content, or the content of a link.
    expected: Expected<'a>,
}

enum Expected<'a> {
    Hash([u8; 32]),
    Target(std::borrow::Cow<'a, [u8]>),
}

/// Reads all content of `snapshots` again and compares it with what their manifests say, and their trees with their
/// manifests. Interrupted, it returns `None`.
pub fn verify(
    reader: &mut Reader,
    snapshots: &[Snapshot],
    progress: &dyn Progress,
) -> Result<Option<Verified>, archive::Error> {
    let mut verified = Verified::default();
    let mut promises: BTreeMap<ObjectId, Promise<'static>> = BTreeMap::new();
    for snapshot in snapshots {
        if progress.interrupted() {
            return Ok(None);
        }
        verified.snapshots += 1;
        let fault = |path: &[u8], reason: String| Fault {
            snapshot: snapshot.id,
            path: path.to_vec(),
            reason,
        };
        let manifest = match reader.manifest(&snapshot.id) {
            Ok(manifest) => manifest,
            Err(error) => {
                verified.faults.push(fault(b"", error.to_string()));
                continue;
            }
        };
        for (path, reason) in compare_tree(reader, snapshot, &manifest)? {
            verified.faults.push(fault(&path, reason));
        }
        for entry in manifest.entries {
            let (id, size, expected) = match entry.kind {
                Kind::Folder => continue,
                Kind::File(content) => (content.id, content.size, Expected::Hash(content.blake3)),
                Kind::Link { target, id } => (id, target.len() as u64, Expected::Target(target.into())),
            };
            let promise = Promise {
                snapshot: snapshot.id,
                path: entry.path,
                size,
                expected,
            };
            match promises.get(&id) {
                None => drop(promises.insert(id, promise)),
                Some(first) if first.is_same(&promise) => {}
                Some(_) => {
                    let reason = format!("object {id} is promised with different hashes");
                    verified.faults.push(fault(&promise.path, reason));
                }
            }
        }
    }
    progress.begin("Verifying", Some(promises.len() as u64), Unit::Files);
    let store = &reader.store;
    let found: Vec<(u64, Option<Fault>)> = promises
        .par_iter()
        .map_init(
            || Cache::new(8 << 20),
            |cache, (id, promise)| {
                if progress.interrupted() {
                    return (0, None);
                }
                let reason = promise.check(store, id, cache);
                progress.advance(1);
                let fault = reason.map(|reason| Fault {
                    snapshot: promise.snapshot,
                    path: promise.path.clone(),
                    reason,
                });
                (promise.size, fault)
            },
        )
        .collect();
    progress.end();
    if progress.interrupted() {
        return Ok(None);
    }
    verified.contents = found.len() as u64;
    for (size, fault) in found {
        verified.bytes += size;
        verified.faults.extend(fault);
    }
    Ok(Some(verified))
}

impl Promise<'_> {
    fn is_same(&self, other: &Promise<'_>) -> bool {
        self.size == other.size
            && match (&self.expected, &other.expected) {
                (Expected::Hash(a), Expected::Hash(b)) => a == b,
                (Expected::Target(a), Expected::Target(b)) => a == b,
                // A file may hold what a link says.
                _ => true,
            }
    }

    /// What is wrong, if anything is.
    fn check(&self, store: &Store, id: &ObjectId, cache: &mut Cache) -> Option<String> {
        let mut sink = Sink {
            blake3: blake3::Hasher::new(),
            git: StreamDigest::new(store.format(), ObjectKind::Blob, self.size),
            length: 0,
        };
        match store.stream(id, cache, &mut sink) {
            Err(error) => return Some(error.to_string()),
            Ok(None) => return Some(format!("object {id} is missing")),
            Ok(Some((ObjectKind::Blob, _))) => {}
            Ok(Some((kind, _))) => return Some(format!("object {id} is a {kind}")),
        }
        let hash = *sink.blake3.finalize().as_bytes();
        let expected = match &self.expected {
            Expected::Hash(hash) => *hash,
            Expected::Target(target) => *blake3::hash(target).as_bytes(),
        };
        if sink.length != self.size || hash != expected {
            return Some("its content is not what was captured".to_owned());
        }
        (sink.git.finish() != *id).then(|| format!("object {id} has the content of another one"))
    }
}

struct Sink {
    blake3: blake3::Hasher,
    git: StreamDigest,
    length: u64,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.blake3.update(bytes);
        self.git.update(bytes);
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Differences between the tree below `files/`, which Git tools read, and the manifest, which this program reads.
fn compare_tree(
    reader: &mut Reader,
    snapshot: &Snapshot,
    manifest: &Manifest,
) -> Result<Vec<(Vec<u8>, String)>, archive::Error> {
    let mut expected: BTreeMap<Vec<u8>, (u32, ObjectId)> = BTreeMap::new();
    for entry in &manifest.entries {
        let mode = match (&entry.kind, entry.mode & 0o100 != 0) {
            (Kind::Folder, _) => continue,
            (Kind::File(content), true) => (0o100_755, content.id),
            (Kind::File(content), false) => (0o100_644, content.id),
            (Kind::Link { id, .. }, _) => (0o120_000, *id),
        };
        expected.insert(entry.path.clone(), mode);
    }
    let mut wrong = Vec::new();
    let mut open: Vec<(Vec<u8>, ObjectId)> = Vec::new();
    open.extend(reader.top(&snapshot.id, tree::FILES)?.map(|id| (Vec::new(), id)));
    let mut seen = BTreeSet::new();
    let mut bytes = Vec::new();
    while let Some((folder, id)) = open.pop() {
        let format = reader.store.format();
        match reader.store.read(&id, &mut reader.cache, &mut bytes)? {
            Some(ObjectKind::Tree) => {}
            _ => {
                wrong.push((folder, format!("tree {id} is missing")));
                continue;
            }
        }
        for entry in Entries::new(&bytes, format) {
            let Ok(entry) = entry else {
                wrong.push((folder.clone(), format!("tree {id} cannot be read")));
                break;
            };
            let mut path = folder.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(names::in_folder(entry.name));
            if entry.is_tree() {
                // Paths only get longer, so this ends, but a tree may be made to hold a great many of them.
                if manifest
                    .find(&path)
                    .is_some_and(|entry| entry.kind == Kind::Folder)
                {
                    open.push((path, entry.id.to_owned()));
                } else {
                    wrong.push((
                        path,
                        "its folder is in the tree, but not in the manifest".to_owned(),
                    ));
                }
                continue;
            }
            match expected.get(&path) {
                Some((mode, id)) if *mode == entry.mode && id.as_ref() == entry.id => drop(seen.insert(path)),
                Some(_) => wrong.push((path, "the tree has something else than the manifest".to_owned())),
                None => wrong.push((path, "it is in the tree, but not in the manifest".to_owned())),
            }
        }
    }
    for path in expected.keys().filter(|path| !seen.contains(*path)) {
        if !wrong.iter().any(|(other, _)| manifest::is_in(path, other)) {
            wrong.push((
                path.clone(),
                "it is in the manifest, but not in the tree".to_owned(),
            ));
        }
    }
    Ok(wrong)
}
