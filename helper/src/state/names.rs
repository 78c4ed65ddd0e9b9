//! What a person calls the devices of a repository. Local: nothing of it is stored remotely, and nothing depends on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingot_engine::durable::Fs;
use serde::{Deserialize, Serialize};

use super::file::{self, Error};
use crate::protocol::DeviceId;

/// Version of the file.
const FORMAT: u64 = 1;
/// The longest name in characters.
const LONGEST: usize = 64;

/// Why a name is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing, or too much.
    #[error("a device name has 1 to {LONGEST} characters, this one has {0}")]
    Length(usize),
    /// Something that a terminal obeys, or a blank at an end.
    #[error("a device name has no control characters, and no blanks at its ends")]
    Characters,
    /// It could be taken for an id.
    #[error("a device name must not look like a device id")]
    LooksLikeId,
}

/// Names of devices, in a file beside the key file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceNames {
    names: BTreeMap<DeviceId, String>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    format_version: u64,
    devices: BTreeMap<DeviceId, String>,
}

impl DeviceNames {
    /// Where the names that go with a key file are.
    pub fn path_for(key_file: &Path) -> PathBuf {
        file::with_suffix(key_file, ".devices.json")
    }

    /// The names that go with a key file; none where there is no file.
    pub fn load(key_file: &Path) -> Result<DeviceNames, Error> {
        let path = Self::path_for(key_file);
        let Some(text) = file::read_if_there(&path)? else {
            return Ok(DeviceNames::default());
        };
        match serde_json::from_slice::<Written>(&text) {
            Ok(written) if written.format_version == FORMAT => {
                // Edited by hand, perhaps; what is no name is not shown.
                let names = written
                    .devices
                    .into_iter()
                    .filter(|(_, name)| check(name).is_ok());
                Ok(DeviceNames {
                    names: names.collect(),
                })
            }
            Ok(written) => Err(Error::Names {
                path,
                reason: format!("its format is {}, expected {FORMAT}", written.format_version),
            }),
            Err(error) => Err(Error::Names {
                path,
                reason: error.to_string(),
            }),
        }
    }

    /// Writes the names down.
    pub fn save(&self, fs: &dyn Fs, key_file: &Path) -> Result<(), Error> {
        let written = Written {
            format_version: FORMAT,
            devices: self.names.clone(),
        };
        let text = serde_json::to_vec_pretty(&written).expect("maps with text keys always serialise");
        file::write(fs, &Self::path_for(key_file), &text)
    }

    /// The name of a device.
    pub fn get(&self, id: &DeviceId) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// Names a device.
    pub fn set(&mut self, id: DeviceId, name: &str) -> Result<(), InvalidName> {
        check(name)?;
        self.names.insert(id, name.to_owned());
        Ok(())
    }

    /// Gives the name of one device to another that took its place.
    pub fn hand_over(&mut self, old: &DeviceId, new: DeviceId) -> bool {
        match self.names.remove(old) {
            Some(name) => self.names.insert(new, name).is_none(),
            None => false,
        }
    }

    /// The devices of that name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a DeviceId> {
        self.names
            .iter()
            .filter(move |(_, known)| *known == name)
            .map(|(id, _)| id)
    }
}

/// Whether this can be the name of a device.
pub fn check(name: &str) -> Result<(), InvalidName> {
    let length = name.chars().count();
    if length == 0 || length > LONGEST {
        return Err(InvalidName::Length(length));
    }
    if name.chars().any(char::is_control) || name.trim() != name {
        return Err(InvalidName::Characters);
    }
    if length >= 6 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(InvalidName::LooksLikeId);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> DeviceId {
        DeviceId::from_bytes([n; 32])
    }

    #[test]
    fn names_are_kept_beside_the_key() {
        let folder = tempfile::tempdir().expect("folder");
        let key = folder.path().join("a.key.json");
        let fs = ingot_engine::durable::Real;
        let mut names = DeviceNames::load(&key).expect("none yet");
        assert_eq!(names, DeviceNames::default());
        names.set(id(1), "laptop").expect("a name");
        names.set(id(2), "Büro, Rechner 2").expect("a name");
        names.save(&fs, &key).expect("written");
        let mut again = DeviceNames::load(&key).expect("readable");
        assert_eq!(again, names);
        assert_eq!(again.named("laptop").collect::<Vec<_>>(), [&id(1)]);
        assert!(again.hand_over(&id(1), id(3)) && !again.hand_over(&id(1), id(4)));
        assert_eq!((again.get(&id(1)), again.get(&id(3))), (None, Some("laptop")));
        for damaged in ["", "{}", "{\"format_version\":2,\"devices\":{}}", "[]"] {
            std::fs::write(DeviceNames::path_for(&key), damaged).expect("written");
            let error = DeviceNames::load(&key).expect_err(damaged).to_string();
            assert!(error.contains("a.key.json.devices.json"), "{error}");
        }
    }

    #[test]
    fn what_is_no_name() {
        for bad in [
            "",
            " x",
            "x ",
            "a\u{1b}[2J",
            "a\nb",
            "abcdef",
            &"00".repeat(32),
            &"x".repeat(65),
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        for good in ["x", "laptop", "a b", "abc", &"x".repeat(64)] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
    }
}
