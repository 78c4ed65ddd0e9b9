//! Which earlier versions of objects the receiver has.

use std::collections::HashMap;

use gix_hash::oid;

use super::Options;
use crate::store::Store;
use crate::walk;

/// Finds, for objects of the set, the version at the same path that the receiver has.
pub(super) struct Received<'a> {
    store: &'a Store,
    members: &'a walk::Objects,
    /// What was found, by number.
    versions: HashMap<u32, Option<&'a oid>>,
}

impl<'a> Received<'a> {
    /// `None` if deltas against the receiver's objects are not allowed, or nothing is known of them.
    pub(super) fn of(
        store: &'a Store,
        members: &'a walk::Objects,
        options: &Options,
    ) -> Option<Received<'a>> {
        (options.thin && members.knows_predecessors()).then(|| Received {
            store,
            members,
            versions: HashMap::new(),
        })
    }

    /// The newest version of an object, given by its number, that is not sent: the one before it, or before that one if
    /// it is sent too, and so on.
    pub(super) fn version(&mut self, number: u32) -> Option<&'a oid> {
        let mut passed = Vec::new();
        let mut at = number;
        let found = loop {
            if let Some(&found) = self.versions.get(&at) {
                break found;
            }
            // Content that comes back may lead in a circle, which ends here.
            self.versions.insert(at, None);
            passed.push(at);
            let Some(earlier) = self.members.predecessor(at) else {
                break None;
            };
            match self.members.number(self.store, earlier) {
                Some(next) => at = next,
                None => break Some(earlier),
            }
        };
        for number in passed {
            self.versions.insert(number, found);
        }
        found
    }
}
