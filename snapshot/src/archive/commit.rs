//! The commits that snapshots are.

use std::io::Write as _;

use gix_hash::ObjectId;
use gix_object::CommitRef;

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its tree.
    pub tree: ObjectId,
    /// The snapshot before it; none for the first.
    pub parents: Vec<ObjectId>,
    /// Who made it: the name of the machine.
    pub author: String,
    /// When, in seconds since 1970.
    pub seconds: i64,
    /// Local time's distance from UTC in minutes.
    pub offset: i32,
    /// What the user or the program says about it.
    pub message: String,
}

impl Commit {
    /// Reads a commit object.
    pub fn decode(bytes: &[u8], format: gix_hash::Kind) -> Option<Commit> {
        let commit = CommitRef::from_bytes(bytes, format).ok()?;
        let author = commit.author().ok()?;
        let time = author.time().ok()?;
        Some(Commit {
            tree: commit.tree(),
            parents: commit.parents().collect(),
            author: author.name.to_string(),
            seconds: time.seconds,
            offset: time.offset / 60,
            message: commit.message.to_string().trim_end().to_owned(),
        })
    }

    /// Writes a commit object.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs();
        let name = plain(&self.author);
        let who = format!(
            "{name} <rivet@{name}> {} {sign}{:02}{:02}",
            self.seconds.max(0),
            minutes / 60,
            minutes % 60
        );
        // Memory takes everything.
        let _ = writeln!(out, "tree {}", self.tree);
        for parent in &self.parents {
            let _ = writeln!(out, "parent {parent}");
        }
        let message = self.message.replace('\0', "");
        let _ = write!(out, "author {who}\ncommitter {who}\n\n{}\n", message.trim_end());
        out
    }
}

/// A name without what ends a name in a commit.
fn plain(name: &str) -> String {
    let name: String = name
        .chars()
        .filter(|character| !"<>\n\0".contains(*character) && !character.is_whitespace())
        .collect();
    if name.is_empty() { "rivet".to_owned() } else { name }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            for (offset, parents) in [(0, 0), (330, 1), (-90, 2)] {
                let commit = Commit {
                    tree: ObjectId::empty_tree(format),
                    parents: vec![ObjectId::empty_blob(format); parents],
                    author: "desk".to_owned(),
                    seconds: 1_700_000_000,
                    offset,
                    message: "Größe\n\nmore".to_owned(),
                };
                assert_eq!(Commit::decode(&commit.encode(), format).unwrap(), commit);
            }
        }
        assert_eq!(Commit::decode(b"tree x", gix_hash::Kind::Sha1), None);
        assert_eq!(plain("a <b>\nc"), "abc");
    }
}
