//! The objects that delta search deals with.

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::Error;
use super::body::Body;
use super::digest::Digest;
use crate::store::{Cache, Position, Store};

/// Where an object is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A pack of the store.
    Packed(Position),
    /// A place in the list of loose objects.
    Loose(u32),
    /// Wherever the store has it; it is not in the set.
    Named(ObjectId),
}

/// What the pack under construction does with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is compressed anew, whole or as a delta.
    Encoded,
    /// Its stored entry, which is no delta, is copied. Others may be deltas against it.
    Copied,
    /// It is not part of the pack: the receiver has it, and others may be deltas against it.
    Receiver,
}

/// An object that is encoded, or that others are encoded against.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) source: Source,
    pub(super) role: Role,
    pub(super) kind: Kind,
    /// Bytes of the object.
    pub(super) size: u64,
    /// Equal for objects that stood at the same path, similar for similar paths.
    pub(super) name_hash: u32,
    /// The longest chain of copied deltas that ends at this object.
    pub(super) height: u16,
    /// It is stored whole: if no delta is found for it, its entry is copied after all.
    pub(super) whole: bool,
    /// The item that this one is a delta against.
    pub(super) base: Option<u32>,
    /// The compressed data, where there was room to keep it.
    pub(super) kept: Option<Body>,
}

/// Finds and reads the objects behind items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objects<'a> {
    pub(super) store: &'a Store,
    pub(super) loose: &'a [ObjectId],
}

impl<'a> Objects<'a> {
    pub(super) fn id<'b>(&self, source: &'b Source) -> &'b oid
    where
        'a: 'b,
    {
        match source {
            Source::Packed(at) => self.store.id(*at),
            Source::Loose(number) => &self.loose[*number as usize],
            Source::Named(id) => id,
        }
    }

    /// Reads an object, replacing the content of `out`, and checks that it has its id.
    pub(super) fn read(&self, source: Source, cache: &mut Cache, out: &mut Vec<u8>) -> Result<Kind, Error> {
        let id = self.id(&source);
        let kind = match source {
            Source::Packed(at) => self.store.read_at(at, cache, out)?,
            Source::Loose(_) | Source::Named(_) => match self.store.read(id, cache, out)? {
                Some(kind) => kind,
                None => return Err(Error::Disappeared(id.to_owned())),
            },
        };
        let mut digest = Digest::of_object(self.store.format(), kind, out.len() as u64);
        digest.update(out);
        self.verify(source, digest)?;
        Ok(kind)
    }

    /// Refuses an object whose content, which `digest` was fed with, does not have its id.
    pub(super) fn verify(&self, source: Source, digest: Digest) -> Result<(), Error> {
        let (id, actual) = (self.id(&source), digest.finish());
        match actual == id {
            true => Ok(()),
            false => Err(Error::Mismatch {
                id: id.to_owned(),
                actual,
            }),
        }
    }
}
