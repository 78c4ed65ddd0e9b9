//! What crashed writers left in the staging folder.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ingot_engine::durable;

use super::{Directory, Error};

/// A file that a writer began and did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Time since the last write to it.
    pub age: Duration,
}

impl Directory {
    /// Files in the staging folder that nobody has written to for `age`. A writer that is at work writes all the time, or
    /// is waiting for its next bytes; give that more time than any push takes.
    pub fn stale(&self, age: Duration) -> Result<Vec<Stale>, Error> {
        let folder = self.root.join(".staging");
        if !self.is_real_folder(&folder)? {
            return Ok(Vec::new());
        }
        let failed = |error| self.failed("list", &folder, error);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // Anything else in there is not ours to judge. Of a file that is gone already nothing is left to say.
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() || !name.to_string_lossy().starts_with(".stage-") {
                continue;
            }
            let written = meta.modified().map_err(failed)?;
            let since = SystemTime::now().duration_since(written).unwrap_or_default();
            if since >= age {
                found.push(Stale {
                    path: entry.path(),
                    bytes: meta.len(),
                    age: since,
                });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Removes such a file. That it is gone already is no error.
    pub fn remove_stale(&self, stale: &Stale) -> Result<(), Error> {
        match self.fs.unlink(&stale.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.unwritten(durable::Error::new("remove", &stale.path, error)))
            }
            _ => Ok(()),
        }
    }
}
