//! `packages`, and the package half of `snapshot` and `restore`.

use std::path::Path;

use gix_hash::ObjectId;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::{App, Setup};
use super::args::Packages;
use crate::archive::Archive;
use crate::packages::ask::{self, Programs};
use crate::packages::{self, Document, Inventory, Reason, installed, system_manager};
use crate::show;

/// The root of the running system.
const SYSTEM: &str = "/";

/// The list that goes into a snapshot, if there is to be one.
pub fn document(setup: &Setup, app: &App) -> Result<Option<Document>, Failure> {
    if !setup.config.packages {
        return Ok(None);
    }
    let memory = setup.files().packages_cache();
    let document = packages::document(Path::new(SYSTEM), &app.places.home, &memory);
    Ok(Some(document.map_err(|error| Failure::of(&error))?))
}

/// Lists packages, or compares them with those of a snapshot.
pub fn packages(app: &App, args: &Packages) -> Result<Report, Failure> {
    let mut inventory = installed(Path::new(SYSTEM), &app.places.home);
    let mut text = String::new();
    if args.ask {
        let unread: Vec<_> = inventory
            .managers
            .iter()
            .filter(|(_, listing)| listing.not_read.is_some())
            .map(|(manager, _)| *manager)
            .collect();
        for manager in unread {
            match ask::ask(manager, &Programs) {
                Ok(listing) => drop(inventory.managers.insert(manager, listing)),
                Err(error) => text += &format!("{}: {error}\n", manager.name()),
            }
        }
    }
    if let Some(spec) = &args.diff {
        let setup = app.setup()?;
        let archive = setup.archive()?;
        let spec = (spec != "latest").then_some(spec.as_str());
        let id = archive.resolve(spec)?;
        let before = of_snapshot(&archive, id)?;
        let diff = before.diff(&inventory);
        for (manager, listing) in &diff.managers {
            let name = manager.name();
            for package in &listing.added {
                text += &format!("+ {name} {}\n", line(&package.name, &package.version));
            }
            for package in &listing.removed {
                text += &format!("- {name} {}\n", line(&package.name, &package.version));
            }
            for change in &listing.changed {
                let (before, after) = (&change.before, &change.after);
                text += &format!(
                    "~ {name} {} to {}\n",
                    line(&before.name, &before.version),
                    show::path(after.version.as_bytes())
                );
            }
        }
        if diff.is_empty() {
            text += "The same packages are installed\n";
        }
        let json = json!({"command": "packages", "snapshot": id.to_string(), "diff": diff});
        return Ok(Report::data(text, json));
    }
    for (manager, listing) in &inventory.managers {
        let name = manager.name();
        if let Some(why) = &listing.not_read {
            text += &format!("{name}: {why}\n");
        }
        for warning in &listing.warnings {
            text += &format!("{name}: {warning}\n");
        }
        let mut hidden = 0;
        for package in &listing.packages {
            if package.reason == Reason::Dependency && !args.all {
                hidden += 1;
                continue;
            }
            text += &format!("{name} {}\n", line(&package.name, &package.version));
        }
        if hidden > 0 {
            text += &format!("{name}: {hidden} more that others brought along; see them with --all\n");
        }
    }
    Ok(Report::data(
        text,
        json!({"command": "packages", "inventory": inventory}),
    ))
}

fn line(name: &str, version: &str) -> String {
    let name = show::path(name.as_bytes());
    match version.is_empty() {
        true => name,
        false => format!("{name} {}", show::path(version.as_bytes())),
    }
}

fn of_snapshot(archive: &Archive, id: ObjectId) -> Result<Inventory, Failure> {
    let bytes = archive.reader()?.packages(&id)?.ok_or_else(|| {
        Failure::failed(format!(
            "snapshot {} has no list of packages",
            id.to_hex_with_len(12)
        ))
        .next("set packages = true and capture again")
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::failed(format!("the list of packages of {id} cannot be read: {error}")))
}

/// The commands that install what a snapshot's machine has and this one lacks. They are only printed.
pub fn install(app: &App, archive: &Archive, id: ObjectId) -> Result<Report, Failure> {
    let wanted = of_snapshot(archive, id)?;
    let here = installed(Path::new(SYSTEM), &app.places.home);
    let system = system_manager(Path::new(SYSTEM));
    let plan = wanted.missing(&here, system).install_commands(system);
    let mut text = String::new();
    for command in &plan.commands {
        if let Some(note) = &command.note {
            text += &format!("# {note}\n");
        }
        text += &format!("{}\n", command.shell);
    }
    for left_out in &plan.left_out {
        text += &format!("# {left_out}\n");
    }
    if text.is_empty() {
        text = "# Everything that the snapshot lists is installed\n".to_owned();
    }
    let json = json!({"command": "restore", "snapshot": id.to_string(), "packages": plan});
    Ok(Report::data(text, json))
}
