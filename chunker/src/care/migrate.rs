//! Rewrites history: big files become chunked ones, or chunked ones ordinary files.
//!
//! Commits keep their authors, times and messages, and lose signatures that would no longer be right. Old references
//! stay under `refs/original/`.

use std::collections::{BTreeMap, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::{Kind, WriteTo as _};
use ingot_engine::chunked::{self, RestoreOptions, pointer_length};
use ingot_engine::object::tree::{Entries, Entry};
use ingot_engine::pack::create::{self, Creator, Encoder};
use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Progress;
use ingot_engine::refs::{self, Edit, Expected};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};

use crate::Error;
use crate::attributes::line_of;
use crate::error::During as _;
use crate::repo::{Change, Index, flatten, status};
use crate::store::{Source, Writer};

/// What to rewrite.
#[derive(Debug, Clone)]
pub struct Migration {
    /// Which files, as `.gitattributes` names them.
    pub patterns: Vec<String>,
    /// Only files of at least so many bytes.
    pub above: u64,
    /// From chunked files to ordinary ones.
    pub back: bool,
    /// Only counts.
    pub dry_run: bool,
}

/// What was rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Commits that were looked at.
    pub commits: u64,
    /// Those that are different now.
    pub changed_commits: u64,
    /// Different versions of files that were converted.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// References with what they held and hold.
    pub references: Vec<(BString, ObjectId, ObjectId)>,
}

/// Rewrites everything that branches and tags lead to. The work tree must be clean.
pub fn migrate(
    repository: &Repository,
    migration: &Migration,
    progress: &dyn Progress,
) -> Result<Rewritten, Error> {
    if repository.is_shallow()? {
        return Err(Error::Other(
            "history that was cut off cannot be rewritten; fetch all of it first".to_owned(),
        ));
    }
    let in_work_tree = repository.work_dir().is_some();
    if in_work_tree && !migration.dry_run {
        let status = status::status(repository)?;
        let changed = |line: &&status::Line| line.staged != status::Letter::Untracked;
        if let Some(line) = status.lines.iter().find(changed) {
            return Err(Error::LocalChanges {
                paths: vec![line.path.clone()],
            });
        }
    }
    let store = repository.store()?;
    let mut rewriter = Rewriter {
        store: &store,
        migration,
        writer: Writer::new(repository, &store),
        creator: Creator::begin(
            repository.objects_dir(),
            store.format(),
            &create::Options::default(),
        ),
        encoder: Encoder::new(store.format(), Level::DEFAULT),
        cache: Cache::new(8 << 20),
        blobs: HashMap::new(),
        trees: HashMap::new(),
        objects: HashMap::new(),
        made: HashMap::new(),
        done: Rewritten::default(),
        progress,
    };
    let mut edits = Vec::new();
    let references: Vec<_> = refs::list(repository, "refs/heads/")?
        .into_iter()
        .chain(refs::list(repository, "refs/tags/")?)
        .filter(|reference| reference.symbolic.is_none())
        .collect();
    for reference in &references {
        let new = rewriter.object(reference.id)?;
        if new != reference.id {
            let name = reference.name.as_bstr();
            rewriter
                .done
                .references
                .push((name.to_owned(), reference.id, new));
            let mut original = BString::from("refs/original/");
            original.extend_from_slice(name);
            edits.push(Edit::set(refs::validate(&original)?, reference.id).because("git chunk migrate"));
            edits.push(
                Edit::set(reference.name.clone(), new)
                    .expecting(Expected::Is(reference.id))
                    .because("git chunk migrate"),
            );
        }
    }
    let Rewriter {
        writer,
        creator,
        done,
        ..
    } = rewriter;
    if migration.dry_run {
        return Ok(done);
    }
    writer.finish()?;
    creator.finish()?;
    let index = match in_work_tree {
        true => Some(Index::lock(repository)?),
        false => None,
    };
    refs::apply(repository, edits)?;
    if let Some(index) = index {
        follow(repository, index)?;
    }
    Ok(done)
}

/// Makes the index name what the new commit has; the files have the right content already, except attributes.
fn follow(repository: &Repository, mut index: Index) -> Result<(), Error> {
    let store = repository.store()?;
    let Some(head) = crate::repo::commit::head_commit(repository)? else {
        return Ok(());
    };
    let flat = flatten(&store, crate::repo::commit::tree_of(&store, head)?)?;
    let mut changes = Vec::new();
    for (path, side) in &flat {
        let entry = index.entry(path.as_bstr());
        if entry.is_some_and(|entry| entry.id == side.id && entry.mode == side.mode) {
            continue;
        }
        let mut stat = entry.map(|entry| entry.stat).unwrap_or_default();
        if path == ".gitattributes"
            && let Some(top) = repository.work_dir()
        {
            let mut bytes = Vec::new();
            store.read(&side.id, &mut Cache::new(0), &mut bytes)?;
            let place = top.join(".gitattributes");
            let target = crate::worktree::Target {
                path: &place,
                executable: false,
                holds: None,
            };
            crate::worktree::write_file(&target, &bytes)?;
            stat = crate::repo::stat_of(&place)?.1;
        }
        changes.push(Change::Set {
            path: path.clone(),
            mode: side.mode,
            id: side.id,
            stat,
        });
    }
    for entry in index.state.entries() {
        let path = entry.path(&index.state);
        if !flat.contains_key(&path.to_owned()) {
            // Only the attribute file can go: it had these lines and nothing else.
            if let Some(top) = repository.work_dir() {
                let place = crate::paths::below(top, path);
                std::fs::remove_file(&place).during("remove", &place)?;
            }
            changes.push(Change::Remove(path.to_owned()));
        }
    }
    index.apply(changes);
    index.write()
}

struct Rewriter<'r> {
    store: &'r Store,
    migration: &'r Migration,
    writer: Writer<'r>,
    creator: Creator,
    encoder: Encoder,
    cache: Cache,
    blobs: HashMap<ObjectId, ObjectId>,
    trees: HashMap<(ObjectId, BString), ObjectId>,
    /// Commits and tags.
    objects: HashMap<ObjectId, ObjectId>,
    /// Trees and attribute files that were made here and are not in the store.
    made: HashMap<ObjectId, Vec<u8>>,
    done: Rewritten,
    progress: &'r dyn Progress,
}

impl Rewriter<'_> {
    fn read(&mut self, id: ObjectId) -> Result<(Kind, Vec<u8>), Error> {
        let mut bytes = Vec::new();
        match self.store.read(&id, &mut self.cache, &mut bytes)? {
            Some(kind) => Ok((kind, bytes)),
            None => Err(Error::Other(format!("object {id} is missing"))),
        }
    }

    fn put(&mut self, kind: Kind, bytes: &[u8]) -> Result<ObjectId, Error> {
        let object = self.encoder.encode(kind, bytes);
        if !self.store.contains(&object.id) {
            self.creator.add(&object)?;
        }
        Ok(object.id)
    }

    /// A commit with all before it, or a tag, or something else that stays.
    fn object(&mut self, id: ObjectId) -> Result<ObjectId, Error> {
        // Without recursion, as history is long.
        let mut waiting = vec![id];
        while let Some(&at) = waiting.last() {
            if self.objects.contains_key(&at) {
                waiting.pop();
                continue;
            }
            if self.progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let (kind, bytes) = self.read(at)?;
            let mut needs = Vec::new();
            let format = self.store.format();
            if matches!(kind, Kind::Commit | Kind::Tag) {
                ingot_engine::object::links(kind, &bytes, format, |link| {
                    if link.kind != Some(Kind::Tree) {
                        needs.push(link.id.to_owned());
                    }
                })
                .map_err(|fault| Error::Other(format!("{kind} {at} is damaged: {fault}")))?;
            }
            needs.retain(|id| !self.objects.contains_key(id));
            if !needs.is_empty() {
                waiting.extend(needs);
                continue;
            }
            let new = match kind {
                Kind::Commit => self.commit(at, &bytes)?,
                Kind::Tag => self.tag(at, &bytes)?,
                Kind::Tree | Kind::Blob => at,
            };
            self.objects.insert(at, new);
            waiting.pop();
        }
        Ok(self.objects[&id])
    }

    fn commit(&mut self, id: ObjectId, bytes: &[u8]) -> Result<ObjectId, Error> {
        self.done.commits += 1;
        self.progress.advance(1);
        let damaged = |error: String| Error::Other(format!("commit {id} is damaged: {error}"));
        let old = gix_object::CommitRef::from_bytes(bytes, self.store.format())
            .map_err(|error| damaged(error.to_string()))?;
        let tree = old.tree();
        let files = self.done.files;
        let mut new_tree = self.tree(tree, BStr::new(b""))?;
        if new_tree != tree || self.done.files != files {
            new_tree = self.with_attributes(new_tree)?;
        }
        let parents: Vec<ObjectId> = old.parents().map(|parent| self.objects[&parent]).collect();
        if new_tree == tree && parents.iter().copied().eq(old.parents()) {
            return Ok(id);
        }
        self.done.changed_commits += 1;
        let mut commit = old.into_owned().map_err(|error| damaged(error.to_string()))?;
        commit.tree = new_tree;
        commit.parents = parents.into_iter().collect();
        commit
            .extra_headers
            .retain(|(name, _)| !name.starts_with(b"gpgsig"));
        let mut out = Vec::new();
        commit
            .write_to(&mut out)
            .map_err(|error| damaged(error.to_string()))?;
        self.put(Kind::Commit, &out)
    }

    fn tag(&mut self, id: ObjectId, bytes: &[u8]) -> Result<ObjectId, Error> {
        let damaged = |error: String| Error::Other(format!("tag {id} is damaged: {error}"));
        let old = gix_object::TagRef::from_bytes(bytes, self.store.format())
            .map_err(|error| damaged(error.to_string()))?;
        let target = self.objects[&old.target()];
        if target == old.target() {
            return Ok(id);
        }
        let mut tag = old.into_owned().map_err(|error| damaged(error.to_string()))?;
        tag.target = target;
        tag.signature = None;
        let mut out = Vec::new();
        tag.write_to(&mut out)
            .map_err(|error| damaged(error.to_string()))?;
        self.put(Kind::Tag, &out)
    }

    fn tree(&mut self, id: ObjectId, prefix: &BStr) -> Result<ObjectId, Error> {
        if let Some(new) = self.trees.get(&(id, prefix.to_owned())) {
            return Ok(*new);
        }
        if id.is_empty_tree() {
            return Ok(id);
        }
        let (_, bytes) = self.read(id)?;
        let mut out = Vec::with_capacity(bytes.len());
        for entry in Entries::new(&bytes, self.store.format()) {
            let entry = entry.map_err(|fault| Error::Other(format!("tree {id} is damaged: {fault}")))?;
            let mut path = prefix.to_owned();
            path.extend_from_slice(entry.name);
            let new = if entry.is_tree() {
                path.push(b'/');
                self.tree(entry.id.to_owned(), path.as_bstr())?
            } else if entry.mode & 0o170_000 == 0o100_000 && self.is_meant(path.as_bstr()) {
                self.blob(entry.id.to_owned())?
            } else {
                entry.id.to_owned()
            };
            push(&mut out, &entry, new);
        }
        let new = match out == bytes {
            true => id,
            false => self.put_tree(&out)?,
        };
        self.trees.insert((id, prefix.to_owned()), new);
        Ok(new)
    }

    fn put_tree(&mut self, bytes: &[u8]) -> Result<ObjectId, Error> {
        let id = self.put(Kind::Tree, bytes)?;
        self.made.insert(id, bytes.to_vec());
        Ok(id)
    }

    fn is_meant(&self, path: &BStr) -> bool {
        self.migration.patterns.iter().any(|pattern| {
            let value = match pattern.contains('/') {
                true => path,
                false => path.rsplit_once_str("/").map_or(path, |(_, name)| name.as_bstr()),
            };
            gix::glob::wildmatch(
                pattern.trim_start_matches('/').into(),
                value,
                gix::glob::wildmatch::Mode::NO_MATCH_SLASH_LITERAL,
            )
        })
    }

    fn blob(&mut self, id: ObjectId) -> Result<ObjectId, Error> {
        if let Some(new) = self.blobs.get(&id) {
            return Ok(*new);
        }
        let new = match self.migration.back {
            false => self.chunked_blob(id)?,
            true => self.plain_blob(id)?,
        };
        self.blobs.insert(id, new);
        Ok(new)
    }

    fn chunked_blob(&mut self, id: ObjectId) -> Result<ObjectId, Error> {
        let Some((Kind::Blob, size)) = self.store.header(&id)? else {
            return Err(Error::Other(format!("blob {id} is missing")));
        };
        let least = self.migration.above.max(crate::filter::THRESHOLD as u64);
        if size < least || size == pointer_length(self.store.format()) as u64 {
            return Ok(id);
        }
        self.done.files += 1;
        self.done.bytes += size;
        if self.migration.dry_run {
            return Ok(id);
        }
        // One blob at a time; those of ordinary history fit in memory.
        let (_, bytes) = self.read(id)?;
        let mut stream = bytes.as_slice();
        let added = self
            .writer
            .add(Source::stream(&mut stream), None, self.progress)?;
        self.put(Kind::Blob, &added.pointer.to_bytes())
    }

    fn plain_blob(&mut self, id: ObjectId) -> Result<ObjectId, Error> {
        let Some(pointer) = chunked::read_pointer(self.store, &id, &mut self.cache)? else {
            return Ok(id);
        };
        self.done.files += 1;
        self.done.bytes += pointer.size;
        if self.migration.dry_run {
            return Ok(id);
        }
        let mut blob = self.creator.blob(pointer.size)?;
        let mut failure = None;
        let options = RestoreOptions {
            progress: self.progress,
        };
        // The creator belongs to one thread, so the bytes pass through a channel to it.
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<u8>>(4);
        let store = self.store;
        let restored = std::thread::scope(|scope| {
            let restoring = scope.spawn(move || {
                let mut sink = Sending(sender);
                chunked::write_to(store, &pointer, &mut sink, &options)
            });
            for piece in receiver {
                if failure.is_none()
                    && let Err(error) = blob.write(&piece)
                {
                    failure = Some(error);
                }
            }
            restoring
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        match restored {
            Ok(_) => Ok(blob.finish()?),
            Err(error) => {
                blob.abandon()?;
                Err(error.into())
            }
        }
    }

    /// Adds the lines to the attribute file of a root tree, or takes them away.
    fn with_attributes(&mut self, root: ObjectId) -> Result<ObjectId, Error> {
        let bytes = match self.made.get(&root) {
            Some(bytes) => bytes.clone(),
            None => self.read(root)?.1,
        };
        let format = self.store.format();
        let mut entries: BTreeMap<BString, (u32, ObjectId)> = BTreeMap::new();
        for entry in Entries::new(&bytes, format) {
            let entry = entry.map_err(|fault| Error::Other(format!("tree {root} is damaged: {fault}")))?;
            let mut key = BString::from(entry.name.to_vec());
            if entry.is_tree() {
                key.push(b'/');
            }
            entries.insert(key, (entry.mode, entry.id.to_owned()));
        }
        let name = BString::from(".gitattributes");
        let old = match entries.get(&name) {
            Some((_, id)) => self.read(*id)?.1,
            None => Vec::new(),
        };
        let lines: HashSet<String> = self
            .migration
            .patterns
            .iter()
            .map(|pattern| line_of(pattern))
            .collect();
        let mut text: Vec<u8> = Vec::new();
        for line in old
            .lines()
            .filter(|line| !lines.iter().any(|other| other.as_bytes() == *line))
        {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        if !self.migration.back {
            for pattern in &self.migration.patterns {
                text.extend_from_slice(line_of(pattern).as_bytes());
                text.push(b'\n');
            }
        }
        if text == old {
            return Ok(root);
        }
        match text.is_empty() {
            true => {
                entries.remove(&name);
            }
            false => {
                let id = self.put(Kind::Blob, &text)?;
                entries.insert(name, (0o100_644, id));
            }
        }
        let mut out = Vec::new();
        for (key, (mode, id)) in entries {
            let name = key.strip_suffix(b"/").unwrap_or(&key);
            out.extend_from_slice(format!("{mode:o} ").as_bytes());
            out.extend_from_slice(name);
            out.push(0);
            out.extend_from_slice(id.as_bytes());
        }
        self.put_tree(&out)
    }
}

fn push(out: &mut Vec<u8>, entry: &Entry<'_>, id: ObjectId) {
    out.extend_from_slice(format!("{:o} ", entry.mode).as_bytes());
    out.extend_from_slice(entry.name);
    out.push(0);
    out.extend_from_slice(id.as_bytes());
}

struct Sending(std::sync::mpsc::SyncSender<Vec<u8>>);

impl std::io::Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
