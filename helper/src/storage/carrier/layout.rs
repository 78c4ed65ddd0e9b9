//! Names and numbers of the layout, which is shared with other implementations.

use std::time::{SystemTime, UNIX_EPOCH};

use gix_hash::ObjectId;

use super::super::Kind;

/// The branch that holds the ciphertext. All others belong to somebody else.
pub const BRANCH: &str = "refs/heads/git-remote-e2ee";

/// Where the parts of a large push are kept until the branch leads to them: branches of this name and the first digits of
/// the pack's id.
pub const UPLOADS: &str = "refs/heads/git-remote-e2ee-upload/";

/// The folder of the branch that holds everything but the attributes.
pub(super) const FOLDER: &str = "e2ee";
/// The file in it with the id of the newest manifest.
pub(super) const HEAD: &str = "HEAD";

/// A file at the top that keeps servers and repacking clients from looking for deltas between ciphertexts.
pub(super) const ATTRIBUTES: &str = ".gitattributes";
/// Its content. Other implementations write the same bytes each time, so nothing can be added to it.
pub(super) const ATTRIBUTES_TEXT: &[u8] = b"e2ee/** -delta\n";

/// Bytes of each part of an object but the last, which has at least one.
pub const PART: u64 = 32 << 20;
/// The most parts of an object.
pub const MOST_PARTS: usize = 4096;
/// The most bytes of the folder that lists the parts of an object.
pub(super) const LISTING_LIMIT: u64 = 8 << 20;
/// The most bytes of any other folder that is read: room for some hundred thousand entries.
pub(super) const FOLDER_LIMIT: u64 = 32 << 20;

/// Modes of tree entries: a file, a folder.
pub(super) const FILE: u32 = 0o100_644;
pub(super) const TREE: u32 = 0o040_000;

/// The folder of a kind of things.
pub(super) fn folder_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Manifest => "manifests",
        Kind::Pack => "objects",
    }
}

/// The name of a part.
pub(super) fn part_name(number: usize) -> String {
    format!("{number:08}")
}

/// The commit that makes `tree` the newest state of the branch. Name, time zone and message are the same for everybody,
/// whatever the user's settings are.
pub(super) fn commit(tree: ObjectId, parent: Option<ObjectId>) -> Vec<u8> {
    commit_with(tree, parent, "git-remote-e2ee storage update")
}

/// The commit that keeps parts whose push is not complete yet.
pub(super) fn commit_of_upload(tree: ObjectId, parent: Option<ObjectId>) -> Vec<u8> {
    commit_with(tree, parent, "git-remote-e2ee upload in progress")
}

fn commit_with(tree: ObjectId, parent: Option<ObjectId>, message: &str) -> Vec<u8> {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let parent = parent.map_or(String::new(), |parent| format!("parent {parent}\n"));
    let who = format!("git-remote-e2ee <git-remote-e2ee@invalid> {seconds} +0000");
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}\n").into_bytes()
}
