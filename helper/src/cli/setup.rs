//! The first push with nothing configured: a key, a store and a remote are made on the way.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use ingot_engine::progress::Unit;
use ingot_engine::repository::{self, Repository};
use serde_json::json;

use super::app::{App, Direction, Found, no_repository};
use super::args::Push;
use super::exit::{Code, Failure};
use super::local_refs;
use super::place::{self, Place};
use super::progress::amount;
use super::push::Pushing;
use super::refspec::Local as _;
use super::report::Report;
use crate::config::{Folders, Remote, StorageUrl, safe_name, shell_word};
use crate::flock::{self, FileLock};
use crate::keys::key_folder;
use crate::protocol::{DeviceKey, key_file};
use crate::remote;
use crate::state::{AdminPin, Owner, set_aside};

/// The name of the remote that is added.
const REMOTE: &str = "e2ee";
/// Names that are tried before giving up.
const TRIES: u32 = 1000;

/// What the set-up made, or found half made and finished.
struct Setup {
    name: String,
    key: PathBuf,
    store: PathBuf,
    made_key: bool,
    made_store: bool,
}

/// Sets everything up and pushes the current branch, or what `words` name.
pub fn push(app: &App, args: &Push, words: &[OsString]) -> Result<Report, Failure> {
    let mut repository = app
        .repository(args.place.repo.as_ref())?
        .ok_or_else(no_repository)?;
    if args.place.key.is_some() {
        return Err(
            Failure::usage("--key needs to know the store").next("add --storage DIR, a URL or a remote")
        );
    }
    something_to_push(&repository, args, words)?;
    if args.dry_run {
        return Err(
            Failure::failed("there is no store yet, so there is nothing to compare with")
                .next("leave out --dry-run"),
        );
    }
    free_remote_name(&repository)?;
    let mut folders = Folders::of_user().ok_or_else(|| {
        Failure::failed("no home folder is known for keys and stores")
            .next("set HOME, or name a store and a key")
    })?;
    // Where the home folder is a work tree, the usual place is in it.
    folders.keys = key_folder(&repository);
    let lock = lock(app, &folders)?;
    // Another first push of the same repository may have been faster.
    repository.reload()?;
    if let Some(found) = app.find(&args.place, None, Direction::Push)? {
        drop(lock);
        return Pushing {
            app,
            args,
            found: &found,
            words,
        }
        .all();
    }

    let setup = prepare(app, &repository, &folders)?;
    let url = StorageUrl::Directory(setup.store.clone());
    forget_earlier(app, &repository, &setup)?;
    let upstream_of = without_upstream(&repository).filter(|_| !names_itself(args, words));
    add_remote(
        &mut repository,
        &url,
        &setup.key,
        upstream_of.as_ref().map(|name| name.as_bstr()),
    )?;
    drop(lock);
    let settings = place::settings_of(Some(&repository))?;
    let remote = Remote::find(&settings, REMOTE.into());
    let base = place::base_of(Some(&repository))?;
    let found = Found {
        repository: Some(repository),
        settings,
        remote,
        urls: vec![url.clone()],
        key: setup.key.clone(),
        base,
        display: std::sync::Arc::clone(&app.display),
        keys: std::sync::Arc::clone(&app.keys),
    };
    let pushed = Pushing {
        app,
        args,
        found: &found,
        words,
    }
    .all()
    .map_err(|failure| {
        let made = format!(
            "the key {}, the store {} and the remote {REMOTE} are in place; run git-e2ee push again when that is mended",
            setup.key.display(),
            setup.store.display()
        );
        Failure {
            next: Some(failure.next.map_or(made.clone(), |next| format!("{next}; {made}"))),
            ..failure
        }
    })?;
    report(app, &setup, &url, &found, pushed)
}

/// One set-up of a user at a time: two of them would find the same name free.
fn lock(app: &App, folders: &Folders) -> Result<FileLock, Failure> {
    let fs = ingot_engine::durable::real();
    ingot_engine::durable::create_dirs(&*fs, &folders.stores, 0o700).map_err(|error| Failure::of(&error))?;
    FileLock::acquire(
        &folders.stores.join(".set-up.lock"),
        place::patience(&app.display),
    )
    .map_err(|error| {
        let code = match error {
            flock::Error::Held { .. } => Code::Locked,
            flock::Error::Interrupted { .. } => Code::Interrupted,
            flock::Error::Io { .. } => Code::Failed,
        };
        Failure {
            code,
            ..Failure::of(&error)
        }
    })
}

/// What this repository remembers of another store under the same name of a remote is not about the one that was just
/// begun, and would be taken for proof that the store was exchanged.
fn forget_earlier(app: &App, repository: &Repository, setup: &Setup) -> Result<(), Failure> {
    let key = app.keys.read(&setup.key)?.key;
    let owner = Owner::Remote(REMOTE.as_bytes());
    let fs = ingot_engine::durable::real();
    let patience = place::patience(&app.display);
    set_aside(&*fs, repository.git_dir(), owner, key.root(), patience).map_err(remote::Error::from)?;
    Ok(())
}

/// Whether the command line says what to push; otherwise it is the current branch.
fn names_itself(args: &Push, words: &[OsString]) -> bool {
    !words.is_empty() || args.all || args.tags || args.mirror || !args.refs.is_empty()
}

/// Asked before anything is made.
fn something_to_push(repository: &Repository, args: &Push, words: &[OsString]) -> Result<(), Failure> {
    if names_itself(args, words) {
        return Ok(());
    }
    let Some(branch) = local_refs::current_branch(repository) else {
        return Err(
            Failure::failed("HEAD is detached, so there is no current branch to push")
                .next("switch to a branch, or name one: git-e2ee push --ref refs/heads/main"),
        );
    };
    if local_refs::LocalRefs(repository)
        .resolve(branch.as_bstr())
        .is_none()
    {
        let message = format!("there is nothing to push: {} has no commit yet", branch.as_bstr());
        return Err(Failure::failed(message).next("commit something first"));
    }
    Ok(())
}

fn free_remote_name(repository: &Repository) -> Result<(), Failure> {
    let config = repository.config();
    if config.names("remote").iter().any(|name| name == REMOTE) {
        let message = format!("a remote {REMOTE} is configured, but it is no encrypted remote");
        return Err(Failure::failed(message).next("rename it, or name the store to push to"));
    }
    Ok(())
}

/// Makes a key and a store, or finishes what an interrupted set-up left: a key that founded nothing, or a store of
/// that key to which nothing was pushed. Whatever else has the name already belongs to another repository.
fn prepare(app: &App, repository: &Repository, folders: &Folders) -> Result<Setup, Failure> {
    let wanted = safe_name(&repository_name(repository));
    for number in 1..=TRIES {
        let name = if number == 1 {
            wanted.clone()
        } else {
            format!("{wanted}-{number}")
        };
        let (key, store) = (folders.key(&name), folders.store(&name));
        let made_key = !key.exists();
        let taken = match (made_key, is_vacant(&store)?) {
            (true, vacant) => !vacant,
            (false, true) => has_founded(app, &key)?,
            (false, false) => !is_unused_store_of(app, &key, &store),
        };
        if taken {
            continue;
        }
        if made_key {
            let device = DeviceKey::generate(None).map_err(|error| Failure::of(&error))?;
            key_file::create(&key, &device)?;
        }
        let made_store = is_vacant(&store)?;
        if made_store {
            let place = Place::open(
                &app.keys,
                StorageUrl::Directory(store.clone()),
                key.clone(),
                None,
                None,
                &store,
            )?;
            let patience = place::patience(&app.display);
            remote::init(place.storage(), place.key(), &key, place.fs(), patience)?;
        }
        return Ok(Setup {
            name,
            key,
            store,
            made_key,
            made_store,
        });
    }
    Err(
        Failure::failed(format!("no free name was found for a store of {wanted}"))
            .next("name a store and a key"),
    )
}

/// The name of a repository: that of the folder with its work tree, or its own without `.git`.
fn repository_name(repository: &Repository) -> String {
    let folder = repository.work_dir().unwrap_or_else(|| repository.common_dir());
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    name.strip_suffix(".git").map(str::to_owned).unwrap_or(name)
}

/// Nothing is there, or no more than an interrupted beginning left.
fn is_vacant(store: &Path) -> Result<bool, Failure> {
    let failed = |error| Failure::failed(format!("cannot look into {}: {error}", store.display()));
    let entries = match std::fs::read_dir(store) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(failed(error)),
    };
    let mut empty = true;
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        let left = matches!(&*name, "HEAD.lock" | "manifests" | ".staging") || name.starts_with(".HEAD-");
        if !left {
            return Ok(false);
        }
        empty = false;
    }
    // A lost head is not for a set-up to replace.
    let head =
        || place::storage(&StorageUrl::Directory(store.to_owned()), None, store).map(|store| store.head());
    Ok(empty || matches!(head()?, Ok(None)))
}

fn has_founded(app: &App, key: &Path) -> Result<bool, Failure> {
    let pin = AdminPin::open(ingot_engine::durable::real(), key, place::patience(&app.display))
        .map_err(remote::Error::from)?;
    Ok(pin.state().is_some())
}

fn is_unused_store_of(app: &App, key: &Path, store: &Path) -> bool {
    let url = StorageUrl::Directory(store.to_owned());
    let view = Place::open(&app.keys, url, key.to_owned(), None, None, store)
        .and_then(|place| Ok(place.remote(&app.display).list(None)?));
    view.is_ok_and(|view| view.generation() == 0)
}

/// Written last of all, so that a repository that knows the remote has everything that it needs.
fn add_remote(
    repository: &mut Repository,
    url: &StorageUrl,
    key: &Path,
    upstream_of: Option<&BStr>,
) -> Result<(), Failure> {
    let key = gix::path::into_bstr(key)
        .map_err(|_| Failure::failed("the path of the key file cannot be stored in Git's configuration"))?
        .into_owned();
    let location = url
        .secret_text()
        .map_err(|_| Failure::failed("the path of the store cannot be stored in Git's configuration"))?;
    repository.edit_config(|edit| -> Result<(), repository::Error> {
        edit.set("remote.e2ee.url", location.as_bytes())?;
        edit.set("remote.e2ee.fetch", "+refs/heads/*:refs/remotes/e2ee/*")?;
        edit.set("remote.e2ee.e2ee-key", key.as_bytes())?;
        if let Some(short) = upstream_of {
            let setting = |last: &str| bstr::concat([b"branch.", short.as_bytes(), last.as_bytes()]);
            edit.set(setting(".remote"), REMOTE)?;
            edit.set(
                setting(".merge"),
                bstr::concat([b"refs/heads/", short.as_bytes()]),
            )?;
        }
        Ok(())
    })?;
    Ok(())
}

/// The short name of the current branch, unless it follows a branch of some remote. `git push e2ee` asks for a branch
/// to follow while that is the only remote.
fn without_upstream(repository: &Repository) -> Option<BString> {
    let name = local_refs::current_branch(repository)?;
    let short: BString = name.strip_prefix(b"refs/heads/")?.into();
    let followed = bstr::concat([b"branch.", short.as_bytes(), b".remote"]);
    repository.config().string(followed).is_none().then_some(short)
}

fn report(
    app: &App,
    setup: &Setup,
    url: &StorageUrl,
    found: &Found,
    pushed: Report,
) -> Result<Report, Failure> {
    let place = found.open(url)?;
    let view = place.remote(&app.display).history()?;
    let mut size = view.chain().stored_bytes();
    for generation in view.chain().generations() {
        let manifest = place.storage().manifest(generation.id());
        size = size.saturating_add(manifest.map_or(0, |bytes| bytes.len() as u64));
    }
    let clone = format!(
        "git-e2ee clone --key {} {} {}",
        shell_word(&setup.key.display().to_string()),
        shell_word(&url.to_string()),
        shell_word(&setup.name),
    );
    let made = |made: bool| if made { "made" } else { "found" };
    let repository = found.repository()?;
    let text = format!(
        "Device key {}: {}\nStore {}: {}\nRemote {REMOTE} added to {}\n{}The store now holds {} of ciphertext. \
         From here on, git push {REMOTE} and git-e2ee push do the same.\n\n\
         To get it on another machine, copy the key there over a channel you trust, make the store reachable under \
         the same path, and run:\n  {clone}\n\
         Nobody can read the store without the key, you included: keep a copy of it in a safe place.\n\
         On paper: git-e2ee key backup. Behind a passphrase: git-e2ee key change-passphrase.\n",
        made(setup.made_key),
        setup.key.display(),
        made(setup.made_store),
        setup.store.display(),
        repository.common_dir().join("config").display(),
        pushed.text,
        amount(size, Unit::Bytes),
    );
    let mut json = pushed.json;
    json["setup"] = json!({
        "remote": REMOTE,
        "key": setup.key.display().to_string(),
        "store": setup.store.display().to_string(),
        "stored_bytes": size,
        "clone": clone,
    });
    Ok(Report {
        text,
        json,
        code: pushed.code,
        essential: pushed.code != Code::Done,
    })
}
