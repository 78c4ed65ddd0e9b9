//! Git packs made by hand, so that they can be wrong.

use ingot_engine::pack::inflate::{Level, deflate};

pub const COMMIT: u8 = 1;
pub const TREE: u8 = 2;
pub const BLOB: u8 = 3;
pub const REF_DELTA: u8 = 7;

/// One entry: a header that claims `size`, what comes between header and data, and the data, deflated.
pub fn entry(kind: u8, size: u64, between: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = size >> 4;
    let mut byte = kind << 4 | (size & 15) as u8;
    while rest > 0 {
        bytes.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    bytes.push(byte);
    bytes.extend_from_slice(between);
    deflate(data, Level::DEFAULT, &mut bytes);
    bytes
}

/// A whole, honest object.
pub fn object(kind: u8, data: &[u8]) -> Vec<u8> {
    entry(kind, data.len() as u64, &[], data)
}

/// A pack of entries with a count that may be wrong.
pub fn pack(count: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PACK\0\0\0\x02".to_vec();
    bytes.extend_from_slice(&count.to_be_bytes());
    for entry in entries {
        bytes.extend_from_slice(entry);
    }
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&bytes);
    bytes.extend_from_slice(hasher.try_finalize().unwrap().as_slice());
    bytes
}

/// The id of an object.
pub fn id(kind: &str, data: &[u8]) -> gix_hash::ObjectId {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(format!("{kind} {}\0", data.len()).as_bytes());
    hasher.update(data);
    hasher.try_finalize().unwrap()
}

/// A delta of these instructions.
pub fn delta(base: u64, result: u64, instructions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut size in [base, result] {
        while size > 0x7f {
            bytes.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        bytes.push(size as u8);
    }
    bytes.extend_from_slice(instructions);
    bytes
}

/// The text of a commit.
pub fn commit(tree: &gix_hash::ObjectId) -> Vec<u8> {
    format!(
        "tree {tree}\nauthor Alice <alice@example.org> 1700000000 +0000\n\
         committer Alice <alice@example.org> 1700000000 +0000\n\nforged\n"
    )
    .into_bytes()
}

/// The content of a tree with one file.
pub fn tree(name: &[u8], blob: &gix_hash::ObjectId) -> Vec<u8> {
    let mut bytes = b"100644 ".to_vec();
    bytes.extend_from_slice(name);
    bytes.push(0);
    bytes.extend_from_slice(blob.as_slice());
    bytes
}
