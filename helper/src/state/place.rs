//! Where the state of a store lives in a clone.
//!
//! | Owner | Folder below `<git dir>/git-remote-e2ee/` |
//! | --- | --- |
//! | remote whose name has only ASCII letters, digits, `-` and `_` | `<name>/`, as other implementations have it |
//! | remote with any other name | `.remotes/<SHA-256 of the name>/` |
//! | no remote, just a URL | `.urls/<SHA-256 of the store's identity>/`, below the common git dir |
//!
//! A dot cannot begin a name of the first kind, so the three never meet. In each folder, `state.json` is the state of the
//! store that the remote is about, and `stores/<SHA-256 of the identity>/state.json` those of further stores that the
//! same remote leads to.
//!
//! The state of the third kind is also kept for every remote: it is what anybody in the repository has seen of the store,
//! in whatever work tree and under whatever name of a remote. A new work tree and a renamed remote have no state of their
//! own yet, and must not begin with what a rolled-back store shows.

use std::path::{Path, PathBuf};

use crate::protocol::ContentId;

/// Who the state belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// A remote that the configuration names. Names are bytes for Git.
    Remote(&'a [u8]),
    /// A URL given where a remote could be.
    Url,
}

/// The file names below the folder of the owner.
pub(super) const STATE: &str = "state.json";
const STORES: &str = "stores";

fn is_plain(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// The folder of an owner. `git_dir` is the worktree's own, not the common one; `identity` is the store's.
pub(super) fn home(git_dir: &Path, owner: Owner<'_>, identity: &str) -> PathBuf {
    let base = git_dir.join("git-remote-e2ee");
    match owner {
        Owner::Remote(name) => match std::str::from_utf8(name) {
            Ok(text) if is_plain(name) => base.join(text),
            _ => base.join(".remotes").join(ContentId::of(name).to_hex()),
        },
        Owner::Url => base
            .join(".urls")
            .join(ContentId::of(identity.as_bytes()).to_hex()),
    }
}

/// The state file of one of several stores of an owner.
pub(super) fn further(home: &Path, identity: &str) -> PathBuf {
    home.join(STORES)
        .join(ContentId::of(identity.as_bytes()).to_hex())
        .join(STATE)
}

/// The state file of the store that an owner is about, for looking at it. [`super::Continuity`] knows about the others.
pub fn state_file(git_dir: &Path, owner: Owner<'_>, identity: &str) -> PathBuf {
    home(git_dir, owner, identity).join(STATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_folders_and_all_others_are_kept_apart() {
        let git = Path::new("/repo/.git");
        let place = |name: &str| state_file(git, Owner::Remote(name.as_bytes()), "directory:/x");
        for name in ["origin", "a", "A-b_9", "stores", "state"] {
            assert_eq!(
                place(name),
                git.join("git-remote-e2ee").join(name).join("state.json")
            );
        }
        let odd = [
            "", ".", "..", "a.b", "a/b", "a/../b", ".remotes", ".urls", "ü", "a b", "e2ee::/x",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for name in odd {
            let path = place(name);
            assert!(
                path.starts_with(git.join("git-remote-e2ee/.remotes")),
                "{}",
                path.display()
            );
            assert!(seen.insert(path), "{name:?}");
        }
        assert_eq!(
            state_file(git, Owner::Remote(b"\xff"), "").components().count(),
            7
        );
        assert_ne!(state_file(git, Owner::Url, "x"), state_file(git, Owner::Url, "y"));
    }
}
