//! Reads objects and checks that they are what their id says.

use gix_hash::{ObjectId, oid};
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
        let collision = |_| Error::Collision {
            id: id.to_owned(),
            path: self.place_of(id),
        };
        let actual = gix_object::compute_hash(self.format(), kind, out).map_err(collision)?;
        self.same(id, actual)?;
        Ok(Some(kind))
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
