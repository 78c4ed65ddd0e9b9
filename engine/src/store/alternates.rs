//! Which object folders a repository borrows from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Git follows alternates of alternates this far and ignores what lies deeper.
const DEPTH: usize = 6;
/// An alternates file is a handful of paths.
const LARGEST_FILE: u64 = 1024 * 1024;

/// What the alternates of an object folder come to.
#[derive(Debug, Default)]
pub(super) struct Alternates {
    /// The folders that exist, each once, in the order in which Git looks into them.
    pub(super) folders: Vec<PathBuf>,
    /// The folders that do not exist or lie too deep. Git warns of these and goes on.
    pub(super) ignored: Vec<PathBuf>,
}

/// Follows `info/alternates` from `objects`, depth first. A folder that was there already, as in a circle, is passed over.
/// `more` come first.
pub(super) fn resolve(objects: &Path, more: &[PathBuf]) -> io::Result<Alternates> {
    let mut found = Alternates::default();
    let mut seen = vec![identity(objects)];
    let mut waiting = Vec::new();
    push(objects, 0, &mut waiting)?;
    waiting.extend(more.iter().rev().map(|folder| (folder.clone(), 1)));
    while let Some((folder, depth)) = waiting.pop() {
        if depth > DEPTH || !folder.is_dir() {
            found.ignored.push(folder);
            continue;
        }
        let identity = identity(&folder);
        if seen.contains(&identity) {
            continue;
        }
        seen.push(identity);
        push(&folder, depth, &mut waiting)?;
        found.folders.push(folder);
    }
    Ok(found)
}

/// Puts what the alternates file of a folder names on the stack, the first on top.
fn push(folder: &Path, depth: usize, waiting: &mut Vec<(PathBuf, usize)>) -> io::Result<()> {
    let file = folder.join("info").join("alternates");
    let length = match fs::metadata(&file) {
        Ok(metadata) => metadata.len(),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if length > LARGEST_FILE {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("info/alternates has {length} bytes"),
        ));
    }
    let paths = gix_odb::alternate::parse(&fs::read(&file)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    // Relative paths start at the object folder that names them; joining an absolute one replaces it.
    waiting.extend(paths.into_iter().rev().map(|path| (folder.join(path), depth + 1)));
    Ok(())
}

/// What makes two spellings of a folder the same.
fn identity(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}
