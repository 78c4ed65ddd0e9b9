//! Git trees of a manifest's entries.

use gix_hash::ObjectId;

use crate::manifest::{EntryRef, KindRef};
use crate::names;

/// The folder of captured files in a snapshot's tree.
pub const FILES: &str = "files";

/// Git's modes.
const FILE: &str = "100644";
const EXECUTABLE: &str = "100755";
const LINK: &str = "120000";
const TREE: &str = "40000";

/// A tree in the making.
#[derive(Debug, Default)]
struct Open {
    /// The name of the folder in its tree.
    name: Vec<u8>,
    entries: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    mode: &'static str,
    name: Vec<u8>,
    id: ObjectId,
}

impl Row {
    /// Git orders entries as if the names of trees ended in a slash.
    fn key(&self) -> impl Iterator<Item = u8> + '_ {
        let end = (self.mode == TREE).then_some(b'/');
        self.name.iter().copied().chain(end)
    }
}

/// Makes the trees of entries in path order, from the deepest up; `store` is given each of them and returns its id.
/// Returns the topmost one; `None` if there is no file, since Git has no empty folders.
pub fn build<'a, E>(
    entries: impl IntoIterator<Item = EntryRef<'a>>,
    store: &mut dyn FnMut(&[u8]) -> Result<ObjectId, E>,
) -> Result<Option<ObjectId>, E> {
    let mut open: Vec<Open> = vec![Open::default()];
    let mut path: Vec<u8> = Vec::new();
    for entry in entries {
        let folder = crate::manifest::parent(entry.path);
        // Folders that this entry does not lie in are complete.
        while !crate::manifest::is_in(folder, &path) {
            close(&mut open, store)?;
            path.truncate(crate::manifest::parent(&path).len());
        }
        let name = names::in_tree(match folder.len() {
            0 => entry.path,
            length => &entry.path[length + 1..],
        })
        .into_owned();
        let (mode, id) = match entry.kind {
            KindRef::Folder => {
                open.push(Open {
                    name,
                    entries: Vec::new(),
                });
                path = entry.path.to_vec();
                continue;
            }
            KindRef::File(content) if entry.mode & 0o100 != 0 => (EXECUTABLE, content.id),
            KindRef::File(content) => (FILE, content.id),
            KindRef::Link { id, .. } => (LINK, id),
        };
        if let Some(tree) = open.last_mut() {
            tree.entries.push(Row { mode, name, id });
        }
    }
    while open.len() > 1 {
        close(&mut open, store)?;
    }
    match open.pop() {
        Some(tree) if !tree.entries.is_empty() => store(&encode(tree.entries)).map(Some),
        _ => Ok(None),
    }
}

fn close<E>(open: &mut Vec<Open>, store: &mut dyn FnMut(&[u8]) -> Result<ObjectId, E>) -> Result<(), E> {
    if let Some(tree) = open.pop()
        && !tree.entries.is_empty()
    {
        let id = store(&encode(tree.entries))?;
        if let Some(parent) = open.last_mut() {
            parent.entries.push(Row {
                mode: TREE,
                name: tree.name,
                id,
            });
        }
    }
    Ok(())
}

/// The tree at the top of a snapshot.
pub fn top(manifest: ObjectId, files: Option<ObjectId>, packages: Option<ObjectId>) -> Vec<u8> {
    let mut rows = vec![Row {
        mode: FILE,
        name: crate::manifest::FILE.into(),
        id: manifest,
    }];
    rows.extend(files.map(|id| Row {
        mode: TREE,
        name: FILES.into(),
        id,
    }));
    rows.extend(packages.map(|id| Row {
        mode: FILE,
        name: crate::capture::PACKAGES_FILE.into(),
        id,
    }));
    encode(rows)
}

fn encode(mut rows: Vec<Row>) -> Vec<u8> {
    rows.sort_by(|a, b| a.key().cmp(b.key()));
    let mut bytes = Vec::with_capacity(rows.len() * 48);
    for row in rows {
        bytes.extend_from_slice(row.mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(&row.name);
        bytes.push(0);
        bytes.extend_from_slice(row.id.as_bytes());
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;
    use crate::manifest::{Content, Time};

    #[test]
    fn trees_nest_and_are_in_gits_order() {
        let id = ObjectId::empty_blob(gix_hash::Kind::Sha1);
        let file = KindRef::File(Content {
            size: 0,
            blake3: [0; 32],
            id,
        });
        let entry = |path: &'static str, kind, mode| EntryRef {
            hard_link: None,
            path: path.as_bytes(),
            kind,
            mode,
            mtime: Time::default(),
        };
        let entries = [
            entry("a", KindRef::Folder, 0o755),
            entry("a/b", KindRef::Folder, 0o755),
            entry("a/b/.git", file, 0o755),
            entry("a/empty", KindRef::Folder, 0o755),
            entry("a/z", file, 0o600),
            entry("a-x", KindRef::Link { target: b"t", id }, 0o777),
            entry("a0", KindRef::Folder, 0o755),
        ];
        let mut trees: Vec<String> = Vec::new();
        let number = |count: usize| {
            let mut id = ObjectId::null(gix_hash::Kind::Sha1);
            id.as_mut_slice().fill(count as u8);
            id
        };
        let top = build(entries, &mut |bytes| {
            let rows: Vec<String> = ingot_engine::object::tree::Entries::new(bytes, gix_hash::Kind::Sha1)
                .map(|row| row.unwrap())
                .map(|row| format!("{:o} {}", row.mode, row.name))
                .collect();
            trees.push(rows.join(","));
            Ok::<_, ()>(number(trees.len()))
        })
        .unwrap();
        assert_eq!(top, Some(number(3)));
        assert_eq!(
            trees,
            [
                "100755 %.git",
                "40000 b,100644 z",
                "120000 a-x,40000 a", // the slash comes after the dash
            ]
        );
        let none = build([entry("a", KindRef::Folder, 0o755)], &mut |_| Err(())).unwrap();
        assert_eq!(none, None);
    }
}
