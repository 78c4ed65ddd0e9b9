//! Chunks from one repository to another, where Git alone would carry only pointers.
//!
//! Published chunks hang on a reference of their own, [`CHUNKS_REF`]: a commit whose tree names every list and chunk, in
//! folders by the first two digits of their ids. Any Git host keeps and serves that like any other branch.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read, Write};
use std::sync::Arc;

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::{Kind, WriteTo as _};
use ingot_engine::chunked::{self, Pointer};
use ingot_engine::durable;
use ingot_engine::import::{self, Import, Limits};
use ingot_engine::object::tree::Entries;
use ingot_engine::pack::create::{self, Creator, Encoder};
use ingot_engine::pack::inflate::Level;
use ingot_engine::pack::write;
use ingot_engine::progress::Progress;
use ingot_engine::refs::{self, Edit, Expected};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_engine::transport::{self, Address, Direction, Messages, Remote};
use ingot_engine::walk::{self, Request};

use super::network;
use super::reach::reachable;
use crate::Error;
use crate::store::{KEEP, compresses};

/// Where published chunks hang.
pub const CHUNKS_REF: &str = "refs/chunks/store";

/// Another repository.
pub struct Source {
    /// As the user names it.
    pub name: String,
    place: Place,
}

enum Place {
    /// On this machine.
    Here(Box<Repository>),
    /// Behind a server.
    Server(Box<Remote>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// The repository, if it is on this machine.
    pub fn here(&self) -> Option<&Repository> {
        match &self.place {
            Place::Here(repository) => Some(repository),
            Place::Server(_) => None,
        }
    }
}

/// Finds the repository that a remote's name, an address or a path stands for; without a name, `chunk.remote` or
/// `origin`. `None` if no name was given and there is no such remote, or it is one that carries chunks by itself.
pub fn source(
    repository: &Repository,
    name: Option<&str>,
    direction: Direction,
    messages: Arc<dyn Messages>,
) -> Result<Option<Source>, Error> {
    let config = repository.config();
    let configured = config.string("chunk.remote").map(|name| name.to_string());
    let wanted = name.map_or_else(
        || configured.unwrap_or_else(|| "origin".to_owned()),
        str::to_owned,
    );
    let url = match direction {
        Direction::Push => config.string(format!("remote.{wanted}.pushurl")),
        Direction::Fetch => None,
    }
    .or_else(|| config.string(format!("remote.{wanted}.url")));
    let text = match (&url, name) {
        (Some(url), _) => url.clone(),
        (None, Some(name)) => name.into(),
        (None, None) => return Ok(None),
    };
    if text.contains_str("::") && !text.starts_with(b"/") {
        return match name {
            None => Ok(None),
            Some(_) => Err(Error::Other(format!(
                "'{wanted}' carries chunks by itself; use git push and git fetch"
            ))),
        };
    }
    let address = Address::resolve(text.as_bstr(), &config, direction)?;
    let base = repository.work_dir().unwrap_or(repository.git_dir());
    if let Some(path) = address.local_path() {
        return match Repository::open(&base.join(path)) {
            Ok(repository) => Ok(Some(Source {
                name: wanted,
                place: Place::Here(Box::new(repository)),
            })),
            Err(_) if name.is_none() => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
    let options = transport::Options::read(&config, &address)?.folder(base.to_owned());
    Ok(Some(Source {
        name: wanted,
        place: Place::Server(Box::new(Remote::new(address, options, messages))),
    }))
}

/// What was fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Lists and chunks that are new here.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that the other side does not have either.
    pub absent: u64,
}

/// Gets what the pointers lead to and is not here. Every object is checked against its id.
pub fn fetch(
    repository: &Repository,
    source: &Source,
    pointers: &[Pointer],
    progress: &dyn Progress,
) -> Result<Fetched, Error> {
    let other = match &source.place {
        Place::Here(repository) => repository,
        Place::Server(remote) => return network::fetch(repository, remote, pointers, progress),
    };
    let here = repository.store()?;
    let there = other.store()?;
    if here.format() != there.format() {
        return Err(Error::Other(format!(
            "'{}' names its objects by another hash",
            source.name
        )));
    }
    let mut copier = Copier {
        here: &here,
        there: &there,
        creator: Creator::begin(
            repository.objects_dir(),
            here.format(),
            &create::Options::default(),
        ),
        encoder: Encoder::new(here.format(), Level::DEFAULT),
        cache: Cache::new(1 << 20),
        fetched: Fetched::default(),
    };
    let mut seen = HashSet::new();
    for pointer in pointers {
        let mut waiting = vec![(pointer.list, pointer.size, None)];
        while let Some((id, size, level)) = waiting.pop() {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            if !seen.insert(id) {
                continue;
            }
            let Some(bytes) = copier.take(id)? else { continue };
            let list = chunked::List::parse(&bytes, here.format())
                .map_err(|fault| chunked::Error::List { id, fault })?;
            list.check(id, size, level)?;
            let below = list.level().checked_sub(1);
            match list.into_children() {
                chunked::Children::Lists(lists) => {
                    waiting.extend(lists.into_iter().map(|child| (child.id, child.length, below)));
                }
                chunked::Children::Entries(entries) => {
                    for entry in entries {
                        let ids = match entry {
                            chunked::Entry::Chunk { id, .. } => [Some(id), None],
                            chunked::Entry::Delta { delta, base, .. } => [Some(base), Some(delta)],
                            chunked::Entry::Zeros { .. } => [None, None],
                        };
                        for id in ids.into_iter().flatten() {
                            if !here.contains(&id) && seen.insert(id) {
                                copier.take(id)?;
                                progress.advance(1);
                            }
                        }
                    }
                }
            }
        }
    }
    let Copier { creator, fetched, .. } = copier;
    if !creator.is_empty() {
        chunked::mark(&durable::Real, repository.objects_dir())?;
        creator.finish_kept(KEEP)?;
    }
    Ok(fetched)
}

struct Copier<'s> {
    here: &'s Store,
    there: &'s Store,
    creator: Creator,
    encoder: Encoder,
    cache: Cache,
    fetched: Fetched,
}

impl Copier<'_> {
    /// The bytes of an object, which is taken over if it is not here. `None` if nobody has it.
    fn take(&mut self, id: ObjectId) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        if self.here.read(&id, &mut self.cache, &mut bytes)?.is_some() {
            return Ok(Some(bytes));
        }
        match self.there.read_verified(&id, &mut self.cache, &mut bytes)? {
            Some(Kind::Blob) => {}
            Some(kind) => return Err(chunked::Error::NoList { id, kind }.into()),
            None => {
                self.fetched.absent += 1;
                return Ok(None);
            }
        }
        let object = match compresses(&bytes) {
            true => self.encoder.encode_as(id, Kind::Blob, &bytes),
            false => self.encoder.store_as(id, Kind::Blob, &bytes),
        };
        if self.creator.add(&object)? {
            self.fetched.objects += 1;
            self.fetched.bytes += bytes.len() as u64;
        }
        Ok(Some(bytes))
    }
}

/// What was published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Lists and chunks that were not published before.
    pub objects: u64,
    /// Bytes of the pack that brought them.
    pub bytes: u64,
    /// Needed lists and chunks that are not here, so that they could not be published.
    pub absent: u64,
}

/// Publishes every list and chunk that references here lead to.
pub fn push(repository: &Repository, source: &Source, progress: &dyn Progress) -> Result<Pushed, Error> {
    let other = match &source.place {
        Place::Here(repository) => repository,
        Place::Server(remote) => return network::push(repository, remote, progress),
    };
    let mut pushed = Pushed::default();
    let store = repository.store()?;
    let there = other.store()?;
    if store.format() != there.format() {
        return Err(Error::Other(format!(
            "'{}' names its objects by another hash",
            source.name
        )));
    }
    let wanted = gather(repository, &store, &mut pushed, progress)?;
    let old = match refs::resolve(other, CHUNKS_REF) {
        Ok(found) => Some(found.id),
        Err(_) => None,
    };
    let mut folders = match old {
        Some(old) => published(&there, old)?,
        None => BTreeMap::new(),
    };
    for id in wanted {
        if folders.entry(id.first_byte()).or_default().insert(id) {
            pushed.objects += 1;
        }
    }
    if pushed.objects == 0 {
        return Ok(pushed);
    }
    let commit = write_commit(repository, &store, &folders, old)?;
    // The new commit is not in the store that was opened before.
    let store = repository.store()?;
    let haves: Vec<ObjectId> = old.into_iter().collect();
    let request = Request {
        wants: &[commit],
        haves: &haves,
        ..Request::default()
    };
    let objects = walk::enumerate(&store, &request, progress)?;
    let plan = write::plan(&store, &objects, &write::Options::default(), progress)?;
    let options = import::Options {
        keep_message: KEEP.to_owned(),
        ..import::Options::default()
    };
    let mut import = Import::begin(other.objects_dir(), store.format(), options)?;
    let (mut reader, writer) = pipe();
    let received = std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let mut writer = writer;
            plan.stream(&mut writer, &ingot_engine::progress::Silent)
        });
        let received = import.add_pack(&mut reader, &Limits::default(), progress);
        drop(reader);
        let sent = sending
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (sent, received) {
            (Ok(_), Ok(received)) => Ok(received),
            (Ok(_), Err(error)) => Err(Error::from(error)),
            (Err(error), _) => Err(Error::from(error)),
        }
    })?;
    pushed.bytes = received.bytes;
    match import.check(&[commit], &haves, progress)? {
        import::Connectivity::Connected { .. } => {}
        missing => return Err(missing.into()),
    }
    chunked::mark(&durable::Real, other.objects_dir())?;
    import.publish(false)?;
    let edit = Edit::set(refs::validate(CHUNKS_REF)?, commit)
        .expecting(old.map_or(Expected::Absent, Expected::Is))
        .because("git chunk push");
    refs::apply(other, vec![edit])?;
    Ok(pushed)
}

/// Every list and chunk that references here lead to, as far as they are here.
pub(super) fn gather(
    repository: &Repository,
    store: &Store,
    pushed: &mut Pushed,
    progress: &dyn Progress,
) -> Result<BTreeSet<ObjectId>, Error> {
    let mut wanted: BTreeSet<ObjectId> = BTreeSet::new();
    let mut lists = HashSet::new();
    for (_, pointer) in reachable(repository, store, true, progress)? {
        chunked::reach(
            store,
            &pointer,
            &mut Cache::new(0),
            |list| !lists.insert(*list),
            |reached| match store.contains(&reached.id) {
                true => {
                    wanted.insert(reached.id);
                }
                false => pushed.absent += 1,
            },
        )?;
    }
    Ok(wanted)
}

/// The ids that a commit of published chunks names, by their first byte.
pub(super) fn published(store: &Store, commit: ObjectId) -> Result<BTreeMap<u8, BTreeSet<ObjectId>>, Error> {
    let root = crate::repo::commit::tree_of(store, commit)?;
    let mut folders: BTreeMap<u8, BTreeSet<ObjectId>> = BTreeMap::new();
    let mut cache = Cache::new(1 << 20);
    let (mut bytes, mut inner) = (Vec::new(), Vec::new());
    let absent = |id: ObjectId| Error::Other(format!("tree {id} is missing"));
    (store.read(&root, &mut cache, &mut bytes)?).ok_or_else(|| absent(root))?;
    for folder in Entries::new(&bytes, store.format()) {
        let folder = folder.map_err(|fault| Error::Other(format!("tree {root} is damaged: {fault}")))?;
        if !folder.is_tree() {
            continue;
        }
        (store.read(folder.id, &mut cache, &mut inner)?).ok_or_else(|| absent(folder.id.to_owned()))?;
        for entry in Entries::new(&inner, store.format()) {
            let entry =
                entry.map_err(|fault| Error::Other(format!("tree {} is damaged: {fault}", folder.id)))?;
            folders
                .entry(entry.id.first_byte())
                .or_default()
                .insert(entry.id.to_owned());
        }
    }
    Ok(folders)
}

/// Writes the trees and the commit of published chunks into the own repository.
pub(super) fn write_commit(
    repository: &Repository,
    store: &Store,
    folders: &BTreeMap<u8, BTreeSet<ObjectId>>,
    parent: Option<ObjectId>,
) -> Result<ObjectId, Error> {
    let mut creator = Creator::begin(
        repository.objects_dir(),
        store.format(),
        &create::Options::default(),
    );
    let mut encoder = Encoder::new(store.format(), Level::DEFAULT);
    let mut root = Vec::new();
    for (first, ids) in folders {
        let mut tree = Vec::new();
        for id in ids {
            write!(tree, "100644 {}\0", &id.to_string()[2..]).map_err(memory)?;
            tree.extend_from_slice(id.as_bytes());
        }
        let object = encoder.encode(Kind::Tree, &tree);
        write!(root, "40000 {first:02x}\0").map_err(memory)?;
        root.extend_from_slice(object.id.as_bytes());
        if !store.contains(&object.id) {
            creator.add(&object)?;
        }
    }
    let tree = encoder.encode(Kind::Tree, &root);
    creator.add(&tree)?;
    // No name and no time of anybody: the same chunks make the same commit.
    let nobody = gix::actor::Signature {
        name: BString::from("git-chunk"),
        email: BString::default(),
        time: gix::date::Time::new(0, 0),
    };
    let commit = gix_object::Commit {
        tree: tree.id,
        // Earlier states need not stay.
        parents: parent.filter(|id| store.contains(id)).into_iter().collect(),
        author: nobody.clone(),
        committer: nobody,
        encoding: None,
        message: "Chunks of chunked files.\n".into(),
        extra_headers: Vec::new(),
    };
    let mut bytes = Vec::new();
    commit.write_to(&mut bytes).map_err(memory)?;
    let object = encoder.encode(Kind::Commit, &bytes);
    creator.add(&object)?;
    creator.finish()?;
    Ok(object.id)
}

fn memory(error: io::Error) -> Error {
    Error::Other(format!("an object cannot be made: {error}"))
}

/// A bounded pipe between two threads.
fn pipe() -> (PipeReader, PipeWriter) {
    let (sender, receiver) = std::sync::mpsc::sync_channel(8);
    (
        PipeReader {
            receiver,
            piece: Vec::new(),
            at: 0,
        },
        PipeWriter { sender },
    )
}

struct PipeReader {
    receiver: std::sync::mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

struct PipeWriter {
    sender: std::sync::mpsc::SyncSender<Vec<u8>>,
}

impl Read for PipeReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.receiver.recv() {
                Ok(piece) => (self.piece, self.at) = (piece, 0),
                // The other side is done.
                Err(_) => return Ok(0),
            }
        }
        let count = out.len().min(self.piece.len() - self.at);
        out[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.sender.send(bytes.to_vec());
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_pipe_carries_everything_and_notices_its_ends() {
        let (mut reader, mut writer) = pipe();
        let sending = std::thread::spawn(move || {
            for number in 0..100u8 {
                writer.write_all(&vec![number; 1000]).unwrap();
            }
        });
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        sending.join().unwrap();
        assert_eq!(all.len(), 100_000);
        assert!(
            all.chunks(1000)
                .zip(0..)
                .all(|(chunk, number)| chunk.iter().all(|byte| *byte == number))
        );
        let (reader, mut writer) = pipe();
        drop(reader);
        assert!(writer.write_all(b"x").is_err());
    }
}
