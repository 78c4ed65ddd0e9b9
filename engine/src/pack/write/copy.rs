//! Copies stored entries into the new pack, as they lie.

use gix_hash::oid;
use gix_pack::data::entry::Header;

use super::Error;
use super::digest::Digest;
use super::item;
use super::layout::{Layout, Runs};
use super::output::Sink;
use super::select::{Entry, Selected};
use crate::progress::Progress;
use crate::store::{Cache, Pack, Position, Reader, Store};

/// The most bytes of an entry that are held at once.
const PIECE: u64 = 256 * 1024;
/// Cached delta bases, where entries have to be inflated.
const CACHE: usize = 4 << 20;
/// Entries between two reports of progress.
const REPORT: u64 = 1_024;

/// Copies entries and notes where they land.
pub(super) struct Copier<'a> {
    objects: item::Objects<'a>,
    pub(super) layout: Layout,
    reader: Reader,
    header: Vec<u8>,
    /// For entries without a CRC in their index, which have to be inflated.
    cache: Option<Cache>,
    content: Vec<u8>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(objects: item::Objects<'a>) -> Copier<'a> {
        Copier {
            objects,
            layout: Layout::default(),
            reader: Reader::new(),
            header: Vec::new(),
            cache: None,
            content: Vec::new(),
        }
    }

    /// Copies the selected entries of one pack, except those that stand apart already.
    pub(super) fn pack(
        &mut self,
        selected: &Selected,
        member: impl Fn(Position) -> bool,
        sink: &mut impl Sink,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let store = self.objects.store;
        let pack = &store.packs()[selected.pack];
        let mut runs = Runs::default();
        let mut unreported = 0;
        selected.each(store, member, |entry| {
            if self.layout.is_apart(entry.at) {
                return Ok(());
            }
            let new = sink.offset();
            self.entry(pack, &entry, Some(&runs), sink)?;
            runs.add(entry.offset, entry.end, new);
            unreported += 1;
            if unreported == REPORT {
                progress.advance(unreported);
                unreported = 0;
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
            Ok(())
        })?;
        progress.advance(unreported);
        self.layout.add_pack(selected.pack, runs);
        Ok(())
    }

    /// Copies an entry that is no delta to a place of its own.
    pub(super) fn apart(&mut self, at: Position, sink: &mut impl Sink) -> Result<(), Error> {
        let store = self.objects.store;
        let (pack, local) = store.pack_of(at);
        let entry = Entry {
            at,
            local,
            offset: pack.offset(local),
            end: pack.end(local)?,
        };
        let new = sink.offset();
        self.entry(pack, &entry, None, sink)?;
        self.layout.place(at, new);
        Ok(())
    }

    /// Copies one entry: checks its bytes, and corrects its header if its base now stands at another distance. `runs`
    /// are those of its pack so far.
    fn entry(
        &mut self,
        pack: &Pack,
        entry: &Entry,
        runs: Option<&Runs>,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let length = entry
            .end
            .checked_sub(entry.offset)
            .filter(|&length| length > 0)
            .ok_or_else(|| damaged(pack, entry, "another entry starts in its place"))?;
        let mut crc = crc32fast::Hasher::new();
        let mut done = 0;
        while done < length {
            let wanted = (length - done).min(PIECE) as usize;
            let bytes = self.reader.bytes(pack, entry.offset + done, wanted)?;
            let mut bytes = bytes
                .get(..wanted)
                .ok_or_else(|| damaged(pack, entry, "it lies outside of the pack"))?;
            crc.update(bytes);
            if done == 0 && is_delta(bytes[0]) {
                let store = self.objects.store;
                let parsed = gix_pack::data::Entry::from_bytes(bytes, entry.offset, store.format())
                    .map_err(|_| damaged(pack, entry, "its header is malformed"))?;
                let places = Places {
                    store,
                    layout: &self.layout,
                    pack,
                    runs,
                };
                if let Some(header) = places.corrected(entry, &parsed, sink.offset())? {
                    self.header.clear();
                    header
                        .write_to(parsed.decompressed_size, &mut self.header)
                        .map_err(Error::Output)?;
                    sink.put(&self.header)?;
                    bytes = &bytes[parsed.header_size()..];
                }
            }
            sink.put(bytes)?;
            done += wanted as u64;
        }
        match pack.crc(entry.local) {
            Some(expected) if expected == crc.finalize() => Ok(()),
            Some(_) => Err(damaged(pack, entry, "its checksum is not the one in the index")),
            None => self.check(pack, entry),
        }
    }

    /// Checks an entry whose index has no CRC by making the object.
    fn check(&mut self, pack: &Pack, entry: &Entry) -> Result<(), Error> {
        let store = self.objects.store;
        let mut content = std::mem::take(&mut self.content);
        let cache = self.cache.get_or_insert_with(|| Cache::new(CACHE));
        let kind = store.read_entry(pack, entry.offset, cache, &mut content)?;
        let mut digest = Digest::of_object(store.format(), kind, content.len() as u64);
        digest.update(&content);
        self.content = content;
        match digest.finish() == pack.id(entry.local) {
            true => Ok(()),
            false => Err(damaged(pack, entry, "its content has another id")),
        }
    }
}

/// Where the bases of one pack's entries stand.
struct Places<'a> {
    store: &'a Store,
    layout: &'a Layout,
    pack: &'a Pack,
    /// What has been copied of the pack so far.
    runs: Option<&'a Runs>,
}

impl Places<'_> {
    /// The header with which a delta keeps its meaning at `offset` of the new pack; `None` if it can stay as it is.
    fn corrected(
        &self,
        entry: &Entry,
        parsed: &gix_pack::data::Entry,
        offset: u64,
    ) -> Result<Option<Header>, Error> {
        let lost = || {
            damaged(
                self.pack,
                entry,
                "its delta base is not at the place that it names",
            )
        };
        let (base, distance) = match parsed.header {
            Header::OfsDelta { base_distance } => {
                let old = parsed.checked_base_pack_offset(base_distance).ok_or_else(lost)?;
                let new = match self.runs.and_then(|runs| runs.find(old)) {
                    Some(new) => Some(new),
                    None => {
                        let local = self.pack.local_at(old).ok_or_else(lost)?;
                        self.find(self.pack.id(local))
                    }
                };
                (new.ok_or_else(lost)?, Some(base_distance))
            }
            // A base that comes later stays named by its id.
            Header::RefDelta { base_id } => match self.find(&base_id) {
                Some(new) => (new, None),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let base_distance = offset
            .checked_sub(base)
            .filter(|&distance| distance > 0)
            .ok_or_else(lost)?;
        Ok((Some(base_distance) != distance).then_some(Header::OfsDelta { base_distance }))
    }

    /// Where an object was written.
    fn find(&self, id: &oid) -> Option<u64> {
        let at = self.store.find(id)?;
        self.layout.offset_of(self.store, at).or_else(|| {
            let (home, local) = self.store.pack_of(at);
            match std::ptr::eq(home, self.pack) {
                true => self.runs?.find(home.offset(local)),
                false => None,
            }
        })
    }
}

/// True for the two kinds of delta, by the first byte of an entry.
fn is_delta(first: u8) -> bool {
    matches!((first >> 4) & 7, 6 | 7)
}

fn damaged(pack: &Pack, entry: &Entry, reason: &'static str) -> Error {
    Error::Damaged {
        id: pack.id(entry.local).to_owned(),
        path: pack.path().to_owned(),
        offset: entry.offset,
        reason,
    }
}
