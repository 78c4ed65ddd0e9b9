//! What a restore would do.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustix::fs::FileType;

use super::{Error, probe};
use crate::capture::walk::{Listing, Stat, device, names};
use crate::manifest::{self, Content, Entry, Kind, Manifest};
use crate::rooted::{Root, is_absent, is_link};

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A folder is missing.
    MakeFolder,
    /// A file or link is missing.
    Create,
    /// A file or link differs. Its content is kept.
    Replace(Stat),
    /// Only permissions or times differ.
    Adjust(Stat),
    /// The snapshot does not have it. It is kept, unless it is a folder, which goes only when it is empty.
    Delete(Stat),
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Relative to the root.
    pub path: Vec<u8>,
    /// What to do.
    pub action: Action,
    /// The place in the manifest; none for what is deleted.
    pub entry: Option<usize>,
    /// Another name of the same file, which is restored as well and comes first.
    pub hard_link: Option<Vec<u8>>,
    /// What is there is in no snapshot: it changed since the last one, or was never captured.
    pub unsaved: bool,
}

/// What is in the way of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// A file, a link or something rarer is where the snapshot has a folder.
    NotAFolder,
    /// A folder is where the snapshot has none.
    Folder,
    /// A pipe, a socket or a device.
    Special,
    /// A link is on the way.
    BeyondLink,
    /// The target cannot hold both this name and another one that differs in case alone.
    SameName,
    /// It cannot be looked at.
    Unreadable,
    /// It changed between looking and writing.
    ChangedMeanwhile,
    /// It could not be written.
    Refused,
}

impl Obstacle {
    /// For JSON.
    pub fn word(self) -> &'static str {
        match self {
            Obstacle::NotAFolder => "not-a-folder",
            Obstacle::Folder => "folder",
            Obstacle::Special => "special",
            Obstacle::BeyondLink => "beyond-link",
            Obstacle::SameName => "same-name",
            Obstacle::Unreadable => "unreadable",
            Obstacle::ChangedMeanwhile => "changed-meanwhile",
            Obstacle::Refused => "refused",
        }
    }

    /// What people read.
    pub fn explain(self) -> &'static str {
        match self {
            Obstacle::NotAFolder => "is no folder here; move it away first",
            Obstacle::Folder => "is a folder here; move it away first",
            Obstacle::Special => "is a pipe, a socket or a device here; move it away first",
            Obstacle::BeyondLink => "lies beyond a link here, which is not followed",
            Obstacle::SameName => {
                "differs from another name in case alone, which this file system cannot keep apart"
            }
            Obstacle::Unreadable => "cannot be looked at",
            Obstacle::ChangedMeanwhile => "was changed while this went on; restore again",
            Obstacle::Refused => "could not be written",
        }
    }
}

/// Something that is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Relative to the root.
    pub path: Vec<u8>,
    /// Why.
    pub obstacle: Obstacle,
}

/// Steps in path order, deletions last and deepest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What to do.
    pub steps: Vec<Step>,
    /// What cannot be done.
    pub conflicts: Vec<Conflict>,
    /// Entries that are as the snapshot has them.
    pub unchanged: u64,
}

/// What a plan is made of.
pub struct Question<'a> {
    /// The snapshot.
    pub manifest: &'a Manifest,
    /// The paths that are wanted; empty for all.
    pub paths: &'a [Vec<u8>],
    /// The newest snapshot of this machine, to tell what is in no snapshot.
    pub saved: Option<&'a Manifest>,
    /// What is tracked at the target now; what of it the snapshot does not have is deleted. `None` deletes nothing.
    pub present: Option<&'a Listing>,
    /// Whether names that differ in case alone are one; `None` to find out.
    pub ignores_case: Option<bool>,
}

enum Verdict {
    Same,
    Step(Action),
    Conflict(Obstacle),
}

/// Compares the target with the snapshot. `root` is `None` where the target does not exist yet.
pub fn plan(question: &Question<'_>, root: Option<&Root>) -> Result<Plan, Error> {
    let manifest = question.manifest;
    for path in question.paths {
        if !path.is_empty() && manifest.find(path).is_none() {
            return Err(Error::NoSuchPath(path.clone()));
        }
    }
    let wanted: Vec<usize> = (0..manifest.entries.len())
        .filter(|&at| is_wanted(&manifest.entries[at], question.paths))
        .collect();
    let mut plan = Plan::default();
    let mut taken = same_names(manifest, &wanted, root, question.ignores_case);
    let judged: Vec<(usize, Verdict, bool)> = wanted
        .par_iter()
        .with_min_len(16)
        .map(|&at| {
            let entry = &manifest.entries[at];
            let (verdict, unsaved) = judge(entry, root, question);
            (at, verdict, unsaved)
        })
        .collect();
    let mut blocked: Option<&[u8]> = None;
    for (at, verdict, unsaved) in judged {
        let entry = &manifest.entries[at];
        let path = entry.path.as_slice();
        if blocked.is_some_and(|folder| manifest::is_in(path, folder)) {
            continue; // its folder was told already
        }
        let obstacle = match verdict {
            _ if taken.remove(&at).is_some() => Obstacle::SameName,
            Verdict::Same => {
                plan.unchanged += 1;
                continue;
            }
            // Folders on the way to what is wanted are made, but not changed.
            Verdict::Step(Action::Adjust(_)) if is_on_the_way(entry, question.paths) => {
                plan.unchanged += 1;
                continue;
            }
            Verdict::Step(action) => {
                plan.steps.push(Step {
                    path: path.to_vec(),
                    action,
                    entry: Some(at),
                    hard_link: first_name(entry, question.paths).map(<[u8]>::to_vec),
                    unsaved,
                });
                continue;
            }
            Verdict::Conflict(obstacle) => obstacle,
        };
        if entry.kind == Kind::Folder {
            blocked = Some(path);
        }
        plan.conflicts.push(Conflict {
            path: path.to_vec(),
            obstacle,
        });
    }
    if let Some(present) = question.present {
        delete(&mut plan, question, present);
    }
    Ok(plan)
}

fn is_wanted(entry: &Entry, paths: &[Vec<u8>]) -> bool {
    paths.is_empty()
        || paths
            .iter()
            .any(|path| manifest::is_in(&entry.path, path) || manifest::is_in(path, &entry.path))
}

fn is_on_the_way(entry: &Entry, paths: &[Vec<u8>]) -> bool {
    !paths.is_empty() && !paths.iter().any(|path| manifest::is_in(&entry.path, path))
}

/// What of the present files the snapshot does not have, deepest first.
fn delete(plan: &mut Plan, question: &Question<'_>, present: &Listing) {
    let known = |path: &[u8]| question.manifest.find(path).is_some();
    let skipped = |path: &[u8]| question.manifest.skipped.iter().any(|skip| skip.path == path);
    let inside = |path: &[u8]| {
        question.paths.is_empty() || question.paths.iter().any(|wanted| manifest::is_in(path, wanted))
    };
    for item in present.items.iter().rev() {
        let path = present.path(item);
        // What the capture could not read was there, and is not to go.
        if known(path) || skipped(path) || !inside(path) {
            continue;
        }
        plan.steps.push(Step {
            path: path.to_vec(),
            action: Action::Delete(item.stat),
            entry: None,
            hard_link: None,
            unsaved: item.stat.file_type() != FileType::Directory
                && question.saved.is_none_or(|saved| saved.find(path).is_none()),
        });
    }
}

fn judge(entry: &Entry, root: Option<&Root>, question: &Question<'_>) -> (Verdict, bool) {
    let new = match entry.kind {
        Kind::Folder => Action::MakeFolder,
        _ => Action::Create,
    };
    let Some(root) = root else {
        return (Verdict::Step(new), false);
    };
    let found = match root.stat(&entry.path) {
        Ok(found) => found,
        Err(error) if is_link(&error) => return (Verdict::Conflict(Obstacle::BeyondLink), false),
        // The folder that it is in may be something else; that is told of the folder.
        Err(error) if is_absent(&error) => return (Verdict::Step(new), false),
        Err(_) => return (Verdict::Conflict(Obstacle::Unreadable), false),
    };
    let stat = Stat::of(&found);
    let same_mode = stat.permissions() == entry.mode;
    let same_time = stat.mtime == entry.mtime;
    let verdict = match (&entry.kind, stat.file_type()) {
        (Kind::Folder, FileType::Directory) if same_mode => Verdict::Same,
        (Kind::Folder, FileType::Directory) => Verdict::Step(Action::Adjust(stat)),
        (Kind::Folder, _) => Verdict::Conflict(Obstacle::NotAFolder),
        (_, FileType::Directory) => Verdict::Conflict(Obstacle::Folder),
        (Kind::File(content), FileType::RegularFile) => match has_content(root, entry, content, &stat) {
            // The other name is restored as well, and this one as a name of the same file.
            Ok(true) if is_apart(root, entry, &found, question.paths) => Verdict::Step(Action::Replace(stat)),
            Ok(true) if same_mode && same_time => Verdict::Same,
            // Permissions and times are those of all names.
            Ok(true) if names(&found) > 1 && is_lone(entry, question.manifest) => {
                Verdict::Step(Action::Replace(stat))
            }
            Ok(true) => Verdict::Step(Action::Adjust(stat)),
            Ok(false) => Verdict::Step(Action::Replace(stat)),
            Err(()) => Verdict::Conflict(Obstacle::Unreadable),
        },
        (Kind::Link { target, .. }, FileType::Symlink) => match root.link(&entry.path) {
            Ok(found) if found == *target && same_time => Verdict::Same,
            Ok(found) if found == *target => Verdict::Step(Action::Adjust(stat)),
            Ok(_) => Verdict::Step(Action::Replace(stat)),
            Err(_) => Verdict::Conflict(Obstacle::Unreadable),
        },
        (_, FileType::RegularFile | FileType::Symlink) => Verdict::Step(Action::Replace(stat)),
        _ => Verdict::Conflict(Obstacle::Special),
    };
    let unsaved = match verdict {
        Verdict::Step(Action::Replace(_)) => !is_saved(root, &entry.path, &stat, question.saved),
        _ => false,
    };
    (verdict, unsaved)
}

/// The first name of the file that an entry is another name of, where both are restored.
fn first_name<'e>(entry: &'e Entry, paths: &[Vec<u8>]) -> Option<&'e [u8]> {
    let wanted = |path: &[u8]| paths.is_empty() || paths.iter().any(|wanted| manifest::is_in(path, wanted));
    entry.hard_link.as_deref().filter(|first| wanted(first))
}

/// Whether what is there is not the same file as what its first name leads to, and could be.
fn is_apart(root: &Root, entry: &Entry, found: &rustix::fs::Stat, paths: &[Vec<u8>]) -> bool {
    let Some(first) = first_name(entry, paths) else {
        return false;
    };
    match root.stat(first) {
        Ok(first) => first.st_ino != found.st_ino && device(&first) == device(found),
        // It will be there.
        Err(_) => true,
    }
}

/// Whether the snapshot has no other name for the file.
fn is_lone(entry: &Entry, manifest: &Manifest) -> bool {
    let is_first = || {
        let mut links = manifest
            .entries
            .iter()
            .filter_map(|entry| entry.hard_link.as_deref());
        links.any(|first| first == entry.path)
    };
    entry.hard_link.is_none() && !is_first()
}

fn has_content(root: &Root, entry: &Entry, content: &Content, stat: &Stat) -> Result<bool, ()> {
    if stat.size != content.size {
        return Ok(false);
    }
    match hash(root, &entry.path) {
        Ok(hash) => Ok(hash == content.blake3),
        Err(_) => Err(()),
    }
}

/// BLAKE3 of a file below the root.
pub(super) fn hash(root: &Root, path: &[u8]) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut std::fs::File::from(root.file(path)?), &mut hasher)?;
    Ok(*hasher.finalize().as_bytes())
}

/// Whether the newest snapshot has what is there.
fn is_saved(root: &Root, path: &[u8], stat: &Stat, saved: Option<&Manifest>) -> bool {
    let Some(entry) = saved.and_then(|saved| saved.find(path)) else {
        return false;
    };
    match (&entry.kind, stat.file_type()) {
        (Kind::File(content), FileType::RegularFile) => {
            content.size == stat.size && hash(root, path).is_ok_and(|hash| hash == content.blake3)
        }
        (Kind::Link { target, .. }, FileType::Symlink) => root.link(path).is_ok_and(|found| found == *target),
        _ => false,
    }
}

/// Entries whose name another entry of the same folder has in another case, if the target cannot tell them apart. The
/// first one keeps the name.
fn same_names(
    manifest: &Manifest,
    wanted: &[usize],
    root: Option<&Root>,
    ignores_case: Option<bool>,
) -> BTreeMap<usize, ()> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for &at in wanted {
        // What is not text is not folded either.
        let Ok(text) = std::str::from_utf8(&manifest.entries[at].path) else {
            continue;
        };
        if seen.insert(text.to_lowercase(), at).is_some() {
            taken.insert(at, ());
        }
    }
    let ignores = || ignores_case.unwrap_or_else(|| root.is_some_and(probe::ignores_case));
    if taken.is_empty() || !ignores() {
        taken.clear();
    }
    taken
}
