//! `log` and `audit`: what happened in a store, and who could read it.

use std::time::{SystemTime, UNIX_EPOCH};

use ingot_engine::progress::Unit;
use serde_json::{Value, json};

use super::app::App;
use super::args::{Audit, Log};
use super::devices::{load, shown};
use super::exit::{Failure, one_line};
use super::progress::amount;
use super::report::Report;
use super::summary::short_name;
use crate::protocol::Role;
use crate::protocol::chain::Generation;
use crate::protocol::manifest::Authorization;
use crate::protocol::pack_stream::stored_size;
use crate::protocol::policy::Roles;
use crate::protocol::refs::RefChange;
use crate::remote::history::{self, Membership, Stored};
use crate::state::DeviceNames;

/// Shows the generations, newest first.
pub fn log(app: &App, args: &Log) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let remote = place.remote(&app.display);
    let view = remote.history()?;
    let names = load(&place)?;
    let chain = view.chain();
    let (mut text, mut entries) = (String::new(), Vec::new());
    let count = args.max_count.unwrap_or(usize::MAX);
    for generation in chain.generations().iter().rev().take(count) {
        let stored = remote.stored(generation.id())?;
        let members = history::membership(chain, generation);
        text += &entry_text(generation, &members, &stored, &names);
        entries.push(entry_json(generation, &members, &stored, &names));
    }
    let json = json!({
        "command": "log",
        "url": place.url.to_string(),
        "repository_root": chain.root().to_string(),
        "head": view.head().to_string(),
        "generations": entries,
    });
    Ok(Report::data(text, json))
}

fn entry_text(
    generation: &Generation,
    members: &[Membership],
    stored: &Stored,
    names: &DeviceNames,
) -> String {
    let time = stored
        .time
        .and_then(utc)
        .map(|time| format!("  {time}"))
        .unwrap_or_default();
    let mut text = format!(
        "generation {}{time}  by {}  {}\n",
        generation.number(),
        shown(generation.signer(), names),
        amount(stored.bytes, Unit::Bytes),
    );
    for member in members {
        text += &match member {
            Membership::Added(id, roles) => format!("  added {} role={}\n", shown(id, names), word(*roles)),
            Membership::Revoked(id) => format!("  revoked {}\n", shown(id, names)),
            Membership::Changed(id, old, new) => {
                format!(
                    "  changed {} role={} to role={}\n",
                    shown(id, names),
                    word(*old),
                    word(*new)
                )
            }
        };
    }
    if generation.authorization() == Authorization::PolicyTransition && members.is_empty() {
        text += "  policy renewed\n";
    }
    for change in generation.ref_changes() {
        text += &format!("  {} {}\n", one_line(short_name(&change.name)), movement(change));
    }
    if let packs @ 1.. = generation.new_packs().len() {
        let bytes = generation
            .new_packs()
            .iter()
            .map(|pack| stored_size(pack.plaintext_size).unwrap_or(pack.plaintext_size))
            .fold(0, u64::saturating_add);
        let noun = if packs == 1 { "pack" } else { "packs" };
        text += &format!("  {packs} {noun}, {}\n", amount(bytes, Unit::Bytes));
    }
    text
}

fn movement(change: &RefChange) -> String {
    let short = |id: &str| one_line(&id.chars().take(7).collect::<String>());
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{}..{}", short(before), short(after)),
        (None, Some(after)) => format!("new {}", short(after)),
        (_, None) => "deleted".to_owned(),
    }
}

fn entry_json(
    generation: &Generation,
    members: &[Membership],
    stored: &Stored,
    names: &DeviceNames,
) -> Value {
    let member = |member: &Membership| {
        let (change, id, before, after) = match member {
            Membership::Added(id, roles) => ("added", id, None, Some(*roles)),
            Membership::Revoked(id) => ("revoked", id, None, None),
            Membership::Changed(id, old, new) => ("changed", id, Some(*old), Some(*new)),
        };
        json!({
            "change": change,
            "device_id": id.to_string(),
            "name": names.get(id),
            "role_before": before.map(word),
            "role": after.map(word),
        })
    };
    json!({
        "generation": generation.number(),
        "manifest": generation.id().to_string(),
        "manifest_bytes": stored.bytes,
        "stored_at": stored.time.and_then(seconds),
        "signer": generation.signer().to_string(),
        "signer_name": names.get(generation.signer()),
        "policy": generation.policy().id().to_string(),
        "policy_generation": generation.policy().generation(),
        "members": members.iter().map(member).collect::<Vec<_>>(),
        "refs": generation
            .ref_changes()
            .iter()
            .map(|change| json!({"ref": change.name, "old": change.before, "new": change.after}))
            .collect::<Vec<_>>(),
        "packs": generation
            .new_packs()
            .iter()
            .map(|pack| json!({
                "id": pack.id.to_string(),
                "bytes": pack.plaintext_size,
                "stored_bytes": stored_size(pack.plaintext_size),
            }))
            .collect::<Vec<_>>(),
    })
}

/// Shows the readers by generation, and what each device could open.
pub fn audit(app: &App, args: &Audit) -> Result<Report, Failure> {
    let (_, place) = app.store_of(&args.store)?;
    let view = place.remote(&app.display).history()?;
    let names = load(&place)?;
    let (periods, devices) = history::audit(view.chain());
    let mut text = String::new();
    for period in &periods {
        let readers: Vec<String> = period
            .readers
            .iter()
            .map(|(id, roles)| format!("{} ({})", shown(id, &names), word(*roles)))
            .collect();
        text += &format!(
            "generations {}-{}  policy {}  readers: {}\n",
            period.first,
            period.last,
            period.policy_generation,
            readers.join(", ")
        );
    }
    for access in &devices {
        let status = if access.active { "active" } else { "ended" };
        let name = names
            .get(&access.device)
            .map(|name| format!(" name={}", one_line(name)));
        text += &format!(
            "{} {status} since={} could open generations 0-{}{}\n",
            access.device,
            access.since,
            access.until,
            name.unwrap_or_default(),
        );
    }
    let json = json!({
        "command": "audit",
        "url": place.url.to_string(),
        "repository_root": view.chain().root().to_string(),
        "head": view.head().to_string(),
        "generation": view.generation(),
        "periods": periods.iter().map(|period| json!({
            "first": period.first,
            "last": period.last,
            "policy": period.policy.to_string(),
            "policy_generation": period.policy_generation,
            "readers": period.readers.iter().map(|(id, roles)| json!({
                "device_id": id.to_string(),
                "role": word(*roles),
                "name": names.get(id),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "devices": devices.iter().map(|access| json!({
            "device_id": access.device.to_string(),
            "name": names.get(&access.device),
            "active": access.active,
            "since": access.since,
            "could_open_until": access.until,
        })).collect::<Vec<_>>(),
    });
    Ok(Report::data(text, json))
}

fn word(roles: Roles) -> &'static str {
    roles.highest().map_or("none", Role::as_str)
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// A moment as people write it, in UTC; `None` before 1970 and beyond the year 9999.
fn utc(time: SystemTime) -> Option<String> {
    let seconds = seconds(time)?;
    let (days, second) = (i64::try_from(seconds / 86_400).ok()?, seconds % 86_400);
    // Years begin in March here, so that the day that some of them have more is the last one.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year_of_era + next;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    (year <= 9999).then(|| format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (253_402_300_799, "9999-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(
                utc(UNIX_EPOCH + Duration::from_secs(seconds)).as_deref(),
                Some(text)
            );
        }
        assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(253_402_300_800)), None);
    }
}
