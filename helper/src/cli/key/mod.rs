//! `key`: what people do with the key file itself.

pub mod args;
mod backup;
mod copies;
mod passphrase;
mod typed;

use std::path::PathBuf;

use bstr::ByteSlice as _;
use ingot_engine::repository::Repository;
use serde_json::{Value, json};

use super::app::{App, Direction};
use super::args::Place as PlaceArgs;
use super::exit::Failure;
use super::keys::absolute;
use super::place;
use super::report::Report;
use crate::keys::{Opened, Wrapping, refuse_in_work_tree};
use crate::protocol::DeviceKey;
use crate::protocol::invitation::device_fingerprint;
use args::{KeyCommand, KeyOf};

/// Runs one of the commands.
pub fn run(app: &App, command: &KeyCommand) -> Result<Report, Failure> {
    match command {
        KeyCommand::Show(args) => show(app, &args.key),
        KeyCommand::Export(args) => copies::export(app, args),
        KeyCommand::Import(args) => copies::import(app, args),
        KeyCommand::ChangePassphrase(args) => passphrase::change(app, args),
        KeyCommand::Backup(args) => backup::backup(app, args),
        KeyCommand::Keychain(args) => passphrase::keychain(app, args),
    }
}

/// The key file that a command is about: the one named, that of a remote, or the one for clones.
fn path_of(app: &App, of: &KeyOf) -> Result<PathBuf, Failure> {
    let repository = app.repository(of.repo.as_ref())?;
    let (path, setting) = match &of.key {
        Some(key) => (absolute(key)?, None),
        None => {
            let place = PlaceArgs {
                repo: of.repo.clone(),
                ..PlaceArgs::default()
            };
            match app.find(&place, of.target.as_deref(), Direction::Fetch)? {
                Some(found) => {
                    let remote = found.remote.as_ref();
                    (
                        found.key,
                        remote.map(|remote| place::key_setting(remote.name.as_bstr())),
                    )
                }
                None => (general(repository.as_ref())?, Some("e2ee.key".into())),
            }
        }
    };
    if let Some(repository) = repository.as_ref().filter(|_| path.exists()) {
        let setting = setting.map(|name| name.to_string());
        refuse_in_work_tree(&path, repository, setting.as_deref())?;
    }
    Ok(path)
}

fn general(repository: Option<&Repository>) -> Result<PathBuf, Failure> {
    let settings = place::settings_of(repository)?;
    let base = place::base_of(repository)?;
    match place::key_for(&settings, None, &base) {
        Ok(key) => Ok(key.path),
        Err(_) => Err(Failure::failed("no key is configured here").next("name a key file: --key FILE")),
    }
}

/// Opens it, with where it is.
fn open(app: &App, of: &KeyOf) -> Result<(PathBuf, Opened), Failure> {
    let path = path_of(app, of)?;
    let opened = app.keys.read(&path)?;
    Ok((path, opened))
}

/// What is not secret about a key.
fn names(key: &DeviceKey) -> Value {
    json!({
        "device_id": key.id().to_string(),
        "fingerprint": device_fingerprint(key.id()),
        "repository_root": key.root().to_string(),
    })
}

/// Which device a key file is, and how it is kept.
fn show(app: &App, of: &KeyOf) -> Result<Report, Failure> {
    let (path, opened) = open(app, of)?;
    let key = &opened.key;
    let (protected, work_factor) = match &opened.wrapping {
        Wrapping::Plain => ("no; git-e2ee key change-passphrase adds one".to_owned(), None),
        Wrapping::Passphrase { work_factor, .. } => {
            (format!("yes, work factor {work_factor}"), Some(*work_factor))
        }
    };
    let founder = match key.is_founder() {
        true => ", which it can found or has founded",
        false => "",
    };
    let text = format!(
        "key file {}\ndevice {}\nfingerprint {}\nrepository {}{founder}\npassphrase: {protected}\n",
        path.display(),
        key.id(),
        device_fingerprint(key.id()),
        key.root(),
    );
    let mut json = names(key);
    json["command"] = "key show".into();
    json["key"] = path.display().to_string().into();
    json["founder"] = key.is_founder().into();
    json["protected"] = opened.wrapping.is_protected().into();
    json["work_factor"] = work_factor.into();
    Ok(Report::data(text, json))
}
