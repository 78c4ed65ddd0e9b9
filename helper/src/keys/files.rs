//! Opens key files and writes them back as they were found, asking for passphrases once.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ingot_engine::durable::Fs;
use ingot_engine::transport::Unanswered;
use zeroize::Zeroizing;

use super::age;
use super::{Keychain, Passphrase};
use crate::protocol::key_file::{self, Error};
use crate::protocol::{ContentId, DeviceKey};

/// How often a person may mistype.
const TRIES: u32 = 3;

/// Somebody who knows passphrases.
pub trait Ask: Send + Sync {
    /// Asks for a secret.
    fn secret(&self, prompt: &str) -> Result<Zeroizing<String>, Unanswered>;

    /// Says something in between.
    fn say(&self, text: &str);
}

/// Nobody.
#[derive(Debug, Clone, Copy)]
pub struct Never;

impl Ask for Never {
    fn secret(&self, _prompt: &str) -> Result<Zeroizing<String>, Unanswered> {
        Err(Unanswered::Nobody)
    }

    fn say(&self, _text: &str) {}
}

/// How the key is kept in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrapping {
    /// As JSON.
    Plain,
    /// In an age file.
    Passphrase {
        /// What opens it.
        passphrase: Passphrase,
        /// The logarithm of the work that a try costs.
        work_factor: u8,
    },
}

impl Wrapping {
    /// Protection by a passphrase, with the work factor for new files.
    pub fn with(passphrase: Passphrase) -> Wrapping {
        Wrapping::Passphrase {
            passphrase,
            work_factor: age::WORK_FACTOR,
        }
    }

    /// Whether a passphrase is needed.
    pub fn is_protected(&self) -> bool {
        matches!(self, Wrapping::Passphrase { .. })
    }

    /// The content of a key file.
    pub fn seal(&self, key: &DeviceKey) -> Result<Zeroizing<Vec<u8>>, age::Error> {
        match self {
            Wrapping::Plain => Ok(key.to_json()),
            Wrapping::Passphrase {
                passphrase,
                work_factor,
            } => age::seal(&key.to_json(), passphrase, *work_factor).map(Zeroizing::new),
        }
    }
}

/// A key, and how it is kept.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The key.
    pub key: DeviceKey,
    /// How the file keeps it.
    pub wrapping: Wrapping,
}

/// The key files of one run of a program. What was opened is remembered until the end of the run, so that nobody is asked
/// twice, and nothing is computed twice.
pub struct KeyFiles {
    ask: Box<dyn Ask>,
    keychain: Option<Box<dyn Keychain>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the content of the file.
    opened: Vec<(ContentId, Opened)>,
    passphrases: Vec<Passphrase>,
}

impl KeyFiles {
    /// Key files whose passphrases `ask` knows.
    pub fn new(ask: Box<dyn Ask>) -> KeyFiles {
        KeyFiles {
            ask,
            keychain: None,
            known: Mutex::default(),
        }
    }

    /// Key files of which none with a passphrase can be opened.
    pub fn silent() -> KeyFiles {
        KeyFiles::new(Box::new(Never))
    }

    /// Looks for passphrases in a keychain before anybody is asked.
    pub fn with_keychain(mut self, keychain: Option<Box<dyn Keychain>>) -> KeyFiles {
        self.keychain = keychain;
        self
    }

    /// The keychain, where there is one.
    pub fn keychain(&self) -> Option<&dyn Keychain> {
        self.keychain.as_deref()
    }

    /// Opens a private key file, unless others than its owner could read it.
    pub fn read(&self, path: &Path) -> Result<Opened, Error> {
        self.open(path, &key_file::load(path)?)
    }

    /// Opens what was read from `path`.
    pub fn open(&self, path: &Path, content: &[u8]) -> Result<Opened, Error> {
        if !age::is_age(content) {
            return Ok(Opened {
                key: key_file::parse(path, content)?,
                wrapping: Wrapping::Plain,
            });
        }
        let id = ContentId::of(content);
        if let Some(opened) = self.known(|known| {
            let found = known.opened.iter().find(|(known, _)| *known == id);
            found.map(|(_, opened)| opened.clone())
        }) {
            return Ok(opened);
        }
        let opened = self.unlock(path, content)?;
        self.remember(id, &opened);
        Ok(opened)
    }

    /// Writes a new key file.
    pub fn create(&self, path: &Path, key: &DeviceKey, wrapping: &Wrapping) -> Result<(), Error> {
        let content = self.seal(path, key, wrapping)?;
        key_file::create_content(path, &content)
    }

    /// Writes a key file in place of whatever has that name; see [`key_file::replace_content`].
    pub fn replace(
        &self,
        fs: &dyn Fs,
        path: &Path,
        key: &DeviceKey,
        wrapping: &Wrapping,
    ) -> Result<(), Error> {
        let content = self.seal(path, key, wrapping)?;
        key_file::replace_content(fs, path, &content)
    }

    /// Asks for a new passphrase, twice. `what` is it for, as the user reads it.
    pub fn new_passphrase(&self, path: &Path, what: &str) -> Result<Passphrase, Error> {
        for _ in 0..TRIES {
            let first = self.ask(path, &format!("New passphrase for {what}: "))?;
            if first.is_empty() {
                self.ask.say("an empty passphrase protects nothing");
                continue;
            }
            if self.ask(path, "The same once more: ")? == first {
                return Ok(first);
            }
            self.ask.say("the two differ");
        }
        Err(Error::NoPassphrase(path.to_owned()))
    }

    fn seal(&self, path: &Path, key: &DeviceKey, wrapping: &Wrapping) -> Result<Zeroizing<Vec<u8>>, Error> {
        let content = wrapping.seal(key).map_err(|source| Error::Age {
            path: path.to_owned(),
            source,
        })?;
        if wrapping.is_protected() {
            let opened = Opened {
                key: key.clone(),
                wrapping: wrapping.clone(),
            };
            self.remember(ContentId::of(&content), &opened);
        }
        Ok(content)
    }

    /// Tries what was right for other files, then what the keychain has, then asks.
    fn unlock(&self, path: &Path, content: &[u8]) -> Result<Opened, Error> {
        let failed = |source| Error::Age {
            path: path.to_owned(),
            source,
        };
        let file = age::File::parse(content).map_err(failed)?;
        let try_with = |passphrase: &Passphrase| -> Result<Option<Opened>, Error> {
            match file.open(passphrase) {
                Ok(json) => Ok(Some(Opened {
                    key: key_file::parse(path, &json)?,
                    wrapping: Wrapping::Passphrase {
                        passphrase: passphrase.clone(),
                        work_factor: file.work_factor(),
                    },
                })),
                Err(age::Error::WrongPassphrase) => Ok(None),
                Err(error) => Err(failed(error)),
            }
        };
        // Nobody is asked for what could not be used.
        if file.work_factor() > age::MAX_WORK_FACTOR {
            return Err(failed(age::Error::TooCostly(file.work_factor())));
        }
        for passphrase in self.known(|known| known.passphrases.clone()) {
            if let Some(opened) = try_with(&passphrase)? {
                return Ok(opened);
            }
        }
        if let Some(keychain) = &self.keychain {
            match keychain.get(path) {
                Ok(None) => {}
                Ok(Some(passphrase)) => match try_with(&passphrase)? {
                    Some(opened) => return Ok(opened),
                    None => self.ask.say(&format!(
                        "the keychain has another passphrase for {}; store the right one with: git-e2ee key keychain --store",
                        path.display()
                    )),
                },
                Err(error) => self.ask.say(&format!("the keychain cannot be read: {error}")),
            }
        }
        for left in (0..TRIES).rev() {
            let passphrase = self.ask(path, &format!("Passphrase for key file '{}': ", path.display()))?;
            if !passphrase.is_empty()
                && let Some(opened) = try_with(&passphrase)?
            {
                return Ok(opened);
            }
            if left > 0 {
                self.ask
                    .say(&format!("that passphrase does not open {}", path.display()));
            }
        }
        Err(Error::WrongPassphrase(path.to_owned()))
    }

    fn ask(&self, path: &Path, prompt: &str) -> Result<Passphrase, Error> {
        // A name may hold anything; a terminal should not obey it.
        let prompt: String = prompt
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        match self.ask.secret(&prompt) {
            Ok(text) => Ok(Passphrase::new(text)),
            Err(source) => Err(Error::Unanswered {
                path: path.to_owned(),
                source,
            }),
        }
    }

    fn remember(&self, id: ContentId, opened: &Opened) {
        self.known(|known| {
            if let Wrapping::Passphrase { passphrase, .. } = &opened.wrapping
                && !known.passphrases.contains(passphrase)
            {
                known.passphrases.push(passphrase.clone());
            }
            known.opened.push((id, opened.clone()));
        });
    }

    fn known<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
