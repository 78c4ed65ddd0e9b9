//! From the index into history.

use bstr::{BString, ByteSlice as _};
use gix::index::entry::Flags;
use gix_hash::ObjectId;
use gix_object::{Kind, WriteTo as _};
use ingot_engine::pack::create::{self, Creator, Encoder};
use ingot_engine::pack::inflate::Level;
use ingot_engine::refs::{self, Edit, Expected, Head};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};

use super::index::Index;
use super::trees;
use crate::Error;

/// What to commit.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The message, as given.
    pub message: String,
    /// Also when nothing differs from the commit before.
    pub allow_empty: bool,
    /// Replaces the last commit.
    pub amend: bool,
    /// Does not mind that the configuration wants signatures.
    pub unsigned: bool,
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its id.
    pub id: ObjectId,
    /// Its first line.
    pub subject: String,
    /// The branch that it is on; `None` for a detached head.
    pub branch: Option<BString>,
    /// True if it has no parent.
    pub root: bool,
}

/// The commit that `HEAD` leads to.
pub fn head_commit(repository: &Repository) -> Result<Option<ObjectId>, Error> {
    Ok(match refs::head(repository)? {
        Head::Branch { id, .. } => id,
        Head::Detached(id) => Some(id),
    })
}

/// The tree of a commit.
pub fn tree_of(store: &Store, commit: ObjectId) -> Result<ObjectId, Error> {
    let mut bytes = Vec::new();
    match store.read(&commit, &mut Cache::new(0), &mut bytes)? {
        Some(Kind::Commit) => gix_object::CommitRefIter::from_bytes(&bytes, store.format())
            .tree_id()
            .map_err(|error| Error::Other(format!("commit {commit} is damaged: {error}"))),
        Some(kind) => Err(Error::Other(format!(
            "{commit} is a {kind} where a commit belongs"
        ))),
        None => Err(Error::Other(format!("commit {commit} is missing"))),
    }
}

/// Commits the index. The trees and the commit are one pack.
pub fn commit(repository: &Repository, options: &Options) -> Result<Committed, Error> {
    let config = repository.config();
    if config.boolean("commit.gpgSign")?.unwrap_or(false) && !options.unsigned {
        return Err(Error::Other(
            "commit.gpgSign is set, and git-chunk does not sign; use git commit, or --no-gpg-sign".to_owned(),
        ));
    }
    let message = clean(&options.message);
    if message.is_empty() {
        return Err(Error::Other(
            "the commit has no message; give one with -m".to_owned(),
        ));
    }
    // Nobody else may change the index meanwhile.
    let mut index = Index::lock(repository)?;
    let conflicts = index.conflicts();
    if let Some(path) = conflicts.first() {
        return Err(Error::Other(format!(
            "'{path}' is in conflict; settle it and add it first"
        )));
    }
    let store = repository.store()?;
    let format = store.format();
    let mut creator = Creator::begin(repository.objects_dir(), format, &create::Options::default());
    let mut encoder = Encoder::new(format, Level::DEFAULT);
    index
        .state
        .remove_entries(|_, _, entry| entry.flags.contains(Flags::INTENT_TO_ADD));
    let tree = trees::write(&index.state, &store, &mut creator, &mut encoder)?;

    let head = refs::head(repository)?;
    let (tip, branch) = match &head {
        Head::Branch { name, id } => (*id, Some(name.clone())),
        Head::Detached(id) => (Some(*id), None),
    };
    let merged = merge_heads(repository)?;
    let mut parents: Vec<ObjectId> = tip.into_iter().collect();
    let mut author = None;
    if options.amend {
        let tip = tip.ok_or_else(|| Error::Other("there is no commit to amend".to_owned()))?;
        let mut bytes = Vec::new();
        store.read(&tip, &mut Cache::new(0), &mut bytes)?;
        let old = gix_object::CommitRef::from_bytes(&bytes, format)
            .map_err(|error| Error::Other(format!("commit {tip} is damaged: {error}")))?;
        parents = old.parents().collect();
        author = old
            .author()
            .ok()
            .map(|author| {
                author.to_owned().map_err(|error| {
                    Error::Other(format!("the author of commit {tip} cannot be read: {error}"))
                })
            })
            .transpose()?;
    } else {
        parents.extend(&merged);
        let same = match tip {
            Some(tip) => tree_of(&store, tip)? == tree,
            None => tree.is_empty_tree(),
        };
        if same && merged.is_empty() && !options.allow_empty {
            return Err(Error::Other(
                "nothing to commit; add files first, or use --allow-empty".to_owned(),
            ));
        }
    }
    let gix = repository.gix();
    let committer = signature(gix.committer(), "committer")?;
    let author = match author {
        Some(author) => author,
        None => signature(gix.author(), "author")?,
    };
    let subject = message.lines().next().unwrap_or_default().to_owned();
    let made = gix_object::Commit {
        tree,
        parents: parents.iter().copied().collect(),
        author,
        committer,
        encoding: None,
        message: message.into(),
        extra_headers: Vec::new(),
    };
    let mut bytes = Vec::new();
    made.write_to(&mut bytes)
        .map_err(|error| Error::Other(format!("the commit cannot be written: {error}")))?;
    let object = encoder.encode(Kind::Commit, &bytes);
    let id = object.id;
    creator.add(&object)?;
    creator.finish()?;

    let verb = match (options.amend, merged.is_empty(), parents.is_empty()) {
        (true, ..) => "commit (amend)",
        (_, false, _) => "commit (merge)",
        (.., true) => "commit (initial)",
        _ => "commit",
    };
    let expected = tip.map_or(Expected::Absent, Expected::Is);
    let name = refs::validate("HEAD")?;
    refs::apply(
        repository,
        vec![
            Edit::set(name, id)
                .expecting(expected)
                .because(format!("{verb}: {subject}")),
        ],
    )?;
    for leftover in [
        "MERGE_HEAD",
        "MERGE_MSG",
        "MERGE_MODE",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
    ] {
        // Their absence is the usual case, and Git copes with their presence.
        let _ = std::fs::remove_file(repository.git_dir().join(leftover));
    }
    Ok(Committed {
        id,
        subject,
        branch: branch.map(|name| name.shorten().to_owned()),
        root: parents.is_empty(),
    })
}

fn signature(
    found: Option<Result<gix::actor::SignatureRef<'_>, impl std::fmt::Display>>,
    who: &str,
) -> Result<gix::actor::Signature, Error> {
    match found {
        Some(Ok(signature)) => signature
            .to_owned()
            .map_err(|error| Error::Other(format!("the time of the {who} makes no sense: {error}"))),
        Some(Err(error)) => Err(Error::Other(format!("the {who} cannot be used: {error}"))),
        None => Err(Error::Other(format!(
            "there is no {who} to name; set user.name and user.email in the configuration"
        ))),
    }
}

fn merge_heads(repository: &Repository) -> Result<Vec<ObjectId>, Error> {
    let path = repository.git_dir().join("MERGE_HEAD");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(_) => return Ok(Vec::new()),
    };
    text.lines()
        .map(|line| {
            ObjectId::from_hex(line).map_err(|_| Error::Other(format!("{} holds no ids", path.display())))
        })
        .collect()
}

/// As Git cleans a message that was given on the command line.
fn clean(message: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in message.lines() {
        let line = line.trim_end();
        if line.is_empty() && lines.last().is_none_or(|last| last.is_empty()) {
            continue;
        }
        lines.push(line);
    }
    while lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn messages_are_cleaned_as_git_does() {
        for (given, cleaned) in [
            ("a", "a\n"),
            ("\n\n a  \n\n\n\nb\n\n", " a\n\nb\n"),
            (" \n", ""),
            ("", ""),
        ] {
            assert_eq!(super::clean(given), cleaned, "{given:?}");
        }
    }
}
