//! What the ids that a walk is asked about stand for.

use gix_hash::ObjectId;
use gix_object::Kind;

use super::error::Error;
use super::marks::IdSet;
use crate::object::links;
use crate::store::{Cache, Store};

/// Ids by kind, tags followed to what they point at in the end. Sorted, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Tips {
    pub(super) tags: Vec<ObjectId>,
    pub(super) commits: Vec<ObjectId>,
    pub(super) trees: Vec<ObjectId>,
    pub(super) blobs: Vec<ObjectId>,
}

impl Tips {
    /// Sorts `ids` by kind. With `lenient`, what is not there is passed over, whether it was asked for or a tag points
    /// at it. Nothing that `known` has is followed.
    pub(super) fn of(store: &Store, ids: &[ObjectId], known: &Tips, lenient: bool) -> Result<Tips, Error> {
        let mut tips = Tips::default();
        let mut cache = Cache::new(0);
        let mut bytes = Vec::new();
        let mut seen = IdSet::default();
        for &asked in ids {
            let mut id = asked;
            let mut referrer: Option<(ObjectId, Kind)> = None;
            while seen.insert(id) && !known.has(&id) {
                let Some((kind, _)) = store.header(&id)? else {
                    if lenient {
                        break;
                    }
                    return Err(Error::Missing {
                        id,
                        referrer: referrer.map(|(id, _)| id),
                    });
                };
                if let Some((referrer, expected)) = referrer
                    && expected != kind
                {
                    return Err(Error::WrongKind {
                        id,
                        expected,
                        actual: kind,
                        referrer: Some(referrer),
                    });
                }
                match kind {
                    Kind::Commit => tips.commits.push(id),
                    Kind::Tree => tips.trees.push(id),
                    Kind::Blob => tips.blobs.push(id),
                    Kind::Tag => {
                        tips.tags.push(id);
                        store.read(&id, &mut cache, &mut bytes)?;
                        let (target, kind) =
                            links::tag(&bytes, store.format()).map_err(|fault| Error::Malformed {
                                id,
                                fault: fault.into(),
                            })?;
                        referrer = Some((id, kind));
                        id = target;
                        continue;
                    }
                }
                break;
            }
        }
        for list in [
            &mut tips.tags,
            &mut tips.commits,
            &mut tips.trees,
            &mut tips.blobs,
        ] {
            list.sort_unstable();
        }
        Ok(tips)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.commits.is_empty() && self.trees.is_empty() && self.blobs.is_empty()
    }

    fn has(&self, id: &ObjectId) -> bool {
        [&self.tags, &self.commits, &self.trees, &self.blobs]
            .iter()
            .any(|list| list.binary_search(id).is_ok())
    }
}
