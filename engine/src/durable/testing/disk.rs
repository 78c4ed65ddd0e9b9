//! A model of what is surely on the disk and what may or may not be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Number of a file or folder in [`Disk`].
pub(super) type Node = usize;

/// One recorded call, in terms of nodes, so that it can be replayed on a copy of the first state.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// A new file or folder under a name of `folder`.
    Create {
        folder: Node,
        name: OsString,
        node: Node,
        mode: u32,
        is_folder: bool,
    },
    /// Bytes at the end of a file.
    Write(Node, Vec<u8>),
    /// Bytes in the middle of a file, in place of some that are not durable yet.
    Rewrite(Node, u64, Vec<u8>),
    /// The content of a file becomes durable.
    SyncFile(Node),
    /// Another name for a file.
    Link {
        folder: Node,
        name: OsString,
        node: Node,
    },
    /// A name moves, and replaces what was there.
    Rename {
        from: (Node, OsString),
        to: (Node, OsString),
        node: Node,
    },
    /// A name disappears.
    Remove { folder: Node, name: OsString },
    /// The names of a folder become durable.
    SyncDir(Node),
    /// Something that the test wants to know of.
    Mark(String),
}

/// A change to the names of a folder that is not durable yet.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Set(OsString, Node),
    Unset(OsString),
    /// A rename inside one folder, which no file system splits.
    Move(OsString, OsString, Node),
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    File {
        stable: Vec<u8>,
        pending: Vec<u8>,
    },
    Folder {
        stable: BTreeMap<OsString, Node>,
        pending: Vec<Change>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub mode: u32,
    pub content: Content,
}

/// Nodes; number 0 is the root.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub nodes: Vec<Entry>,
}

pub(super) fn apply(names: &mut BTreeMap<OsString, Node>, change: &Change) {
    match change {
        Change::Set(name, node) => {
            names.insert(name.clone(), *node);
        }
        Change::Unset(name) => {
            names.remove(name);
        }
        Change::Move(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}

impl Disk {
    /// Everything below `root`, taken as durable.
    pub fn capture(root: &Path) -> std::io::Result<Disk> {
        let mut disk = Disk::default();
        disk.capture_one(root)?;
        Ok(disk)
    }

    fn capture_one(&mut self, path: &Path) -> std::io::Result<Node> {
        let meta = std::fs::metadata(path)?;
        let number = self.add(mode_of(&meta), meta.is_dir());
        if meta.is_dir() {
            let mut names = BTreeMap::new();
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                names.insert(entry.file_name(), self.capture_one(&entry.path())?);
            }
            self.nodes[number].content = Content::Folder {
                stable: names,
                pending: Vec::new(),
            };
        } else {
            self.nodes[number].content = Content::File {
                stable: std::fs::read(path)?,
                pending: Vec::new(),
            };
        }
        Ok(number)
    }

    /// A node without a name.
    pub fn add(&mut self, mode: u32, is_folder: bool) -> Node {
        self.nodes.push(Entry {
            mode,
            content: if is_folder {
                Content::Folder {
                    stable: BTreeMap::new(),
                    pending: Vec::new(),
                }
            } else {
                Content::File {
                    stable: Vec::new(),
                    pending: Vec::new(),
                }
            },
        });
        self.nodes.len() - 1
    }

    /// The names in a folder as running programs see them.
    pub fn live(&self, folder: Node) -> BTreeMap<OsString, Node> {
        match &self.nodes[folder].content {
            Content::Folder { stable, pending } => {
                let mut names = stable.clone();
                for change in pending {
                    apply(&mut names, change);
                }
                names
            }
            Content::File { .. } => BTreeMap::new(),
        }
    }

    /// The node at a path below the root, as running programs see it.
    pub fn find(&self, relative: &Path) -> Option<Node> {
        let mut at = 0;
        for name in relative.components() {
            at = *self.live(at).get(name.as_os_str())?;
        }
        Some(at)
    }

    fn change(&mut self, folder: Node, change: Change) {
        if let Content::Folder { pending, .. } = &mut self.nodes[folder].content {
            pending.push(change);
        }
    }

    /// Replays one call.
    pub fn replay(&mut self, op: &Op) {
        match op {
            Op::Create {
                folder,
                name,
                node,
                mode,
                is_folder,
            } => {
                let added = self.add(*mode, *is_folder);
                assert_eq!(added, *node, "calls are replayed in their order");
                self.change(*folder, Change::Set(name.clone(), *node));
            }
            Op::Write(node, bytes) => {
                if let Content::File { pending, .. } = &mut self.nodes[*node].content {
                    pending.extend_from_slice(bytes);
                }
            }
            Op::Rewrite(node, offset, bytes) => {
                if let Content::File { stable, pending } = &mut self.nodes[*node].content {
                    let start = (*offset as usize).checked_sub(stable.len());
                    let start = start.expect("only what is not durable yet is rewritten");
                    pending[start..start + bytes.len()].copy_from_slice(bytes);
                }
            }
            Op::SyncFile(node) => {
                if let Content::File { stable, pending } = &mut self.nodes[*node].content {
                    stable.append(pending);
                }
            }
            Op::Link { folder, name, node } => self.change(*folder, Change::Set(name.clone(), *node)),
            Op::Rename { from, to, node } if from.0 == to.0 => {
                self.change(from.0, Change::Move(from.1.clone(), to.1.clone(), *node));
            }
            Op::Rename { from, to, node } => {
                self.change(to.0, Change::Set(to.1.clone(), *node));
                self.change(from.0, Change::Unset(from.1.clone()));
            }
            Op::Remove { folder, name } => self.change(*folder, Change::Unset(name.clone())),
            Op::SyncDir(node) => {
                let live = self.live(*node);
                if let Content::Folder { stable, pending } = &mut self.nodes[*node].content {
                    *stable = live;
                    pending.clear();
                }
            }
            Op::Mark(_) => {}
        }
    }
}

/// Files and folders by path, as a reader would find them.
pub(super) type Tree = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

#[cfg(unix)]
fn mode_of(meta: &std::fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o7777
}

#[cfg(not(unix))]
fn mode_of(_meta: &std::fs::Metadata) -> u32 {
    0
}
