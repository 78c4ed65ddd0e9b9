//! `key change-passphrase` and `key keychain`.

use std::path::Path;

use ingot_engine::durable;
use serde_json::json;

use super::args::{ChangePassphrase, Keychain as Args};
use super::{names, path_of};
use crate::cli::app::App;
use crate::cli::exit::{Failure, warn};
use crate::cli::place;
use crate::cli::report::Report;
use crate::keys::{Wrapping, age};
use crate::remote::{self, next_key_file};
use crate::state::AdminPin;

/// Adds a passphrase, changes or removes it.
pub(super) fn change(app: &App, args: &ChangePassphrase) -> Result<Report, Failure> {
    let path = path_of(app, &args.key)?;
    // Asked for first: nobody should hold a lock while a person thinks.
    let before = app.keys.read(&path)?;
    let wrapping = match (args.remove, &before.wrapping) {
        (true, Wrapping::Plain) => {
            let message = format!("key file {} has no passphrase", path.display());
            return Err(Failure::failed(message).next("there is nothing to remove"));
        }
        (true, _) => Wrapping::Plain,
        (false, old) => Wrapping::Passphrase {
            passphrase: app
                .keys
                .new_passphrase(&path, &format!("key file '{}'", path.display()))?,
            work_factor: match old {
                Wrapping::Plain => age::WORK_FACTOR,
                Wrapping::Passphrase { work_factor, .. } => age::WORK_FACTOR.max(*work_factor),
            },
        },
    };
    // The lock that a rotation holds, which replaces the file as well.
    let lock =
        AdminPin::open(durable::real(), &path, place::patience(&app.display)).map_err(remote::Error::from)?;
    let waiting = next_key_file(&path);
    if waiting.exists() {
        let message = format!(
            "a rotation of the key was interrupted: {} waits",
            waiting.display()
        );
        return Err(
            Failure::failed(message).next("finish it first, with git-e2ee fetch or git-e2ee device-rotate")
        );
    }
    // Another process may have replaced the key meanwhile; whatever is there now is what gets the passphrase.
    let key = app.keys.read(&path)?.key;
    // A link to the key file stays a link.
    let file = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    app.keys.replace(&durable::Real, &file, &key, &wrapping)?;
    drop(lock);
    tell_keychain(app, &path, &wrapping);
    let done = match (before.wrapping.is_protected(), wrapping.is_protected()) {
        (false, _) => "a passphrase now protects",
        (true, true) => "the passphrase was changed of",
        (true, false) => "no passphrase protects any more",
    };
    let mut json = names(&key);
    json["command"] = "key change-passphrase".into();
    json["key"] = path.display().to_string().into();
    json["protected"] = wrapping.is_protected().into();
    let mut text = format!("{done} {}\n", path.display());
    if wrapping.is_protected() {
        text +=
            "Without the passphrase the file is worth nothing: keep a copy on paper (git-e2ee key backup)\n";
    }
    Ok(Report::done(text, json))
}

/// A passphrase that the keychain holds changes with the file's.
fn tell_keychain(app: &App, path: &Path, wrapping: &Wrapping) {
    let Some(keychain) = app.keys.keychain() else {
        return;
    };
    let told = match (keychain.get(path), wrapping) {
        (Ok(None) | Err(_), _) => return,
        (Ok(Some(_)), Wrapping::Plain) => keychain.remove(path).map(drop),
        (Ok(Some(_)), Wrapping::Passphrase { passphrase, .. }) => keychain.set(path, passphrase),
    };
    if let Err(error) = told {
        warn(&format!("the keychain still has the old passphrase: {error}"));
    }
}

/// Stores the passphrase in the keychain, or forgets it.
pub(super) fn keychain(app: &App, args: &Args) -> Result<Report, Failure> {
    let path = path_of(app, &args.key)?;
    let Some(keychain) = app.keys.keychain() else {
        return Err(
            Failure::failed("this program was built without support for keychains")
                .next("build it with: cargo install --path helper --features keychain"),
        );
    };
    let failed = |error| Failure::failed(format!("the keychain refuses: {error}"));
    let json = |stored: bool| {
        json!({
            "command": "key keychain",
            "key": path.display().to_string(),
            "stored": stored,
        })
    };
    if args.remove {
        let text = match keychain.remove(&path).map_err(failed)? {
            true => format!(
                "the keychain has forgotten the passphrase of {}\n",
                path.display()
            ),
            false => format!("the keychain has no passphrase of {}\n", path.display()),
        };
        return Ok(Report::done(text, json(false)));
    }
    match app.keys.read(&path)?.wrapping {
        Wrapping::Plain => {
            let message = format!("key file {} has no passphrase to store", path.display());
            Err(Failure::failed(message).next("add one with: git-e2ee key change-passphrase"))
        }
        Wrapping::Passphrase { passphrase, .. } => {
            keychain.set(&path, &passphrase).map_err(failed)?;
            let text = format!("the keychain holds the passphrase of {}\n", path.display());
            Ok(Report::done(text, json(true)))
        }
    }
}
