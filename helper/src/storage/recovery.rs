//! What recovery asks of a place, beyond what the protocol asks of it.

use std::io::Read;

use super::{Error, RawHead};
use crate::protocol::ContentId;

/// The most outer commits that are looked at.
pub const MOST_COMMITS: usize = 2048;

/// A place as it was at one moment, for finding out what is left in it, and for giving it a head again.
pub trait Recovery: Send + Sync {
    /// The exact bytes of the head; `None` where there is none, or nothing that could be compared later.
    fn observed(&self) -> Option<&RawHead>;

    /// The heads that the place had, newest first, the present one included. `None` for a place that remembers none.
    fn heads(&self) -> Result<Option<Heads>, Error>;

    /// A manifest, from wherever in the place it still is.
    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error>;

    /// A pack, from wherever in the place it still is.
    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error>;

    /// Stores a manifest and makes it the head, if the place is still as it was. `manifests` and `packs` are what its chain
    /// needs: a place that publishes everything at once restores what of it was lost, and leaves everything else out.
    fn publish(
        &self,
        manifest: &[u8],
        manifests: &[ContentId],
        packs: &[ContentId],
    ) -> Result<ContentId, Error>;
}

/// The heads that a place had.
#[derive(Debug)]
pub struct Heads {
    /// Each with the name of the outer commit that had it, newest first.
    pub heads: Vec<(RawHead, String)>,
    /// There are older ones, which were not looked at.
    pub more: bool,
}
