//! Takes in what is read, in path order.

use std::collections::HashMap;

use gix_hash::ObjectId;
use ingot_engine::pack::create::Creator;
use ingot_engine::progress::{Progress, Unit};
use rayon::prelude::*;
use rustix::fs::FileType;

use super::read::{HELD, Outcome, Reader};
use super::walk::{Item, Listing, Stat};
use super::{Error, Offender};
use crate::manifest::{Content, EntryRef, KindRef, Reason, Skip};

/// Files that are read together.
const BATCH_FILES: usize = 512;
/// Bytes of files that are read together.
const BATCH_BYTES: u64 = 8 << 20;

/// What is known of one item of the walk.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// It has to be read.
    Unknown,
    /// A folder.
    Folder,
    /// A file, and what it looked like when it had this content.
    File(Content, Stat),
    /// A link, and the blob that has its target.
    Link(Vec<u8>, ObjectId),
    /// Not captured after all.
    Gone,
}

/// The middle of a capture.
pub(super) struct Intake<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) progress: &'a dyn Progress,
    /// The pack; `None` where nothing is to be stored.
    pub(super) creator: Option<Creator>,
    /// For each item of the walk.
    pub(super) known: Vec<Known>,
    /// Content that the last capture stored for items that have to be read.
    pub(super) old: Vec<Option<Content>>,
    pub(super) skipped: Vec<Skip>,
    pub(super) offenders: Vec<Offender>,
    /// Files that were opened.
    pub(super) read: u64,
}

impl Intake<'_> {
    /// Reads all that is not known.
    pub(super) fn read_all(&mut self, listing: &Listing) -> Result<(), Error> {
        let unknown: Vec<usize> = (0..self.known.len())
            .filter(|&at| matches!(self.known[at], Known::Unknown))
            .collect();
        self.read += unknown.len() as u64;
        let (reader, progress) = (self.reader, self.progress);
        progress.begin("Reading", Some(unknown.len() as u64), Unit::Files);
        let mut rest = unknown.as_slice();
        let mut waiting = Vec::new();
        while !rest.is_empty() || !waiting.is_empty() {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let (batch, after) = rest.split_at(batch_length(&listing.items, rest));
            rest = after;
            let jobs: Vec<(usize, Option<Content>)> = batch.iter().map(|&at| (at, self.old[at])).collect();
            // The next files are read while the last ones go into the pack.
            let (taken, next) = rayon::join(
                || self.take_all(listing, std::mem::take(&mut waiting)),
                || -> Vec<(usize, Outcome)> {
                    jobs.par_iter()
                        .with_min_len(4)
                        .map(|(at, old)| (*at, read_one(reader, listing, *at, old.as_ref())))
                        .collect()
                },
            );
            taken?;
            waiting = next;
        }
        progress.end();
        Ok(())
    }

    fn take_all(&mut self, listing: &Listing, outcomes: Vec<(usize, Outcome)>) -> Result<(), Error> {
        for (at, outcome) in outcomes {
            self.take(listing, at, outcome)?;
            self.progress.advance(1);
        }
        Ok(())
    }

    fn take(&mut self, listing: &Listing, at: usize, outcome: Outcome) -> Result<(), Error> {
        let path = listing.path(&listing.items[at]);
        match outcome {
            Outcome::File {
                content,
                mut stat,
                object,
                unsteady,
            } => {
                if let (Some(creator), Some(object)) = (&mut self.creator, &object) {
                    creator.add(object)?;
                }
                if unsteady {
                    self.skip(path, Reason::Changed);
                    // So that it never looks the same.
                    stat.inode = 0;
                }
                self.known[at] = Known::File(content, stat);
            }
            Outcome::Link { target, object } => {
                if let Some(creator) = &mut self.creator
                    && !self.reader.is_stored(&object.id)
                {
                    creator.add(&object)?;
                }
                self.known[at] = Known::Link(target, object.id);
            }
            Outcome::Skipped(reason) => {
                self.skip(path, reason);
                self.known[at] = Known::Gone;
            }
            Outcome::Blocked(findings) => {
                // Nothing will be stored, so nothing more is made ready; the rest is read to find all there is.
                self.creator = None;
                self.known[at] = Known::Gone;
                self.offenders.push(Offender {
                    path: path.to_vec(),
                    findings,
                });
            }
            Outcome::Large => {
                let progress = self.progress;
                let interrupted = || progress.interrupted();
                let old = self.old[at];
                let outcome = self
                    .reader
                    .large(path, old.as_ref(), self.creator.as_mut(), &interrupted)?;
                if interrupted() {
                    return Err(Error::Interrupted);
                }
                return self.take(listing, at, outcome);
            }
        }
        Ok(())
    }

    fn skip(&mut self, path: &[u8], reason: Reason) {
        self.skipped.push(Skip {
            path: path.to_vec(),
            reason,
        });
    }

    /// What was captured, in path order, with what it looked like.
    pub(super) fn entries<'s>(
        &'s self,
        listing: &'s Listing,
    ) -> impl Iterator<Item = (EntryRef<'s>, Stat)> + 's {
        let mut links = listing.hard_links.iter().peekable();
        // For each file with several names, by the first: the first that was captured. The others are the same file as
        // that one, if they were read as the same.
        let mut captured: HashMap<usize, usize> = HashMap::new();
        let items = listing.items.iter().zip(&self.known).enumerate();
        items.filter_map(move |(number, (item, known))| {
            let link = links.next_if(|(at, _)| *at == number);
            let (kind, stat) = match known {
                Known::Folder => (KindRef::Folder, item.stat),
                Known::File(content, stat) => (KindRef::File(*content), *stat),
                Known::Link(target, id) => (KindRef::Link { target, id: *id }, item.stat),
                Known::Unknown | Known::Gone => return None,
            };
            let hard_link = link.and_then(|&(_, first)| {
                let at = *captured.entry(first).or_insert_with(|| match &self.known[first] {
                    Known::File(..) => first,
                    _ => number,
                });
                let same = matches!((&self.known[at], known), (Known::File(a, seen), Known::File(b, stat))
                    if a == b && (seen.permissions(), seen.mtime) == (stat.permissions(), stat.mtime));
                (at != number && same).then(|| listing.path(&listing.items[at]))
            });
            let entry = EntryRef {
                path: listing.path(item),
                kind,
                mode: stat.permissions(),
                mtime: stat.mtime,
                hard_link,
            };
            Some((entry, stat))
        })
    }
}

/// How many of the next files are read together.
fn batch_length(items: &[Item], rest: &[usize]) -> usize {
    let mut bytes = 0;
    for (count, &at) in rest.iter().take(BATCH_FILES).enumerate() {
        bytes += items[at].stat.size.min(HELD);
        if bytes > BATCH_BYTES {
            return count + 1;
        }
    }
    rest.len().min(BATCH_FILES)
}

fn read_one(reader: &Reader<'_>, listing: &Listing, at: usize, old: Option<&Content>) -> Outcome {
    let item = &listing.items[at];
    let path = listing.path(item);
    match item.stat.file_type() {
        FileType::Symlink => reader.link(path),
        _ if item.stat.size > HELD => Outcome::Large,
        _ => reader.small(path, &item.stat, old),
    }
}
