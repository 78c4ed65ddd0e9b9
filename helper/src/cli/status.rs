//! `status`: the store, and how far the repository is from it.

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use ingot_engine::progress::Unit;
use serde_json::{Value, json};

use super::app::{App, Direction};
use super::args::Status;
use super::exit::{Failure, one_line};
use super::local_refs::LocalRefs;
use super::progress::amount;
use super::refspec::Local as _;
use super::report::Report;
use super::summary::short_name;
use crate::remote::refnames::is_branch;
use crate::remote::{Local, RefStatus, Relation};

/// Shows a store.
pub fn run(app: &App, args: &Status) -> Result<Report, Failure> {
    let found = app.require(&args.place, args.target.as_deref(), Direction::Fetch)?;
    let place = found.only()?;
    let local = found.repository.as_ref().map(Local::open).transpose()?;
    let here = found.repository.as_ref().map(here).unwrap_or_default();
    let status = place
        .remote(&app.display)
        .status(local.as_ref().map(|local| (local, here.as_slice())))?;
    let view = &status.view;

    let mut text = format!(
        "{}\n  generation {}, {} references, {} packs, {}\n",
        place.url,
        view.generation(),
        view.refs().len(),
        status.packs,
        amount(status.stored, Unit::Bytes),
    );
    if let Some(branch) = view.default_branch() {
        text += &format!("  default branch {}\n", one_line(short_name(branch)));
    }
    if local.is_some() {
        for entry in &status.refs {
            // Tags rarely differ, and are many; what is the same is told with -v.
            let told = app.global.verbose > 0 || is_branch(&entry.name) || entry.relation != Relation::Same;
            if told {
                text += &format!(
                    "  {:<30} {}\n",
                    one_line(short_name(&entry.name)),
                    relation(entry)
                );
            }
        }
    }
    let (branches, tags): (Vec<&RefStatus>, Vec<&RefStatus>) =
        status.refs.iter().partition(|entry| is_branch(&entry.name));
    let json = json!({
        "command": "status",
        "url": place.url.to_string(),
        "remote": found.remote.as_ref().map(|remote| remote.name.to_string()),
        "head": view.head().to_string(),
        "generation": view.generation(),
        "object_format": view.format().map(|format| format.to_string()),
        "default_branch": view.default_branch(),
        "packs": status.packs,
        "stored_bytes": status.stored,
        "branches": branches.into_iter().map(entry_json).collect::<Vec<_>>(),
        "tags": tags.into_iter().map(entry_json).collect::<Vec<_>>(),
    });
    Ok(Report::data(text, json))
}

fn here(repository: &ingot_engine::repository::Repository) -> Vec<(String, ObjectId)> {
    let refs = LocalRefs(repository);
    let all = ["refs/heads/", "refs/tags/"]
        .into_iter()
        .flat_map(|prefix| refs.list(prefix));
    // A name that is not text can be in no store.
    all.filter_map(|(name, id)| Some((name.to_str().ok()?.to_owned(), id)))
        .collect()
}

fn relation(entry: &RefStatus) -> String {
    match entry.relation {
        Relation::Same => "up to date".to_owned(),
        Relation::Differs { ahead, behind: 0 } => format!("ahead {ahead}"),
        Relation::Differs { ahead: 0, behind } => format!("behind {behind}"),
        Relation::Differs { ahead, behind } => format!("ahead {ahead}, behind {behind}"),
        Relation::Unknown => "the store has something newer; run: git-e2ee fetch".to_owned(),
        Relation::LocalOnly => "only here".to_owned(),
        Relation::RemoteOnly => "only in the store".to_owned(),
    }
}

fn entry_json(entry: &RefStatus) -> Value {
    let state = match entry.relation {
        Relation::Same => "same",
        Relation::Differs { behind: 0, .. } => "ahead",
        Relation::Differs { ahead: 0, .. } => "behind",
        Relation::Differs { .. } => "diverged",
        Relation::Unknown => "fetch-first",
        Relation::LocalOnly => "local-only",
        Relation::RemoteOnly => "store-only",
    };
    let mut value = json!({
        "name": entry.name,
        "state": state,
        "local": entry.local.map(|id| id.to_string()),
        "store": entry.remote.map(|id| id.to_string()),
    });
    if let Relation::Differs { ahead, behind } = entry.relation {
        value["ahead"] = ahead.into();
        value["behind"] = behind.into();
    }
    value
}
