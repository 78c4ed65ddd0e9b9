//! The end of a capture: manifest, trees, commit, one pack, one reference transaction.

use std::sync::Arc;

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::pack::create::{self, Creator, Encoder};
use ingot_engine::refs::{Edit, Expected, Options as RefOptions, Transaction};
use ingot_engine::store::Store;

use super::changes::{Change, compare};
use super::intake::Intake;
use super::stat_cache::{Head, StatCache, Writer};
use super::walk::Listing;
use super::{Captured, Error, Options, State};
use crate::archive::commit::Commit;
use crate::archive::{self, Archive, Files, tree};
use crate::manifest::{self, EntryRef, KindRef, Manifest, Skip};
use crate::records;
use crate::secrets::SECRET_SCAN_VERSION;

/// Makes a snapshot of what was taken in, unless it is what the last one has.
pub(super) fn conclude(
    files: &Files,
    archive: &Archive,
    listing: &Listing,
    mut intake: Intake<'_>,
    state: &State<'_>,
    options: &Options<'_>,
) -> Result<Captured, Error> {
    let creator = intake.creator.take();
    let offenders = std::mem::take(&mut intake.offenders);
    let mut skipped = std::mem::take(&mut intake.skipped);
    skipped.sort_by(|a, b| manifest::order(&a.path, &b.path).then(a.reason.cmp(&b.reason)));
    skipped.dedup();
    let entries: Vec<EntryRef<'_>> = intake.entries(listing).map(|(entry, _)| entry).collect();
    let skips = || skipped.iter().map(|skip| (skip.path.as_slice(), skip.reason));

    let previous = Previous::of(archive, state)?;
    let mut changes = Vec::new();
    let counts = compare(
        previous.entries(),
        entries.iter().copied(),
        &mut |what, old, new| {
            if options.list
                && let Some(entry) = new.or(old)
            {
                changes.push(Change {
                    path: entry.path.to_vec(),
                    what,
                    is_folder: entry.kind == KindRef::Folder,
                });
            }
        },
    );
    let affirmation =
        *manifest::affirmation(SECRET_SCAN_VERSION, entries.iter().copied(), skips()).as_bytes();
    let same_packages = previous.has_packages(archive, state, options)?;
    let mut captured = Captured {
        before: state.tip,
        counts,
        changes,
        packages_changed: !same_packages,
        offenders,
        read: intake.read,
        ..Captured::default()
    };
    let Some(mut creator) = creator else {
        captured.skipped = skipped;
        return Ok(captured);
    };

    let is_new = state.tip.is_none() || !same_packages || previous.affirmation() != affirmation;
    let commit = match (is_new, state.tip) {
        (false, Some(tip)) => tip,
        _ => {
            let store = archive.store()?;
            let mut documents = Documents::new(&store, &mut creator, options);
            let root = documents.trees(
                &entries,
                &skipped,
                options
                    .packages
                    .as_ref()
                    .map(|packages| packages.bytes.as_slice()),
            )?;
            let commit = Commit {
                tree: root,
                parents: state.tip.into_iter().collect(),
                author: archive.machine().to_owned(),
                seconds: state.began.seconds,
                offset: offset_minutes(state.began.seconds),
                message: message(options, archive.machine(), &captured),
            };
            let id = documents.put(Kind::Commit, &commit.encode())?;
            let created = creator.finish()?;
            captured.stored = created.map_or(0, |created| created.bytes);
            publish(archive, id, state.tip, &commit, options)?;
            captured.snapshot = Some(id);
            id
        }
    };
    let head = Head {
        secret_scan_version: SECRET_SCAN_VERSION,
        settings: state.settings,
        commit,
        affirmation,
        packages: state.packages,
        began: state.began,
    };
    let mut writer = Writer::new(&head);
    for (entry, stat) in intake.entries(listing) {
        writer.entry(entry, &stat);
    }
    let cache = writer.finish(skips());
    drop(entries);
    records::write(&*options.fs, &files.stat_cache(), &cache);
    captured.skipped = skipped;
    Ok(captured)
}

/// Moves the branch of the machine.
fn publish(
    archive: &Archive,
    id: ObjectId,
    before: Option<ObjectId>,
    commit: &Commit,
    options: &Options<'_>,
) -> Result<(), Error> {
    let subject = commit.message.lines().next().unwrap_or_default();
    let edit = Edit::set(archive.branch()?, id)
        .expecting(before.map_or(Expected::Absent, Expected::Is))
        .because(format!("snapshot: {subject}"));
    let refs = RefOptions {
        fs: Arc::clone(&options.fs),
        ..RefOptions::default()
    };
    Transaction::prepare(archive.repository(), vec![edit], &refs)?.commit()?;
    Ok(())
}

fn message(options: &Options<'_>, machine: &str, captured: &Captured) -> String {
    if let Some(message) = options
        .message
        .as_ref()
        .filter(|message| !message.trim().is_empty())
    {
        return message.clone();
    }
    let counts = &captured.counts;
    format!(
        "Snapshot of {machine}: {} added, {} changed, {} removed",
        counts.added,
        counts.modified + counts.touched,
        counts.removed
    )
}

/// How far local time is from UTC.
fn offset_minutes(seconds: i64) -> i32 {
    let now = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::tz::TimeZone::system().to_offset(now).seconds() / 60
}

/// The objects of a snapshot that are not content of files.
struct Documents<'a> {
    store: &'a Store,
    creator: &'a mut Creator,
    encoder: Encoder,
}

impl<'a> Documents<'a> {
    fn new(store: &'a Store, creator: &'a mut Creator, options: &Options<'_>) -> Documents<'a> {
        Documents {
            encoder: Encoder::new(store.format(), options.level),
            store,
            creator,
        }
    }

    fn put(&mut self, kind: Kind, bytes: &[u8]) -> Result<ObjectId, create::Error> {
        let id = self.encoder.id(kind, bytes);
        if self.store.find(&id).is_none() && !self.creator.contains(&id) {
            self.creator.add(&self.encoder.encode_as(id, kind, bytes))?;
        }
        Ok(id)
    }

    /// Manifest, packages and trees; returns the topmost one.
    fn trees(
        &mut self,
        entries: &[EntryRef<'_>],
        skipped: &[Skip],
        packages: Option<&[u8]>,
    ) -> Result<ObjectId, create::Error> {
        let mut manifest = manifest::Encoder::new(SECRET_SCAN_VERSION);
        entries.iter().for_each(|entry| manifest.entry(*entry));
        let skips = skipped.iter().map(|skip| (skip.path.as_slice(), skip.reason));
        let manifest = self.put(Kind::Blob, &manifest.finish(skips))?;
        let packages = match packages {
            Some(packages) => Some(self.put(Kind::Blob, packages)?),
            None => None,
        };
        let files = tree::build(entries.iter().copied(), &mut |bytes| self.put(Kind::Tree, bytes))?;
        self.put(Kind::Tree, &tree::top(manifest, files, packages))
    }
}

/// The snapshot before this one: as the cache has it, if that is of the same snapshot, or as its manifest has it.
enum Previous<'a> {
    None,
    Cache(&'a StatCache),
    Manifest(Manifest),
}

impl<'a> Previous<'a> {
    fn of(archive: &Archive, state: &State<'a>) -> Result<Previous<'a>, Error> {
        let Some(tip) = state.tip else {
            return Ok(Previous::None);
        };
        match state.cache {
            Some(cache) if cache.head.commit == tip => Ok(Previous::Cache(cache)),
            _ => Ok(Previous::Manifest(archive.reader()?.manifest(&tip)?)),
        }
    }

    fn entries(&self) -> Vec<EntryRef<'_>> {
        match self {
            Previous::None => Vec::new(),
            Previous::Cache(cache) => cache.entries().map(|cached| cached.entry).collect(),
            Previous::Manifest(manifest) => manifest.entries.iter().map(manifest::Entry::borrow).collect(),
        }
    }

    fn affirmation(&self) -> [u8; 32] {
        match self {
            Previous::None => [0; 32],
            Previous::Cache(cache) => cache.head.affirmation,
            Previous::Manifest(manifest) => {
                let entries = manifest.entries.iter().map(manifest::Entry::borrow);
                let skips = manifest.skipped.iter();
                let skips = skips.map(|skip| (skip.path.as_slice(), skip.reason));
                *manifest::affirmation(manifest.secret_scan_version, entries, skips).as_bytes()
            }
        }
    }

    /// Whether it has the same list of packages.
    fn has_packages(
        &self,
        archive: &Archive,
        state: &State<'_>,
        options: &Options<'_>,
    ) -> Result<bool, archive::Error> {
        match (self, state.tip) {
            (Previous::Cache(cache), _) => Ok(cache.head.packages == state.packages),
            (_, Some(tip)) => {
                let wanted = options
                    .packages
                    .as_ref()
                    .map(|packages| packages.bytes.as_slice());
                Ok(archive.reader()?.packages(&tip)?.as_deref() == wanted)
            }
            (_, None) => Ok(options.packages.is_none()),
        }
    }
}
