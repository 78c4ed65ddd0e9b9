//! What differs between the last commit, the index and the work tree.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice as _};
use gix::filter::plumbing::pipeline::convert::ToGitOutcome;
use gix::index::entry::{Flags, Mode};
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{self, Pointer};
use ingot_engine::pack::create::{Encoder, StreamDigest};
use ingot_engine::pack::inflate::Level;
use ingot_engine::refs::{self, Head};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};

use super::add::{converts_by_default, excludes_of, is_excluded, work_dir};
use super::commit::tree_of;
use super::index::Index;
use super::scan::{Found, scan};
use super::trees::{Flat, flatten};
use crate::attributes::Attributes;
use crate::error::During as _;
use crate::filter::THRESHOLD;
use crate::{Error, paths};

/// How a path differs, as the letters of `git status --short`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// Not at all.
    Same,
    /// New.
    Added,
    /// Other content or another mode.
    Modified,
    /// Gone.
    Deleted,
    /// Another kind of file.
    TypeChanged,
    /// In conflict.
    Unmerged,
    /// Not in the index.
    Untracked,
}

impl Letter {
    /// The letter.
    pub fn letter(self) -> char {
        match self {
            Letter::Same => ' ',
            Letter::Added => 'A',
            Letter::Modified => 'M',
            Letter::Deleted => 'D',
            Letter::TypeChanged => 'T',
            Letter::Unmerged => 'U',
            Letter::Untracked => '?',
        }
    }
}

/// A path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The path; with a slash at its end for an untracked folder.
    pub path: BString,
    /// Between the last commit and the index.
    pub staged: Letter,
    /// Between the index and the work tree.
    pub unstaged: Letter,
}

/// The state of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The branch; `None` for a detached head.
    pub branch: Option<BString>,
    /// The last commit.
    pub head: Option<ObjectId>,
    /// What differs, by path, untracked files last.
    pub lines: Vec<Line>,
    /// Chunked files of which only the pointer is in the work tree.
    pub pointers: Vec<BString>,
}

impl Status {
    /// True if nothing differs.
    pub fn is_clean(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Compares everything. Files whose data tells that they are unchanged are not read.
pub fn status(repository: &Repository) -> Result<Status, Error> {
    let index = Index::read(repository)?;
    let store = repository.store()?;
    let top = work_dir(repository)?;
    let mut status = Status::default();
    match refs::head(repository)? {
        Head::Branch { name, id } => {
            status.branch = Some(name.shorten().to_owned());
            status.head = id;
        }
        Head::Detached(id) => status.head = Some(id),
    }
    let flat = match status.head {
        Some(head) => flatten(&store, tree_of(&store, head)?)?,
        None => Flat::new(),
    };
    let mut staged = staged(&index, &flat);
    let found = scan(top, BStr::new(b""))?;
    let mut compare = Compare::new(repository, &index, &store)?;
    let unstaged = unstaged(&index, &found, &mut compare)?;
    let mut lines: BTreeMap<BString, (Letter, Letter)> = BTreeMap::new();
    for (path, letter) in unstaged {
        lines.insert(path, (Letter::Same, letter));
    }
    for (path, letter) in staged.drain(..) {
        lines.entry(path).or_insert((Letter::Same, Letter::Same)).0 = letter;
    }
    for path in index.conflicts() {
        lines.insert(path, (Letter::Unmerged, Letter::Unmerged));
    }
    status.lines = lines
        .into_iter()
        .map(|(path, (staged, unstaged))| Line {
            path,
            staged,
            unstaged,
        })
        .collect();
    for path in untracked(repository, &index, &found)? {
        status.lines.push(Line {
            path,
            staged: Letter::Untracked,
            unstaged: Letter::Untracked,
        });
    }
    status.pointers = compare.pointers;
    Ok(status)
}

/// What the index has and the last commit has not, and the reverse.
fn staged(index: &Index, flat: &Flat) -> Vec<(BString, Letter)> {
    let mut differences = Vec::new();
    let mut head = flat.iter().peekable();
    for entry in index.state.entries() {
        let path = entry.path(&index.state);
        while let Some((gone, _)) = head.next_if(|(other, _)| other.as_bstr() < path) {
            differences.push((gone.clone(), Letter::Deleted));
        }
        let side = head
            .next_if(|(other, _)| other.as_bstr() == path)
            .map(|(_, side)| side);
        if entry.flags.contains(Flags::INTENT_TO_ADD) {
            continue;
        }
        let letter = match side {
            None if entry.stage() == gix::index::entry::Stage::Unconflicted => Letter::Added,
            None => continue,
            Some(side) if side.id == entry.id && side.mode == entry.mode => continue,
            Some(side) if kind_of(side.mode) != kind_of(entry.mode) => Letter::TypeChanged,
            Some(_) => Letter::Modified,
        };
        differences.push((path.to_owned(), letter));
    }
    differences.extend(head.map(|(path, _)| (path.clone(), Letter::Deleted)));
    differences
}

fn kind_of(mode: Mode) -> u8 {
    match mode {
        Mode::SYMLINK => 1,
        Mode::COMMIT => 2,
        _ => 0,
    }
}

fn unstaged(
    index: &Index,
    found: &[Found],
    compare: &mut Compare<'_>,
) -> Result<Vec<(BString, Letter)>, Error> {
    let mut differences = Vec::new();
    let mut files = found.iter().peekable();
    for entry in index.state.entries() {
        let path = entry.path(&index.state);
        if entry.stage() != gix::index::entry::Stage::Unconflicted
            || entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE)
        {
            continue;
        }
        while files.next_if(|found| found.path.as_bstr() < path).is_some() {}
        let file = files.next_if(|found| found.path.as_bstr() == path);
        let letter = match file {
            // The folder of a submodule may be empty.
            None if entry.mode == Mode::COMMIT => continue,
            None => Letter::Deleted,
            Some(file) if file.repository && entry.mode == Mode::COMMIT => continue,
            Some(file) => match index.mode_of(&file.meta, Some(entry)) {
                None => Letter::Deleted,
                Some(mode) if kind_of(mode) != kind_of(entry.mode) => Letter::TypeChanged,
                Some(_) if entry.flags.contains(Flags::INTENT_TO_ADD) => Letter::Added,
                Some(_) if compare.is_same(entry, file)? => continue,
                Some(_) => Letter::Modified,
            },
        };
        differences.push((path.to_owned(), letter));
    }
    Ok(differences)
}

/// Files that neither the index has nor a rule ignores; a folder without any tracked file stands for what is in it.
fn untracked(repository: &Repository, index: &Index, found: &[Found]) -> Result<Vec<BString>, Error> {
    let mut excludes = None;
    let mut untracked: Vec<BString> = Vec::new();
    for file in found {
        let path = file.path.as_bstr();
        if index.state.entry_index_by_path(path).is_ok() {
            continue;
        }
        if let Some(last) = untracked.last()
            && last.ends_with(b"/")
            && path.starts_with(last)
        {
            continue;
        }
        // Entries in conflict are not found by path alone.
        if index
            .state
            .prefixed_entries(path)
            .is_some_and(|entries| entries.iter().any(|entry| entry.path(&index.state) == path))
        {
            continue;
        }
        let excludes = match &mut excludes {
            Some(excludes) => excludes,
            none => none.insert(excludes_of(repository, &index.state)?),
        };
        if is_excluded(excludes, path)? {
            continue;
        }
        let folder = path
            .find_iter(b"/")
            .map(|slash| path[..=slash].as_bstr())
            .find(|folder| index.state.prefixed_entries(folder).is_none_or(<[_]>::is_empty));
        let mut shown = folder.unwrap_or(path).to_owned();
        if file.repository && folder.is_none() {
            shown.push(b'/');
        }
        untracked.push(shown);
    }
    Ok(untracked)
}

/// Finds out whether a file has the content that its entry says.
pub struct Compare<'r> {
    repository: &'r Repository,
    index: &'r Index,
    store: &'r Store,
    attributes: Attributes<'r>,
    pipeline: Option<gix::filter::Pipeline<'r>>,
    converts: bool,
    cache: Cache,
    /// Chunked files found to be pointers in the work tree.
    pub pointers: Vec<BString>,
}

impl<'r> Compare<'r> {
    /// For the files of an index.
    pub fn new(repository: &'r Repository, index: &'r Index, store: &'r Store) -> Result<Compare<'r>, Error> {
        Ok(Compare {
            attributes: Attributes::new(repository, &index.state, false)?,
            repository,
            index,
            store,
            pipeline: None,
            converts: converts_by_default(repository),
            cache: Cache::new(0),
            pointers: Vec::new(),
        })
    }

    /// True if adding the file would change nothing.
    pub fn is_same(&mut self, entry: &gix::index::Entry, file: &Found) -> Result<bool, Error> {
        let same = self.index.is_unchanged(entry, &file.meta) || self.has_same_content(entry, file)?;
        let pointer_size = chunked::pointer_length(self.store.format()) as u64;
        if same
            && file.meta.len() == pointer_size
            && chunked::read_pointer(self.store, &entry.id, &mut self.cache)?.is_some()
        {
            self.pointers.push(file.path.clone());
        }
        Ok(same)
    }

    fn has_same_content(&mut self, entry: &gix::index::Entry, file: &Found) -> Result<bool, Error> {
        let path = file.path.as_bstr();
        if self.index.mode_of(&file.meta, Some(entry)) != Some(entry.mode) {
            return Ok(false);
        }
        let place = paths::below(work_dir(self.repository)?, path);
        let format = self.store.format();
        if entry.mode == Mode::SYMLINK && file.meta.is_symlink() {
            let target = std::fs::read_link(&place).during("read", &place)?;
            let target = paths::git(&target);
            return Ok(Encoder::new(format, Level::BEST_SPEED).id(Kind::Blob, &target) == entry.id);
        }
        let wishes = self.attributes.of(path)?;
        if wishes.chunked && file.meta.len() >= THRESHOLD as u64 {
            return match chunked::read_pointer(self.store, &entry.id, &mut self.cache)? {
                Some(pointer) => holds(&place, &pointer),
                None => Ok(false),
            };
        }
        let opened = std::fs::File::open(&place).during("open", &place)?;
        if !wishes.converted && !self.converts {
            return same_blob(opened, file.meta.len(), format, entry.id).during("read", &place);
        }
        let pipeline = match &mut self.pipeline {
            Some(pipeline) => pipeline,
            none => none.insert(
                (self.repository.gix().filter_pipeline(None))
                    .map_err(|error| Error::Other(format!("filters cannot be used: {error}")))?
                    .0,
            ),
        };
        let failed = |error: String| Error::Other(format!("'{path}' cannot be converted: {error}"));
        let mut content = Vec::new();
        let relative = paths::native(path);
        match pipeline
            .convert_to_git(opened, relative.as_ref(), &self.index.state)
            .map_err(|error| failed(error.to_string()))?
        {
            ToGitOutcome::Unchanged(mut file) => {
                std::io::Read::read_to_end(&mut file, &mut content).during("read", &place)?;
            }
            ToGitOutcome::Buffer(bytes) => content.extend_from_slice(bytes),
            ToGitOutcome::Process(mut output) => {
                std::io::Read::read_to_end(&mut output, &mut content)
                    .map_err(|error| failed(error.to_string()))?;
            }
        }
        Ok(Encoder::new(format, Level::BEST_SPEED).id(Kind::Blob, &content) == entry.id)
    }
}

/// True if the file is the one that the pointer stands for.
pub fn holds(path: &std::path::Path, pointer: &Pointer) -> Result<bool, Error> {
    let file = std::fs::File::open(path).during("open", path)?;
    if file.metadata().during("examine", path)?.len() != pointer.size {
        return Ok(false);
    }
    let mut source = crate::store::Source::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let ended = source.fill(&mut buffer, 8 << 20)?;
        hasher.update_rayon(&buffer);
        if ended {
            return Ok(hasher.finalize() == pointer.blake3);
        }
    }
}

fn same_blob(
    mut file: std::fs::File,
    size: u64,
    format: gix_hash::Kind,
    id: ObjectId,
) -> std::io::Result<bool> {
    let mut digest = StreamDigest::new(format, Kind::Blob, size);
    let mut buffer = vec![0; 1 << 16];
    let mut sum = 0;
    loop {
        match std::io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(sum == size && digest.finish() == id),
            count => {
                digest.update(&buffer[..count]);
                sum += count as u64;
            }
        }
    }
}
