//! What is in the work tree.

use std::ffi::OsString;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice as _};
use gix::index::fs::Metadata;
use rayon::prelude::*;

use crate::error::During as _;
use crate::{Error, paths};

/// A file or symbolic link, or a folder that is another repository.
pub struct Found {
    /// Relative to the top, with slashes.
    pub path: BString,
    /// What the file system says about it.
    pub meta: Metadata,
    /// True for the folder of another repository, which is not entered.
    pub repository: bool,
}

/// All files below `folder`, which is `prefix` relative to the top (empty, or with a slash at its end), in the order of
/// the index. Ignored files are among them; `.git` is not. Folders are read on all cores.
pub fn scan(top: &Path, prefix: &BStr) -> Result<Vec<Found>, Error> {
    let folder = match prefix.is_empty() {
        true => top.to_owned(),
        false => paths::below(top, prefix),
    };
    folder_of(&folder, prefix)
}

fn folder_of(folder: &Path, prefix: &BStr) -> Result<Vec<Found>, Error> {
    let mut names: Vec<(BString, OsString, bool)> = Vec::new();
    for entry in std::fs::read_dir(folder).during("read the folder", folder)? {
        let entry = entry.during("read the folder", folder)?;
        let name = entry.file_name();
        if name.eq_ignore_ascii_case(".git") {
            continue;
        }
        let is_folder = entry.file_type().during("examine", &entry.path())?.is_dir();
        let mut key = prefix.to_owned();
        key.extend_from_slice(&paths::git(Path::new(&name)));
        if is_folder {
            key.push(b'/');
        }
        names.push((key, name, is_folder));
    }
    names.sort_unstable();
    let found: Vec<Result<Vec<Found>, Error>> = names
        .into_par_iter()
        .with_min_len(32)
        .map(|(path, name, is_folder)| one(&folder.join(name), path, is_folder))
        .collect();
    let mut all = Vec::new();
    for part in found {
        all.extend(part?);
    }
    Ok(all)
}

fn one(at: &Path, mut path: BString, is_folder: bool) -> Result<Vec<Found>, Error> {
    if is_folder {
        if at.join(".git").symlink_metadata().is_ok() {
            path.pop();
            let meta = Metadata::from_path_no_follow(at).during("examine", at)?;
            return Ok(vec![Found {
                path,
                meta,
                repository: true,
            }]);
        }
        return folder_of(at, path.as_bstr());
    }
    match Metadata::from_path_no_follow(at) {
        Ok(meta) if meta.is_file() || meta.is_symlink() => Ok(vec![Found {
            path,
            meta,
            repository: false,
        }]),
        // Sockets and the like are nothing for Git.
        Ok(_) => Ok(Vec::new()),
        // Gone since the folder was read.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).during("examine", at),
    }
}
