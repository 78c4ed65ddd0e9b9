//! References: listing, resolving and transactions.
//!
//! Reading goes through gix. Changing is done here, because it has to be durable and all or nothing: see
//! [`Transaction`]. [`apply_each`] changes each for itself.

mod each;
mod edit;
mod error;
mod names;
mod packed;
mod prepare;
mod reflog;
mod resolve;
mod short;
mod transaction;
mod value;

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;
use gix_ref::{FullName, Target};

pub use each::apply_each;
pub use edit::{Applied, Change, Edit, Expected};
pub use error::Error;
pub use names::{Match, matching, validate};
pub use resolve::{Head, Resolved, find, head, peel, resolve};
pub use transaction::{Options, Packing, Transaction, apply};

use crate::repository::{Repository, explain};

/// A reference and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The full name.
    pub name: FullName,
    /// The object, after following symbolic references. An annotated tag is not peeled.
    pub id: ObjectId,
    /// The reference that this one points to, if it is symbolic.
    pub symbolic: Option<FullName>,
}

/// All references whose full names start with `prefix` (empty for all below `refs/`), sorted by name. Symbolic
/// references that lead nowhere are left out, as Git leaves them out; a damaged one is an error that names it.
pub fn list(repository: &Repository, prefix: impl AsRef<[u8]>) -> Result<Vec<Reference>, Error> {
    let prefix = prefix.as_ref().as_bstr();
    let store = &repository.gix().refs;
    let unreadable = |error: &dyn std::fmt::Display| Error::Unreadable {
        name: prefix.to_owned(),
        message: error.to_string(),
    };
    let platform = store.iter().map_err(|error| unreadable(&explain(&error)))?;
    // gix walks whole folders, and wants a relative path.
    let entries = match prefix.rfind_byte(b'/') {
        Some(slash) => {
            let folder = BStr::new(&prefix[..=slash]);
            let relative =
                <&gix::path::RelativePath>::try_from(folder).map_err(|error| unreadable(&error))?;
            platform.prefixed(relative)
        }
        None => platform.all(),
    }
    .map_err(|error| unreadable(&error))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(&explain(&error)))?;
        if !entry.name.as_bstr().starts_with(prefix) {
            continue;
        }
        let (id, symbolic) = match entry.target {
            Target::Object(id) => (id, None),
            Target::Symbolic(target) => match resolve::follow(repository, target.as_ref())? {
                Some((_, id)) => (id, Some(target)),
                None => continue,
            },
        };
        found.push(Reference {
            name: entry.name,
            id,
            symbolic,
        });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
