//! What is kept of a carrier elsewhere: everything but the parts of packs.

use std::collections::BTreeMap;

use bstr::BString;
use gix::object::Kind as ObjectKind;
use gix_hash::ObjectId;

use super::super::{Error, Kind, MANIFEST_LIMIT};
use super::layout;
use super::snapshot::Snapshot;

/// Takes an object: its id, kind and content.
type Each<'a> = dyn FnMut(ObjectId, ObjectKind, &[u8]) -> Result<(), Error> + 'a;

impl Snapshot {
    /// The blob with the head.
    pub(super) fn head_blob(&self) -> Result<Option<ObjectId>, Error> {
        let Some(folder) = self.folder()? else {
            return Ok(None);
        };
        Ok(self.look_up(folder, layout::HEAD)?.map(|found| found.id))
    }

    /// Blobs of all manifests but those that `older` has in the same place.
    pub(super) fn new_manifests(&self, older: Option<&Snapshot>) -> Result<Vec<ObjectId>, Error> {
        let mut blobs = Vec::new();
        let Some(manifests) = self.folder_tree(Kind::Manifest)? else {
            return Ok(blobs);
        };
        let old_manifests = match older {
            Some(older) => older.folder_tree(Kind::Manifest)?,
            None => None,
        };
        let trees_of = |tree: Option<ObjectId>| match (older, tree) {
            (Some(older), Some(tree)) => older.trees_in(tree),
            _ => Ok(BTreeMap::new()),
        };
        let old_fans = trees_of(old_manifests)?;
        for (name, fan_out) in self.trees_in(manifests)? {
            let old_fan = old_fans.get(&name).copied();
            if old_fan == Some(fan_out) {
                continue;
            }
            let old_things = trees_of(old_fan)?;
            for (name, thing) in self.trees_in(fan_out)? {
                if old_things.get(&name) == Some(&thing) {
                    continue;
                }
                let path = layout::folder_of(Kind::Manifest);
                let bytes = self.read_tree(path, thing, layout::LISTING_LIMIT)?;
                for entry in self.entries(path, &bytes) {
                    let entry = entry?;
                    if entry.mode == layout::FILE {
                        blobs.push(entry.id.to_owned());
                    }
                }
            }
        }
        Ok(blobs)
    }

    /// Everything but the parts of packs: the commit, folders, manifests and the head. Each object once, as far as it is
    /// part of the store's own folder.
    pub(super) fn for_each_kept(&self, each: &mut Each<'_>) -> Result<(), Error> {
        let Some(tip) = self.tip() else { return Ok(()) };
        let commit = self.read(
            layout::BRANCH,
            tip.commit,
            ObjectKind::Commit,
            layout::FOLDER_LIMIT,
        )?;
        each(tip.commit, ObjectKind::Commit, &commit)?;
        let root = self.read_folder("", tip.tree)?;
        each(tip.tree, ObjectKind::Tree, &root)?;
        if let Some(folder) = self.folder()? {
            self.keep_folders(layout::FOLDER, folder, 4, each)?;
        }
        let mut blobs = self.new_manifests(None)?;
        blobs.extend(self.head_blob()?);
        for blob in blobs {
            let bytes = self.blob(layout::FOLDER, blob, MANIFEST_LIMIT)?;
            each(blob, ObjectKind::Blob, &bytes)?;
        }
        Ok(())
    }

    fn keep_folders(
        &self,
        path: &str,
        tree: ObjectId,
        depth: usize,
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        let bytes = self.read_tree(path, tree, layout::FOLDER_LIMIT)?;
        each(tree, ObjectKind::Tree, &bytes)?;
        if depth > 1 {
            for entry in self.entries(path, &bytes) {
                let entry = entry?;
                if entry.mode == layout::TREE {
                    let inner = format!("{path}/{}", entry.name);
                    self.keep_folders(&inner, entry.id.to_owned(), depth - 1, each)?;
                }
            }
        }
        Ok(())
    }

    fn trees_in(&self, tree: ObjectId) -> Result<BTreeMap<BString, ObjectId>, Error> {
        let path = layout::folder_of(Kind::Manifest);
        let bytes = self.read_folder(path, tree)?;
        let mut trees = BTreeMap::new();
        for entry in self.entries(path, &bytes) {
            let entry = entry?;
            if entry.mode == layout::TREE {
                trees.insert(entry.name.to_owned(), entry.id.to_owned());
            }
        }
        Ok(trees)
    }
}
