//! Adds what chunked files lead to.
//!
//! Done when the set is known, so that walks themselves need not know of it. What it costs: one look for a file in
//! repositories without chunked files. In others, the pack index tells how many bytes each blob takes; only those that
//! may be pointers are looked at, which are the smallest ones.

use std::collections::HashSet;

use gix_hash::ObjectId;
use gix_object::Kind;

use super::error::Error;
use super::objects::{Fact, More, Object, Objects, Place};
use crate::chunked::{self, Difference, Pointer, pointer_length};
use crate::progress::Progress;
use crate::store::{Cache, Store};

/// Fewer blobs than this are asked for their sizes one by one; for more, the order of each pack is worth computing.
const FEW: u32 = 1024;
/// The fewest bytes that a pointer takes as a delta: two hashes that differ are in it.
const SMALLEST: u64 = 40;

/// Adds the lists and chunks of all pointers in the set, less those of the versions before them that the receiver has.
pub(super) fn follow(store: &Store, objects: Objects, progress: &dyn Progress) -> Result<Objects, Error> {
    if objects.counts().blobs == 0 || !chunked::has_chunks(store) {
        return Ok(objects);
    }
    let mut follower = Follower {
        store,
        cache: Cache::new(1 << 20),
        more: More::default(),
        lists: HashSet::new(),
    };
    let sort = objects.len() > FEW;
    for object in objects.iter().filter(|object| object.kind == Kind::Blob) {
        if !may_be_pointer(store, &object, sort)? {
            continue;
        }
        let id = match object.place {
            Place::Packed(at) => store.id(at),
            Place::Loose(id) => id,
        };
        let Some(pointer) = read(chunked::read_pointer(store, id, &mut follower.cache))?.flatten() else {
            continue;
        };
        let before = match objects.predecessor(object.number) {
            Some(id) => read(chunked::read_pointer(store, id, &mut follower.cache))?.flatten(),
            None => None,
        };
        follower.pointer(&pointer, before.as_ref(), object.name_hash)?;
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    match follower.more {
        more if more.packed.is_empty() && more.loose.is_empty() && more.absent == 0 => Ok(objects),
        more => Ok(objects.with_chunks(store, more)),
    }
}

/// False for what takes too many or too few bytes to be a pointer, as far as that is known without reading it.
fn may_be_pointer(store: &Store, object: &Object<'_>, sort: bool) -> Result<bool, Error> {
    let Place::Packed(at) = object.place else {
        return Ok(true);
    };
    let (pack, local) = store.pack_of(at);
    if !sort && !pack.order_is_known() {
        return Ok(true);
    }
    if !pack.order_is_known() {
        pack.by_offset();
    }
    let length = pack.end(local)? - pack.offset(local);
    Ok((SMALLEST..=pointer_length(store.format()) as u64 + 32).contains(&length))
}

/// Damage in a list makes a file unreadable, but not the history that has it; `None` then.
fn read<T>(result: Result<T, chunked::Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(chunked::Error::Store(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

struct Follower<'s> {
    store: &'s Store,
    cache: Cache,
    more: More,
    /// Lists that are dealt with.
    lists: HashSet<ObjectId>,
}

impl Follower<'_> {
    fn pointer(&mut self, new: &Pointer, before: Option<&Pointer>, name_hash: u32) -> Result<(), Error> {
        let difference = match before {
            Some(old) => read(Difference::find(self.store, old, new, &mut self.cache))?,
            None => None,
        };
        let mut found = Vec::new();
        match difference {
            Some(difference) => {
                found.extend(difference.new_lists().filter(|id| self.lists.insert(*id)));
                for chunk in difference.new_chunks() {
                    found.push(chunk.id);
                    if let Some(base) = chunk.before {
                        self.more.predecessors.push((chunk.id, base));
                    }
                    found.extend(chunk.base);
                }
                self.more.predecessors.extend(difference.list_bases());
            }
            None => {
                let (store, lists) = (self.store, &mut self.lists);
                let reached = chunked::reach(
                    store,
                    new,
                    &mut self.cache,
                    |list| !lists.insert(*list),
                    |reached| found.push(reached.id),
                );
                if read(reached)?.is_none() {
                    self.more.absent += 1;
                }
            }
        }
        let fact = Fact {
            kind: Kind::Blob,
            name_hash,
        };
        for id in found {
            match self.store.find(&id) {
                Some(at) => self.more.packed.push((at, fact)),
                None if self.store.contains_loose(&id) => self.more.loose.push((id, fact)),
                None => self.more.absent += 1,
            }
        }
        Ok(())
    }
}
