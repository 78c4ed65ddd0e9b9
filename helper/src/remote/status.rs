//! Status: what the store holds, and how far the repository is from it.

use std::collections::{BTreeMap, BTreeSet};

use gix_hash::ObjectId;
use ingot_engine::progress::Silent;
use ingot_engine::walk;

use super::decide::History as _;
use super::{Error, Local, Remote, View};

/// What a store holds.
#[derive(Debug)]
pub struct Status {
    /// The store.
    pub view: View,
    /// Packs in it.
    pub packs: u64,
    /// Bytes of the packs as they are stored.
    pub stored: u64,
    /// References of the store and branches of the repository, by full name.
    pub refs: Vec<RefStatus>,
}

/// One reference, in the store and here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefStatus {
    /// Full name.
    pub name: String,
    /// Its value in the store.
    pub remote: Option<ObjectId>,
    /// Its value here.
    pub local: Option<ObjectId>,
    /// How the two compare.
    pub relation: Relation,
}

/// How a local reference relates to the one in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The same object.
    Same,
    /// Commits on either side that the other lacks.
    Differs {
        /// Commits only here.
        ahead: usize,
        /// Commits only in the store.
        behind: usize,
    },
    /// The store's value is not known here; a fetch brings it.
    Unknown,
    /// Only here.
    LocalOnly,
    /// Only in the store.
    RemoteOnly,
}

impl Remote<'_> {
    /// Looks at the store and compares it with `local` references: pairs of full name and value.
    pub fn status(&self, local: Option<(&Local<'_>, &[(String, ObjectId)])>) -> Result<Status, Error> {
        let (view, _memory) = self.look()?;
        let packs = view.chain().pack_count();
        let stored = view.chain().stored_bytes();
        let here: BTreeMap<&str, ObjectId> = local
            .map_or(&[][..], |(_, refs)| refs)
            .iter()
            .map(|(name, id)| (name.as_str(), *id))
            .collect();
        let names: BTreeSet<&str> = view
            .refs()
            .keys()
            .map(String::as_str)
            .chain(here.keys().copied())
            .collect();
        let mut refs = Vec::with_capacity(names.len());
        for name in names {
            let remote = view.refs().get(name).copied();
            let value = here.get(name).copied();
            let relation = match (value, remote) {
                (Some(value), Some(remote)) if value == remote => Relation::Same,
                (Some(value), Some(remote)) => match local {
                    Some((local, _)) => compare(local, value, remote)?,
                    None => Relation::Unknown,
                },
                (Some(_), None) => Relation::LocalOnly,
                (None, _) => Relation::RemoteOnly,
            };
            refs.push(RefStatus {
                name: name.to_owned(),
                remote,
                local: value,
                relation,
            });
        }
        Ok(Status {
            view,
            packs,
            stored,
            refs,
        })
    }
}

fn compare(local: &Local<'_>, here: ObjectId, there: ObjectId) -> Result<Relation, Error> {
    let (Some((here, _)), Some((there, _))) = (local.peel(here)?, local.peel(there)?) else {
        return Ok(Relation::Unknown);
    };
    let shallow = local.repository().shallow_commits()?;
    match walk::ahead_behind(local.store(), &here, &there, &shallow, &Silent) {
        Ok(walk::AheadBehind { ahead, behind }) => Ok(Relation::Differs { ahead, behind }),
        Err(walk::Error::Missing { .. }) => Ok(Relation::Unknown),
        Err(error) => Err(error.into()),
    }
}
