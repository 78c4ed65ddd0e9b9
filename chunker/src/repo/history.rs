//! Commits, and what differs between two of them.

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{self, Difference, Pointer};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};

use super::checkout::commit_of;
use super::commit::{head_commit, tree_of};
use super::index::Index;
use super::status::Letter;
use super::trees::{Flat, Side, flatten};
use crate::Error;

/// A commit as the log shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: ObjectId,
    /// Its parents.
    pub parents: Vec<ObjectId>,
    /// Name and address of the author.
    pub author: BString,
    /// Seconds since 1970, in UTC.
    pub time: i64,
    /// The whole message.
    pub message: BString,
}

/// Commits that `start` reaches, newest first, at most `limit`.
pub fn log(repository: &Repository, start: Option<&str>, limit: usize) -> Result<Vec<Entry>, Error> {
    let store = repository.store()?;
    let tip = match start {
        Some(spec) => Some(commit_of(repository, spec)?),
        None => head_commit(repository)?,
    };
    let shallow = repository.shallow_commits()?;
    let mut seen: std::collections::HashSet<ObjectId> = tip.into_iter().collect();
    let mut waiting = std::collections::BinaryHeap::new();
    let mut order = 0u64;
    if let Some(tip) = tip {
        let entry = read(&store, tip)?;
        waiting.push((entry.time, std::cmp::Reverse(order), tip));
    }
    let mut entries = Vec::new();
    while let Some((_, _, id)) = waiting.pop() {
        if entries.len() == limit {
            break;
        }
        let mut entry = read(&store, id)?;
        if shallow.binary_search(&id).is_ok() {
            entry.parents.clear();
        }
        for parent in &entry.parents {
            if seen.insert(*parent) {
                order += 1;
                waiting.push((read(&store, *parent)?.time, std::cmp::Reverse(order), *parent));
            }
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn read(store: &Store, id: ObjectId) -> Result<Entry, Error> {
    let mut bytes = Vec::new();
    match store.read(&id, &mut Cache::new(0), &mut bytes)? {
        Some(Kind::Commit) => {}
        Some(kind) => return Err(Error::Other(format!("{id} is a {kind} where a commit belongs"))),
        None => return Err(Error::Other(format!("commit {id} is missing"))),
    }
    let damaged = |error: String| Error::Other(format!("commit {id} is damaged: {error}"));
    let commit = gix_object::CommitRef::from_bytes(&bytes, store.format())
        .map_err(|error| damaged(error.to_string()))?;
    let author = commit.author().map_err(|error| damaged(error.to_string()))?;
    let committer = commit.committer().map_err(|error| damaged(error.to_string()))?;
    let mut who = author.name.to_owned();
    who.extend_from_slice(b" <");
    who.extend_from_slice(author.email);
    who.push(b'>');
    Ok(Entry {
        id,
        parents: commit.parents().collect(),
        author: who,
        time: committer.seconds(),
        message: commit.message.to_owned(),
    })
}

/// A path that differs between two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The path.
    pub path: BString,
    /// How.
    pub letter: Letter,
    /// What the two sides are, where they are chunked files.
    pub chunked: Option<ChunkedChange>,
}

/// How a chunked file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkedChange {
    /// The size before; `None` if it was no chunked file.
    pub before: Option<u64>,
    /// The size after.
    pub after: Option<u64>,
    /// Chunks that only the new version has, where the lists are here.
    pub new_chunks: Option<u64>,
}

/// What differs from `from` to `to`; `None` for the index. Without both: from the last commit to the index.
pub fn diff(repository: &Repository, from: Option<&str>, to: Option<&str>) -> Result<Vec<Changed>, Error> {
    let store = repository.store()?;
    let before = match from {
        Some(spec) => flatten(&store, tree_of(&store, commit_of(repository, spec)?)?)?,
        None => match head_commit(repository)? {
            Some(head) => flatten(&store, tree_of(&store, head)?)?,
            None => Flat::new(),
        },
    };
    let after = match to {
        Some(spec) => flatten(&store, tree_of(&store, commit_of(repository, spec)?)?)?,
        None => {
            let index = Index::read(repository)?;
            let state = &index.state;
            (state.entries().iter())
                .map(|entry| {
                    let side = Side {
                        mode: entry.mode,
                        id: entry.id,
                    };
                    (entry.path(state).to_owned(), side)
                })
                .collect()
        }
    };
    let mut paths: Vec<&BString> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut changed = Vec::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        let letter = match (old, new) {
            _ if old == new => continue,
            (None, _) => Letter::Added,
            (_, None) => Letter::Deleted,
            _ => Letter::Modified,
        };
        changed.push(Changed {
            path: path.clone(),
            letter,
            chunked: chunked_change(&store, old, new)?,
        });
    }
    Ok(changed)
}

fn chunked_change(
    store: &Store,
    old: Option<&Side>,
    new: Option<&Side>,
) -> Result<Option<ChunkedChange>, Error> {
    let mut cache = Cache::new(0);
    let mut pointer = |side: Option<&Side>| -> Result<Option<Pointer>, Error> {
        Ok(match side {
            Some(side) => chunked::read_pointer(store, &side.id, &mut cache)?,
            None => None,
        })
    };
    let (old, new) = (pointer(old)?, pointer(new)?);
    if old.is_none() && new.is_none() {
        return Ok(None);
    }
    let new_chunks = match (&old, &new) {
        (Some(old), Some(new)) => Difference::find(store, old, new, &mut Cache::new(0))
            .ok()
            .map(|difference| difference.new_chunks().count() as u64),
        _ => None,
    };
    Ok(Some(ChunkedChange {
        before: old.map(|pointer| pointer.size),
        after: new.map(|pointer| pointer.size),
        new_chunks,
    }))
}

/// The first line of a message.
pub fn subject(message: &BString) -> BString {
    message.lines().next().unwrap_or_default().into()
}
