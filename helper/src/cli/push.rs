//! `push`: branches and tags into a store.

use std::collections::BTreeSet;
use std::ffi::OsString;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::progress::Unit;
use ingot_engine::repository::Repository;
use serde_json::{Value, json};

use super::app::{App, Direction, Found, bytes, no_repository};
use super::args::Push;
use super::exit::{Code, Failure, warn};
use super::local_refs::{self, LocalRefs};
use super::progress::amount;
use super::ref_edits::{RefEdit, apply_each};
use super::refspec::{Item, Local as _, Refspec, expand};
use super::remote_helper::verdict;
use super::report::Report;
use super::summary::Entry;
use crate::config::{Remote, StorageUrl};
use crate::gitremote::backend::Verdict;
use crate::remote::decide::{Change, Decision, Refs, Target};
use crate::remote::{Local, PushOptions, Pushed};

/// Pushes, after setting up a store where nothing is configured.
pub fn run(app: &App, args: Push) -> Result<Report, Failure> {
    let (target, refspecs) = super::words(&args.place, args.target.clone(), args.refspecs.clone());
    match app.find(&args.place, target.as_deref(), Direction::Push)? {
        Some(found) => {
            let mut report = Pushing {
                app,
                args: &args,
                found: &found,
                words: &refspecs,
            }
            .all()?;
            // Scripts for the existing implementation read the id of the new manifest.
            if args.place.storage.is_some() && !args.refs.is_empty() && report.code == Code::Done {
                let head = report.json["stores"][0]["head"].as_str().unwrap_or_default();
                report = Report {
                    text: format!("{head}\n"),
                    essential: true,
                    ..report
                };
            }
            Ok(report)
        }
        None => super::setup::push(app, &args, &refspecs),
    }
}

/// One push with all that it depends on.
pub struct Pushing<'a> {
    /// The run.
    pub app: &'a App,
    /// Its options.
    pub args: &'a Push,
    /// Where to.
    pub found: &'a Found,
    /// Refspecs as they were given.
    pub words: &'a [OsString],
}

impl Pushing<'_> {
    /// Pushes to each store of the remote in turn. A refusal by one does not keep the others from being tried.
    pub fn all(&self) -> Result<Report, Failure> {
        let mut text = String::new();
        let mut stores = Vec::new();
        let mut code = Code::Done;
        for url in &self.found.urls {
            let (lines, store, refused) = self.one(url)?;
            text += &lines;
            stores.push(store);
            if refused {
                code = Code::Failed;
            }
        }
        let json = json!({"command": "push", "dry_run": self.args.dry_run, "stores": stores});
        Ok(Report {
            text,
            json,
            code,
            essential: code != Code::Done,
        })
    }

    fn one(&self, url: &StorageUrl) -> Result<(String, Value, bool), Failure> {
        let repository = self.found.repository.as_ref().ok_or_else(no_repository)?;
        let place = self.found.open(url)?;
        let remote = place.remote(&self.app.display);
        let local = Local::open(repository)?;
        let listed = remote.list_to_push()?;
        let items = self.items(repository, listed.refs())?;
        let changes = self.changes(repository, &items)?;
        let options = PushOptions {
            atomic: self.args.atomic,
            dry_run: self.args.dry_run,
            listed: Some(listed.refs().clone()),
        };
        let pushed = remote.push(&local, &changes, &options)?;
        warn_of_absent_chunks(&pushed);
        if !self.args.dry_run {
            self.follow(repository, &pushed);
        }
        let entries: Vec<Entry> = items
            .iter()
            .zip(&pushed.decisions)
            .map(|(item, decision)| Entry {
                source: item.source.as_ref().map(ToString::to_string),
                name: item.destination.to_string(),
                verdict: told_verdict(decision),
            })
            .collect();
        Ok(self.told(url, &entries, &pushed))
    }

    /// What to push, by the words of the command line or, without any, by configuration.
    fn items(&self, repository: &Repository, refs: &Refs) -> Result<Vec<Item>, Failure> {
        let refs_of = LocalRefs(repository);
        let configured = self.found.remote.as_ref();
        let nothing_named =
            self.words.is_empty() && self.args.refs.is_empty() && !self.args.all && !self.args.tags;
        let mirror = self.args.mirror || nothing_named && configured.is_some_and(|remote| remote.mirror);
        let specs = if mirror {
            if !self.words.is_empty() || !self.args.refs.is_empty() {
                return Err(Failure::usage(
                    "--mirror takes no refspecs: it pushes all branches and tags",
                ));
            }
            parse(&[
                "+refs/heads/*:refs/heads/*".into(),
                "+refs/tags/*:refs/tags/*".into(),
            ])?
        } else {
            self.specs(nothing_named, configured, refs_of.head())?
        };
        let mut items = expand(&specs, &refs_of, refs)?;
        if mirror {
            let kept: BTreeSet<&BStr> = items.iter().map(|item| item.destination.as_bstr()).collect();
            let gone = refs
                .keys()
                .filter(|name| !kept.contains(name.as_str().as_bytes().as_bstr()));
            let deletions: Vec<Item> = gone
                .map(|name| Item {
                    source: None,
                    id: None,
                    destination: name.as_str().into(),
                    force: true,
                })
                .collect();
            items.extend(deletions);
        }
        for item in &mut items {
            item.force |= self.args.force;
        }
        distinct(items)
    }

    fn specs(
        &self,
        nothing_named: bool,
        configured: Option<&Remote>,
        current: Option<BString>,
    ) -> Result<Vec<Refspec>, Failure> {
        let mut texts: Vec<BString> = Vec::new();
        for name in &self.args.refs {
            let name = bytes(name)?;
            texts.push(bstr::concat([name.as_bytes(), b":", name.as_bytes()]).into());
        }
        for word in self.words {
            let word = bytes(word)?;
            if self.args.delete {
                if word.contains(&b':') {
                    return Err(Failure::usage(format!(
                        "--delete takes names, not refspecs: {word}"
                    )));
                }
                texts.push(bstr::concat([b":", word.as_bytes()]).into());
            } else {
                texts.push(word);
            }
        }
        if self.args.delete && texts.is_empty() {
            return Err(Failure::usage("--delete needs the name of a branch or tag"));
        }
        if self.args.all {
            texts.push("refs/heads/*:refs/heads/*".into());
        }
        if self.args.tags {
            texts.push("refs/tags/*:refs/tags/*".into());
        }
        if nothing_named {
            match configured {
                Some(remote) if !remote.push.is_empty() => texts.extend(remote.push.iter().cloned()),
                _ => texts.push(current.unwrap_or_else(|| "HEAD".into())),
            }
        }
        parse(&texts)
    }

    fn changes(&self, repository: &Repository, items: &[Item]) -> Result<Vec<Change>, Failure> {
        let leases = self.leases(repository, items)?;
        let change = |(item, lease): (&Item, Option<Option<ObjectId>>)| Change {
            name: item.destination.clone(),
            target: item.id.map_or(Target::Nothing, Target::Object),
            force: item.force,
            // Force outranks a lease, as with Git.
            lease: lease.filter(|_| !item.force),
        };
        Ok(items.iter().zip(leases).map(change).collect())
    }

    /// For each item the value that the store must have, where a lease says something about it.
    fn leases(
        &self,
        repository: &Repository,
        items: &[Item],
    ) -> Result<Vec<Option<Option<ObjectId>>>, Failure> {
        let mut leases = vec![None; items.len()];
        let specs = self.tracking_specs();
        for word in &self.args.force_with_lease {
            let word = bytes(word)?;
            let (name, expected) = match word.split_once_str(b":") {
                Some((name, expected)) => (name.as_bstr(), Some(expected.as_bstr())),
                None => (word.as_bstr(), None),
            };
            let meant = |item: &Item| {
                name.is_empty()
                    || item.destination == name
                    || ["refs/heads/", "refs/tags/"]
                        .iter()
                        .any(|kind| item.destination.strip_prefix(kind.as_bytes()) == Some(name.as_bytes()))
            };
            for (item, lease) in items.iter().zip(&mut leases).filter(|(item, _)| meant(item)) {
                *lease = Some(match expected {
                    Some(expected) if expected.is_empty() => None,
                    Some(expected) => Some(resolve(repository, expected)?),
                    None => tracking(&specs, item.destination.as_bstr())
                        .and_then(|name| local_refs::value(repository, name.as_bstr())),
                });
            }
        }
        Ok(leases)
    }

    /// The refspecs by which local references follow those of the store.
    fn tracking_specs(&self) -> Vec<Refspec> {
        let remote = self.found.remote.iter();
        remote
            .flat_map(|remote| &remote.fetch)
            .filter_map(|spec| Refspec::parse(spec.as_bstr()).ok())
            .filter(|spec| spec.destination.is_some())
            .collect()
    }

    /// Moves remote-tracking references to what the store now has. The push is done by then, so that one which is
    /// locked or was moved meanwhile is worth a word, but no failure: the next fetch moves it.
    fn follow(&self, repository: &Repository, pushed: &Pushed) {
        let specs = self.tracking_specs();
        let mut edits = Vec::new();
        for decision in &pushed.decisions {
            let Decision::Move { name, new, .. } = decision else {
                continue;
            };
            let Some(tracking) = tracking(&specs, name.as_str().into()) else {
                continue;
            };
            let old = local_refs::value(repository, tracking.as_bstr());
            if old != *new {
                edits.push(RefEdit {
                    name: tracking,
                    old,
                    new: *new,
                    message: "update by push".into(),
                });
            }
        }
        let failed: Vec<String> = match apply_each(repository, edits) {
            Ok(results) => results
                .into_iter()
                .filter_map(|result| Some(result.err()?.to_string()))
                .collect(),
            Err(failure) => vec![failure.to_string()],
        };
        if let Some((first, others)) = failed.split_first() {
            let more = match others.len() {
                0 => String::new(),
                count => format!("; and {count} more"),
            };
            warn(&format!(
                "pushed, but remote-tracking branches were not moved: {first}{more}"
            ));
        }
    }

    fn told(&self, url: &StorageUrl, entries: &[Entry], pushed: &Pushed) -> (String, Value, bool) {
        let refused = entries.iter().any(Entry::refused);
        let mut lines = String::new();
        for entry in entries {
            if entry.verdict != Verdict::UpToDate || self.app.global.verbose > 0 {
                lines += &entry.line();
                lines.push('\n');
            }
        }
        let mut text = String::new();
        if !lines.is_empty() {
            text += &format!("To {url}\n{lines}");
        }
        if !refused && !entries.iter().any(Entry::changed) {
            text += "Everything up-to-date\n";
        }
        if let Some(sent) = &pushed.sent {
            text += &format!(
                "Generation {}: {}, {} written\n",
                pushed.view.generation(),
                amount(sent.objects, Unit::Objects),
                amount(sent.bytes, Unit::Bytes),
            );
        }
        let json = json!({
            "url": url.to_string(),
            "generation": pushed.view.generation(),
            "head": pushed.view.head().to_string(),
            "published": pushed.sent.is_some(),
            "objects": pushed.sent.map_or(0, |sent| sent.objects),
            "bytes": pushed.sent.map_or(0, |sent| sent.bytes),
            "absent_chunks": pushed.sent.map_or(0, |sent| sent.absent_chunks),
            "refs": entries.iter().map(Entry::json).collect::<Vec<_>>(),
        });
        (text, json, refused)
    }
}

/// Chunked files may be pushed without their chunks, as history is complete without them; whoever clones should know.
pub(super) fn warn_of_absent_chunks(pushed: &Pushed) {
    let absent = pushed.sent.map_or(0, |sent| sent.absent_chunks);
    if absent > 0 {
        warn(&format!(
            "{absent} lists or chunks of chunked files are not here and were not pushed, so that clones get pointers in \
             place of these files; a repository that has them can give them with: git chunk push and git chunk fetch"
        ));
    }
}

/// The local reference that follows one of the store.
fn tracking(specs: &[Refspec], name: &BStr) -> Option<BString> {
    specs.iter().find_map(|spec| spec.map(name))
}

/// Git's transport code renames one of its statuses; people read the name that they know.
fn told_verdict(decision: &Decision) -> Verdict {
    match decision {
        Decision::Rejected(rejection) => Verdict::Refused(rejection.to_string()),
        other => verdict(other),
    }
}

fn parse(texts: &[BString]) -> Result<Vec<Refspec>, Failure> {
    Ok(texts
        .iter()
        .map(|text| Refspec::parse(text.as_bstr()))
        .collect::<Result<_, _>>()?)
}

fn resolve(repository: &Repository, revision: &BStr) -> Result<ObjectId, Failure> {
    LocalRefs(repository)
        .resolve(revision)
        .ok_or_else(|| Failure::failed(format!("{revision} does not match any object here")))
}

/// One item for each destination. Several words may name the same thing, but not two things for one reference.
fn distinct(items: Vec<Item>) -> Result<Vec<Item>, Failure> {
    let mut distinct: Vec<Item> = Vec::with_capacity(items.len());
    let mut seen = std::collections::BTreeMap::new();
    for item in items {
        match seen.get(&item.destination) {
            None => {
                seen.insert(item.destination.clone(), item.id);
                distinct.push(item);
            }
            Some(id) if *id == item.id => {}
            Some(_) => {
                return Err(Failure::usage(format!(
                    "two values are given for {}",
                    item.destination
                )));
            }
        }
    }
    Ok(distinct)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn item(destination: &str, n: u8) -> Item {
        Item {
            source: None,
            id: Some(ObjectId::from([n; 20])),
            destination: destination.into(),
            force: false,
        }
    }

    #[test]
    fn one_value_for_each_destination() {
        let same = distinct(vec![
            item("refs/heads/a", 1),
            item("refs/heads/b", 1),
            item("refs/heads/a", 1),
        ])
        .unwrap();
        assert_eq!(same.len(), 2);
        assert!(distinct(vec![item("refs/heads/a", 1), item("refs/heads/a", 2)]).is_err());
    }
}
