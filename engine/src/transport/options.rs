//! What configuration and environment say about reaching a remote.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
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
    environment: Arc<Environment>,
    folder: Option<PathBuf>,
    version: Version,
    agent: String,
}

/// The variables that say how remotes are reached: `GIT_SSH_COMMAND`, `GIT_ASKPASS`, `https_proxy` and so on. Programs
/// are started with those of the process, whatever is in here.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Those of the process.
    pub fn of_process() -> Environment {
        std::env::vars_os().collect()
    }

    /// A value, which may be empty.
    pub(super) fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A value; unset and empty are the same.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// Likewise, of those that are text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.variable(name)?.to_str()
    }

    /// A truth value.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.raw(name)?;
        Some(super::per_url::boolean(value.as_encoded_bytes()).unwrap_or(true))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(variables: T) -> Environment {
        Environment(variables.into_iter().collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secret.
        f.debug_set().entries(self.0.keys()).finish()
    }
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
        Options::read_with(config, address, Environment::of_process())
    }

    /// The same with other variables than those of the process.
    pub fn read_with(
        config: &Config<'_>,
        address: &Address,
        environment: Environment,
    ) -> Result<Options, Error> {
        allowed(config, &environment, address)?;
        let version = match config.string("protocol.version") {
            None => Version::V2,
            Some(text) => match text.as_slice() {
                b"0" => Version::V0,
                b"1" => Version::V1,
                b"2" => Version::V2,
                _ => return Err(setting("protocol.version", "it is none of 0, 1 and 2")),
            },
        };
        let agent = environment
            .text("GIT_USER_AGENT")
            .unwrap_or(concat!("ingot/", env!("CARGO_PKG_VERSION")));
        Ok(Options {
            settings: Arc::new(config.to_settings()),
            folder: None,
            version,
            agent: agent
                .chars()
                .map(|c| if c.is_ascii_graphic() { c } else { '.' })
                .collect(),
            environment: Arc::new(environment),
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

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
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

pub(super) fn setting(name: &str, message: impl Into<String>) -> Error {
    Error::Setting {
        name: name.to_owned(),
        message: message.into(),
    }
}

/// `GIT_ALLOW_PROTOCOL` outranks `protocol.<name>.allow`, which outranks `protocol.allow`. What is allowed to the user
/// alone is refused where `GIT_PROTOCOL_FROM_USER` says that the address came from elsewhere.
fn allowed(config: &Config<'_>, environment: &Environment, address: &Address) -> Result<(), Error> {
    let protocol = address.scheme().name();
    let allowed = match environment.text("GIT_ALLOW_PROTOCOL") {
        Some(list) => list.split(':').any(|name| name == protocol),
        None => {
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
                b"user" => environment.flag("GIT_PROTOCOL_FROM_USER").unwrap_or(true),
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
