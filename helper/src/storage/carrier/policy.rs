//! What the owner of a repository on this machine allows those who push into it, as far as it is said in configuration.
//!
//! The branch is only ever moved forward and never deleted, so `receive.denyNonFastForwards` and `receive.denyDeletes`
//! have nothing to refuse.

use bstr::{BString, ByteSlice as _};
use ingot_engine::import::Received;
use ingot_engine::refs::{self, Head};
use ingot_engine::repository::Repository;

use super::layout::BRANCH;

/// Git's own default of `transfer.unpackLimit`.
const UNPACK_LIMIT: i64 = 100;
const UNPACK_BYTES: u64 = 1 << 20;

/// Why the branch may not be moved; `None` if it may.
pub(super) fn refusal(repository: &Repository) -> Option<String> {
    hidden(repository).or_else(|| checked_out(repository))
}

/// Why a pack of this length is not taken; `None` if it is.
pub(super) fn too_large(repository: &Repository, bytes: u64) -> Option<String> {
    let limit = repository
        .config()
        .integer("receive.maxInputSize")
        .ok()
        .flatten()?;
    let limit = u64::try_from(limit).ok().filter(|limit| *limit > 0)?;
    (bytes > limit).then(|| format!("the pack has {bytes} bytes, and receive.maxInputSize is {limit}"))
}

/// Whether what was received becomes files in place of a pack, as Git decides it by the number of objects. What is large
/// would only be written twice.
pub(super) fn unpacks(repository: &Repository, received: Received) -> bool {
    let limit = |name| repository.config().integer(name).ok().flatten();
    let limit = limit("receive.unpackLimit").or_else(|| limit("transfer.unpackLimit"));
    let limit = limit.unwrap_or(UNPACK_LIMIT);
    i64::from(received.objects) < limit && received.bytes <= UNPACK_BYTES
}

/// `transfer.hideRefs` and `receive.hideRefs`: the last pattern that fits decides.
fn hidden(repository: &Repository) -> Option<String> {
    let config = repository.config();
    let mut patterns: Vec<BString> = config.strings("transfer.hideRefs");
    patterns.extend(config.strings("receive.hideRefs"));
    let mut hidden = false;
    for pattern in &patterns {
        let (shown, prefix) = match pattern.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, pattern.as_slice()),
        };
        // With a caret, the name within a namespace is left out of account; nobody has one here.
        let prefix = prefix.strip_prefix(b"^").unwrap_or(prefix);
        let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
        let fits = BRANCH
            .as_bytes()
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        if fits {
            hidden = !shown;
        }
    }
    hidden.then(|| format!("deny updating a hidden ref: {BRANCH}"))
}

/// `receive.denyCurrentBranch`
fn checked_out(repository: &Repository) -> Option<String> {
    if !is_checked_out(repository) {
        return None;
    }
    let config = repository.config();
    let wanted = config
        .string("receive.denyCurrentBranch")
        .unwrap_or_else(|| "refuse".into());
    match wanted.to_ascii_lowercase().as_slice() {
        b"warn" | b"ignore" | b"false" | b"no" | b"off" | b"0" => None,
        b"updateinstead" => Some(format!(
            "{BRANCH} is checked out there, and receive.denyCurrentBranch = updateInstead is not supported"
        )),
        _ => Some(format!(
            "{BRANCH} is checked out there (receive.denyCurrentBranch)"
        )),
    }
}

/// Whether a work tree, the main one or a linked one, is on the branch.
fn is_checked_out(repository: &Repository) -> bool {
    let on_branch =
        matches!(refs::head(repository), Ok(Head::Branch { name, .. }) if name.as_bstr() == BRANCH);
    if on_branch && repository.work_dir().is_some() {
        return true;
    }
    let linked = std::fs::read_dir(repository.common_dir().join("worktrees"));
    linked.into_iter().flatten().flatten().any(|entry| {
        std::fs::read(entry.path().join("HEAD")).is_ok_and(|head| {
            head.strip_prefix(b"ref: ")
                .is_some_and(|name| name.trim() == BRANCH.as_bytes())
        })
    })
}
