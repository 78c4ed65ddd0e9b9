//! Reads single references as a transaction needs it: under its lock, from the file system that it writes to.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_ref::{FullName, FullNameRef};

use super::{Error, names};
use crate::durable::{Fs, Kind};
use crate::repository::Repository;

/// What a reference holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// An object.
    Object(ObjectId),
    /// Another reference.
    Symbolic(FullName),
    /// Something else, as a power cut may leave behind.
    Broken,
}

/// Whether every linked work tree has this reference for itself.
pub(super) fn is_private(name: &BStr) -> bool {
    !name.starts_with(b"refs/")
        || ["refs/bisect/", "refs/worktree/", "refs/rewritten/"]
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// The folder that holds the file of a reference, below which its name is its path.
pub(super) fn base<'r>(repository: &'r Repository, name: &BStr) -> &'r Path {
    if is_private(name) {
        repository.git_dir()
    } else {
        repository.common_dir()
    }
}

/// The path of a reference, or of its log, below `base`.
pub(super) fn path(base: &Path, name: &FullNameRef) -> Result<PathBuf, Error> {
    let relative = name.to_path().map_err(|error| Error::Invalid {
        name: name.as_bstr().to_owned(),
        reason: crate::repository::explain(&error),
    })?;
    Ok(base.join(relative))
}

/// Reads the file of a reference; `None` when there is none.
pub(super) fn loose(
    fs: &dyn Fs,
    path: &Path,
    name: &BStr,
    format: gix_hash::Kind,
) -> Result<Option<Value>, Error> {
    let unreadable = |error: std::io::Error| Error::Unreadable {
        name: name.to_owned(),
        message: error.to_string(),
    };
    match fs.kind(path).map_err(unreadable)? {
        None | Some(Kind::Folder) => Ok(None),
        Some(_) => match fs.read(path) {
            Ok(bytes) => Ok(Some(parse(&bytes, format))),
            // A dangling symbolic link.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some(Value::Broken)),
            Err(error) => Err(unreadable(error)),
        },
    }
}

fn parse(bytes: &[u8], format: gix_hash::Kind) -> Value {
    if let Some(target) = bytes.strip_prefix(b"ref:") {
        return match names::validate(target.trim()) {
            Ok(name) => Value::Symbolic(name),
            Err(_) => Value::Broken,
        };
    }
    let length = format.len_in_hex();
    match bytes.get(..length).map(ObjectId::from_hex) {
        Some(Ok(id)) if bytes.get(length).is_none_or(u8::is_ascii_whitespace) => Value::Object(id),
        _ => Value::Broken,
    }
}

/// What makes the name of a reference unusable as that of a file.
pub(super) enum Below {
    /// A reference whose name continues it.
    Reference(BString),
    /// No reference, but somebody's lock on one.
    Lock(PathBuf),
}

/// A reference below this name or, where there is none, a lock file.
pub(super) fn below(fs: &dyn Fs, path: &Path, name: &BStr) -> Result<Option<Below>, Error> {
    let unreadable = |error: std::io::Error| Error::Unreadable {
        name: name.to_owned(),
        message: error.to_string(),
    };
    if fs.kind(path).map_err(unreadable)? != Some(Kind::Folder) {
        return Ok(None);
    }
    let mut lock = None;
    let mut open = vec![(path.to_owned(), name.to_owned())];
    while let Some((path, name)) = open.pop() {
        let entries = match fs.read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(error)),
        };
        for entry in entries {
            let bytes = entry.as_encoded_bytes();
            let mut child = name.clone();
            child.push(b'/');
            child.extend_from_slice(bytes);
            let at = path.join(&entry);
            match fs.kind(&at).map_err(unreadable)? {
                Some(Kind::Folder) => open.push((at, child)),
                Some(_) if bytes.ends_with(b".lock") => lock = Some(at),
                Some(_) => return Ok(Some(Below::Reference(child))),
                None => {}
            }
        }
    }
    Ok(lock.map(Below::Lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_recognised() {
        let format = gix_hash::Kind::Sha1;
        let hex = "0123456789abcdef0123456789abcdef01234567";
        let id = ObjectId::from_hex(hex.as_bytes()).ok().map(Value::Object);
        for text in [hex.to_owned(), format!("{hex}\n"), format!("{hex} junk")] {
            assert_eq!(Some(parse(text.as_bytes(), format)), id);
        }
        assert!(matches!(
            parse(b"ref: refs/heads/x\n", format),
            Value::Symbolic(_)
        ));
        for text in [
            String::new(),
            "\0\0".to_owned(),
            format!("{hex}0"),
            hex[..39].to_owned(),
            "ref: ../x".to_owned(),
            "ref: ".to_owned(),
        ] {
            assert_eq!(parse(text.as_bytes(), format), Value::Broken, "{text}");
        }
    }
}
