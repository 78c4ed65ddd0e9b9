//! What configuration and environment say about reaching a remote.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;

use super::per_url::{PerUrl, Place};
use super::{Address, Error, Scheme};
use crate::repository::{Config, Settings};

/// What configuration and environment say about reaching a remote.
#[derive(Clone)]
pub struct Options {
    /// All of it: a redirection may lead to a place that other values apply to.
    settings: Arc<Settings>,
    folder: Option<PathBuf>,
    version: Version,
    agent: String,
}

/// A version of the fetch protocol (gitprotocol-v2(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// All references are told first.
    V0,
    /// The same, with a line in front that says so.
    V1,
    /// Commands.
    V2,
}

impl Version {
    /// What a server is told of it.
    pub(super) fn parameter(self) -> Option<&'static str> {
        match self {
            Version::V0 => None,
            Version::V1 => Some("version=1"),
            Version::V2 => Some("version=2"),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("folder", &self.folder)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Reads `protocol.*` and keeps the rest of the configuration: `http.*`, `credential.*`, `core.sshCommand`,
    /// `ssh.variant` and `core.askPass` are looked up when a connection needs them, and so are Git's variables.
    ///
    /// Fails when configuration forbids the protocol of `address`.
    pub fn read(config: &Config<'_>, address: &Address) -> Result<Options, Error> {
        allowed(config, address)?;
        let version = match config.string("protocol.version") {
            None => Version::V2,
            Some(text) => match text.as_slice() {
                b"0" => Version::V0,
                b"1" => Version::V1,
                b"2" => Version::V2,
                _ => return Err(setting("protocol.version", "it is none of 0, 1 and 2")),
            },
        };
        let agent = std::env::var("GIT_USER_AGENT")
            .ok()
            .filter(|agent| !agent.is_empty())
            .unwrap_or_else(|| concat!("ingot/", env!("CARGO_PKG_VERSION")).to_owned());
        Ok(Options {
            settings: Arc::new(config.to_settings()),
            folder: None,
            version,
            agent: agent
                .chars()
                .map(|c| if c.is_ascii_graphic() { c } else { '.' })
                .collect(),
        })
    }

    /// The folder in which programs are started and that relative paths of the configuration begin at: the top of the
    /// work tree, or the bare repository. The current folder if it is not given.
    pub fn folder(mut self, folder: PathBuf) -> Options {
        self.folder = Some(folder);
        self
    }

    pub(super) fn config(&self) -> Config<'_> {
        self.settings.config()
    }

    pub(super) fn working_folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Who asks, in a form that every protocol takes.
    pub(super) fn agent(&self) -> &str {
        &self.agent
    }

    /// A path of the configuration or environment, from the root or the working folder.
    pub(super) fn resolve(&self, path: PathBuf) -> PathBuf {
        match &self.folder {
            Some(folder) => folder.join(path),
            None => path,
        }
    }
}

/// Reads the values of `section` that apply to `place`.
pub(super) fn per_url<'a>(
    config: &'a Config<'a>,
    section: &'static str,
    place: &'a Place,
    partial: bool,
) -> PerUrl<'a> {
    PerUrl {
        config,
        section,
        place,
        partial,
    }
}

/// A variable; unset and empty are the same.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable that holds a truth value.
pub(super) fn flag(name: &str) -> Option<bool> {
    let value = std::env::var_os(name)?;
    Some(super::per_url::boolean(value.as_encoded_bytes()).unwrap_or(true))
}

pub(super) fn setting(name: &str, message: impl Into<String>) -> Error {
    Error::Setting {
        name: name.to_owned(),
        message: message.into(),
    }
}

/// `GIT_ALLOW_PROTOCOL` outranks `protocol.<name>.allow`, which outranks `protocol.allow`. What is allowed to the user
/// alone is refused where `GIT_PROTOCOL_FROM_USER` says that the address came from elsewhere.
fn allowed(config: &Config<'_>, address: &Address) -> Result<(), Error> {
    let protocol = address.scheme().name();
    let allowed = match std::env::var("GIT_ALLOW_PROTOCOL") {
        Ok(list) => list.split(':').any(|name| name == protocol),
        Err(_) => {
            let name = format!("protocol.{protocol}.allow");
            let policy = config
                .string(&name)
                .or_else(|| config.string("protocol.allow"))
                .unwrap_or_else(|| match address.scheme() {
                    Scheme::Local => BString::from("user"),
                    _ => BString::from("always"),
                });
            match policy.to_ascii_lowercase().as_slice() {
                b"always" => true,
                b"never" => false,
                b"user" => flag("GIT_PROTOCOL_FROM_USER").unwrap_or(true),
                _ => return Err(setting(&name, "it is none of always, never and user")),
            }
        }
    };
    match allowed {
        true => Ok(()),
        false => Err(Error::NotAllowed {
            remote: address.to_string(),
            protocol,
        }),
    }
}
