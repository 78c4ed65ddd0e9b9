//! `push` and `pull`.

use std::path::PathBuf;

use ingot_engine::progress::Unit;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::place;
use ingot_helper::cli::progress::amount;
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::{App, Setup};
use super::args::Transfer;
use crate::config;
use crate::transfer::{self, Store};

/// The store and key that the command line or the configuration names.
fn store<'a>(app: &'a App, setup: &Setup, args: &Transfer) -> Result<Store<'a>, Failure> {
    let here = place::current_folder()?;
    let home = &app.places.home;
    let text = args.remote.as_ref().or(setup.config.remote.url.as_ref());
    let text = text.ok_or_else(|| {
        Failure::failed("no store is configured")
            .next("set one with: rivet init --remote e2ee::/path/to/store")
    })?;
    let key: PathBuf = match (&args.key, &setup.config.remote.key) {
        (Some(key), _) => here.join(config::expand(key, home)),
        (None, Some(key)) => home.join(config::expand(key, home)),
        (None, None) => app.places.keys.join("rivet.key.json"),
    };
    Ok(Store {
        url: transfer::location(text, home, &here)?,
        key,
        keys: &app.keys,
        progress: &app.display,
    })
}

/// Sends the snapshots of this machine.
pub fn push(app: &App, args: &Transfer) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let store = store(app, &setup, args)?;
    let _lock = setup.files().lock(app.patience())?;
    let archive = setup.archive()?;
    let pushed = store.push(&archive)?;
    let mut text = String::new();
    if pushed.made_key {
        text += &format!(
            "Device key made: {}\nNobody can read the store without it, you included: keep a copy in a safe place.\n\
             On paper: git-e2ee key backup --key FILE. Behind a passphrase: git-e2ee key change-passphrase --key FILE.\n",
            app.short(&store.key)
        );
    }
    if pushed.made_store {
        text += &format!("Store made: {}\n", store.url);
    }
    text += &match &pushed.sent {
        Some(sent) => format!(
            "Pushed to {}, generation {}: {}, {} written\n",
            store.url,
            pushed.generation,
            amount(sent.objects, Unit::Objects),
            amount(sent.bytes, Unit::Bytes),
        ),
        None => format!("{} has everything already\n", store.url),
    };
    let json = json!({
        "command": "push",
        "url": store.url.to_string(),
        "key": store.key.display().to_string(),
        "made_key": pushed.made_key,
        "made_store": pushed.made_store,
        "generation": pushed.generation,
        "objects": pushed.sent.map_or(0, |sent| sent.objects),
        "bytes": pushed.sent.map_or(0, |sent| sent.bytes),
    });
    Ok(Report::done(text, json))
}

/// Gets the snapshots of all machines.
pub fn pull(app: &App, args: &Transfer) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let store = store(app, &setup, args)?;
    let _lock = setup.files().lock(app.patience())?;
    let archive = setup.archive()?;
    let pulled = store.pull(&archive)?;
    let mut text = String::new();
    for (machine, id) in &pulled.machines {
        text += &format!("{machine}: {}\n", id.to_hex_with_len(12));
    }
    if pulled.own_moved {
        text += &format!("{} continues where the store has it\n", setup.machine);
    }
    if pulled.machines.is_empty() {
        text += "Nothing is new in the store\n";
    } else {
        text += "Look at them with: rivet list --all\n";
    }
    let machines: Vec<_> = pulled
        .machines
        .iter()
        .map(|(machine, id)| json!({"machine": machine, "snapshot": id.to_string()}))
        .collect();
    let json = json!({
        "command": "pull",
        "url": store.url.to_string(),
        "objects": pulled.objects,
        "machines": machines,
        "own_moved": pulled.own_moved,
    });
    Ok(Report::done(text, json))
}
