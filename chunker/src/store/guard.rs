//! Keeps those who use chunks and those who remove them apart.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;

use ingot_engine::repository::Repository;

use crate::Error;
use crate::error::During as _;

fn open(repository: &Repository) -> Result<(File, PathBuf), Error> {
    let folder = repository.common_dir().join("chunk");
    std::fs::create_dir_all(&folder).during("create the folder", &folder)?;
    let path = folder.join("gc.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .during("open", &path)?;
    Ok((file, path))
}

/// As long as the file is open, nobody removes chunks: what was found to be here may be referred to.
pub fn use_chunks(repository: &Repository) -> Result<File, Error> {
    let (file, path) = open(repository)?;
    // Whoever removes chunks is done soon.
    file.lock_shared().during("lock", &path)?;
    Ok(file)
}

/// As long as the file is open, nobody relies on chunks that nothing refers to.
pub fn remove_chunks(repository: &Repository) -> Result<File, Error> {
    let (file, path) = open(repository)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy { path }),
        Err(TryLockError::Error(error)) => Err(error).during("lock", &path),
    }
}
