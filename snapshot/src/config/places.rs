//! Where rivet keeps its own files.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::Error;

/// The folders of this user, by the XDG rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The home folder.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME/rivet/config.toml`
    pub config: PathBuf,
    /// The repository of snapshots, `$XDG_DATA_HOME/rivet/snapshots.git`
    pub repository: PathBuf,
    /// What restoring put aside, `$XDG_STATE_HOME/rivet/undo`
    pub undo: PathBuf,
    /// Device keys of encrypted stores, which the other tools share: `$XDG_CONFIG_HOME/ingot/keys`
    pub keys: PathBuf,
}

impl Places {
    /// The folders of the user who runs this.
    pub fn of_user() -> Result<Places, Error> {
        let base = etcetera::choose_base_strategy().map_err(|_| Error::NoHome)?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Places {
            home: base.home_dir().to_owned(),
            config: base.config_dir().join("rivet").join("config.toml"),
            repository: base.data_dir().join("rivet").join("snapshots.git"),
            undo: state.join("rivet").join("undo"),
            keys: base.config_dir().join("ingot").join("keys"),
        })
    }
}

/// The home folder alone.
pub fn home() -> Result<PathBuf, Error> {
    etcetera::home_dir().map_err(|_| Error::NoHome)
}

/// The name of this machine, fit for a branch.
pub fn machine_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let short = name.split('.').next().unwrap_or_default();
    ingot_helper::config::safe_name(if short.is_empty() { "machine" } else { short })
}

/// Whether text can be the name of a machine, which is a part of a branch name.
pub fn is_machine_name(name: &str) -> bool {
    ingot_helper::config::safe_name(name) == name
        && ingot_engine::refs::validate(format!("refs/heads/{name}").as_str()).is_ok()
        && !name.contains("..")
}

/// A path for messages, with the home folder as `~`.
pub fn short(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}
