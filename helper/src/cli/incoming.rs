//! References that lead to what was just fetched, until Git has moved its own.
//!
//! After a fetch, Git walks everything that is new once more to see that nothing is missing, and leaves out only what
//! references of the repository reach. For a helper there is no way to tell it that this is proven already, except in a
//! clone. The walk takes as long as half the import and five times its memory, so tips that the engine has proven complete
//! are made reachable for as long as the conversation lasts. Git's check then finds nothing left to walk. It still sees
//! that the objects which it asked for are there.
//!
//! What a crash leaves behind only keeps objects from being collected; the next listing removes it, once it is older than
//! a fetch takes.

use std::collections::BTreeSet;
use std::time::Duration;

use bstr::BString;
use gix_hash::ObjectId;
use ingot_engine::refs::{self, Edit, validate};
use ingot_engine::repository::Repository;

/// The folder of such references.
const FOLDER: &str = "refs/ingot/incoming/";

/// Fewer new objects are walked faster than references are written.
const LEAST_OBJECTS: u64 = 10_000;

/// No conversation takes longer after its import.
const LEFTOVER: Duration = Duration::from_secs(60 * 60);

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

/// Removes what processes that ended early have left.
pub fn sweep(repository: &Repository) {
    let folder = repository.common_dir().join(FOLDER);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return; // as a rule, there is none
    };
    let is_old = |entry: &std::fs::DirEntry| {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > LEFTOVER))
    };
    let names: Vec<BString> = entries
        .flatten()
        .filter(is_old)
        .filter_map(|entry| Some(format!("{FOLDER}{}", entry.file_name().to_str()?).into()))
        .collect();
    remove(repository, &names);
}

/// Removes references, as far as that is possible: one that another fetch has removed is no loss.
fn remove(repository: &Repository, names: &[BString]) {
    for name in names {
        if let Ok(name) = validate(name) {
            let _ = refs::apply(repository, vec![Edit::delete(name)]);
        }
    }
}
