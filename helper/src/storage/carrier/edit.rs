//! The next tree of the branch: what is there, with some paths added.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice as _};
use gix::object::Kind as ObjectKind;
use gix_hash::ObjectId;
use ingot_engine::object::tree::Entry;
use ingot_engine::pack::create::Content;

use super::super::{Error, Kind};
use super::layout;
use super::outer::Upload;
use super::snapshot::Snapshot;
use crate::protocol::ContentId;

/// What is to be at a name.
#[derive(Debug)]
enum Node {
    /// A file.
    File(ObjectId),
    /// A folder with these names in addition to what is there.
    Folder(BTreeMap<BString, Node>),
    /// A folder with just these files.
    Listing(Vec<ObjectId>),
}

/// Paths to add.
#[derive(Debug, Default)]
pub(super) struct Edit {
    root: BTreeMap<BString, Node>,
}

impl Edit {
    /// The file with the id of the newest manifest.
    pub fn set_head(&mut self, blob: ObjectId) {
        self.folder(&[layout::FOLDER])
            .insert(layout::HEAD.into(), Node::File(blob));
    }

    /// The attributes at the top.
    pub fn set_attributes(&mut self, blob: ObjectId) {
        self.root.insert(layout::ATTRIBUTES.into(), Node::File(blob));
    }

    /// The parts of a thing.
    pub fn add(&mut self, kind: Kind, id: &ContentId, parts: Vec<ObjectId>) {
        let id = id.to_hex();
        self.folder(&[layout::FOLDER, layout::folder_of(kind), &id[..2]])
            .insert(id.into(), Node::Listing(parts));
    }

    fn folder(&mut self, path: &[&str]) -> &mut BTreeMap<BString, Node> {
        let mut at = &mut self.root;
        for name in path {
            let node = at
                .entry(BString::from(*name))
                .or_insert_with(|| Node::Folder(BTreeMap::new()));
            if !matches!(node, Node::Folder(_)) {
                *node = Node::Folder(BTreeMap::new());
            }
            let Node::Folder(next) = node else {
                unreachable!("it was just made a folder")
            };
            at = next;
        }
        at
    }

    /// Writes the trees that change and returns the new root.
    pub fn write(&self, snapshot: &Snapshot, upload: &mut dyn Upload) -> Result<ObjectId, Error> {
        let root = snapshot.tip().map(|tip| tip.tree);
        merge(snapshot, upload, "", root, &self.root)
    }
}

/// A tree with changes.
fn merge(
    snapshot: &Snapshot,
    upload: &mut dyn Upload,
    path: &str,
    base: Option<ObjectId>,
    changes: &BTreeMap<BString, Node>,
) -> Result<ObjectId, Error> {
    let mut entries: BTreeMap<BString, (u32, ObjectId)> = BTreeMap::new();
    for (mode, name, id) in snapshot.all_entries(path, base)? {
        if entries.insert(name.clone(), (mode, id)).is_some() {
            return Err(snapshot.corrupt(&format!("{path}/{name}"), "is there twice"));
        }
    }
    for (name, node) in changes {
        let inner = match path {
            "" => name.to_string(),
            path => format!("{path}/{name}"),
        };
        let there = entries.get(name).copied();
        let entry = match node {
            Node::File(blob) => match there {
                Some((layout::TREE, _)) => {
                    return Err(snapshot.corrupt(&inner, "is a folder in place of a file"));
                }
                _ => (layout::FILE, *blob),
            },
            Node::Listing(parts) => (layout::TREE, listing(upload, parts)?),
            Node::Folder(changes) => {
                let base = match there {
                    None => None,
                    Some((layout::TREE, id)) => Some(id),
                    Some(_) => return Err(snapshot.corrupt(&inner, "is not a folder")),
                };
                (layout::TREE, merge(snapshot, upload, &inner, base, changes)?)
            }
        };
        entries.insert(name.clone(), entry);
    }
    let entries = entries.iter().map(|(name, (mode, id))| (*mode, name, *id));
    write_tree(upload, entries)
}

fn listing(upload: &mut dyn Upload, parts: &[ObjectId]) -> Result<ObjectId, Error> {
    let names: Vec<BString> = (0..parts.len())
        .map(|number| layout::part_name(number).into())
        .collect();
    let entries = names
        .iter()
        .zip(parts)
        .map(|(name, id)| (layout::FILE, name, *id));
    write_tree(upload, entries)
}

fn write_tree<'a>(
    upload: &mut dyn Upload,
    entries: impl Iterator<Item = (u32, &'a BString, ObjectId)>,
) -> Result<ObjectId, Error> {
    let mut entries: Vec<(u32, &BString, ObjectId)> = entries.collect();
    fn entry<'e>(item: &'e (u32, &BString, ObjectId)) -> Entry<'e> {
        Entry {
            mode: item.0,
            name: item.1.as_bstr(),
            id: &item.2,
        }
    }
    entries.sort_by(|a, b| entry(a).cmp_place(&entry(b)));
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(id.as_slice());
    }
    upload.add(ObjectKind::Tree, &bytes, Content::Compressible)
}
