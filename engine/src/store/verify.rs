//! Reads objects and checks that they are what their id says.

use std::io;

use gix_hash::{Hasher, ObjectId, oid};
use gix_object::Kind;

use super::{Cache, Error, Store};

impl Store {
    /// Like [`Store::read`], and hashes the object to see that it has the id asked for. SHA-1 is computed with collision
    /// detection.
    pub fn read_verified(
        &self,
        id: &oid,
        cache: &mut Cache,
        out: &mut Vec<u8>,
    ) -> Result<Option<Kind>, Error> {
        let Some(kind) = self.read(id, cache, out)? else {
            return Ok(None);
        };
        let actual = gix_object::compute_hash(self.format(), kind, out).map_err(|_| self.collision(id))?;
        self.same(id, actual)?;
        Ok(Some(kind))
    }

    /// Like [`Store::stream`], and hashes the object on the way to see that it has the id asked for. What does not is
    /// known only after `sink` has all of it.
    pub fn stream_verified(
        &self,
        id: &oid,
        cache: &mut Cache,
        sink: &mut dyn io::Write,
    ) -> Result<Option<(Kind, u64)>, Error> {
        // The hash covers kind and size first, so they are asked for before.
        let Some((kind, size)) = self.header(id)? else {
            return Ok(None);
        };
        let mut hasher = gix_hash::hasher(self.format());
        hasher.update(&gix_object::encode::loose_header(kind, size));
        let mut tee = Tee { hasher, sink };
        let streamed = self.stream(id, cache, &mut tee)?;
        let actual = tee.hasher.try_finalize().map_err(|_| self.collision(id))?;
        self.same(id, actual)?;
        Ok(streamed)
    }

    fn collision(&self, id: &oid) -> Error {
        Error::Collision {
            id: id.to_owned(),
            path: self.place_of(id),
        }
    }

    /// Refuses an object that does not have the id it is stored under.
    fn same(&self, id: &oid, actual: ObjectId) -> Result<(), Error> {
        match actual == id {
            true => Ok(()),
            false => Err(Error::Mismatch {
                id: id.to_owned(),
                actual,
                path: self.place_of(id),
            }),
        }
    }
}

/// Hashes what it hands on.
struct Tee<'a> {
    hasher: Hasher,
    sink: &'a mut dyn io::Write,
}

impl io::Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
