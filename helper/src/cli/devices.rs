//! `device-add`, `device-list`, `device-revoke`, `device-rotate`, `device-role` and `device-name`: who may do what.

use serde_json::{Value, json};

use super::app::App;
use super::args::{self, DeviceAdd, DeviceList, DeviceName, DeviceRevoke, DeviceRole, DeviceRotate};
use super::exit::{Failure, one_line};
use super::place::Place;
use super::report::Report;
use crate::protocol::policy::{Change, Device};
use crate::protocol::{DeviceId, Policy, Role, key_file};
use crate::remote::Changed;
use crate::state::DeviceNames;

/// The fewest digits that stand for a device.
const FEWEST_DIGITS: usize = 6;

impl From<args::Role> for Role {
    fn from(role: args::Role) -> Role {
        match role {
            args::Role::Read => Role::Read,
            args::Role::Write => Role::Write,
            args::Role::Admin => Role::Admin,
        }
    }
}

/// Adds devices.
pub fn add(app: &App, args: &DeviceAdd) -> Result<Report, Failure> {
    if !args.names.is_empty() && args.names.len() != args.devices.len() {
        let (names, devices) = (args.names.len(), args.devices.len());
        let message = format!("{names} names for {devices} devices");
        return Err(Failure::usage(message).next("give one --name for each --device, or none"));
    }
    let (_, place) = app.store_of(&args.store)?;
    let here = super::place::current_folder()?;
    let mut names = load(&place)?;
    let mut changes = Vec::new();
    for path in &args.devices {
        let device = key_file::read_public(&here.join(path))?;
        changes.push(Change::Add {
            device,
            role: args.role.into(),
        });
    }
    for (change, name) in changes.iter().zip(&args.names) {
        name_it(&mut names, *change.device(), name)?;
    }
    if !args.revoke.is_empty() {
        let view = place.remote(&app.display).members(&place.key_file)?;
        for word in &args.revoke {
            changes.push(Change::Revoke(find(view.chain().policy(), &names, word)?));
        }
    }
    let changed = change(app, &place, &changes)?;
    if !args.names.is_empty() {
        save(&place, &names)?;
    }
    Ok(report("device-add", &changed, &names))
}

/// Lists devices.
pub fn list(app: &App, args: &DeviceList) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let view = place.remote(&app.display).members(&place.key_file)?;
    let names = load(&place)?;
    let policy = view.chain().policy();
    let mut devices: Vec<&Device> = policy.devices().iter().collect();
    devices.sort_by_key(|device| device.device_id);
    let mut text = String::new();
    for device in &devices {
        text += &line(device, &names);
    }
    let json = json!({
        "command": "device-list",
        "url": place.url.to_string(),
        "repository_root": view.chain().root().to_string(),
        "head": view.head().to_string(),
        "generation": view.generation(),
        "policy": policy.id().to_string(),
        "policy_generation": policy.generation(),
        "devices": devices
            .iter()
            .map(|device| {
                let mut entry = device_json(device, &names);
                entry["this_device"] = (device.device_id == *place.key().id()).into();
                entry
            })
            .collect::<Vec<_>>(),
    });
    Ok(Report::data(text, json))
}

/// Revokes devices.
pub fn revoke(app: &App, args: &DeviceRevoke) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let names = load(&place)?;
    let devices = find_all(app, &place, &names, &args.devices)?;
    let changes: Vec<Change> = devices.into_iter().map(Change::Revoke).collect();
    let changed = change(app, &place, &changes)?;
    Ok(report("device-revoke", &changed, &names))
}

/// Changes roles.
pub fn role(app: &App, args: &DeviceRole) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let names = load(&place)?;
    let role = args.role.into();
    let devices = find_all(app, &place, &names, &args.devices)?;
    let changes: Vec<Change> = devices
        .into_iter()
        .map(|device| Change::Role { device, role })
        .collect();
    let changed = change(app, &place, &changes)?;
    Ok(report("device-role", &changed, &names))
}

/// Replaces the key of this device.
pub fn rotate(app: &App, args: &DeviceRotate) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let mut names = load(&place)?;
    let rotated = place
        .remote(&app.display)
        .rotate(&app.keys, &place.key_file)
        .map_err(|error| explain(error.into(), "device-rotate"))?;
    let named = names.get(&rotated.old).is_some();
    let mut report = report("device-rotate", &rotated.changed, &names);
    if named && names.hand_over(&rotated.old, rotated.new) {
        save(&place, &names)?;
    }
    report.json["old_device"] = rotated.old.to_string().into();
    report.json["new_device"] = rotated.new.to_string().into();
    report.json["key"] = place.key_file.display().to_string().into();
    Ok(report)
}

/// Names a device.
pub fn name(app: &App, args: &DeviceName) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let mut names = load(&place)?;
    let view = place.remote(&app.display).members(&place.key_file)?;
    let device = find(view.chain().policy(), &names, &args.device)?;
    name_it(&mut names, device, &args.name)?;
    save(&place, &names)?;
    let json = json!({"command": "device-name", "device_id": device.to_string(), "name": args.name});
    Ok(Report::done(format!("{device} name={}\n", args.name), json))
}

fn change(app: &App, place: &Place, changes: &[Change]) -> Result<Changed, Failure> {
    let changed = place
        .remote(&app.display)
        .change_members(&place.key_file, changes);
    changed.map_err(|error| explain(error.into(), ""))
}

/// What to do where only an administrator can do it.
fn explain(mut failure: Failure, command: &str) -> Failure {
    if failure.message.contains("not an active administrator") {
        failure.next = Some(if command == "device-rotate" {
            "make a new key with git-e2ee keygen and device-export, and ask an administrator for: git-e2ee device-add \
             --device NEW --revoke OLD"
                .to_owned()
        } else {
            "ask an administrator; git-e2ee device-list shows who is one".to_owned()
        });
    }
    failure
}

/// The names that go with a place's key.
pub(super) fn load(place: &Place) -> Result<DeviceNames, Failure> {
    Ok(DeviceNames::load(&place.key_file).map_err(crate::remote::Error::from)?)
}

pub(super) fn save(place: &Place, names: &DeviceNames) -> Result<(), Failure> {
    let saved = names.save(&*place.fs(), &place.key_file);
    Ok(saved.map_err(crate::remote::Error::from)?)
}

pub(super) fn name_it(names: &mut DeviceNames, device: DeviceId, name: &str) -> Result<(), Failure> {
    names
        .set(device, name)
        .map_err(|error| Failure::usage(error.to_string()))
}

fn find_all(
    app: &App,
    place: &Place,
    names: &DeviceNames,
    words: &[String],
) -> Result<Vec<DeviceId>, Failure> {
    // A whole id needs no look at the store.
    if let Ok(ids) = words
        .iter()
        .map(|word| word.parse())
        .collect::<Result<Vec<DeviceId>, _>>()
    {
        return Ok(ids);
    }
    let view = place.remote(&app.display).members(&place.key_file)?;
    let policy = view.chain().policy();
    words.iter().map(|word| find(policy, names, word)).collect()
}

/// The device that a word means: an id, a name, or the first digits of an id.
pub(super) fn find(policy: &Policy, names: &DeviceNames, word: &str) -> Result<DeviceId, Failure> {
    if let Ok(id) = word.parse() {
        return Ok(id);
    }
    let known = |id: &&DeviceId| policy.device(id).is_some();
    let mut meant: Vec<DeviceId> = names.named(word).filter(known).copied().collect();
    // A name that was given again means the device that is still in use.
    if meant.len() > 1 {
        meant.retain(|id| policy.device(id).is_some_and(Device::is_active));
    }
    if meant.is_empty() && word.len() >= FEWEST_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let devices = policy.devices().iter().map(|device| device.device_id);
        meant = devices.filter(|id| id.to_hex().starts_with(word)).collect();
    }
    match meant.as_slice() {
        [id] => Ok(*id),
        [] => Err(
            Failure::failed(format!("no device of the store is called {word}"))
                .next("see: git-e2ee device-list"),
        ),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Failure::usage(format!("{word} may be any of {}", ids.join(", "))).next("give the whole id"))
        }
    }
}

fn line(device: &Device, names: &DeviceNames) -> String {
    let role = device.roles.highest().map_or("none", Role::as_str);
    let status = if device.is_active() { "active" } else { "revoked" };
    let name = names
        .get(&device.device_id)
        .map(|name| format!(" name={}", one_line(name)));
    format!(
        "{} role={role} status={status}{}\n",
        device.device_id,
        name.unwrap_or_default()
    )
}

pub(super) fn device_json(device: &Device, names: &DeviceNames) -> Value {
    json!({
        "device_id": device.device_id.to_string(),
        "role": device.roles.highest().map(Role::as_str),
        "status": if device.is_active() { "active" } else { "revoked" },
        "revoked_at": device.revoked_at,
        "name": names.get(&device.device_id),
    })
}

/// A line for each change, then what was published.
fn report(command: &str, changed: &Changed, names: &DeviceNames) -> Report {
    let policy = changed.after.chain().policy();
    let mut text = String::new();
    let mut changes = Vec::new();
    for change in &changed.changes {
        let id = change.device();
        let (word, role) = match change {
            Change::Add { role, .. } => ("added", Some(*role)),
            Change::Revoke(_) => ("revoked", None),
            Change::Role { role, .. } => ("changed", Some(*role)),
        };
        text += &match change {
            Change::Role { role, .. } => format!("{word} {id} role={role}\n"),
            _ => format!("{word} {id}\n"),
        };
        changes.push(json!({
            "change": word,
            "device_id": id.to_string(),
            "role": role.map(Role::as_str),
            "name": names.get(id),
        }));
    }
    if changed.changes.is_empty() {
        text += "nothing to change\n";
    } else {
        text += &format!("manifest {}\npolicy {}\n", changed.after.head(), policy.id());
    }
    let json = json!({
        "command": command,
        "changes": changes,
        "manifest": changed.after.head().to_string(),
        "generation": changed.after.generation(),
        "policy": policy.id().to_string(),
        "policy_generation": policy.generation(),
        "readers": policy.active_readers().count(),
    });
    Report::done(text, json)
}

/// The name that people see for a device: its own, or the first digits of its id.
pub(super) fn shown(id: &DeviceId, names: &DeviceNames) -> String {
    match names.get(id) {
        Some(name) => one_line(name),
        None => id.to_hex()[..12].to_owned(),
    }
}
