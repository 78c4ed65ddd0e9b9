//! What the last capture knows of the items of a walk.

use ingot_engine::store::Store;
use rustix::fs::FileType;

use super::intake::Known;
use super::stat_cache::StatCache;
use super::walk::Listing;
use crate::manifest::{self, Content, KindRef};

/// The items of a walk beside what the last capture stored.
pub(super) struct Matched {
    /// For each item.
    pub(super) known: Vec<Known>,
    /// The content that the same path had, for items that have to be read.
    pub(super) old: Vec<Option<Content>>,
}

impl Matched {
    /// Whether nothing has to be read.
    pub(super) fn is_all_known(&self) -> bool {
        !self.known.iter().any(|known| matches!(known, Known::Unknown))
    }
}

/// Whether the walk found the same items as the last capture, each looking the same. Of folders only the permissions
/// count.
pub(super) fn looks_the_same(listing: &Listing, cache: &StatCache) -> bool {
    let mut cached = cache.entries();
    let began = cache.head.began;
    cache.count() == listing.items.len() as u64
        && listing.items.iter().all(|item| {
            cached.next().is_some_and(|cached| {
                let same = match item.stat.file_type() {
                    FileType::Directory => cached.stat.mode == item.stat.mode,
                    _ => cached.is_same(&item.stat, began),
                };
                same && cached.entry.path == listing.path(item)
            })
        })
}

/// Goes through the walk and the cache side by side; both are in path order.
pub(super) fn match_up(listing: &Listing, cache: Option<&StatCache>, rehash: bool) -> Matched {
    let count = listing.items.len();
    let mut matched = Matched {
        known: Vec::with_capacity(count),
        old: vec![None; count],
    };
    let mut cached = cache.map(StatCache::entries);
    let mut next = cached.as_mut().and_then(Iterator::next);
    for (number, item) in listing.items.iter().enumerate() {
        let path = listing.path(item);
        while next
            .as_ref()
            .is_some_and(|cached| manifest::order(cached.entry.path, path).is_lt())
        {
            next = cached.as_mut().and_then(Iterator::next);
        }
        let same_path = next.as_ref().filter(|cached| cached.entry.path == path);
        let is_folder = item.stat.file_type() == FileType::Directory;
        let known = match (same_path, cache) {
            _ if is_folder => Known::Folder,
            (Some(cached), Some(cache)) => {
                let same = cached.is_same(&item.stat, cache.head.began);
                match cached.entry.kind {
                    KindRef::File(content) if same && !rehash => Known::File(content, item.stat),
                    KindRef::Link { target, id } if same && !rehash => Known::Link(target.to_vec(), id),
                    KindRef::File(content) => {
                        matched.old[number] = Some(content);
                        Known::Unknown
                    }
                    _ => Known::Unknown,
                }
            }
            _ => Known::Unknown,
        };
        matched.known.push(known);
    }
    matched
}

/// Whether the same things were skipped as at the last capture.
pub(super) fn same_skips(listing: &Listing, cache: &StatCache) -> bool {
    let mut skipped = listing.skipped.clone();
    skipped.sort_by(|a, b| manifest::order(&a.path, &b.path).then(a.reason.cmp(&b.reason)));
    skipped.dedup();
    skipped
        .iter()
        .map(|skip| (skip.path.as_slice(), skip.reason))
        .eq(cache.skipped())
}

/// Takes back what is known of content that the repository does not have any more.
pub(super) fn forget_absent(store: &Store, known: &mut [Known]) {
    for known in known {
        let id = match known {
            Known::File(content, _) => content.id,
            Known::Link(_, id) => *id,
            _ => continue,
        };
        if store.find(&id).is_none() {
            *known = Known::Unknown;
        }
    }
}
