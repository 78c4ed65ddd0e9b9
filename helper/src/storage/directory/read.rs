//! Opening what others put into the folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Directory, Error, Kind};
use crate::protocol::ContentId;

impl Directory {
    /// The open file of a thing, and its path.
    pub(super) fn open_thing(&self, kind: Kind, id: &ContentId) -> Result<(File, PathBuf), Error> {
        let (folder, path) = self.place_of(kind, id);
        for above in [&self.folder_of(kind), &folder] {
            if !self.is_real_folder(above)? {
                return Err(self.absent(kind, id));
            }
        }
        match self.open_regular(&path)? {
            Some(file) => Ok((file, path)),
            None => Err(self.absent(kind, id)),
        }
    }

    /// A thing is missing: alone, or with everything else?
    fn absent(&self, kind: Kind, id: &ContentId) -> Error {
        match self.exists() {
            Ok(true) => Error::Absent {
                store: self.name.clone(),
                kind,
                id: *id,
            },
            Ok(false) => Error::NotInitialized {
                store: self.name.clone(),
            },
            Err(error) => error,
        }
    }

    /// Whether a folder is there, and is no link or anything else that hostile storage could put in its place.
    pub(super) fn is_real_folder(&self, path: &Path) -> Result<bool, Error> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.is_dir() => Ok(true),
            Ok(meta) if meta.is_symlink() => {
                Err(self.corrupt(path, "is a symbolic link, which a store does not hold"))
            }
            Ok(_) => Err(self.corrupt(path, "is not a folder")),
            Err(error) if is_nothing(&error) => Ok(false),
            Err(error) => Err(self.failed("examine", path, error)),
        }
    }

    /// A regular file, open for reading; `None` when nothing is there.
    pub(super) fn open_regular(&self, path: &Path) -> Result<Option<File>, Error> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.is_file() => {}
            Ok(meta) if meta.is_symlink() => {
                return Err(self.corrupt(path, "is a symbolic link, which a store does not hold"));
            }
            Ok(_) => return Err(self.corrupt(path, "is not a regular file")),
            Err(error) if is_nothing(&error) => return Ok(None),
            Err(error) => return Err(self.failed("examine", path, error)),
        }
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            // Somebody may have put something else there since the look above.
            use rustix::fs::OFlags;
            use std::os::unix::fs::OpenOptionsExt as _;
            options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32);
        }
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("read", path, error)),
        };
        let meta = file
            .metadata()
            .map_err(|error| self.failed("examine", path, error))?;
        if !meta.is_file() {
            return Err(self.corrupt(path, "is not a regular file"));
        }
        Ok(Some(file))
    }

    /// The whole content of a file that may have at most `limit` bytes, however it grows meanwhile.
    pub(super) fn read_bounded(&self, file: File, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
        let failed = |error| self.failed("read", path, error);
        let too_large = || self.corrupt(path, format!("is larger than {limit} bytes"));
        let size = file.metadata().map_err(failed)?.len();
        if size > limit {
            return Err(too_large());
        }
        // Not more than `limit`, and therefore small enough to be reserved.
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
        Ok(bytes)
    }
}

/// Nothing is at a path, be it that what should be the folder above is none.
pub(super) fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A path with every link in the part that exists resolved, as text that no two paths share.
pub(in crate::storage) fn canonical_text(path: &Path) -> String {
    let mut resolved = path.to_owned();
    for above in path.ancestors() {
        if let Ok(real) = above.canonicalize() {
            // An ancestor is a prefix by construction.
            resolved = match path.strip_prefix(above) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            };
            break;
        }
    }
    let mut text = String::new();
    for chunk in resolved.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::canonical_text;
    use std::path::Path;

    #[cfg(unix)]
    #[test]
    fn a_place_has_one_text_however_it_is_spelt() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().expect("temporary folder");
        let real = folder.path().join("real");
        std::fs::create_dir(&real).expect("folder");
        std::os::unix::fs::symlink(&real, folder.path().join("link")).expect("link");
        for rest in ["", "not/there/yet"] {
            let texts = ["real", "link", "./real/.", "real/../link"]
                .map(|name| canonical_text(&folder.path().join(name).join(rest)));
            assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        }
        let odd = |bytes: &[u8]| canonical_text(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_ne!(odd(b"/no-such-folder/\xff"), odd(b"/no-such-folder/%FF"));
    }
}
