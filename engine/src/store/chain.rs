//! Makes objects from chains of deltas, without recursion.

use std::sync::Arc;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;
use gix_pack::data::Entry;
use gix_pack::data::entry::Header;

use super::reader::base_offset;
use super::{Cache, Error, Fault, Pack, Position, Reader, Store};
use crate::pack::delta;

/// More deltas on top of each other than Git ever stacks (its limit is 4,095), and than anyone needs.
pub(super) const LONGEST_CHAIN: usize = 65_536;
/// Enough inflated bytes of a delta for the two sizes that it starts with.
const SIZES: usize = 20;
/// So deep may a sound copy be looked for because a copy that was looked for is damaged, too.
const MOST_REPLACED: u32 = 2;

/// A delta on the way from the wanted object to one that is stored whole.
struct Link<'a> {
    pack: &'a Pack,
    entry: Entry,
}

/// Where a base is.
enum Base<'a> {
    Packed(&'a Pack, u64),
    Loose(ObjectId),
}

impl Store {
    /// Reads the packed object at a position; see [`Store::read`].
    pub fn read_at(&self, at: Position, cache: &mut Cache, out: &mut Vec<u8>) -> Result<Kind, Error> {
        let (pack, local) = self.pack_of(at);
        match self.read_entry(pack, pack.offset(local), cache, out) {
            Err(error) => self.read_copy(pack.id(local), pack, cache, out, error),
            kind => kind,
        }
    }

    /// Reads the object whose entry starts at `offset` of one of this store's packs, and no other copy of it; see
    /// [`Store::read`].
    pub fn read_entry(
        &self,
        pack: &Pack,
        offset: u64,
        cache: &mut Cache,
        out: &mut Vec<u8>,
    ) -> Result<Kind, Error> {
        let first = cache.reader.entry(pack, offset)?;
        if let Some(kind) = first.header.as_kind() {
            self.limit(pack, offset, first.decompressed_size)?;
            cache.reader.inflate(pack, &first, out)?;
            return Ok(kind);
        }
        let mut links = Vec::new();
        let (kind, mut base) = self.descend(Link { pack, entry: first }, &mut links, cache)?;
        // From the last delta up to the first: each makes the base of the one above it, the first the object itself.
        let mut instructions = std::mem::take(&mut cache.scratch);
        while let Some(Link { pack, entry }) = links.pop() {
            let at = entry.pack_offset();
            if links.is_empty() {
                self.apply(pack, &entry, &base, (&mut instructions, out), cache)?;
                break;
            }
            let mut result = Vec::new();
            base = match self.apply(pack, &entry, &base, (&mut instructions, &mut result), cache) {
                Ok(()) => Arc::new(result),
                Err(error) => self.base_copy(pack, at, cache, error)?.1,
            };
            cache.put(pack.serial(), at, kind, &base);
        }
        cache.scratch = instructions;
        Ok(kind)
    }

    /// Reads a delta into `instructions` and makes `out` of its base.
    fn apply(
        &self,
        pack: &Pack,
        entry: &Entry,
        base: &[u8],
        (instructions, out): (&mut Vec<u8>, &mut Vec<u8>),
        cache: &mut Cache,
    ) -> Result<(), Error> {
        let at = entry.pack_offset();
        self.limit(pack, at, entry.decompressed_size)?;
        cache.reader.inflate(pack, entry, instructions)?;
        let damaged = |error: delta::Error| pack.fault(at, error);
        let (_, size, _) = delta::header(instructions).map_err(damaged)?;
        self.limit(pack, at, size)?;
        delta::apply(base, instructions, out).map_err(damaged)
    }

    /// Reads an object that cannot be read from `damaged` because of `error` from wherever else the store has it.
    fn read_copy(
        &self,
        id: &oid,
        damaged: &Pack,
        cache: &mut Cache,
        out: &mut Vec<u8>,
        error: Error,
    ) -> Result<Kind, Error> {
        if !error.is_damage() || cache.replacing >= MOST_REPLACED {
            return Err(error);
        }
        cache.replacing += 1;
        let kind = self
            .copies(id, damaged)
            .find_map(|(pack, offset)| self.read_entry(pack, offset, cache, out).ok())
            .or_else(|| self.read_loose(id, cache.reader.inflater(), out).ok().flatten());
        cache.replacing -= 1;
        kind.ok_or(error)
    }

    /// The same for the object at `offset`, which a delta needs.
    fn base_copy(
        &self,
        pack: &Pack,
        offset: u64,
        cache: &mut Cache,
        error: Error,
    ) -> Result<(Kind, Arc<Vec<u8>>), Error> {
        let Some(local) = pack.local_at(offset) else {
            return Err(error);
        };
        let mut bytes = Vec::new();
        let kind = self.read_copy(pack.id(local), pack, cache, &mut bytes, error)?;
        Ok((kind, Arc::new(bytes)))
    }

    /// Where packs other than one have an object.
    pub(super) fn copies<'a>(&'a self, id: &'a oid, except: &Pack) -> impl Iterator<Item = (&'a Pack, u64)> {
        let serial = except.serial();
        let others = self.packs.iter().filter(move |pack| pack.serial() != serial);
        others.filter_map(|pack| Some((&**pack, pack.offset(pack.find(id)?))))
    }

    /// Follows deltas from `first` to a base that the cache or the store has whole. Fills `links` with the deltas.
    fn descend<'a>(
        &'a self,
        first: Link<'a>,
        links: &mut Vec<Link<'a>>,
        cache: &mut Cache,
    ) -> Result<(Kind, Arc<Vec<u8>>), Error> {
        let mut link = first;
        loop {
            let next = self.base_of(link.pack, &link.entry)?;
            let (pack, at) = (link.pack, link.entry.pack_offset());
            links.push(link);
            if links.len() > LONGEST_CHAIN {
                return Err(pack.fault(at, Fault::ChainTooLong(LONGEST_CHAIN)));
            }
            match next {
                Base::Loose(id) => {
                    let mut bytes = Vec::new();
                    return match self.read_loose(&id, cache.reader.inflater(), &mut bytes)? {
                        Some(kind) => Ok((kind, Arc::new(bytes))),
                        None => Err(pack.fault(at, Fault::BaseMissing(id))),
                    };
                }
                Base::Packed(pack, offset) => {
                    if let Some(base) = cache.get(pack.serial(), offset) {
                        return Ok(base);
                    }
                    let entry = match cache.reader.entry(pack, offset) {
                        Ok(entry) => entry,
                        Err(error) => return self.base_copy(pack, offset, cache, error),
                    };
                    if let Some(kind) = entry.header.as_kind() {
                        self.limit(pack, offset, entry.decompressed_size)?;
                        let mut bytes = Vec::new();
                        if let Err(error) = cache.reader.inflate(pack, &entry, &mut bytes) {
                            return self.base_copy(pack, offset, cache, error);
                        }
                        // The byte that notices a stream that is too long is part of the capacity.
                        let bytes = Arc::new(bytes);
                        cache.put(pack.serial(), offset, kind, &bytes);
                        return Ok((kind, bytes));
                    }
                    link = Link { pack, entry };
                }
            }
        }
    }

    /// The kind and size of the object whose entry starts at `offset`, from headers alone.
    pub fn entry_header(&self, pack: &Pack, offset: u64, reader: &mut Reader) -> Result<(Kind, u64), Error> {
        let entry = reader.entry(pack, offset)?;
        if let Some(kind) = entry.header.as_kind() {
            return Ok((kind, entry.decompressed_size));
        }
        let mut sizes = [0; SIZES];
        let read = reader.prefix(pack, &entry, &mut sizes)?;
        let (_, size, _) = delta::header(&sizes[..read]).map_err(|error| pack.fault(offset, error))?;
        Ok((self.entry_kind(pack, &entry, reader)?, size))
    }

    /// The kind of an object by following its deltas to what is stored whole.
    pub fn entry_kind(&self, pack: &Pack, entry: &Entry, reader: &mut Reader) -> Result<Kind, Error> {
        let (start, at) = (pack, entry.pack_offset());
        let mut here = (pack, entry.clone());
        for _ in 0..=LONGEST_CHAIN {
            if let Some(kind) = here.1.header.as_kind() {
                return Ok(kind);
            }
            match self.base_of(here.0, &here.1)? {
                Base::Packed(pack, offset) => here = (pack, reader.entry(pack, offset)?),
                Base::Loose(id) => {
                    return match self.loose_header(&id, reader.inflater())? {
                        Some((kind, _)) => Ok(kind),
                        None => Err(here.0.fault(here.1.pack_offset(), Fault::BaseMissing(id))),
                    };
                }
            }
        }
        Err(start.fault(at, Fault::ChainTooLong(LONGEST_CHAIN)))
    }

    /// Where the base of a delta is: at an offset of the same pack, or wherever the store has the named object, the
    /// same pack first.
    fn base_of<'a>(&'a self, pack: &'a Pack, entry: &Entry) -> Result<Base<'a>, Error> {
        if let Some(offset) = base_offset(pack, entry)? {
            return Ok(Base::Packed(pack, offset));
        }
        let Header::RefDelta { base_id } = entry.header else {
            return Err(pack.fault(entry.pack_offset(), Fault::Header("it is no delta")));
        };
        if let Some(local) = pack.find(&base_id) {
            return Ok(Base::Packed(pack, pack.offset(local)));
        }
        Ok(match self.find(&base_id) {
            Some(at) => {
                let (pack, local) = self.pack_of(at);
                Base::Packed(pack, pack.offset(local))
            }
            None => Base::Loose(base_id),
        })
    }

    fn limit(&self, pack: &Pack, offset: u64, size: u64) -> Result<(), Error> {
        match size > self.options().object_limit {
            false => Ok(()),
            true => Err(Error::TooLarge {
                id: match pack.local_at(offset) {
                    Some(local) => pack.id(local).to_owned(),
                    None => ObjectId::null(self.format()),
                },
                size,
                limit: self.options().object_limit,
            }),
        }
    }
}
