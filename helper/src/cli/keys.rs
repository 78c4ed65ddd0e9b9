//! `keygen`, `device-export` and `init`: what a store needs before anything is pushed.

use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use serde_json::json;

use super::app::{App, bytes};
use super::args::{CarrierInit, DeviceExport, Init, Keygen};
use super::exit::Failure;
use super::place;
use super::report::Report;
use crate::config::StorageUrl;
use crate::keys::Wrapping;
use crate::protocol::{DeviceKey, RepositoryRoot, key_file};
use crate::remote;

/// Makes a device key.
pub fn keygen(app: &App, args: &Keygen) -> Result<Report, Failure> {
    let root = match &args.repository_root {
        None => None,
        Some(text) => Some(
            text.parse::<RepositoryRoot>()
                .map_err(|error| Failure::usage(format!("--repository-root: {error}")))?,
        ),
    };
    let path = absolute(&args.output)?;
    app.refuse_tracked(&path)?;
    if std::fs::symlink_metadata(&path).is_ok() {
        return Err(key_file::Error::Exists(path).into());
    }
    let wrapping = match args.passphrase {
        true => Wrapping::with(app.keys.new_passphrase(&path, "the new key file")?),
        false => Wrapping::Plain,
    };
    let key = DeviceKey::generate(root).map_err(|error| Failure::of(&error))?;
    app.keys.create(&path, &key, &wrapping)?;
    let text = format!(
        "created {} for repository root {}{}\n",
        args.output.display(),
        key.root(),
        if args.passphrase {
            ", protected by a passphrase"
        } else {
            ""
        }
    );
    let json = json!({
        "command": "keygen",
        "key": path.display().to_string(),
        "repository_root": key.root().to_string(),
        "device_id": key.id().to_string(),
        "protected": args.passphrase,
    });
    Ok(Report::done(text, json))
}

/// Writes the public part of a device key.
pub fn device_export(app: &App, args: &DeviceExport) -> Result<Report, Failure> {
    let source = absolute(&args.key)?;
    app.refuse_tracked(&source)?;
    let key = app.keys.read(&source)?.key;
    let path = absolute(&args.output)?;
    key_file::create_public(&path, key.public())?;
    let json = json!({
        "command": "device-export",
        "device": path.display().to_string(),
        "device_id": key.id().to_string(),
        "repository_root": key.root().to_string(),
    });
    Ok(Report::done(
        format!("exported {} to {}\n", key.id(), args.output.display()),
        json,
    ))
}

/// Makes an empty store.
pub fn init(app: &App, args: &Init) -> Result<Report, Failure> {
    let folder = absolute(&args.storage)?;
    let key = absolute(&args.key)?;
    app.refuse_tracked(&key)?;
    app.keys.read(&key)?;
    refuse_foreign(&folder)?;
    found(app, "init", &StorageUrl::Directory(folder), &key)
}

/// Begins a store on a branch of a Git repository.
pub fn carrier_init(app: &App, args: &CarrierInit) -> Result<Report, Failure> {
    let text = bytes(&args.remote)?;
    let location = text.strip_prefix(b"e2ee::").unwrap_or(&text);
    let location = location.strip_prefix(b"git+").unwrap_or(location).as_bstr();
    let url = StorageUrl::carrier(location, &place::current_folder()?)?;
    found(app, "carrier-init", &url, &absolute(&args.key)?)
}

fn found(app: &App, command: &str, url: &StorageUrl, key_path: &Path) -> Result<Report, Failure> {
    app.refuse_tracked(key_path)?;
    let key = app.keys.read(key_path)?.key;
    let repository = app.repository(None)?;
    let base = place::base_of(repository.as_ref())?;
    let storage = place::storage(url, repository.as_ref(), &base)?;
    let patience = place::patience(&app.display);
    let founded = remote::init(&*storage, &key, key_path, ingot_engine::durable::real(), patience)?;
    let json = json!({
        "command": command,
        "url": url.to_string(),
        "head": founded.manifest.to_string(),
        "repository_root": key.root().to_string(),
    });
    Ok(Report::data(format!("{}\n", founded.manifest), json))
}

/// Refuses a folder with anything in it that no store would have put there: it is somebody's, and the path probably
/// mistyped. What an interrupted beginning left is no obstacle, and a proper store gets its own message.
fn refuse_foreign(folder: &Path) -> Result<(), Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Failure::failed(format!(
                "cannot look into {}: {error}",
                folder.display()
            )));
        }
    };
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let own = [
            "HEAD",
            "HEAD.lock",
            "manifests",
            "objects",
            ".staging",
            "lost+found",
        ]
        .contains(&&*name);
        if !own && !name.starts_with(".HEAD-") {
            let message = format!("{} is not empty: it holds {name}", folder.display());
            return Err(Failure::failed(message).next("choose an empty folder"));
        }
    }
    Ok(())
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(place::current_folder()?.join(path))
}
