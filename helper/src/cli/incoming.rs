//! References that lead to what was just fetched, until Git has moved its own.
//!
//! After a fetch, Git walks everything that is new once more to see that nothing is missing, and leaves out only what
//! references of the repository reach. For a helper there is no way to tell it that this is proven already, except in a
//! clone. The walk takes as long as half the import and five times its memory, so tips that the engine has proven complete
//! are made reachable for as long as the conversation lasts. Git's check then finds nothing left to walk. It still sees
//! that the objects which it asked for are there.
//!
//! What a crash leaves behind only keeps objects from being collected; the next large fetch removes it.

use std::collections::BTreeSet;

use bstr::BString;
use gix_hash::ObjectId;
use ingot_engine::refs::{self, Edit, validate};
use ingot_engine::repository::Repository;

/// The folder of such references.
const FOLDER: &str = "refs/ingot/incoming/";

/// Fewer new objects are walked faster than references are written.
const LEAST_OBJECTS: u64 = 10_000;

/// So many references at most. Further tips, most of them in the history of others, are left to Git.
const MOST: usize = 64;

/// References that were made.
#[derive(Debug, Default)]
pub struct Incoming {
    names: Vec<BString>,
}

impl Incoming {
    /// Makes `tips`, whose history is complete, reachable, if there is enough below them. `objects` is how many are new.
    /// A failure is none of the fetch: Git then does the work again.
    pub fn hold(&mut self, repository: &Repository, tips: &BTreeSet<ObjectId>, objects: u64) {
        if objects < LEAST_OBJECTS {
            return;
        }
        let leftovers = refs::list(repository, FOLDER).unwrap_or_default();
        let leftovers: Vec<BString> = leftovers
            .into_iter()
            .map(|left| left.name.as_bstr().to_owned())
            .collect();
        remove(repository, &leftovers);
        let tips: Vec<&ObjectId> = tips.iter().take(MOST).collect();
        let name = |tip: &ObjectId| BString::from(format!("{FOLDER}{tip}"));
        let edits: Result<Vec<Edit>, refs::Error> = tips
            .iter()
            .map(|tip| Ok(Edit::set(validate(name(tip))?, **tip)))
            .collect();
        if edits.and_then(|edits| refs::apply(repository, edits)).is_ok() {
            self.names.extend(tips.into_iter().map(name));
        }
    }

    /// Removes the references again.
    pub fn release(&mut self, repository: &Repository) {
        remove(repository, &std::mem::take(&mut self.names));
    }
}

/// Removes references, as far as that is possible: one that another fetch has removed is no loss.
fn remove(repository: &Repository, names: &[BString]) {
    for name in names {
        if let Ok(name) = validate(name) {
            let _ = refs::apply(repository, vec![Edit::delete(name)]);
        }
    }
}
