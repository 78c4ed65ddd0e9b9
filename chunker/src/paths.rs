//! Paths as Git has them, and as the operating system has them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};

/// The path of the operating system. Bytes that it cannot name are replaced, which makes the file one that is not there.
pub(crate) fn native(path: &BStr) -> Cow<'_, Path> {
    // Exact on Unix, where any bytes are a name.
    path.to_path_lossy()
}

/// The path as Git has it, with slashes.
pub(crate) fn git(path: &Path) -> BString {
    let bytes: Vec<u8> = <Vec<u8> as bstr::ByteVec>::from_path_lossy(path).into_owned();
    match cfg!(windows) {
        true => bytes.replace(b"\\", b"/").into(),
        false => bytes.into(),
    }
}

/// `path`, relative to `top`.
pub(crate) fn below(top: &Path, path: &BStr) -> PathBuf {
    top.join(native(path))
}
