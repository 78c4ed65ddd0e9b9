//! What the target can keep apart.

use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::rooted::Root;

/// Whether names that differ in case alone are one name in the topmost folder. Found out with a file that is gone
/// afterwards; no where that cannot be made.
pub(super) fn ignores_case(root: &Root) -> bool {
    let Ok(folder) = root.folder(b"") else {
        return false;
    };
    let name = format!(".rivet-probe-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if rustix::fs::openat(folder.as_fd(), &name, flags, Mode::RUSR).is_err() {
        return false;
    }
    let found = rustix::fs::statat(folder.as_fd(), name.to_uppercase(), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let _ = rustix::fs::unlinkat(folder.as_fd(), &name, AtFlags::empty());
    found
}
