//! Commit-graph files: parents, trees and generations of commits without reading the commits.
//!
//! An optimisation and nothing more: what is absent or damaged is passed over. A repository with shallow commits or
//! grafts has parents that differ from those in the file; whoever walks decides whether to use it.

use std::path::{Path, PathBuf};

use gix_commitgraph::{GENERATION_NUMBER_INFINITY, Graph};
use gix_hash::oid;

use super::Store;
use crate::mapped::Mapped;
use crate::notice;
use crate::pack::write::digest::ends_with_checksum;

/// The commit-graph of one object folder, single file or chain.
pub struct CommitGraph {
    graph: Graph,
    count: u32,
    /// The file, or the list of the files of a chain.
    path: PathBuf,
}

impl std::fmt::Debug for CommitGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitGraph")
            .field("commits", &self.count)
            .finish()
    }
}

/// The number of a commit in a [`CommitGraph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphPosition(pub u32);

/// What the graph knows of a commit.
#[derive(Debug, Clone, Copy)]
pub struct GraphCommit<'a> {
    commit: gix_commitgraph::file::Commit<'a>,
}

/// The file names a parent that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the commit-graph is damaged: a commit's parents are outside of it")]
pub struct Damaged;

impl CommitGraph {
    /// Opens what is below `info` in an object folder. `None` if nothing is there or it cannot be used.
    pub fn open(objects: &Path, format: gix_hash::Kind) -> Option<CommitGraph> {
        let info = objects.join("info");
        let file = ["commit-graph", "commit-graphs/commit-graph-chain"]
            .map(|name| info.join(name))
            .into_iter()
            .find(|path| path.exists())?;
        let graph = match Graph::from_info_dir(&info, format) {
            Ok(graph) => graph,
            Err(error) => {
                let fault = format!("the commit-graph {} is damaged: {error}", file.display());
                notice::passed_over(&file, &fault);
                return None;
            }
        };
        let count = graph.num_commits();
        Some(CommitGraph {
            graph,
            count,
            path: file,
        })
    }

    /// True if the content of the files fits the checksums at their ends. Reads all of them; worthwhile before a decision
    /// that a flipped bit would spoil.
    pub fn is_intact(&self) -> bool {
        let intact = |path: &Path| {
            Mapped::open(path).is_ok_and(|map| ends_with_checksum(&map, self.graph.object_hash()))
        };
        match self.path.ends_with("commit-graph") {
            true => intact(&self.path),
            false => std::fs::read_to_string(&self.path).is_ok_and(|chain| {
                let name = |id: &str| self.path.with_file_name(format!("graph-{id}.graph"));
                chain.lines().all(|id| intact(&name(id)))
            }),
        }
    }

    /// The file that says which files there are, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of commits.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// True if there are no commits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The place of a commit.
    pub fn find(&self, id: &oid) -> Option<GraphPosition> {
        if id.kind() != self.graph.object_hash() {
            return None;
        }
        self.graph.lookup(id).map(|position| GraphPosition(position.0))
    }

    /// The id of a commit. Panics on a position that is not this graph's.
    pub fn id(&self, at: GraphPosition) -> &oid {
        self.graph.id_at(gix_commitgraph::Position(at.0))
    }

    /// A commit. Panics on a position that is not this graph's.
    pub fn commit(&self, at: GraphPosition) -> GraphCommit<'_> {
        GraphCommit {
            commit: self.graph.commit_at(gix_commitgraph::Position(at.0)),
        }
    }
}

impl<'a> GraphCommit<'a> {
    /// The commit's id.
    pub fn id(&self) -> &'a oid {
        self.commit.id()
    }

    /// The commit's tree.
    pub fn tree(&self) -> &oid {
        self.commit.root_tree_id()
    }

    /// The parents in order. Positions are valid; ends after an error.
    pub fn parents(&self) -> impl Iterator<Item = Result<GraphPosition, Damaged>> + use<'a> {
        self.commit.iter_parents().map(|parent| match parent {
            Ok(position) => Ok(GraphPosition(position.0)),
            Err(_) => Err(Damaged),
        })
    }

    /// One more than the largest generation of the parents. `None` where the file does not say, as in files written by
    /// very old versions of Git.
    pub fn generation(&self) -> Option<u32> {
        match self.commit.generation() {
            0 | GENERATION_NUMBER_INFINITY => None,
            generation => Some(generation),
        }
    }

    /// When it was committed, in seconds since 1970. 34 bits of it.
    pub fn time(&self) -> u64 {
        self.commit.committer_timestamp()
    }
}

impl Store {
    /// The commit-graph of the own folder, else of the first alternate that has one.
    pub fn commit_graph(&self) -> Option<CommitGraph> {
        self.object_dirs()
            .find_map(|folder| CommitGraph::open(folder, self.format()))
    }
}
