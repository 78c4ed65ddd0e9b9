//! `doctor`: what could keep snapshots from being made or found again.

use ingot_engine::progress::Silent;
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::{App, Setup};
use crate::archive::Archive;
use crate::{capture, config, show, transfer};

/// More packs than this slow every command down.
const MANY_PACKS: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Note,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Note => "note",
            State::Bad => "problem",
        }
    }
}

struct Check {
    name: &'static str,
    state: State,
    text: String,
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, name: &'static str, state: State, text: impl Into<String>) {
        self.0.push(Check {
            name,
            state,
            text: text.into(),
        });
    }
}

/// Checks.
pub fn doctor(app: &App) -> Result<Report, Failure> {
    let mut checks = Checks::default();
    match app.setup() {
        Err(failure) => checks.add("configuration", State::Bad, failure.to_string()),
        Ok(setup) => {
            let place = app.short(&app.places.config);
            checks.add(
                "configuration",
                State::Good,
                format!("{place}, machine {}", setup.machine),
            );
            tracked(app, &setup, &mut checks);
            repository(app, &setup, &mut checks);
            remote(app, &setup, &mut checks);
        }
    }
    let bad = checks.0.iter().any(|check| check.state == State::Bad);
    let text = checks.0.iter().fold(String::new(), |text, check| {
        text + &format!("{:<8} {}: {}\n", check.state.word(), check.name, check.text)
    });
    let rows: Vec<_> = checks
        .0
        .iter()
        .map(|check| json!({"check": check.name, "state": check.state.word(), "text": check.text}))
        .collect();
    Ok(Report {
        code: if bad { Code::Failed } else { Code::Done },
        ..Report::data(text, json!({"command": "doctor", "checks": rows}))
    })
}

fn tracked(app: &App, setup: &Setup, checks: &mut Checks) {
    if setup.config.track.is_empty() {
        checks.add(
            "tracked",
            State::Note,
            "nothing; say what to keep with: rivet track PATH...",
        );
        return;
    }
    let root = match setup.root() {
        Ok(root) => root,
        Err(failure) => return checks.add("root", State::Bad, failure.to_string()),
    };
    match capture::look(&setup.source(&root), &app.display) {
        Err(error) => checks.add("tracked", State::Bad, error.to_string()),
        Ok(listing) => {
            checks.add(
                "tracked",
                State::Good,
                format!(
                    "{} patterns, {} files, folders and links",
                    setup.config.track.len(),
                    listing.items.len()
                ),
            );
            for skip in listing.skipped.iter().filter(|skip| skip.reason.is_trouble()) {
                let text = format!("{}: {}", show::path(&skip.path), skip.reason.explain());
                checks.add("tracked", State::Note, text);
            }
        }
    }
}

fn repository(app: &App, setup: &Setup, checks: &mut Checks) {
    let archive = match setup.archive() {
        Ok(archive) => archive,
        Err(failure) => return checks.add("repository", State::Bad, failure.to_string()),
    };
    let place = app.short(&setup.repository);
    match newest(&archive) {
        Err(failure) => checks.add("repository", State::Bad, failure.to_string()),
        Ok(None) => checks.add("repository", State::Note, format!("{place}: no snapshot yet")),
        Ok(Some((snapshots, packs))) => {
            checks.add(
                "repository",
                State::Good,
                format!("{place}: {snapshots} snapshots, {packs} packs"),
            );
            if packs > MANY_PACKS {
                checks.add(
                    "repository",
                    State::Note,
                    "many packs; pack them anew with: rivet prune",
                );
            }
        }
    }
    let leftovers = leftovers(&archive);
    if leftovers > 0 {
        let text = format!("{leftovers} files of interrupted runs; the next snapshot removes its own");
        checks.add("repository", State::Note, text);
    }
}

/// How many snapshots and packs there are, after reading the newest manifest.
fn newest(archive: &Archive) -> Result<Option<(usize, usize)>, Failure> {
    let Some(tip) = archive.tip()? else {
        return Ok(None);
    };
    let mut reader = archive.reader()?;
    reader.manifest(&tip)?;
    Ok(Some((reader.history(tip)?.len(), reader.store.packs().len())))
}

fn leftovers(archive: &Archive) -> usize {
    let folder = archive.repository().objects_dir().join("pack");
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    names
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"tmp_"))
        .count()
}

fn remote(app: &App, setup: &Setup, checks: &mut Checks) {
    let Some(url) = &setup.config.remote.url else {
        return checks.add(
            "remote",
            State::Note,
            "none; set one with: rivet init --remote URL",
        );
    };
    let home = &app.places.home;
    let key = match &setup.config.remote.key {
        Some(key) => home.join(config::expand(key, home)),
        None => app.places.keys.join("rivet.key.json"),
    };
    let looked = transfer::location(url, home, home).and_then(|url| {
        let store = transfer::Store {
            url,
            key: key.clone(),
            keys: &app.keys,
            progress: &Silent,
        };
        store.look()
    });
    match looked {
        Ok(Some(generation)) => checks.add("remote", State::Good, format!("{url}, generation {generation}")),
        Ok(None) => checks.add("remote", State::Note, format!("{url}: nothing was pushed yet")),
        Err(error) => checks.add("remote", State::Bad, Failure::from(error).to_string()),
    }
}
