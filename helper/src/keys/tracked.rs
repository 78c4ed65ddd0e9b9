//! Keys in work trees, where `git add` would find them.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use ingot_engine::repository::Repository;

use crate::config::{Folders, shell_word};
use crate::protocol::key_file::Error;

/// What is kept beside a key file, by the end of its name.
const COMPANIONS: [&str; 4] = [".next", ".admin-state.json", ".invitation.json", ".devices.json"];

/// The files beside a key file that belong to it.
pub fn companions(key_file: &Path) -> impl Iterator<Item = PathBuf> {
    COMPANIONS.iter().map(|end| {
        let mut name = key_file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    })
}

/// The top of the work tree that a file lies in, links followed; the file need not be there. What lies in a Git folder is
/// never tracked, so that it counts as outside.
pub fn lies_in_work_tree(path: &Path, repository: &Repository) -> Option<PathBuf> {
    let top = std::fs::canonicalize(repository.work_dir()?).ok()?;
    let path = resolved(path)?;
    let below = path.strip_prefix(&top).ok()?;
    // Git tracks nothing below a folder of that name, in whatever case.
    let in_git_folder = below.components().any(|part| match part {
        Component::Normal(name) => name.eq_ignore_ascii_case(".git"),
        _ => false,
    });
    let in_own = [repository.git_dir(), repository.common_dir()]
        .into_iter()
        .filter_map(|folder| std::fs::canonicalize(folder).ok())
        .any(|folder| folder != top && path.starts_with(folder));
    (!in_git_folder && !in_own).then_some(top)
}

/// Refuses a key file that lies in the work tree of the repository in use, and says what to do. `setting` is the name of
/// the setting that leads to the file.
pub fn refuse_in_work_tree(path: &Path, repository: &Repository, setting: Option<&str>) -> Result<(), Error> {
    match lies_in_work_tree(path, repository) {
        None => Ok(()),
        Some(top) => Err(Error::InWorkTree {
            path: path.to_owned(),
            remedy: remedy(path, repository, setting),
            top,
        }),
    }
}

/// A line of shell that moves the file, with what belongs to it, to where keys are kept.
fn remedy(path: &Path, repository: &Repository, setting: Option<&str>) -> String {
    let word = |path: &Path| shell_word(&path.display().to_string());
    let folder = key_folder(repository);
    let name = path.file_name().unwrap_or_default();
    let new = word(&folder.join(name));
    if std::fs::symlink_metadata(path).is_err() {
        return format!("choose a name outside of it, for example {new}");
    }
    // A link would move alone.
    let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut line = format!(
        "run: mkdir -p -m 700 {folder} && mv -n {} {new}",
        word(&file),
        folder = word(&folder)
    );
    let beside: Vec<String> = companions(path)
        .filter(|file| file.exists())
        .map(|file| word(&file))
        .collect();
    if !beside.is_empty() {
        line += &format!(" && mv -n {} {}", beside.join(" "), word(&folder));
    }
    match setting {
        Some(setting) => line + &format!(" && git config {} {new}", shell_word(setting)),
        None => line + &format!("; then name it as {new}"),
    }
}

/// Where keys of this user go that are used with a repository: into the usual folder, or, where the whole home folder is
/// the work tree, into the Git folder.
pub fn key_folder(repository: &Repository) -> PathBuf {
    let usual = Folders::of_user().map(|folders| folders.keys);
    usual
        .filter(|folder| lies_in_work_tree(folder, repository).is_none())
        .unwrap_or_else(|| repository.common_dir().join("ingot").join("keys"))
}

/// The path without links, as far as it leads to something that is there.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = std::fs::canonicalize(at) {
            return Some(missing.iter().rev().fold(found, |path, name| path.join(name)));
        }
        missing.push(at.file_name()?.to_owned());
        at = at.parent()?;
    }
}
