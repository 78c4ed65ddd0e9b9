//! A folder for what nobody may see yet.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::durable::{self, Context as _, Fs};

/// An object folder inside the repository's, removed when it is dropped.
///
/// It is named as Git names its own, so that `git prune` and `git gc` remove one that a crash left behind. The
/// repository is its alternate, so that a store opened on it sees both.
pub(super) struct Quarantine {
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl Quarantine {
    pub(super) fn create(fs: Arc<dyn Fs>, objects: &Path) -> Result<Quarantine, durable::Error> {
        let mut attempts = 0;
        let path = loop {
            let path = objects.join(format!("tmp_objdir-incoming-{}", durable::unique()));
            match fs.create_dir(&path, 0o700) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 16 => attempts += 1,
                Err(error) => return Err(durable::Error::new("create folder", path, error)),
            }
        };
        let quarantine = Quarantine { fs, path };
        for folder in [quarantine.packs(), quarantine.path.join("info")] {
            quarantine
                .fs
                .create_dir(&folder, 0o777)
                .during("create folder", &folder)?;
        }
        let alternates = quarantine.path.join("info").join("alternates");
        let mut file = quarantine
            .fs
            .create_new(&alternates, 0o444)
            .during("create", &alternates)?;
        // Relative paths start at the folder that has the file's folder.
        io::Write::write_all(&mut file, b"..\n").during("write", &alternates)?;
        Ok(quarantine)
    }

    /// The folder, which has the layout of an object folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where packs belong in it.
    pub(super) fn packs(&self) -> PathBuf {
        self.path.join("pack")
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        // There is nobody to tell, and Git tidies up in the end.
        let _ = remove(&*self.fs, &self.path);
    }
}

/// Removes a folder with what is in it, as far as that is possible.
fn remove(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    for name in fs.read_dir(path)? {
        let inner = path.join(name);
        let _ = match fs.kind(&inner)? {
            Some(durable::Kind::Folder) => remove(fs, &inner),
            Some(_) => fs.unlink(&inner),
            None => Ok(()),
        };
    }
    fs.remove_dir(path)
}
