//! Which key file opens a store.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString};

use super::settings::Settings;
use super::url::{PathError, expand};

/// A key file found in configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Absolute path.
    pub path: PathBuf,
    /// It came from `e2ee.key`. A clone stores it as the remote's own, so that later commands find it.
    pub general: bool,
}

/// Why no key file was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A configured remote without a key.
    #[error(
        "no key is configured for remote {0}; run: git config {setting} /path/to/key.json",
        setting = shell_word(&format!("remote.{}.e2ee-key", .0))
    )]
    MissingForRemote(BString),
    /// A URL without a key.
    #[error(
        "no key is configured; run: git config e2ee.key /path/to/key.json (or pass -c e2ee.key=… to git)"
    )]
    Missing,
    /// A setting that is no path.
    #[error("configuration {name}: {source}")]
    Path {
        /// The setting's full name.
        name: BString,
        /// What is wrong with it.
        source: PathError,
    },
}

/// Looks a key up: `remote.<name>.e2ee-key`, then `e2ee.key`. Relative paths start at `base`, the top of the work
/// tree.
pub fn find_key(settings: &Settings, remote: Option<&BStr>, base: &Path) -> Result<Key, KeyError> {
    if let Some(remote) = remote
        && let Some(value) = settings.string("remote", Some(remote), "e2ee-key")
    {
        let name = || format!("remote.{remote}.e2ee-key").into();
        let path = expand(value.as_ref(), base).map_err(|source| KeyError::Path { name: name(), source })?;
        return Ok(Key { path, general: false });
    }
    if let Some(value) = settings.string("e2ee", None, "key") {
        let name = || "e2ee.key".into();
        let path = expand(value.as_ref(), base).map_err(|source| KeyError::Path { name: name(), source })?;
        return Ok(Key { path, general: true });
    }
    Err(remote.map_or(KeyError::Missing, |remote| {
        KeyError::MissingForRemote(remote.to_owned())
    }))
}

/// A word as a POSIX shell takes it whole.
pub fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_remotes_own_key_comes_first() {
        let settings =
            Settings::from_text("[e2ee]\n\tkey = /general\n[remote \"a.b/c\"]\n\te2ee-key = keys/own\n");
        let base = Path::new("/top");
        let key = |remote: Option<&str>| find_key(&settings, remote.map(Into::into), base).unwrap();
        assert_eq!(
            key(Some("a.b/c")),
            Key {
                path: "/top/keys/own".into(),
                general: false
            }
        );
        assert_eq!(
            key(Some("other")),
            Key {
                path: "/general".into(),
                general: true
            }
        );
        assert_eq!(
            key(None),
            Key {
                path: "/general".into(),
                general: true
            }
        );
    }

    #[test]
    fn a_missing_key_names_the_command_to_run() {
        let settings = Settings::from_text("");
        let error = |remote: Option<&str>| {
            find_key(&settings, remote.map(Into::into), Path::new("/"))
                .unwrap_err()
                .to_string()
        };
        assert!(error(Some("origin")).ends_with("git config remote.origin.e2ee-key /path/to/key.json"));
        assert!(error(Some("my o'x")).contains(r"'remote.my o'\''x.e2ee-key'"));
        assert!(error(None).contains("git config e2ee.key"));
    }

    #[test]
    fn an_empty_setting_is_named() {
        let settings = Settings::from_text("[e2ee]\n\tkey =\n");
        let error = find_key(&settings, None, Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "configuration e2ee.key: the path is empty");
    }
}
