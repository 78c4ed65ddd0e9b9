//! Commits: from the commit-graph where there is one, else from the objects.

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::Request;
use super::error::Error;
use super::marks::IdSet;
use crate::notice;
use crate::object::{Link, links};
use crate::store::{Cache, CommitGraph, Store};

/// Memory for delta bases of commits, which are few and small.
const CACHE: usize = 1 << 20;
/// The generation of a commit that no commit-graph knows: above that of all others.
pub(super) const NO_GENERATION: u32 = u32::MAX;

/// What a walk needs to know of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    /// Committer's seconds since 1970; 0 where nothing sensible is written.
    pub(super) date: i64,
    /// Larger than that of any parent; [`NO_GENERATION`] where unknown.
    pub(super) generation: u32,
}

/// Reads commits. Parents of shallow commits do not exist for it.
pub(super) struct History<'s> {
    store: &'s Store,
    graph: Option<CommitGraph>,
    shallow: IdSet,
    cache: Cache,
    buffer: Vec<u8>,
}

impl<'s> History<'s> {
    pub(super) fn new(store: &'s Store, request: &Request<'_>) -> History<'s> {
        History {
            store,
            // For a shallow repository it would know parents that do not exist.
            graph: if request.shallow.is_empty() && !request.verify {
                store.commit_graph()
            } else {
                None
            },
            shallow: request.shallow.iter().copied().collect(),
            cache: Cache::new(CACHE),
            buffer: Vec::new(),
        }
    }

    /// Looks whether the commit-graph is as it was written, and goes on without it if not.
    pub(super) fn check_graph(&mut self) {
        if let Some(graph) = self.graph.take_if(|graph| !graph.is_intact()) {
            let path = graph.path();
            let fault = format!("the commit-graph {} does not fit its checksum", path.display());
            notice::passed_over(path, &fault);
        }
    }

    /// The objects behind it.
    pub(super) fn store(&self) -> &'s Store {
        self.store
    }

    /// Reads a commit. `None` if it is not there.
    pub(super) fn commit(&mut self, id: &oid, referrer: Option<&oid>) -> Result<Option<Commit>, Error> {
        if let Some(commit) = self.in_graph(id) {
            return Ok(Some(commit));
        }
        let kind = self.store.read(id, &mut self.cache, &mut self.buffer)?;
        match kind {
            None => return Ok(None),
            Some(Kind::Commit) => {}
            Some(actual) => {
                return Err(Error::WrongKind {
                    id: id.to_owned(),
                    expected: Kind::Commit,
                    actual,
                    referrer: referrer.map(ToOwned::to_owned),
                });
            }
        }
        let mut commit = parse(id, &self.buffer, self.store.format())?;
        if self.is_shallow(id) {
            commit.parents.clear();
        }
        Ok(Some(commit))
    }

    /// True if commits come from the objects alone, with all their parents.
    pub(super) fn is_plain(&self) -> bool {
        self.graph.is_none() && self.shallow.is_empty()
    }

    /// True if the parents of this commit are cut off.
    pub(super) fn is_shallow(&self, id: &oid) -> bool {
        !self.shallow.is_empty() && self.shallow.contains(id)
    }

    /// What the commit-graph has, provided that the commit itself still exists.
    fn in_graph(&self, id: &oid) -> Option<Commit> {
        let graph = self.graph.as_ref()?;
        let found = graph.commit(graph.find(id)?);
        if !self.store.contains(id) {
            return None;
        }
        // A graph without the parents that it names is damaged. The commit itself knows better.
        let parents = found
            .parents()
            .map(|parent| parent.map(|at| graph.id(at).to_owned()))
            .collect::<Result<_, _>>()
            .ok()?;
        Some(Commit {
            tree: found.tree().to_owned(),
            parents,
            date: i64::try_from(found.time()).unwrap_or(i64::MAX),
            generation: found.generation().unwrap_or(NO_GENERATION),
        })
    }
}

/// Reads a commit's tree, parents and date.
pub(super) fn parse(id: &oid, bytes: &[u8], format: gix_hash::Kind) -> Result<Commit, Error> {
    let mut tree = None;
    let mut parents = Vec::with_capacity(1);
    links(Kind::Commit, bytes, format, |Link { id, kind, .. }| match kind {
        Some(Kind::Tree) => tree = Some(id.to_owned()),
        _ => parents.push(id.to_owned()),
    })
    .map_err(|fault| Error::Malformed {
        id: id.to_owned(),
        fault: fault.into(),
    })?;
    Ok(Commit {
        tree: tree.expect("a commit without a tree is an error above"),
        parents,
        date: date(bytes).unwrap_or(0),
        generation: NO_GENERATION,
    })
}

/// The seconds in the committer line, read from its end as names may contain anything.
fn date(bytes: &[u8]) -> Option<i64> {
    use bstr::ByteSlice as _;
    let line = bytes
        .lines()
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.strip_prefix(b"committer "))?;
    let after = &line[line.rfind_byte(b'>')? + 1..];
    let seconds = after.fields().next()?;
    std::str::from_utf8(seconds).ok()?.parse().ok()
}
