//! Which stored entry, or which new delta, serves each object of the set.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use gix_object::Kind;

use super::classify::{Classifier, Orphan};
use super::item::{Item, Objects, Role, Source};
use super::received::Received;
use super::recency::Order;
use super::search::{self, Budget};
use super::select::Selected;
use super::{Error, Options, Plan, recency, threads};
use crate::phase::Phase;
use crate::progress::{Progress, Unit};
use crate::store::{Position, Reader, Store};
use crate::walk;

/// With fewer loose objects than this, their order in time tells the delta search nothing that it does not see anyway.
const ORDERED: usize = 8;
/// Loose objects whose headers one thread reads at a time.
const HEADERS: usize = 256;
/// Copied objects are looked through for bases if the objects to encode make up at least one part in so many.
const NOTEWORTHY: u64 = 64;
/// Copied objects of any path are considered as bases if there are at most so many objects in all for each one that is
/// encoded; otherwise those of the same path.
const ANY_PATH: usize = 16;

/// Decides for each object of `members`, which were found in `store`, how it is sent.
pub fn plan<'a>(
    store: &'a Store,
    members: &'a walk::Objects,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Plan<'a>, Error> {
    let mut phase = Phase::begin("plan");
    phase.objects(members.len().into());
    let objects = Objects {
        store,
        loose: members.loose(),
    };
    let packs = select(store, members)?;
    let mut classifier = Classifier::new(store, members, &packs, options);
    for selected in &packs {
        classifier.pack(selected, options.threads, progress)?;
    }
    let (orphans, copied_bytes) = classifier.finish();
    let mut items = encoded(objects, members, &orphans, options, progress)?;
    if !items.is_empty() {
        let bytes = items.iter().fold(0u64, |sum, item| sum.saturating_add(item.size));
        if bytes >= copied_bytes / NOTEWORTHY {
            bases(store, members, &packs, options, &mut items, progress)?;
        }
        if let Some(versions) = Received::of(store, members, options) {
            received(store, members, versions, &mut items)?;
        }
        progress.begin(
            "Compressing objects",
            Some(search::targets(&items, options)),
            Unit::Objects,
        );
        search::search(objects, &mut items, options, progress)?;
        progress.end();
    }
    let (front, tail) = arrange(&items);
    Ok(Plan {
        objects,
        members,
        options: options.clone(),
        packs,
        items,
        front,
        tail,
        copied_bytes,
    })
}

/// The selected entries of each pack that has any.
fn select(store: &Store, members: &walk::Objects) -> Result<Vec<Selected>, Error> {
    let mut reader = Reader::new();
    let mut selected = Vec::new();
    let mut positions = members.positions().peekable();
    let mut of_pack = Vec::new();
    while let Some(&first) = positions.peek() {
        let pack = store.pack_number(first);
        let len = store.packs()[pack].len();
        let end = store.position(pack, 0).0 + len;
        of_pack.clear();
        while let Some(at) = positions.next_if(|at| at.0 < end) {
            of_pack.push(at);
        }
        selected.push(Selected::new(store, pack, &of_pack, &mut reader)?);
    }
    Ok(selected)
}

/// The objects that are encoded, in the order in which they are written as far as their bases allow it: commits, tags,
/// trees, blobs; in each, the newest first.
fn encoded(
    objects: Objects<'_>,
    members: &walk::Objects,
    orphans: &[Orphan],
    options: &Options,
    progress: &dyn Progress,
) -> Result<Vec<Item>, Error> {
    let store = objects.store;
    let mut items = Vec::with_capacity(objects.loose.len() + orphans.len());
    let first_loose = members.packed_len();
    let Order { numbers, headers } = match objects.loose.len() <= ORDERED {
        true => Order {
            numbers: (0..objects.loose.len() as u32).collect(),
            headers: vec![None; objects.loose.len()],
        },
        false => recency::order(objects, |number| members.kind(first_loose + number), progress)?,
    };
    let headers = loose_headers(objects, headers, options.threads, progress)?;
    for number in numbers {
        let (kind, size) = headers[number as usize];
        items.push(Item {
            source: Source::Loose(number),
            role: Role::Encoded,
            kind,
            size,
            name_hash: members.name_hash(first_loose + number),
            height: 0,
            whole: false,
            base: None,
            kept: None,
        });
    }
    let mut reader = Reader::new();
    for orphan in orphans {
        let (pack, local) = store.pack_of(orphan.at);
        let (kind, size) = store.entry_header(pack, pack.offset(local), &mut reader)?;
        items.push(Item {
            source: Source::Packed(orphan.at),
            role: Role::Encoded,
            kind,
            size,
            name_hash: name_hash(members, orphan.at),
            height: orphan.height,
            whole: orphan.whole,
            base: None,
            kept: None,
        });
    }
    items.sort_by_key(|item| match item.kind {
        Kind::Commit => 0,
        Kind::Tag => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
    });
    Ok(items)
}

fn name_hash(members: &walk::Objects, at: Position) -> u32 {
    members
        .number_of_packed(at)
        .map_or(0, |number| members.name_hash(number))
}

/// Kind and size of every loose object. Those that are known are not read again.
fn loose_headers(
    objects: Objects<'_>,
    known: Vec<Option<(Kind, u64)>>,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<(Kind, u64)>, Error> {
    let chunks: Vec<_> = objects.loose.chunks(HEADERS).zip(known.chunks(HEADERS)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut parts = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((ids, known)) = chunks.get(number) else {
                return Ok(parts);
            };
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let mut headers = Vec::with_capacity(ids.len());
            for (id, &known) in ids.iter().zip(*known) {
                let header = match known {
                    Some(header) => Some(header),
                    None => objects.store.header(id)?,
                };
                headers.push(header.ok_or_else(|| Error::Disappeared(id.to_owned()))?);
            }
            parts.push((number, headers));
        }
    };
    let mut parts: Vec<(usize, Vec<(Kind, u64)>)> = threads::on_all(threads.min(chunks.len()), work)?
        .into_iter()
        .flatten()
        .collect();
    parts.sort_unstable_by_key(|&(number, _)| number);
    Ok(parts.into_iter().flat_map(|(_, headers)| headers).collect())
}

/// Adds copied objects that are stored whole, which may serve as bases: those at the path of one that is encoded, or all
/// if they are not too many.
fn bases(
    store: &Store,
    members: &walk::Objects,
    packs: &[Selected],
    options: &Options,
    items: &mut Vec<Item>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let any = members.len() as usize <= items.len().saturating_mul(ANY_PATH);
    // These have been taken up already, to find a base for them.
    let taken: HashSet<Position> = items
        .iter()
        .filter(|item| item.whole)
        .filter_map(|item| match item.source {
            Source::Packed(at) => Some(at),
            _ => None,
        })
        .collect();
    // Commits and tags have no path and little in common.
    let wanted: HashSet<(Kind, u32)> = items
        .iter()
        .filter(|item| matches!(item.kind, Kind::Tree | Kind::Blob))
        .map(|item| (item.kind, item.name_hash))
        .collect();
    let mut reader = Reader::new();
    let largest = Budget::new(options.memory).largest;
    for selected in packs {
        let pack = &store.packs()[selected.pack];
        let mut last = None;
        selected.each(
            store,
            |at| members.contains_packed(at),
            |entry| {
                let Some(number) = members.number_of_packed(entry.at) else {
                    return Ok(());
                };
                let (kind, name_hash) = (members.kind(number), members.name_hash(number));
                if !any && !wanted.contains(&(kind, name_hash)) {
                    return Ok(());
                }
                if last.replace(number).is_some() && progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                let header = reader.entry(pack, entry.offset)?;
                if header.header.as_kind() == Some(kind)
                    && header.decompressed_size <= largest
                    && !taken.contains(&entry.at)
                {
                    items.push(Item {
                        source: Source::Packed(entry.at),
                        role: Role::Copied,
                        kind,
                        size: header.decompressed_size,
                        name_hash,
                        height: 0,
                        whole: false,
                        base: None,
                        kept: None,
                    });
                }
                Ok::<(), Error>(())
            },
        )?;
    }
    Ok(())
}

/// Adds the earlier versions of encoded objects that only the receiver's set has.
fn received(
    store: &Store,
    members: &walk::Objects,
    mut versions: Received<'_>,
    items: &mut Vec<Item>,
) -> Result<(), Error> {
    let mut known = HashSet::new();
    for at in 0..items.len() {
        let item = &items[at];
        let number = match item.source {
            Source::Packed(at) => members.number_of_packed(at),
            Source::Loose(number) => Some(members.packed_len() + number),
            Source::Named(_) => None,
        };
        if item.role != Role::Encoded {
            continue;
        }
        let Some(earlier) = number.and_then(|number| versions.version(number)) else {
            continue;
        };
        if !known.insert(earlier.to_owned()) {
            continue;
        }
        // Without it, the delta search simply has one candidate less.
        let Some((kind, size)) = store.header(earlier)? else {
            continue;
        };
        let name_hash = item.name_hash;
        items.push(Item {
            source: Source::Named(earlier.to_owned()),
            role: Role::Receiver,
            kind,
            size,
            name_hash,
            height: 0,
            whole: false,
            base: None,
            kept: None,
        });
    }
    Ok(())
}

/// Divides the items into those that are written before the copied entries and those that come after: copied deltas
/// must find their base, if it is encoded, before them.
fn arrange(items: &[Item]) -> (Vec<u32>, Vec<u32>) {
    let mut placed = vec![false; items.len()];
    let numbers = || (0u32..).zip(items).filter(|(_, item)| item.role == Role::Encoded);
    let mut front = Vec::new();
    for (number, _) in numbers().filter(|(_, item)| item.height > 0) {
        // Copied objects that others need this early move here too.
        place(items, number, Role::Receiver, &mut placed, &mut front);
    }
    let mut tail = Vec::new();
    for (number, _) in numbers() {
        place(items, number, Role::Copied, &mut placed, &mut tail);
    }
    (front, tail)
}

/// Appends an item to an order, the bases it depends on first. Bases with the role `elsewhere` stand somewhere else.
fn place(items: &[Item], number: u32, elsewhere: Role, placed: &mut [bool], order: &mut Vec<u32>) {
    let start = order.len();
    let mut next = Some(number);
    while let Some(number) = next {
        let item = &items[number as usize];
        if item.role == Role::Receiver
            || item.role == elsewhere
            || std::mem::replace(&mut placed[number as usize], true)
        {
            break;
        }
        order.push(number);
        next = item.base;
    }
    order[start..].reverse();
}
