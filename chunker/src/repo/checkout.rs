//! From commits and the index into the work tree.

use bstr::{BString, ByteSlice as _};
use gix::index::entry::Mode;
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::progress::Progress;
use ingot_engine::refs::{self, Edit};
use ingot_engine::repository::Repository;

use super::add::{is_below, work_dir};
use super::commit::{head_commit, tree_of};
use super::files::carry_out;
use super::index::Index;
use super::plan::{Plan, there};
use super::status::Compare;
use super::trees::{Flat, Side, flatten};
use crate::{Error, worktree};

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were written.
    pub written: u64,
    /// Files that were removed.
    pub removed: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Chunked files whose pointers were written instead, with the reason.
    pub pointers: Vec<(BString, String)>,
}

/// Where to switch to.
#[derive(Debug, Clone)]
pub struct Switch {
    /// A branch, or with `detach` or without such a branch, any commit.
    pub target: String,
    /// Makes a branch of that name at `start`, or at the current commit.
    pub create: bool,
    /// For `create`.
    pub start: Option<String>,
    /// Leaves the branch.
    pub detach: bool,
    /// Gives up local changes.
    pub force: bool,
}

/// Switches the work tree, the index and `HEAD`. Local changes that are in the way are an error that names them.
pub fn switch(repository: &Repository, switch: &Switch, progress: &dyn Progress) -> Result<Summary, Error> {
    let mut index = Index::lock(repository)?;
    let store = repository.store()?;
    worktree::recover(repository, &store)?;
    let before = head_commit(repository)?;
    let branch = format!("refs/heads/{}", switch.target);
    let spec = match (switch.create, &switch.start) {
        (true, Some(start)) => Some(start.clone()),
        (true, None) => None,
        (false, _) => Some(switch.target.clone()),
    };
    let is_branch = !switch.create && !switch.detach && refs::resolve(repository, &branch).is_ok();
    if !is_branch && !switch.create && !switch.detach && !refs_to_commit(repository, &switch.target) {
        return Err(Error::Other(format!(
            "there is no branch '{}'; make one with: git-chunk switch -c {}",
            switch.target, switch.target
        )));
    }
    let commit = match spec {
        Some(spec) => Some(commit_of(repository, &spec)?),
        None => before,
    };
    let head = match before {
        Some(before) => flatten(&store, tree_of(&store, before)?)?,
        None => Flat::new(),
    };
    let target = match commit {
        Some(commit) => flatten(&store, tree_of(&store, commit)?)?,
        None => Flat::new(),
    };
    let plan = Plan::switch(repository, &index, &store, &head, &target, switch.force)?;
    let (summary, changes) = carry_out(repository, &index, &store, plan, progress)?;
    index.apply(changes);
    index.write()?;

    let from = describe(repository)?;
    let message = format!("checkout: moving from {from} to {}", switch.target);
    let head = refs::validate("HEAD")?;
    let mut edits = Vec::new();
    if switch.create {
        let name = refs::validate(&branch)?;
        if let Some(commit) = commit {
            edits.push(
                Edit::set(name.clone(), commit)
                    .expecting(refs::Expected::Absent)
                    .because(format!(
                        "branch: Created from {}",
                        switch.start.as_deref().unwrap_or("HEAD")
                    )),
            );
        }
        edits.push(Edit::point(head, name).because(message));
    } else if is_branch {
        edits.push(Edit::point(head, refs::validate(&branch)?).because(message));
    } else if let Some(commit) = commit {
        edits.push(Edit::set(head, commit).detached().because(message));
    }
    refs::apply(repository, edits)?;
    Ok(summary)
}

fn refs_to_commit(repository: &Repository, spec: &str) -> bool {
    refs::resolve(repository, spec).is_ok()
}

fn describe(repository: &Repository) -> Result<BString, Error> {
    Ok(match refs::head(repository)? {
        refs::Head::Branch { name, .. } => name.shorten().to_owned(),
        refs::Head::Detached(id) => id.to_string().into(),
    })
}

/// The commit that a revision names; tags are followed.
pub fn commit_of(repository: &Repository, spec: &str) -> Result<ObjectId, Error> {
    let resolved = refs::resolve(repository, spec)?;
    let (id, kind) = refs::peel(repository, resolved.id)?;
    match kind {
        Kind::Commit => Ok(id),
        kind => Err(Error::Other(format!("'{spec}' is a {kind}, not a commit"))),
    }
}

/// Where files are restored from.
#[derive(Debug, Clone, Default)]
pub struct Restore {
    /// A commit; `None` for the index.
    pub source: Option<String>,
    /// Gives up local changes of the files.
    pub force: bool,
    /// Only chunked files of which the pointer is in the work tree.
    pub pointers: bool,
}

/// Writes the files at the given paths anew.
pub fn restore(
    repository: &Repository,
    specs: &[BString],
    options: &Restore,
    progress: &dyn Progress,
) -> Result<Summary, Error> {
    let mut index = Index::lock(repository)?;
    let store = repository.store()?;
    worktree::recover(repository, &store)?;
    let from: Flat = match &options.source {
        Some(source) => flatten(&store, tree_of(&store, commit_of(repository, source)?)?)?,
        None => index
            .state
            .entries()
            .iter()
            .filter(|entry| entry.stage() == gix::index::entry::Stage::Unconflicted)
            .map(|entry| {
                (
                    entry.path(&index.state).to_owned(),
                    Side {
                        mode: entry.mode,
                        id: entry.id,
                    },
                )
            })
            .collect(),
    };
    let mut plan = Plan::default();
    let mut in_the_way = Vec::new();
    let mut compare = Compare::new(repository, &index, &store)?;
    let top = work_dir(repository)?;
    for spec in specs {
        if !from.keys().any(|path| is_below(path.as_bstr(), spec.as_bstr())) {
            return Err(Error::NoMatch { path: spec.clone() });
        }
    }
    for (path, side) in &from {
        if !specs.iter().any(|spec| is_below(path.as_bstr(), spec.as_bstr())) || side.mode == Mode::COMMIT {
            continue;
        }
        let now = there(top, path.as_bstr());
        let entry = index.entry(path.as_bstr());
        let same = match (&now, entry) {
            (Some(found), Some(entry)) => compare.is_same(entry, found)?,
            (None, _) => true,
            (Some(_), None) => false,
        };
        if options.pointers && compare.pointers.last() != Some(path) {
            continue;
        }
        if !same && !options.force {
            in_the_way.push(path.clone());
        }
        let unchanged = same && now.is_some() && entry.is_some_and(|entry| entry.id == side.id);
        if !unchanged || options.pointers {
            plan.write.insert(path.clone(), *side);
        }
    }
    if !in_the_way.is_empty() {
        return Err(Error::LocalChanges { paths: in_the_way });
    }
    drop(compare);
    let from_commit = options.source.is_some();
    let (summary, changes) = carry_out(repository, &index, &store, plan, progress)?;
    // From another commit, the work tree alone changes, as with Git: the index keeps what it has.
    if !from_commit {
        index.apply(changes);
        index.write()?;
    }
    Ok(summary)
}
