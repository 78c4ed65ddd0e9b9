//! `clone`: from a store to a work tree.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::checkout;
use ingot_engine::progress::Unit;
use ingot_engine::repository::{self, Init, Repository};
use serde_json::json;

use super::app::{App, bytes};
use super::args::Clone;
use super::exit::{Failure, warn};
use super::place::{self, Place};
use super::progress::amount;
use super::ref_edits::{RefEdit, apply, apply_packed, detach, set_symbolic};
use super::report::Report;
use super::summary::short_name;
use crate::config::{Remote, StorageUrl, Target};
use crate::remote::decide::{History as _, Refs};
use crate::remote::{FetchOptions, Fetched, Local, View};

/// What HEAD of the new repository names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Head {
    /// A branch of the store, by full name.
    Branch(String),
    /// The commit that a tag leads to.
    Detached(ObjectId),
    /// A branch without a commit, as in every new repository.
    Unborn,
}

/// Clones.
pub fn run(app: &App, args: &Clone) -> Result<Report, Failure> {
    let here = place::current_folder()?;
    let settings = place::settings_of(None)?;
    let url = match Target::of(&settings, bytes(&args.url)?.as_bstr()) {
        Target::Url(url) => url,
        Target::Remote(remote) => remote.url,
    };
    let url = StorageUrl::parse(url.as_bstr(), &here)?;
    let key = match &args.key {
        Some(key) => here.join(key),
        None => {
            place::key_for(&settings, None, &here)
                .map_err(|_| Failure::failed("no key is given for the clone").next("add --key FILE"))?
                .path
        }
    };
    check_remote_name(&args.origin)?;
    let directory = match &args.directory {
        Some(directory) => here.join(directory),
        None => here.join(default_name(&url, args.bare)?),
    };
    let target = NewFolder::claim(&directory)?;

    // The object format has to be known before there is a repository to fetch into.
    let place = Place::open(&app.keys, url.clone(), key.clone(), None, None, &here)?;
    let place = place.shown(std::sync::Arc::clone(&app.display) as _);
    let view = place.remote(&app.display).list(None)?;
    wanted_branch(args, &view)?;
    let init = Init {
        bare: args.bare,
        format: view.format().unwrap_or(gix_hash::Kind::Sha1),
        branch: view
            .default_branch()
            .and_then(|branch| branch.strip_prefix("refs/heads/"))
            .map(str::to_owned),
        ..Init::default()
    };
    let mut repository = repository::init(&directory, &init)?;
    configure(&mut repository, args, &url, &key)?;

    let settings = place::settings_of(Some(&repository))?;
    let remote = Remote::find(&settings, args.origin.as_str().into());
    let place = place.remembered_in(&repository, remote.as_ref(), &here);
    let local = Local::open(&repository)?;
    let fetched = place
        .remote(&app.display)
        .fetch(&local, FetchOptions { keep: false })?;
    drop(local);
    // However many packs came, they are all seen from here on.
    repository.reload()?;
    let head = write_refs(&mut repository, args, &fetched.view)?;
    let files = check_out(app, args, &repository, &head)?;
    target.keep();
    Ok(report(&directory, &url, &fetched, &head, files))
}

fn check_remote_name(name: &str) -> Result<(), Failure> {
    match gix::validate::reference::name(format!("refs/remotes/{name}/x").as_str().into()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::usage(format!(
            "--origin {name} cannot be part of a reference name"
        ))),
    }
}

fn default_name(url: &StorageUrl, bare: bool) -> Result<String, Failure> {
    let name = url
        .name()
        .ok_or_else(|| Failure::usage(format!("{url} has no name")).next("name the folder to create"))?;
    Ok(if bare && !name.ends_with(".git") {
        format!("{name}.git")
    } else {
        name
    })
}

/// Finds what `--branch` names.
fn wanted_branch(args: &Clone, view: &View) -> Result<Option<String>, Failure> {
    let Some(name) = &args.branch else {
        return Ok(view.default_branch().map(str::to_owned));
    };
    let name = bytes(name)?;
    let found = ["refs/heads/", "refs/tags/", ""]
        .into_iter()
        .map(|kind| format!("{kind}{name}"))
        .find(|full| view.refs().contains_key(full));
    match found {
        Some(full) => Ok(Some(full)),
        None => {
            Err(Failure::failed(format!("the store has no branch or tag {name}"))
                .next("see: git-e2ee ls-remote"))
        }
    }
}

fn configure(repository: &mut Repository, args: &Clone, url: &StorageUrl, key: &Path) -> Result<(), Failure> {
    let unfit = || Failure::failed("a path cannot be stored in Git's configuration");
    let location = url.secret_text().map_err(|_| unfit())?;
    let key = gix::path::into_bstr(key).map_err(|_| unfit())?.into_owned();
    let name = &args.origin;
    let setting = |last: &str| format!("remote.{name}.{last}");
    repository.edit_config(|edit| -> Result<(), repository::Error> {
        edit.set(setting("url"), location.as_bytes())?;
        // A bare clone has the branches themselves and follows nothing, as with Git.
        if !args.bare {
            edit.set(setting("fetch"), format!("+refs/heads/*:refs/remotes/{name}/*"))?;
        }
        edit.set(setting("e2ee-key"), key.as_bytes())
    })?;
    Ok(())
}

/// Writes all references: those of the store, then what HEAD is about.
fn write_refs(repository: &mut Repository, args: &Clone, view: &View) -> Result<Head, Failure> {
    let message: BString = format!("clone: from e2ee::{}", view_source(args)).into();
    let edit = |name: String, id: ObjectId| RefEdit {
        name: name.into(),
        old: None,
        new: Some(id),
        message: message.clone(),
    };
    let tracking = |branch: &str| format!("refs/remotes/{}/{branch}", args.origin);
    let place = |(name, id): (&String, &ObjectId)| match name.strip_prefix("refs/heads/") {
        Some(branch) if !args.bare => edit(tracking(branch), *id),
        _ => edit(name.clone(), *id),
    };
    apply_packed(repository, view.refs().iter().map(place).collect())?;
    let default = view
        .default_branch()
        .and_then(|name| name.strip_prefix("refs/heads/"));
    if let Some(default) = default.filter(|_| !args.bare) {
        let (head, target) = (tracking("HEAD"), tracking(default));
        set_symbolic(
            repository,
            head.as_str().into(),
            target.as_str().into(),
            message.as_bstr(),
        )?;
    }

    let head = head(repository, wanted_branch(args, view)?, view.refs())?;
    match &head {
        Head::Branch(name) => {
            set_symbolic(repository, "HEAD".into(), name.as_str().into(), message.as_bstr())?;
            if !args.bare {
                apply(repository, vec![edit(name.clone(), view.refs()[name])])?;
                let setting = |last: &str| format!("branch.{}.{last}", short_name(name));
                repository.edit_config(|edit| -> Result<(), repository::Error> {
                    edit.set(setting("remote"), &args.origin)?;
                    edit.set(setting("merge"), name)
                })?;
            }
        }
        Head::Detached(id) => detach(repository, *id, message.as_bstr())?,
        Head::Unborn => {}
    }
    Ok(head)
}

fn view_source(args: &Clone) -> String {
    let text = args.url.to_string_lossy();
    text.strip_prefix("e2ee::").unwrap_or(&text).to_owned()
}

fn head(repository: &Repository, wanted: Option<String>, refs: &Refs) -> Result<Head, Failure> {
    let Some(name) = wanted else {
        return Ok(Head::Unborn);
    };
    if name.starts_with("refs/heads/") {
        return Ok(Head::Branch(name));
    }
    match Local::open(repository)?.peel(refs[&name])? {
        Some((commit, gix::object::Kind::Commit)) => Ok(Head::Detached(commit)),
        _ => Err(
            Failure::failed(format!("{name} leads to no commit, so it cannot be checked out"))
                .next("name another --branch, or clone with --no-checkout"),
        ),
    }
}

fn check_out(app: &App, args: &Clone, repository: &Repository, head: &Head) -> Result<u64, Failure> {
    let Some(work_dir) = repository.work_dir().filter(|_| !args.no_checkout) else {
        return Ok(0);
    };
    let commit = match head {
        Head::Branch(name) => super::local_refs::value(repository, name.as_str().into()),
        Head::Detached(id) => Some(*id),
        Head::Unborn => None,
    };
    let Some(commit) = commit else { return Ok(0) };
    let summary = checkout::checkout(repository, commit, work_dir, &app.display)?;
    for (path, reason) in &summary.pointers {
        warn(&format!("'{path}' stays a pointer: {reason}"));
    }
    if !summary.pointers.is_empty() {
        warn(
            "the store has not got these chunks; name a repository that has them: git chunk fetch REPOSITORY, then \
             git chunk restore",
        );
    }
    if summary.chunked > 0 && !app.global.quiet {
        warn("there are chunked files; so that Git can handle them, run in the clone: git chunk install");
    }
    Ok(summary.files as u64)
}

fn report(directory: &Path, url: &StorageUrl, fetched: &Fetched, head: &Head, files: u64) -> Report {
    let mut text = format!(
        "Cloned {url} into {}: generation {}, {}, {} read\n",
        directory.display(),
        fetched.view.generation(),
        amount(fetched.objects, Unit::Objects),
        amount(fetched.bytes, Unit::Bytes),
    );
    let (branch, detached) = match head {
        Head::Branch(name) => (Some(name.clone()), None),
        Head::Detached(id) => (None, Some(id.to_string())),
        Head::Unborn => (None, None),
    };
    if fetched.view.refs().is_empty() {
        text += "The store is empty\n";
    } else if *head == Head::Unborn {
        text +=
            "The store has no default branch, so nothing was checked out; switch to one of its branches\n";
    }
    let json = json!({
        "command": "clone",
        "url": url.to_string(),
        "directory": directory.display().to_string(),
        "generation": fetched.view.generation(),
        "refs": fetched.view.refs().len(),
        "packs": fetched.packs,
        "objects": fetched.objects,
        "bytes": fetched.bytes,
        "branch": branch,
        "detached": detached,
        "files": files,
    });
    Report::done(text, json)
}

/// The folder of a clone. Unless kept, what this process put into it goes again, and with it the folders that were made
/// for it, as far as nobody else has put anything there.
struct NewFolder {
    path: PathBuf,
    /// The folders that were made, the topmost first.
    made: Vec<PathBuf>,
    kept: bool,
}

impl NewFolder {
    fn claim(path: &Path) -> Result<NewFolder, Failure> {
        let mut folder = NewFolder {
            path: path.to_owned(),
            made: Vec::new(),
            kept: false,
        };
        let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
        for missing in missing
            .into_iter()
            .rev()
            .filter(|path| !path.as_os_str().is_empty())
        {
            match std::fs::create_dir(missing) {
                Ok(()) => folder.made.push(missing.to_owned()),
                // Another clone below the same folder was faster.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && missing != path => {}
                Err(error) => {
                    let message = format!("cannot create {}: {error}", missing.display());
                    return Err(Failure::failed(message));
                }
            }
        }
        match std::fs::read_dir(path).map(|mut entries| entries.next().is_some()) {
            Ok(false) => Ok(folder),
            Ok(true) | Err(_) => {
                let message = format!("{} exists already and is not an empty folder", path.display());
                Err(Failure::failed(message)
                    .next("name another one, or remove it if it is what an interrupted clone left"))
            }
        }
    }

    fn keep(mut self) {
        self.kept = true;
    }

    /// Removes the repository of a clone that failed, in a folder that was empty before: a bare repository is the folder
    /// itself. What it is made of is known; a file by another name is somebody else's.
    fn remove_repository(&self) {
        const PARTS: [&str; 12] = [
            ".git",
            "HEAD",
            "branches",
            "config",
            "description",
            "git-remote-e2ee",
            "hooks",
            "info",
            "logs",
            "objects",
            "packed-refs",
            "refs",
        ];
        for part in PARTS {
            let path = self.path.join(part);
            let _ = match std::fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(&path),
                Ok(_) => std::fs::remove_file(&path),
                Err(_) => Ok(()),
            };
        }
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.remove_repository();
        // One that holds anything else refuses, and stays where the user sees it.
        for folder in self.made.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_folder_that_is_not_kept_goes_with_what_was_made_for_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/c");
        let folder = NewFolder::claim(&path).unwrap();
        std::fs::create_dir_all(path.join(".git/x")).unwrap();
        drop(folder);
        assert!(!temp.path().join("a").exists());

        std::fs::create_dir(temp.path().join("empty")).unwrap();
        let folder = NewFolder::claim(&temp.path().join("empty")).unwrap();
        std::fs::create_dir_all(temp.path().join("empty/.git")).unwrap();
        drop(folder);
        assert_eq!(std::fs::read_dir(temp.path().join("empty")).unwrap().count(), 0);

        let folder = NewFolder::claim(&path).unwrap();
        std::fs::create_dir_all(&path).unwrap();
        folder.keep();
        std::fs::write(path.join("file"), "precious").unwrap();
        assert!(NewFolder::claim(&path).is_err());
        assert!(path.join("file").exists());
    }
}
