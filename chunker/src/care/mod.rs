//! Care of the chunks: what is here, what is needed, what is damaged, and how it gets from one repository to another.

mod collect;
mod deltas;
mod exchange;
mod fsck;
mod migrate;
mod network;
mod reach;
mod stats;

use std::collections::HashSet;

use ingot_engine::chunked::{self, Pointer};
use ingot_engine::store::{Cache, Store};

use crate::Error;

pub use collect::{Collected, Collection, collect, prune, unite};
pub use exchange::{CHUNKS_REF, Fetched, Pushed, Source, fetch, push, source};
pub use fsck::{Checked, Damage, fsck};
pub use migrate::{Migration, Rewritten, migrate};
pub use reach::{Needed, needed, reachable};
pub use stats::{FileStats, Point, Stats, chart, stats};

/// Checks that every list and every chunk of a pointer is here, without reading chunks. The first absent one is the
/// error.
pub fn complete(store: &Store, pointer: &Pointer) -> Result<(), Error> {
    let mut missing = None;
    let mut seen = HashSet::new();
    chunked::reach(
        store,
        pointer,
        &mut Cache::new(0),
        |list| !seen.insert(*list),
        |reached| {
            if missing.is_none() && !store.contains(&reached.id) {
                missing = Some(reached);
            }
        },
    )?;
    match missing {
        None => Ok(()),
        Some(reached) => Err(chunked::Error::Missing {
            id: reached.id,
            list: reached.list,
        }
        .into()),
    }
}
