//! `git-remote-e2ee`: the program that Git starts for `e2ee::` URLs.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::refs;
use ingot_engine::repository::Repository;
use ingot_engine::store::Store;

use super::ask::key_files;
use super::exit::{Code, Failure};
use super::incoming::{self, Incoming};
use super::interrupt::Interrupt;
use super::place::{self, Place};
use super::progress::{Display, Mode};
use super::trace;
use crate::config::{Remote as Configured, Settings, StorageUrl};
use crate::gitremote::backend::{Backend, Fetched, Listed, Listing, Outcome, Update, Verdict};
use crate::gitremote::options::{Lease, Options};
use crate::gitremote::{self, serve};
use crate::remote::decide::{Change, Decision, History as _, Refs, Target};
use crate::remote::{FetchOptions, Local, PushOptions, refnames};

/// Runs the program with its arguments, its own name left out, and returns how it ends.
pub fn main(args: Vec<OsString>) -> Code {
    trace::start(false);
    let interrupt = Interrupt::watch();
    match run(args, interrupt) {
        Ok(()) => Code::Done,
        Err(failure) => failure.report("git-remote-e2ee"),
    }
}

fn run(args: Vec<OsString>, interrupt: Interrupt) -> Result<(), Failure> {
    let mut args = args.into_iter();
    let (Some(name), url, None) = (args.next(), args.next(), args.next()) else {
        return Err(Failure::usage(
            "Git starts this program for e2ee:: URLs; to use a store directly, run git-e2ee",
        ));
    };
    let name = bytes(name)?;
    // With `remote.<name>.vcs` and no URL, older Gits give the name alone.
    let url = url.map(bytes).transpose()?.unwrap_or_else(|| name.clone());
    let mut helper = Helper::new(name, url, interrupt)?;
    serve(
        BufReader::new(std::io::stdin().lock()),
        std::io::stdout().lock(),
        &mut helper,
    )
    .map_err(|error| match error {
        gitremote::Error::Backend(failure) => failure,
        gitremote::Error::Write(error) | gitremote::Error::Read(gitremote::lines::Error::Io(error)) => {
            error.into()
        }
        other => Failure::of(&other),
    })
}

fn bytes(text: OsString) -> Result<BString, Failure> {
    gix::path::os_string_into_bstring(text).map_err(|_| Failure::usage("an argument is not valid text"))
}

/// One conversation: a store, and the repository where there is one.
struct Helper {
    repository: Option<Repository>,
    /// The repository's objects as last opened.
    store: Option<Arc<Store>>,
    place: Place,
    /// The remote in whose name a key from `e2ee.key` is yet to be stored.
    adopt_key: Option<BString>,
    display: Display,
    listed: Option<Refs>,
    /// The object format of the store, once listed.
    listed_format: Option<gix_hash::Kind>,
    /// Whether Git was told of a lock file already.
    locked: bool,
    /// `.keep` files that go when Git has ended the conversation, and with it moved its references.
    keep: Vec<PathBuf>,
    /// What Git need not look through again.
    incoming: Incoming,
}

impl Drop for Helper {
    fn drop(&mut self) {
        remove_keep_files(&self.keep);
        if let Some(repository) = &self.repository {
            self.incoming.release(repository);
        }
    }
}

impl Helper {
    fn new(name: BString, url: BString, interrupt: Interrupt) -> Result<Helper, Failure> {
        // `git ls-remote` works outside a repository, and does not set the variable then.
        let repository = match std::env::var_os("GIT_DIR") {
            Some(_) => Some(Repository::from_env()?),
            None => None,
        };
        let settings = place::settings_of(repository.as_ref())?;
        let base = place::base_of(repository.as_ref())?;
        let remote = remote_named(&settings, &name);
        let url = StorageUrl::parse(url.as_bstr(), &base)?;
        let key = place::key_for(
            &settings,
            remote.as_ref().map(|remote| remote.name.as_bstr()),
            &base,
        )?;
        let adopt_key = remote
            .as_ref()
            .filter(|_| key.general)
            .map(|remote| remote.name.clone());
        let place = Place::open(
            &key_files(),
            url,
            key.path,
            repository.as_ref(),
            remote.as_ref(),
            &base,
        )?;
        Ok(Helper {
            repository,
            store: None,
            place,
            adopt_key,
            display: Display::new(Mode::Off, interrupt),
            listed: None,
            listed_format: None,
            locked: false,
            keep: Vec::new(),
            incoming: Incoming::default(),
        })
    }

    fn show_progress(&self, options: &Options) {
        // Git has decided about terminals already; without its word nothing is shown.
        let wanted = Some(options.progress.unwrap_or(false));
        self.display
            .set_mode(Mode::choose(wanted, options.verbosity == 0));
    }

    /// The repository's objects: as they were opened before, unless packs came or went since. `None` outside a repository.
    fn objects(&mut self) -> Result<Option<Arc<Store>>, Failure> {
        let Some(repository) = &self.repository else {
            return Ok(None);
        };
        if let Some(store) = &self.store
            && store.format() == repository.format()
            && store.is_current()
        {
            return Ok(Some(Arc::clone(store)));
        }
        let store = Arc::new(repository.store().map_err(crate::remote::Error::from)?);
        self.store = Some(Arc::clone(&store));
        Ok(Some(store))
    }

    /// Stores a key that came with the command line of a clone, so that the next command finds it.
    fn adopt_key(&mut self) -> Result<(), Failure> {
        let (Some(name), Some(repository)) = (self.adopt_key.take(), self.repository.as_mut()) else {
            return Ok(());
        };
        let value = gix::path::into_bstr(self.place.key_file.as_path())
            .map_err(|_| Failure::failed("the path of the key file cannot be stored"))?
            .into_owned();
        repository.edit_config(|edit| edit.set(place::key_setting(name.as_bstr()), value.as_slice()))?;
        Ok(())
    }
}

fn no_repository() -> Failure {
    Failure::failed("this needs a repository, and GIT_DIR is not set").next("run it through git")
}

/// The configured remote of that name. Called by URL, Git gives the URL as name.
fn remote_named(settings: &Settings, name: &BString) -> Option<Configured> {
    Configured::find(settings, name.as_bstr())
}

impl Backend for Helper {
    type Error = Failure;

    fn list(&mut self, options: &Options, for_push: bool) -> Result<Listing, Failure> {
        self.show_progress(options);
        if let Some(repository) = &self.repository {
            incoming::sweep(repository);
        }
        let store = self.objects()?;
        let remote = self.place.remote(&self.display);
        let repository = self.repository.as_ref();
        let mut local = repository
            .zip(store)
            .map(|(repository, store)| Local::with_store(repository, store));
        let view = match for_push {
            true => remote.list_to_push()?,
            false => remote.list(local.as_ref())?,
        };
        if let (Some(before), Some(repository), false) =
            (&local, &self.repository, for_push || options.cloning)
        {
            let only_tags_are_new = view
                .refs()
                .iter()
                .all(|(name, id)| name.starts_with("refs/tags/") || before.store().contains(id));
            if only_tags_are_new
                && let Some(fetched) = remote.fetch_tags(before, FetchOptions { keep: true })?
            {
                self.keep.extend(fetched.keep);
                local = Some(Local::open(repository)?);
            }
        }
        let mut listed = Vec::with_capacity(view.refs().len());
        for (name, id) in view.refs() {
            // Only tags that are here can be peeled; the others come with their packs.
            let peeled = match &local {
                Some(local) if !for_push && name.starts_with("refs/tags/") => local.peel(*id)?,
                _ => None,
            };
            let peeled = peeled.map(|(peeled, _)| peeled).filter(|peeled| peeled != id);
            listed.push(Listed {
                name: name.as_str().into(),
                id: *id,
                peeled,
            });
        }
        let listing = Listing {
            object_format: view.format().or(local.as_ref().map(Local::format)),
            refs: listed,
            head: view.default_branch().map(Into::into),
        };
        self.listed = Some(view.refs().clone());
        self.listed_format = view.format();
        drop(local);
        self.adopt_key()?;
        Ok(listing)
    }

    fn fetch(&mut self, options: &Options, wanted: &[ObjectId]) -> Result<Fetched, Failure> {
        self.show_progress(options);
        if let Some(repository) = &mut self.repository
            && self
                .listed_format
                .is_some_and(|format| format != repository.format())
        {
            // A clone learns the object format from the listing, and makes the repository fit only then.
            repository.reload()?;
        }
        let store = self.objects()?;
        let (Some(repository), Some(store)) = (&self.repository, store) else {
            return Err(no_repository());
        };
        let local = Local::with_store(repository, store);
        let fetched = self
            .place
            .remote(&self.display)
            .fetch(&local, FetchOptions { keep: true })?;
        let complete: HashSet<&ObjectId> = fetched.view.refs().values().collect();
        // What is no reference of the store can be asked for by its id; then it must be in some pack.
        let others: Vec<&ObjectId> = wanted.iter().filter(|id| !complete.contains(id)).collect();
        let connected = others.is_empty();
        let absent = if connected {
            None
        } else {
            let after = Local::open(repository)?;
            others.into_iter().find(|id| !after.store().contains(id)).copied()
        };
        self.keep.extend(fetched.keep);
        if let Some(absent) = absent {
            let message = format!(
                "object {absent} is in no pack that the references of {} need",
                self.place.url
            );
            return Err(Failure::failed(message).next("see: git ls-remote"));
        }
        // A clone is told in words, and a reference that it did not make ends it.
        if !options.cloning && connected {
            let branches = fetched.view.refs().iter();
            let tips: BTreeSet<ObjectId> = branches
                .filter(|(name, _)| refnames::is_branch(name))
                .map(|(_, id)| *id)
                .collect();
            self.incoming.hold(repository, &tips, fetched.objects);
        }
        let lock = if self.locked { None } else { self.keep.pop() };
        self.locked |= lock.is_some();
        Ok(Fetched { lock, connected })
    }

    fn push(&mut self, options: &Options, updates: &[Update]) -> Result<Vec<Outcome>, Failure> {
        self.show_progress(options);
        let store = self.objects()?;
        let (Some(repository), Some(store)) = (&self.repository, store) else {
            return Err(no_repository());
        };
        let local = Local::with_store(repository, store);
        let changes: Vec<Change> = updates
            .iter()
            .map(|update| change(repository, update))
            .collect::<Result<_, Failure>>()?;
        let push = PushOptions {
            atomic: options.atomic,
            dry_run: options.dry_run,
            listed: self.listed.clone(),
        };
        let pushed = self.place.remote(&self.display).push(&local, &changes, &push)?;
        let outcome = |(update, decision): (&Update, &Decision)| Outcome {
            destination: update.destination.clone(),
            result: verdict(decision),
        };
        Ok(updates.iter().zip(&pushed.decisions).map(outcome).collect())
    }
}

fn change(repository: &Repository, update: &Update) -> Result<Change, Failure> {
    let target = match &update.source {
        None => Target::Nothing,
        Some(source) => match refs::resolve(repository, source) {
            Ok(resolved) => Target::Object(resolved.id),
            Err(refs::Error::Unknown { .. }) => Target::Unresolved(source.to_string()),
            Err(error) => return Err(error.into()),
        },
    };
    let lease = update.lease.map(|lease| match lease {
        Lease::Absent => None,
        Lease::At(id) => Some(id),
    });
    Ok(Change {
        name: update.destination.clone(),
        target,
        force: update.force,
        lease,
    })
}

/// A decision in the words of the line protocol.
pub fn verdict(decision: &Decision) -> Verdict {
    match decision {
        Decision::Move { old, new, forced, .. } => Verdict::Changed {
            old: *old,
            new: *new,
            forced: *forced,
        },
        Decision::UpToDate => Verdict::UpToDate,
        Decision::Rejected(rejection) => Verdict::Refused(rejection.as_git_status()),
    }
}

/// Gives packs free for collection again.
pub fn remove_keep_files(keep: &[PathBuf]) {
    for path in keep {
        // One that stays only spares a pack from collection.
        let _ = std::fs::remove_file(path);
    }
}
