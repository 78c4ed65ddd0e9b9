//! git-remote-gcrypt as a peer: a throw-away GnuPG home with one key without a passphrase.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::measure::{self, Error};

/// A GnuPG home that goes away with the last of its owners, and so does its agent.
#[derive(Debug, Clone)]
pub struct Keyring(Arc<Home>);

#[derive(Debug)]
struct Home(TempDir);

impl Keyring {
    /// Makes a key. `None` when git-remote-gcrypt or gpg is not installed.
    pub fn new() -> Result<Option<Keyring>, Error> {
        let installed = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        };
        if !installed("git-remote-gcrypt") || !installed("gpg") {
            return Ok(None);
        }
        // In /tmp, as the path of the agent's socket must be short.
        let home = tempfile::Builder::new().prefix("ingot-gpg").tempdir_in("/tmp");
        let home = home.map_err(|source| Error::Start {
            program: "a temporary folder".into(),
            source,
        })?;
        let keyring = Keyring(Arc::new(Home(home)));
        measure::run(
            Command::new("gpg")
                .env("GNUPGHOME", keyring.home())
                .args([
                    "--batch",
                    "--quiet",
                    "--pinentry-mode",
                    "loopback",
                    "--passphrase",
                    "",
                ])
                .args([
                    "--quick-gen-key",
                    "Alice <alice@example.org>",
                    "default",
                    "default",
                    "never",
                ]),
        )?;
        Ok(Some(keyring))
    }

    /// For `GNUPGHOME`.
    pub fn home(&self) -> &Path {
        self.0.0.path()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let mut stop = Command::new("gpgconf");
        stop.env("GNUPGHOME", self.0.path()).args(["--kill", "all"]);
        // Without an agent there is nothing to stop.
        measure::run(&mut stop).ok();
    }
}
