//! `invite` and `join`: a new device comes in without trust in the storage.

use std::ffi::OsStr;
use std::path::Path;

use bstr::ByteSlice as _;
use ingot_engine::durable;
use serde_json::json;

use super::app::{App, bytes};
use super::args::{Invite, Join};
use super::devices::{find, load, name_it, save};
use super::exit::Failure;
use super::place::{self, Place};
use super::report::Report;
use crate::config::{StorageUrl, shell_word};
use crate::keys::Opened;
use crate::protocol::invitation::{self, Invitation};
use crate::protocol::policy::{Change, Device};
use crate::protocol::{DeviceId, DeviceKey, PublicDevice, Role, key_file, policy, publication};
use crate::remote::{self, Floor, View};
use crate::state::AdminPin;

/// No request and no invitation comes near this size.
const MAX_BYTES: u64 = 16 * 1024;

/// Adds a device, unless it is a member already, and signs an invitation for it.
pub fn invite(app: &App, args: &Invite) -> Result<Report, Failure> {
    let output = args.output.as_ref().map(|path| absolute(path)).transpose()?;
    if let Some(path) = &output
        && std::fs::symlink_metadata(path).is_ok()
    {
        let message = format!("{} exists already and is not overwritten", path.display());
        return Err(Failure::failed(message).next("choose another name"));
    }
    let (_, place) = app.store_of(&args.store)?;
    let remote = place.remote(&app.display);
    let view = remote.members(&place.key_file)?;
    let mut names = load(&place)?;
    may_invite(&view, place.key())?;
    let (recipient, view, added) = match &args.request {
        Some(request) => {
            let device = requested(request, &view)?;
            let id = device.device_id;
            compare(&id, args.fingerprint.as_deref())?;
            if let Some(name) = &args.name {
                name_it(&mut names, id, name)?;
            }
            // The same command again, after it was interrupted, is for a device that is there already.
            if view.chain().device(&id).is_some_and(Device::is_active) {
                (id, view, false)
            } else {
                let changes = [Change::Add {
                    device,
                    role: args.role.into(),
                }];
                let changed = remote.change_members(&place.key_file, &changes)?;
                (id, changed.after, true)
            }
        }
        None => {
            let word = args.device.as_deref().unwrap_or_default();
            let id = find(view.chain().policy(), &names, word)?;
            if !view.chain().device(&id).is_some_and(Device::is_active_reader) {
                let message = format!("device {id} is no active member, so it cannot be invited");
                return Err(Failure::failed(message).next("invite it by its request"));
            }
            if let Some(name) = &args.name {
                name_it(&mut names, id, name)?;
            }
            (id, view, false)
        }
    };
    if args.name.is_some() {
        save(&place, &names)?;
    }
    let invitation = Invitation::sign(view.chain(), place.key(), recipient);
    if let Some(path) = &output {
        durable::write_atomic(&durable::Real, path, &invitation.to_json(), 0o644)
            .map_err(|error| Failure::of(&error))?;
    }
    Ok(invited(&invitation, added, &place))
}

fn invited(invitation: &Invitation, added: bool, place: &Place) -> Report {
    let (id, line, fingerprint) = (
        invitation.recipient_device_id,
        invitation.to_line(),
        invitation.fingerprint(),
    );
    let what = if added { "added" } else { "member" };
    let text = format!(
        "{what} {id}\n{line}\nfingerprint {fingerprint}\n\
         On the new device: git-e2ee join --key KEY --invitation LINE {}\n",
        shell_word(&place.url.to_string()),
    );
    let json = json!({
        "command": "invite",
        "device_id": id.to_string(),
        "added": added,
        "invitation": line,
        "fingerprint": fingerprint,
        "repository_root": invitation.repository_root.to_string(),
        "manifest": invitation.minimum_manifest_id.to_string(),
        "generation": invitation.minimum_manifest_generation,
        "policy": invitation.minimum_policy_id.to_string(),
        "policy_generation": invitation.minimum_policy_generation,
    });
    Report::data(text, json)
}

fn may_invite(view: &View, key: &DeviceKey) -> Result<(), Failure> {
    if view
        .chain()
        .device(key.id())
        .is_some_and(Device::is_active_administrator)
    {
        return Ok(());
    }
    let error = policy::Error::NotAdministrator(*key.id());
    let failure = Failure::from(remote::Error::from(publication::Error::Policy(error)));
    Err(failure.next("ask an administrator; git-e2ee device-list shows who is one"))
}

/// The device that asks, as a member of this repository.
fn requested(request: &OsStr, view: &View) -> Result<PublicDevice, Failure> {
    let text = line_or_file(request)?;
    let mut device = invitation::parse_request(&text).map_err(|error| Failure::failed(error.to_string()))?;
    // A device that did not know yet where it would belong names itself.
    if device.is_founder() {
        device.repository_root = *view.chain().root();
    }
    Ok(device)
}

/// Requires that a person has compared the fingerprint.
fn compare(device: &DeviceId, told: Option<&str>) -> Result<(), Failure> {
    let fingerprint = invitation::device_fingerprint(device);
    match told {
        Some(told) if invitation::same_fingerprint(told, &fingerprint) => Ok(()),
        Some(_) => {
            let message =
                format!("the fingerprints differ: this request is from device {device}, {fingerprint}");
            Err(Failure::failed(message)
                .next("if the new device shows other digits, the request was altered on its way"))
        }
        None => {
            let message = format!("device {device} was not added yet; its fingerprint is {fingerprint}");
            Err(Failure::usage(message).next(format!(
                "if the new device shows the same digits, add: --fingerprint '{fingerprint}'"
            )))
        }
    }
}

/// Shows a request, or accepts an invitation.
pub fn join(app: &App, args: &Join) -> Result<Report, Failure> {
    let path = absolute(&args.key)?;
    app.refuse_tracked(&path)?;
    match &args.invitation {
        None => request(app, &path),
        Some(word) => accept(app, args, &path, word),
    }
}

fn request(app: &App, path: &Path) -> Result<Report, Failure> {
    let made = !path.exists();
    if made {
        let key = DeviceKey::generate(None).map_err(|error| Failure::of(&error))?;
        key_file::create(path, &key)?;
    }
    let key = app.keys.read(path)?.key;
    let (line, fingerprint) = (
        invitation::request_line(key.public()),
        invitation::device_fingerprint(key.id()),
    );
    let json = json!({
        "command": "join",
        "key": path.display().to_string(),
        "made_key": made,
        "device_id": key.id().to_string(),
        "request": line,
        "fingerprint": fingerprint,
    });
    let text = format!(
        "{line}\nfingerprint {fingerprint}\n\
         Give the line to an administrator, who runs: git-e2ee invite --request LINE\n"
    );
    Ok(Report::data(text, json))
}

fn accept(app: &App, args: &Join, path: &Path, word: &OsStr) -> Result<Report, Failure> {
    let text = line_or_file(word)?;
    let invitation = Invitation::parse(&text).map_err(remote::Error::from)?;
    let fingerprint = invitation.fingerprint();
    if let Some(told) = &args.fingerprint
        && !invitation::same_fingerprint(told, &fingerprint)
    {
        let message = format!("the fingerprints differ: this invitation has {fingerprint}");
        return Err(Failure::failed(message)
            .next("if the administrator sees other digits, it was altered on its way"));
    }
    let Opened { key, wrapping } = app.keys.read(path)?;
    invitation
        .check_recipient(key.id())
        .map_err(remote::Error::from)?;
    let fs = durable::real();
    // The floor first: from here on, this key opens nothing below it.
    if *key.root() != invitation.repository_root {
        if !key.is_founder() || AdminPin::path_for(path).exists() {
            let error = publication::Error::ForeignRepository {
                seen: *key.root(),
                expected: invitation.repository_root,
            };
            return Err(remote::Error::from(error).into());
        }
        Floor::save(&*fs, path, &invitation)?;
        let key = key.with_root(invitation.repository_root);
        app.keys.replace(&*fs, path, &key, &wrapping)?;
    } else {
        Floor::save(&*fs, path, &invitation)?;
    }
    let mut json = json!({
        "command": "join",
        "key": path.display().to_string(),
        "device_id": key.id().to_string(),
        "repository_root": invitation.repository_root.to_string(),
        "fingerprint": fingerprint,
        "minimum_generation": invitation.minimum_manifest_generation,
        "minimum_manifest": invitation.minimum_manifest_id.to_string(),
        "invited_by": invitation.signing_administrator_device_id.to_string(),
    });
    let mut text = format!(
        "accepted for repository {}\nfingerprint {fingerprint}\n",
        invitation.repository_root
    );
    let Some(url) = &args.url else {
        return Ok(Report::done(text, json));
    };
    let here = place::current_folder()?;
    let url = StorageUrl::parse(bytes(url)?.as_bstr(), &here)?;
    let place = Place::open(&app.keys, url, path.to_owned(), None, None, &here)?;
    let view = place.remote(&app.display).history()?;
    let own = view.chain().device(key.id());
    let role = own
        .and_then(|device| device.roles.highest())
        .map_or("none", Role::as_str);
    let clone = format!(
        "git-e2ee clone --key {} {}",
        shell_word(&path.display().to_string()),
        shell_word(&place.url.to_string())
    );
    text += &format!(
        "joined at generation {}, role={role}\nTo get the repository: {clone}\n",
        view.generation()
    );
    json["generation"] = view.generation().into();
    json["role"] = role.into();
    json["clone"] = clone.into();
    Ok(Report::done(text, json))
}

/// The text itself, or that of the file of this name.
fn line_or_file(word: &OsStr) -> Result<String, Failure> {
    if let Some(text) = word.to_str()
        && invitation::is_line(text.trim())
    {
        return Ok(text.to_owned());
    }
    let path = absolute(Path::new(word))?;
    let failed = |error: std::io::Error| Failure::failed(format!("cannot read {}: {error}", path.display()));
    if std::fs::metadata(&path).map_err(failed)?.len() > MAX_BYTES {
        return Err(Failure::failed(format!(
            "{} is too large for that",
            path.display()
        )));
    }
    std::fs::read_to_string(&path).map_err(failed)
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, Failure> {
    Ok(place::current_folder()?.join(path))
}
