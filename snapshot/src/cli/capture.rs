//! `snapshot` and `status`.

use ingot_engine::pack::inflate::Level;
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::report::Report;
use serde_json::{Value, json};

use super::app::{App, Setup};
use super::args::{Snapshot, Status};
use crate::archive::Archive;
use crate::capture::{self, Captured, Change, Error, Offender, Options, What, capture};
use crate::manifest::Skip;
use crate::show;

/// How many lines of what was skipped are shown; the rest is counted.
const SHOWN: usize = 20;

/// Captures.
pub fn snapshot(app: &App, args: &Snapshot) -> Result<Report, Failure> {
    let setup = app.setup()?;
    once(app, &setup, args.message.clone(), args.rehash)
}

/// Captures once, under the lock.
pub fn once(app: &App, setup: &Setup, message: Option<String>, rehash: bool) -> Result<Report, Failure> {
    require_patterns(setup)?;
    let root = setup.root()?;
    let files = setup.files();
    let _lock = files.lock(app.patience())?;
    let options = Options {
        rehash,
        store: true,
        list: false,
        message,
        packages: super::packages::document(setup, app)?,
        level: Level::BEST_SPEED,
        fs: Archive::fs(),
        progress: &app.display,
    };
    let captured = match capture(
        &files,
        &setup.repository,
        &setup.machine,
        &setup.source(&root),
        &options,
    ) {
        Err(Error::Blocked(offenders)) => return Ok(blocked("snapshot", &offenders)),
        captured => captured?,
    };
    let counts = &captured.counts;
    let mut text = match captured.snapshot {
        Some(id) => format!(
            "Snapshot {}: {} added, {} changed, {} removed, {} as before{}\n",
            id.to_hex_with_len(12),
            counts.added,
            counts.modified + counts.touched,
            counts.removed,
            counts.unchanged,
            match captured.packages_changed {
                true => ", packages changed",
                false => "",
            },
        ),
        None => match captured.before {
            Some(id) => format!("Nothing has changed since snapshot {}\n", id.to_hex_with_len(12)),
            None => "There is nothing to capture\n".to_owned(),
        },
    };
    text += &skipped_lines(&captured.skipped);
    let mut json = document("snapshot", &captured);
    json["read"] = captured.read.into();
    json["stored_bytes"] = captured.stored.into();
    let code = code(&captured);
    Ok(Report {
        text,
        json,
        code,
        essential: code != Code::Done,
    })
}

/// Shows what a capture would change.
pub fn status(app: &App, args: &Status) -> Result<Report, Failure> {
    let setup = app.setup()?;
    require_patterns(&setup)?;
    let root = setup.root()?;
    let options = Options {
        rehash: args.rehash,
        store: false,
        list: true,
        message: None,
        packages: super::packages::document(&setup, app)?,
        level: Level::BEST_SPEED,
        fs: Archive::fs(),
        progress: &app.display,
    };
    let files = setup.files();
    let captured = capture(
        &files,
        &setup.repository,
        &setup.machine,
        &setup.source(&root),
        &options,
    )?;
    let mut text = String::new();
    for change in &captured.changes {
        text += &line(change);
    }
    if captured.packages_changed {
        text += "  the list of installed packages\n";
    }
    if text.is_empty() {
        text = match captured.before {
            Some(id) => format!("Nothing has changed since snapshot {}\n", id.to_hex_with_len(12)),
            None => "There is nothing to capture\n".to_owned(),
        };
    }
    for offender in &captured.offenders {
        text += &offender_lines(offender);
    }
    if !captured.offenders.is_empty() {
        text += "Files with secrets block the next snapshot.\n";
    }
    text += &skipped_lines(&captured.skipped);
    let mut json = document("status", &captured);
    json["changes"] = captured.changes.iter().map(change_json).collect();
    json["offenders"] = captured.offenders.iter().map(offender_json).collect();
    Ok(Report {
        code: code(&captured),
        ..Report::data(text, json)
    })
}

fn require_patterns(setup: &Setup) -> Result<(), Failure> {
    match setup.config.track.is_empty() {
        true => Err(Failure::failed("nothing is tracked").next("say what to keep with: rivet track PATH...")),
        false => Ok(()),
    }
}

fn code(captured: &Captured) -> Code {
    match captured.skipped.iter().any(|skip| skip.reason.is_trouble()) {
        true => Code::Partial,
        false => Code::Done,
    }
}

fn document(command: &str, captured: &Captured) -> Value {
    json!({
        "command": command,
        "snapshot": captured.snapshot.map(|id| id.to_string()),
        "before": captured.before.map(|id| id.to_string()),
        "added": captured.counts.added,
        "modified": captured.counts.modified,
        "touched": captured.counts.touched,
        "removed": captured.counts.removed,
        "unchanged": captured.counts.unchanged,
        "packages_changed": captured.packages_changed,
        "skipped": captured.skipped.iter().map(skip_json).collect::<Vec<_>>(),
    })
}

/// What blocks a capture, all of it: whoever repairs the first file wants to know of the second.
pub fn blocked(command: &str, offenders: &[Offender]) -> Report {
    let mut text = String::new();
    for offender in offenders {
        text += &offender_lines(offender);
    }
    let files = match offenders.len() {
        1 => "1 file has".to_owned(),
        count => format!("{count} files have"),
    };
    text += &format!("{files} what looks like a secret. Nothing was stored.\n");
    Report {
        text,
        json: json!({
            "command": command,
            "blocked": true,
            "offenders": offenders.iter().map(offender_json).collect::<Vec<_>>(),
        }),
        code: Code::Secret,
        essential: true,
    }
}

/// A file with secrets, one line for each and one for what to do.
pub fn offender_lines(offender: &Offender) -> String {
    let mut text = String::new();
    for finding in &offender.findings {
        let place = match finding.line {
            0 => show::path(&offender.path),
            line => format!("{}:{line}", show::path(&offender.path)),
        };
        text += &format!(
            "{place}: {} ({}) {}\n    {}\n",
            finding.what, finding.rule, finding.redacted, finding.how_to_allow
        );
    }
    text
}

/// The same for programs.
pub fn offender_json(offender: &Offender) -> Value {
    json!({
        "path": show::json(&offender.path),
        "findings": offender.findings,
    })
}

fn skip_json(skip: &Skip) -> Value {
    json!({"path": show::json(&skip.path), "reason": skip.reason.word()})
}

/// Lines for what was not captured: everything that is trouble, and some of the rest.
pub fn skipped_lines(skipped: &[Skip]) -> String {
    let mut text = String::new();
    let mut shown = 0;
    for skip in skipped {
        if skip.reason.is_trouble() || shown < SHOWN {
            shown += 1;
            text += &format!(
                "Not captured: {}: {}\n",
                show::path(&skip.path),
                skip.reason.explain()
            );
        }
    }
    if skipped.len() > shown {
        text += &format!(
            "Not captured: {} more; see: rivet show --skipped\n",
            skipped.len() - shown
        );
    }
    text
}

/// A change as a line.
pub fn line(change: &capture::Change) -> String {
    let slash = if change.is_folder { "/" } else { "" };
    format!("{} {}{slash}\n", change.what.letter(), show::path(&change.path))
}

/// A change for programs.
pub fn change_json(change: &Change) -> Value {
    let what: What = change.what;
    json!({"path": show::json(&change.path), "change": what.word(), "folder": change.is_folder})
}
