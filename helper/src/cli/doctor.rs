//! `doctor`: is everything in order here and at the store, and what to do where it is not. Changes nothing, but for stale
//! files that it is asked to remove.

mod local;

use std::path::Path;
use std::time::Duration;

use ingot_engine::durable;
use ingot_engine::progress::Unit;
use serde_json::{Value, json};

use super::app::{App, Found};
use super::args::Doctor;
use super::exit::{Code, Failure};
use super::place::Place;
use super::progress::amount;
use super::report::Report;
use crate::config::{StorageUrl, shell_word};
use crate::protocol::Role;
use crate::remote::{self, Floor, next_key_file};
use crate::state::{AdminPin, DeviceNames, Owner, load, state_file};
use crate::storage::directory::Directory;

/// Nobody pushes for longer than this without writing anything.
const STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What one check found.
struct Finding {
    check: &'static str,
    /// `None`: all is well, or worth a note.
    trouble: Option<Code>,
    note: bool,
    text: String,
    next: Option<String>,
}

impl Finding {
    fn good(check: &'static str, text: impl Into<String>) -> Finding {
        Finding {
            check,
            trouble: None,
            note: false,
            text: text.into(),
            next: None,
        }
    }

    fn note(check: &'static str, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding {
            note: true,
            next: Some(next.into()),
            ..Finding::good(check, text)
        }
    }

    fn trouble(check: &'static str, failure: &Failure) -> Finding {
        Finding {
            trouble: Some(failure.code),
            next: failure.next.clone(),
            ..Finding::good(check, failure.message.clone())
        }
    }

    fn state(&self) -> &'static str {
        match (self.trouble, self.note) {
            (Some(_), _) => "trouble",
            (None, true) => "note",
            (None, false) => "ok",
        }
    }

    fn line(&self) -> String {
        let finding = Failure {
            next: self.next.clone(),
            ..Failure::failed(self.text.clone())
        };
        format!("{:<7} {}: {finding}\n", self.state(), self.check)
    }

    fn json(&self) -> Value {
        json!({"check": self.check, "state": self.state(), "text": self.text, "next": self.next})
    }
}

/// Looks at everything.
pub fn run(app: &App, args: &Doctor) -> Result<Report, Failure> {
    let mut findings = Vec::new();
    match app.found_of(&args.store) {
        Ok(found) => examine(app, args, &found, &mut findings),
        Err(failure) => findings.push(Finding::trouble("configuration", &failure)),
    }
    let code = findings
        .iter()
        .find_map(|finding| finding.trouble)
        .unwrap_or(Code::Done);
    let text = findings.iter().map(Finding::line).collect::<String>();
    let json = json!({
        "command": "doctor",
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    });
    Ok(Report {
        code,
        ..Report::data(text, json)
    })
}

fn examine(app: &App, args: &Doctor, found: &Found, findings: &mut Vec<Finding>) {
    let Some(url) = found.urls.first() else {
        let failure = Failure::failed("the remote has no URL").next("set one with: git remote set-url");
        findings.push(Finding::trouble("configuration", &failure));
        return;
    };
    findings.push(Finding::good(
        "configuration",
        format!("store {url}, key {}", found.key.display()),
    ));
    // Asked before the key is opened as commands do: that finishes an interrupted rotation.
    if next_key_file(&found.key).exists() {
        let text = format!(
            "a rotation was interrupted: {} waits",
            next_key_file(&found.key).display()
        );
        findings.push(Finding::note(
            "key",
            text,
            "opening the store finishes it if it was published; otherwise git-e2ee device-rotate takes it up",
        ));
    }
    let key = key_of(found);
    let usable = key.trouble.is_none();
    findings.push(key);
    findings.extend(kept(found, url));
    findings.extend(local::known(found, url, args.remove_stale));
    findings.extend(local::cache(found, url));
    if usable {
        match found.open(url) {
            Ok(place) => {
                findings.push(store(app, &place));
                findings.extend(uploads(&place, args.remove_stale));
                findings.push(local::clock(place.storage().last_moved()));
            }
            Err(failure) => findings.push(Finding::trouble("store", &failure)),
        }
    }
    if let StorageUrl::Directory(path) = url {
        findings.extend(staging(path, args.remove_stale));
    }
}

fn key_of(found: &Found) -> Finding {
    let key = match found.read_key() {
        Ok(opened) => opened.key,
        Err(failure) => return Finding::trouble("key", &failure),
    };
    Finding::good("key", format!("device {} of repository {}", key.id(), key.root()))
}

/// The files in which something is remembered: whole, or not.
fn kept(found: &Found, url: &StorageUrl) -> Vec<Finding> {
    let mut all = Vec::new();
    if let (Some(repository), Some(remote)) = (&found.repository, &found.remote) {
        let path = state_file(
            repository.git_dir(),
            Owner::Remote(&remote.name),
            &url.to_string(),
        );
        all.push(match load(&path) {
            Ok(Some(state)) => Finding::good(
                "pin",
                format!(
                    "this clone has seen generation {} ({})",
                    state.generation, state.head_id
                ),
            ),
            Ok(None) => Finding::good("pin", "this clone has seen nothing of the store yet"),
            Err(error) => Finding::trouble("pin", &remote::Error::from(error).into()),
        });
    }
    match load(&AdminPin::path_for(&found.key)) {
        Ok(Some(state)) => all.push(Finding::good(
            "administrator's pin",
            format!(
                "this key has seen generation {} ({})",
                state.generation, state.head_id
            ),
        )),
        Ok(None) => {}
        Err(error) => all.push(Finding::trouble(
            "administrator's pin",
            &remote::Error::from(error).into(),
        )),
    }
    match Floor::load(&found.key) {
        Ok(Some(floor)) => all.push(Finding::good(
            "invitation",
            format!(
                "demands generation {}",
                floor.invitation().minimum_manifest_generation
            ),
        )),
        Ok(None) => {}
        Err(error) => all.push(Finding::trouble("invitation", &error.into())),
    }
    if let Err(error) = DeviceNames::load(&found.key) {
        all.push(Finding::trouble("names", &remote::Error::from(error).into()));
    }
    all
}

/// The store, as every command sees it.
fn store(app: &App, place: &Place) -> Finding {
    let remote = place.remote(&app.display);
    // A clone that returns reads what is new; here, whether the rest is still there is a question too.
    let view = match remote.members(&place.key_file).and_then(|_| remote.history()) {
        Ok(view) => view,
        Err(error) => return Finding::trouble("store", &error.into()),
    };
    let own = view.chain().device(place.key().id());
    let role = own
        .and_then(|device| device.roles.highest())
        .map_or("none", Role::as_str);
    let policy = view.chain().policy();
    let administrators = policy
        .devices()
        .iter()
        .filter(|device| device.is_active_administrator())
        .count();
    let text = format!(
        "generation {}, {} readers, this device has role={role}",
        view.generation(),
        policy.active_readers().count()
    );
    if administrators == 1 && role == "admin" {
        return Finding::note(
            "store",
            format!("{text}, and is the only administrator"),
            "without a copy of its key, its loss ends all changes of membership: keep one, or make another administrator",
        );
    }
    Finding::good("store", text)
}

/// Branches of large pushes that were interrupted, on a server.
fn uploads(place: &Place, remove: bool) -> Option<Finding> {
    let storage = place.storage();
    let failed =
        |error: crate::storage::Error| Finding::trouble("uploads", &remote::Error::from(error).into());
    let found = match storage.leftovers() {
        Ok(found) => found,
        Err(error) => return Some(failed(error)),
    };
    // What the next push from here goes on with stays.
    let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|leftover| leftover.resumable);
    if !remove || others.is_empty() {
        let name = &others.first().or(own.first())?.name;
        let count = own.len() + others.len();
        let next = match others.is_empty() {
            true => "the next push of the same goes on with it",
            false => "unless a push is under way elsewhere: git-e2ee doctor --remove-stale removes them",
        };
        let text = format!("{count} branches of interrupted pushes, such as {name}");
        return Some(Finding::note("uploads", text, next));
    }
    for leftover in &others {
        if let Err(error) = storage.remove_leftover(leftover) {
            return Some(failed(error));
        }
    }
    let text = format!("removed {} branches of interrupted pushes", others.len());
    Some(Finding::good("uploads", text))
}

fn staging(path: &Path, remove: bool) -> Vec<Finding> {
    let failed =
        |error: crate::storage::Error| Finding::trouble("staging", &remote::Error::from(error).into());
    let directory = match Directory::new(path, durable::real()) {
        Ok(directory) => directory,
        Err(error) => return vec![failed(error)],
    };
    let stale = match directory.stale(STALE_AFTER) {
        Ok(stale) => stale,
        Err(error) => return vec![failed(error)],
    };
    if stale.is_empty() {
        return vec![Finding::good("staging", "no stale files")];
    }
    let bytes = amount(stale.iter().map(|file| file.bytes).sum(), Unit::Bytes);
    let count = stale.len();
    if !remove {
        let text = format!(
            "{count} files of interrupted pushes take {bytes} in {}",
            path.join(".staging").display()
        );
        let mut next = String::from("git-e2ee doctor --remove-stale removes them");
        if let Some(first) = stale.first() {
            next += &format!(", for example {}", shell_word(&first.path.display().to_string()));
        }
        return vec![Finding::note("staging", text, next)];
    }
    for file in &stale {
        if let Err(error) = directory.remove_stale(file) {
            return vec![failed(error)];
        }
    }
    vec![Finding::good(
        "staging",
        format!("removed {count} files of interrupted pushes, {bytes}"),
    )]
}
