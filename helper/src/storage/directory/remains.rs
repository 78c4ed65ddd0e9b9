//! What a folder without `HEAD` was.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::{Directory, Error, Kind, MANIFEST_LIMIT};
use crate::protocol::ContentId;

/// What is left in a folder that has no head.
pub(super) enum Remains {
    /// Nothing, or the first manifest of a beginning that was interrupted before its head was written: a place where a
    /// repository may be begun.
    Nothing,
    /// Part of a repository; the named thing proves it.
    Repository(String),
}

/// The readable part of a manifest, as far as it tells first manifests from others.
#[derive(Deserialize)]
struct Outer {
    #[serde(deserialize_with = "header")]
    header: Header,
}

#[derive(Deserialize)]
struct Header {
    generation: u64,
}

fn header<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Header, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(deserializer)?;
    let json = data_encoding::BASE64
        .decode(text.as_bytes())
        .map_err(D::Error::custom)?;
    serde_json::from_slice(&json).map_err(D::Error::custom)
}

impl Directory {
    pub(super) fn remains(&self) -> Result<Remains, Error> {
        for kind in [Kind::Pack, Kind::Manifest] {
            let folder = self.folder_of(kind);
            if !self.is_real_folder(&folder)? {
                continue;
            }
            for fan_out in self.names(&folder)? {
                let fan_out = folder.join(fan_out);
                if !self.is_real_folder(&fan_out)? {
                    continue;
                }
                for name in self.names(&fan_out)? {
                    let path = fan_out.join(&name);
                    if kind == Kind::Pack || !self.is_first_manifest(&path, &name)? {
                        let found = path.strip_prefix(&self.root).unwrap_or(&path);
                        return Ok(Remains::Repository(found.display().to_string()));
                    }
                }
            }
        }
        Ok(Remains::Nothing)
    }

    fn names(&self, folder: &Path) -> Result<Vec<String>, Error> {
        let list = || -> io::Result<Vec<String>> {
            std::fs::read_dir(folder)?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect()
        };
        list().map_err(|error| self.failed("list", folder, error))
    }

    fn is_first_manifest(&self, path: &Path, name: &str) -> Result<bool, Error> {
        let Some(file) = self.open_regular(path)? else {
            return Ok(false);
        };
        let bytes = match self.read_bounded(file, path, MANIFEST_LIMIT) {
            Err(Error::Corrupt { .. }) => return Ok(false),
            bytes => bytes?,
        };
        let named = name
            .parse()
            .is_ok_and(|id: ContentId| id == ContentId::of(&bytes));
        Ok(named && serde_json::from_slice(&bytes).is_ok_and(|outer: Outer| outer.header.generation == 0))
    }
}
