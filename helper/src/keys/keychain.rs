//! The keychain of the desktop: holds passphrases of key files for whoever is logged in.

use std::path::Path;

use super::Passphrase;

/// Why a keychain did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Holds one passphrase for each key file, by the absolute path of the file.
pub trait Keychain: Send + Sync {
    /// The passphrase of a key file.
    fn get(&self, key_file: &Path) -> Result<Option<Passphrase>, Error>;

    /// Stores one, in place of an earlier one.
    fn set(&self, key_file: &Path, passphrase: &Passphrase) -> Result<(), Error>;

    /// Forgets one. False: there was none.
    fn remove(&self, key_file: &Path) -> Result<bool, Error>;
}

/// That of the desktop; `None` in programs that are built without the feature `keychain`.
pub fn of_desktop() -> Option<Box<dyn Keychain>> {
    #[cfg(feature = "keychain")]
    return Some(Box::new(desktop::Desktop));
    #[cfg(not(feature = "keychain"))]
    None
}

/// Secret Service (GNOME, KDE and others, over D-Bus), Keychain of macOS, Credential Manager of Windows.
#[cfg(feature = "keychain")]
mod desktop {
    use std::path::Path;

    use keyring::Entry;
    use zeroize::Zeroizing;

    use super::{Error, Keychain, Passphrase};

    /// The name under which people find the entries.
    const SERVICE: &str = "ingot key file";

    pub(super) struct Desktop;

    impl Keychain for Desktop {
        fn get(&self, key_file: &Path) -> Result<Option<Passphrase>, Error> {
            match entry(key_file)?.get_password() {
                Ok(text) => Ok(Some(Passphrase::new(Zeroizing::new(text)))),
                Err(keyring::Error::NoEntry) => Ok(None),
                Err(error) => Err(refused(&error)),
            }
        }

        fn set(&self, key_file: &Path, passphrase: &Passphrase) -> Result<(), Error> {
            let stored = entry(key_file)?.set_password(passphrase.expose());
            stored.map_err(|error| refused(&error))
        }

        fn remove(&self, key_file: &Path) -> Result<bool, Error> {
            match entry(key_file)?.delete_credential() {
                Ok(()) => Ok(true),
                Err(keyring::Error::NoEntry) => Ok(false),
                Err(error) => Err(refused(&error)),
            }
        }
    }

    fn entry(key_file: &Path) -> Result<Entry, Error> {
        if let Err(error) = Entry::store_status() {
            return Err(refused(error));
        }
        // The same file by another name is the same file.
        let path = std::fs::canonicalize(key_file).unwrap_or_else(|_| key_file.to_owned());
        let name = path
            .to_str()
            .ok_or_else(|| Error("the path of the key file is not UTF-8".into()))?;
        Entry::new(SERVICE, name).map_err(|error| refused(&error))
    }

    /// Some errors carry what was stored, so only their text is kept; it has no secrets.
    fn refused(error: &keyring::Error) -> Error {
        Error(match error {
            keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) => {
                "what it holds is no passphrase".to_owned()
            }
            other => other.to_string(),
        })
    }
}
