//! What differs between two inventories.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Inventory, Listing, Manager, Package};

/// A package that is in both inventories, but not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// As it was.
    pub before: Package,
    /// As it is.
    pub after: Package,
}

/// What differs for one manager.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListingDiff {
    /// Only in the later one.
    pub added: Vec<Package>,
    /// Only in the earlier one.
    pub removed: Vec<Package>,
    /// With another version or for another reason.
    pub changed: Vec<Change>,
}

/// What differs, by manager. Managers without a difference are left out, and so are those that one side could not
/// read: nothing is known about them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InventoryDiff {
    /// One entry for each manager with a difference.
    pub managers: BTreeMap<Manager, ListingDiff>,
}

impl Inventory {
    /// What changed from this inventory to a later one.
    pub fn diff(&self, later: &Inventory) -> InventoryDiff {
        let nothing = Listing::default();
        let mut managers = BTreeMap::new();
        for manager in self.managers.keys().chain(later.managers.keys()) {
            let before = self.managers.get(manager).unwrap_or(&nothing);
            let after = later.managers.get(manager).unwrap_or(&nothing);
            if before.not_read.is_none() && after.not_read.is_none() {
                let diff = listing(before, after);
                if !diff.is_empty() {
                    managers.insert(*manager, diff);
                }
            }
        }
        InventoryDiff { managers }
    }
}

impl InventoryDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.managers.is_empty()
    }
}

impl ListingDiff {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Packages are the same by name and origin. One name may be there in several versions; those in both are left aside,
/// then old and new ones are paired in order.
fn listing(before: &Listing, after: &Listing) -> ListingDiff {
    let group = |listing: &'_ Listing| {
        let mut groups: BTreeMap<(String, Option<String>), Vec<Package>> = BTreeMap::new();
        for package in &listing.packages {
            let key = (package.name.clone(), package.origin.clone());
            groups.entry(key).or_default().push(package.clone());
        }
        groups
    };
    let (mut old, mut new) = (group(before), group(after));
    let mut diff = ListingDiff::default();
    let keys: Vec<_> = old
        .keys()
        .chain(new.keys())
        .cloned()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    for key in keys {
        let mut was = old.remove(&key).unwrap_or_default();
        let mut is = new.remove(&key).unwrap_or_default();
        was.retain(|package| match is.iter().position(|other| other == package) {
            Some(same) => {
                is.remove(same);
                false
            }
            None => true,
        });
        let pairs = was.len().min(is.len());
        diff.removed.extend(was.drain(pairs..));
        diff.added.extend(is.drain(pairs..));
        diff.changed.extend(
            was.into_iter()
                .zip(is)
                .map(|(before, after)| Change { before, after }),
        );
    }
    diff
}
