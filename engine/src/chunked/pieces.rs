//! The parts of a chunked file in their order.

use gix_hash::ObjectId;
use gix_object::Kind;

use super::list::{Child, Children, Entry, List};
use super::{Error, Pointer};
use crate::pack::delta;
use crate::store::{Cache, Store};

/// Where the bytes of a piece come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A blob.
    Chunk(ObjectId),
    /// A delta and what it applies to.
    Delta {
        /// The blob with the delta.
        delta: ObjectId,
        /// The chunk.
        base: ObjectId,
    },
    /// Nowhere: they are zero.
    Zeros,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it starts.
    pub offset: u64,
    /// How long it is: within memory unless it is zeros.
    pub length: u64,
    /// What it consists of.
    pub source: Source,
}

impl Piece {
    /// Where it ends.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// Reads the piece into `out`, replacing what is there. Its length is checked, its id is not.
    pub fn read(&self, store: &Store, cache: &mut Cache, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.source {
            Source::Zeros => {
                out.clear();
                let length = usize::try_from(self.length)
                    .map_err(|_| self.damaged(self.any_id(store), "it is too long"))?;
                out.resize(length, 0);
                Ok(())
            }
            Source::Chunk(id) => {
                blob(store, id, cache, out)?;
                self.check(id, out)
            }
            Source::Delta { delta, base } => {
                let (mut instructions, mut bytes) = (Vec::new(), Vec::new());
                blob(store, delta, cache, &mut instructions)?;
                blob(store, base, cache, &mut bytes)?;
                let damaged = |error: delta::Error| self.damaged(delta, error.to_string());
                let (_, size, _) = delta::header(&instructions).map_err(damaged)?;
                if size != self.length {
                    return Err(
                        self.damaged(delta, format!("it makes {size} bytes instead of {}", self.length))
                    );
                }
                delta::apply(&bytes, &instructions, out).map_err(damaged)?;
                self.check(delta, out)
            }
        }
    }

    fn check(&self, id: ObjectId, bytes: &[u8]) -> Result<(), Error> {
        match bytes.len() as u64 == self.length {
            true => Ok(()),
            false => Err(self.damaged(
                id,
                format!("it has {} bytes where its list says {}", bytes.len(), self.length),
            )),
        }
    }

    pub(super) fn damaged(&self, id: ObjectId, reason: impl Into<String>) -> Error {
        Error::Chunk {
            id,
            offset: self.offset,
            reason: reason.into(),
        }
    }

    fn any_id(&self, store: &Store) -> ObjectId {
        ObjectId::null(store.format())
    }
}

/// Reads a blob that has to be there.
fn blob(store: &Store, id: ObjectId, cache: &mut Cache, out: &mut Vec<u8>) -> Result<(), Error> {
    match store.read(&id, cache, out)? {
        Some(Kind::Blob) => Ok(()),
        Some(kind) => Err(Error::NoList { id, kind }),
        None => Err(Error::Missing { id, list: false }),
    }
}

/// Reads the lists of a pointer as they are needed; memory does not grow with the file.
pub struct Pieces<'s> {
    store: &'s Store,
    cache: Cache,
    bytes: Vec<u8>,
    /// Lists to read, the next one last: id, length, level.
    waiting: Vec<(ObjectId, u64, Option<u8>)>,
    entries: std::vec::IntoIter<Entry>,
    offset: u64,
    failed: bool,
}

impl<'s> Pieces<'s> {
    /// Starts at the beginning of the file.
    pub fn new(store: &'s Store, pointer: &Pointer) -> Pieces<'s> {
        Pieces {
            store,
            cache: Cache::new(0),
            bytes: Vec::new(),
            waiting: vec![(pointer.list, pointer.size, None)],
            entries: Vec::new().into_iter(),
            offset: 0,
            failed: false,
        }
    }

    fn advance(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            if let Some(entry) = self.entries.next() {
                let piece = Piece {
                    offset: self.offset,
                    length: entry.length(),
                    source: match entry {
                        Entry::Chunk { id, .. } => Source::Chunk(id),
                        Entry::Delta { delta, base, .. } => Source::Delta { delta, base },
                        Entry::Zeros { .. } => Source::Zeros,
                    },
                };
                // Lists add up to the size of the pointer, so this cannot overflow.
                self.offset += piece.length;
                return Ok(Some(piece));
            }
            let Some((id, length, level)) = self.waiting.pop() else {
                return Ok(None);
            };
            match self.store.read(&id, &mut self.cache, &mut self.bytes)? {
                Some(Kind::Blob) => {}
                Some(kind) => return Err(Error::NoList { id, kind }),
                None => return Err(Error::Missing { id, list: true }),
            }
            let list =
                List::parse(&self.bytes, self.store.format()).map_err(|fault| Error::List { id, fault })?;
            list.check(id, length, level)?;
            let below = list.level().checked_sub(1);
            match list.into_children() {
                Children::Entries(entries) => self.entries = entries.into_iter(),
                Children::Lists(lists) => {
                    let below = |child: Child| (child.id, child.length, below);
                    self.waiting.extend(lists.into_iter().rev().map(below));
                }
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance();
        self.failed = next.is_err();
        next.transpose()
    }
}
