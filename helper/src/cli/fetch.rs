//! `fetch`: what is new in a store, into a repository.

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::progress::Unit;
use ingot_engine::refs;
use ingot_engine::repository::Repository;
use serde_json::json;

use super::app::{App, Direction, Found, bytes};
use super::args::Fetch;
use super::exit::{Code, Failure};
use super::follow::{Follow, all, chosen, mapped};
use super::local_refs::{self, LocalRefs};
use super::progress::amount;
use super::ref_edits::{RefEdit, apply_each};
use super::refspec::{Local as _, Refspec};
use super::remote_helper::remove_keep_files;
use super::report::Report;
use super::summary::{Entry, short_name};
use crate::gitremote::backend::Verdict;
use crate::remote::decide::{History as _, Refs};
use crate::remote::{FetchOptions, Local};

/// Fetches.
pub fn run(app: &App, args: Fetch) -> Result<Report, Failure> {
    let (target, words) = super::words(&args.place, args.target.clone(), args.refspecs.clone());
    let words = words
        .iter()
        .map(|word| bytes(word))
        .collect::<Result<Vec<_>, _>>()?;
    let found = app.require(&args.place, target.as_deref(), Direction::Fetch)?;
    let repository = found.repository()?;
    let place = found.only()?;
    let local = Local::open(repository)?;
    let fetched = place
        .remote(&app.display)
        .fetch(&local, FetchOptions { keep: true })?;
    let done = move_refs(&args, &found, repository, &words, fetched.view.refs());
    // References protect the packs from here on, or nothing needs them.
    remove_keep_files(&fetched.keep);
    let Moved { entries, in_the_way } = done?;

    let generation = fetched.view.generation();
    let refused = entries.iter().any(Entry::refused);
    let mut text = String::new();
    let told = entries
        .iter()
        .filter(|entry| app.global.verbose > 0 || entry.verdict != Verdict::UpToDate);
    let lines: String = told.map(|entry| entry.line() + "\n").collect();
    if found.remote.is_none() {
        text += &format!("fetched generation {generation}\n");
        if app.global.verbose > 0 || refused {
            text += &lines;
        }
    } else {
        if !lines.is_empty() {
            text += &format!("From {}\n{lines}", place.url);
        }
        if fetched.packs > 0 {
            text += &format!(
                "Generation {generation}: {} in {} packs, {} read\n",
                amount(fetched.objects, Unit::Objects),
                fetched.packs,
                amount(fetched.bytes, Unit::Bytes),
            );
        } else if lines.is_empty() {
            text += "Already up to date\n";
        }
    }
    if in_the_way && !args.prune {
        text += "To remove references that are in the way and that the store no longer has: git-e2ee fetch --prune\n";
    }
    let json = json!({
        "command": "fetch",
        "url": place.url.to_string(),
        "generation": generation,
        "head": fetched.view.head().to_string(),
        "packs": fetched.packs,
        "objects": fetched.objects,
        "bytes": fetched.bytes,
        "refs": entries.iter().map(Entry::json).collect::<Vec<_>>(),
    });
    let code = if refused { Code::Failed } else { Code::Done };
    Ok(Report {
        text,
        json,
        code,
        essential: refused,
    })
}

fn move_refs(
    args: &Fetch,
    found: &Found,
    repository: &Repository,
    words: &[BString],
    refs: &Refs,
) -> Result<Moved, Failure> {
    let specs = tracking_specs(args, found)?;
    let (follows, merges) = if words.is_empty() {
        (all(&specs, refs, found.remote.is_none()), Vec::new())
    } else {
        chosen(words, &specs, refs)?
    };
    // The fetch has brought objects that were not here when it began.
    let local = Local::open(repository)?;
    let busy = if repository.work_dir().is_some() {
        local_refs::checked_out(repository)
    } else {
        Vec::new()
    };
    let mut changes = Changes::default();
    let destinations = one_each(&follows)?;
    // What goes may be in the way of what comes.
    if args.prune {
        for (name, id) in stale(repository, &specs, refs) {
            if !destinations.contains_key(name.as_bstr()) {
                changes.prune(name, id);
            }
        }
    }
    for follow in destinations.into_values() {
        let force = follow.force || args.force;
        let old = local_refs::value(repository, follow.destination.as_bstr());
        let verdict = decide(&local, follow, old, force, &busy)?;
        changes.follow(follow, old, verdict);
    }
    let moved = changes.apply(repository)?;
    if !merges.is_empty() {
        write_fetch_head(found, repository, &merges)?;
    }
    Ok(moved)
}

/// What is to change here.
#[derive(Default)]
struct Changes {
    entries: Vec<Entry>,
    edits: Vec<RefEdit>,
    /// Which entry each edit is for.
    entry_of: Vec<usize>,
}

/// What became of it.
struct Moved {
    entries: Vec<Entry>,
    /// A reference that is here keeps others from being made.
    in_the_way: bool,
}

impl Changes {
    fn edit(&mut self, edit: RefEdit) {
        self.entry_of.push(self.entries.len());
        self.edits.push(edit);
    }

    fn prune(&mut self, name: BString, id: ObjectId) {
        self.edit(RefEdit {
            name: name.clone(),
            old: Some(id),
            new: None,
            message: BString::default(),
        });
        self.entries.push(Entry {
            source: None,
            name: name.to_string(),
            verdict: Verdict::Changed {
                old: Some(id),
                new: None,
                forced: false,
            },
        });
    }

    fn follow(&mut self, follow: &Follow, old: Option<ObjectId>, verdict: Verdict) {
        if let Verdict::Changed { forced, .. } = verdict {
            let message = match (old, forced) {
                (None, _) => "fetch: storing head",
                (Some(_), false) => "fetch: fast-forward",
                (Some(_), true) => "fetch: forced-update",
            };
            self.edit(RefEdit {
                name: follow.destination.clone(),
                old,
                new: Some(follow.id),
                message: message.into(),
            });
        }
        self.entries.push(Entry {
            source: Some(follow.source.clone()),
            name: follow.destination.to_string(),
            verdict,
        });
    }

    /// Changes each reference for itself: one that cannot be changed does not hold up the others.
    fn apply(self, repository: &Repository) -> Result<Moved, Failure> {
        let mut moved = Moved {
            entries: self.entries,
            in_the_way: false,
        };
        let results = apply_each(repository, self.edits)?;
        for (at, result) in self.entry_of.into_iter().zip(results) {
            if let Err(error) = result {
                moved.in_the_way |= matches!(error, refs::Error::Conflict { .. });
                moved.entries[at].fail(&error);
            }
        }
        Ok(moved)
    }
}

/// What each local reference is to follow, by its name. Several words may ask for the same, but not for two things.
fn one_each(follows: &[Follow]) -> Result<BTreeMap<&BStr, &Follow>, Failure> {
    let mut destinations: BTreeMap<&BStr, &Follow> = BTreeMap::new();
    for follow in follows {
        let first = *destinations.entry(follow.destination.as_bstr()).or_insert(follow);
        if first.id != follow.id {
            return Err(Failure::failed(format!(
                "cannot fetch both {} and {} to {}",
                first.source, follow.source, follow.destination
            )));
        }
    }
    Ok(destinations)
}

/// The refspecs that keep local references in step with the store.
fn tracking_specs(args: &Fetch, found: &Found) -> Result<Vec<Refspec>, Failure> {
    let texts: Vec<BString> = match &found.remote {
        Some(remote) => remote.fetch.clone(),
        None => {
            let name = &args.remote_name;
            if gix::validate::reference::name(format!("refs/remotes/{name}/x").as_str().into()).is_err() {
                return Err(Failure::usage(format!(
                    "--remote-name {name} cannot be part of a reference name"
                )));
            }
            vec![
                format!("+refs/heads/*:refs/remotes/{name}/*").into(),
                "+refs/tags/*:refs/tags/*".into(),
            ]
        }
    };
    // A negative refspec only leaves things out that would otherwise be followed; it is Git's to apply.
    Ok(texts
        .iter()
        .filter(|text| !text.starts_with(b"^"))
        .map(|text| Refspec::parse(text.as_bstr()))
        .collect::<Result<_, _>>()?)
}

fn decide(
    local: &Local<'_>,
    follow: &Follow,
    old: Option<ObjectId>,
    force: bool,
    busy: &[BString],
) -> Result<Verdict, Failure> {
    let refused = |reason: &str| Ok(Verdict::Refused(reason.to_owned()));
    let changed = |forced| {
        Ok(Verdict::Changed {
            old,
            new: Some(follow.id),
            forced,
        })
    };
    if old == Some(follow.id) {
        return Ok(Verdict::UpToDate);
    }
    if gix::validate::reference::name(follow.destination.as_bstr()).is_err() {
        return refused("not a valid reference name");
    }
    if busy.contains(&follow.destination) {
        return Err(Failure::failed(format!(
            "refusing to fetch into {}, which is checked out",
            follow.destination
        ))
        .next("fetch without a destination, then merge"));
    }
    let Some(old_id) = old else { return changed(false) };
    if follow.destination.starts_with(b"refs/tags/") {
        return if force {
            changed(true)
        } else {
            refused("would clobber existing tag")
        };
    }
    let commit = |id| -> Result<Option<ObjectId>, Failure> {
        Ok(local
            .peel(id)?
            .filter(|(_, kind)| *kind == gix::object::Kind::Commit)
            .map(|(id, _)| id))
    };
    let forward = match (commit(old_id)?, commit(follow.id)?) {
        (Some(old), Some(new)) => local.is_ancestor(old, new)?,
        _ => false,
    };
    match (forward, force) {
        (true, _) => changed(false),
        (false, true) => changed(true),
        (false, false) => refused("non-fast-forward"),
    }
}

/// Local references that follow something the store no longer has.
fn stale(repository: &Repository, specs: &[Refspec], refs: &Refs) -> BTreeMap<BString, ObjectId> {
    let kept: BTreeSet<BString> = mapped(specs, refs)
        .into_iter()
        .map(|follow| follow.destination)
        .collect();
    let mut stale = BTreeMap::new();
    for destination in specs
        .iter()
        .filter(|spec| spec.is_pattern())
        .filter_map(|spec| spec.destination.as_ref())
    {
        // Tags are shared by all remotes, so none of them may clear them away.
        if destination.starts_with(b"refs/tags/") {
            continue;
        }
        let Some((before, after)) = destination.split_once_str(b"*") else {
            continue;
        };
        for (name, id) in LocalRefs(repository).list(&before.to_str_lossy()) {
            let follows = name.starts_with(before) && name.ends_with(after);
            if follows && !name.ends_with(b"/HEAD") && !kept.contains(&name) {
                stale.insert(name, id);
            }
        }
    }
    stale
}

/// What `git merge FETCH_HEAD` and the like read.
fn write_fetch_head(
    found: &Found,
    repository: &Repository,
    merges: &[(String, ObjectId)],
) -> Result<(), Failure> {
    let url = found.urls.first().map(ToString::to_string).unwrap_or_default();
    let mut text = String::new();
    for (name, id) in merges {
        let kind = if name.starts_with("refs/tags/") {
            "tag"
        } else {
            "branch"
        };
        text += &format!("{id}\t\t{kind} '{}' of {url}\n", short_name(name));
    }
    let path = repository.git_dir().join("FETCH_HEAD");
    std::fs::write(&path, text)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}
