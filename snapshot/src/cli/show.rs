//! `list`, `show`, `diff`.

use gix_hash::ObjectId;
use ingot_engine::pack::inflate::Level;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::report::Report;
use serde_json::{Value, json};

use super::app::{App, Setup};
use super::args::{Diff, List, Show};
use super::capture::{change_json, skipped_lines};
use crate::archive::{self, Archive, Snapshot};
use crate::capture::{self, Change, Options, What};
use crate::diff::{self, Side};
use crate::manifest::{Entry, EntryRef, Kind, KindRef, Manifest};
use crate::{prune, show};

/// Lists snapshots.
pub fn list(app: &App, args: &List) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let archive = setup.archive()?;
    let mut text = String::new();
    let mut rows = Vec::new();
    let branches = archive.branches()?;
    for branch in &branches {
        let own = branch.machine == setup.machine && !branch.fetched;
        // What was fetched of this machine is what it pushed.
        let known = !own
            && branches
                .iter()
                .any(|other| !other.fetched && other.tip == branch.tip);
        if known || !(own || args.all) {
            continue;
        }
        for snapshot in archive
            .history(branch.tip)?
            .iter()
            .take(args.max_count.unwrap_or(usize::MAX))
        {
            let subject = snapshot.commit.message.lines().next().unwrap_or_default();
            text += &format!(
                "{}  {}  {}  {}\n",
                snapshot.id.to_hex_with_len(12),
                time(snapshot),
                show::path(branch.machine.as_bytes()),
                show::path(subject.as_bytes()),
            );
            rows.push(json!({
                "snapshot": snapshot.id.to_string(),
                "machine": branch.machine,
                "fetched": branch.fetched,
                "time": snapshot.commit.seconds,
                "message": snapshot.commit.message,
            }));
        }
    }
    if rows.is_empty() {
        text = "There is no snapshot yet\n".to_owned();
    }
    Ok(Report::data(text, json!({"command": "list", "snapshots": rows})))
}

fn time(snapshot: &Snapshot) -> String {
    prune::local_time(snapshot).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Shows what a snapshot holds.
pub fn show(app: &App, args: &Show) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let archive = setup.archive()?;
    let id = archive.resolve(args.snapshot.as_deref())?;
    let mut reader = archive.reader()?;
    let commit = reader.commit(&id)?;
    let manifest = reader.manifest(&id)?;
    let snapshot = Snapshot { id, commit };
    let mut text = format!(
        "Snapshot {id}\nMachine {}, {}\n{}\n\n",
        show::path(snapshot.commit.author.as_bytes()),
        time(&snapshot),
        show::path(snapshot.commit.message.as_bytes()),
    );
    if args.skipped {
        for skip in &manifest.skipped {
            text += &format!("{}: {}\n", show::path(&skip.path), skip.reason.explain());
        }
    } else {
        for entry in &manifest.entries {
            text += &entry_line(entry);
        }
        text += &skipped_lines(&manifest.skipped);
    }
    let json = json!({
        "command": "show",
        "snapshot": id.to_string(),
        "machine": snapshot.commit.author,
        "time": snapshot.commit.seconds,
        "message": snapshot.commit.message,
        "secret_scan_version": manifest.secret_scan_version,
        "entries": manifest.entries.iter().map(entry_json).collect::<Vec<_>>(),
        "skipped": manifest.skipped.iter()
            .map(|skip| json!({"path": show::json(&skip.path), "reason": skip.reason.word()}))
            .collect::<Vec<_>>(),
    });
    Ok(Report::data(text, json))
}

fn entry_line(entry: &Entry) -> String {
    let path = show::path(&entry.path);
    match &entry.kind {
        Kind::Folder => format!("{:04o} {:>12} {path}/\n", entry.mode, "-"),
        Kind::File(content) => format!("{:04o} {:>12} {path}\n", entry.mode, content.size),
        Kind::Link { target, .. } => {
            format!(
                "{:04o} {:>12} {path} -> {}\n",
                entry.mode,
                "link",
                show::path(target)
            )
        }
    }
}

fn entry_json(entry: &Entry) -> Value {
    let mut json = json!({
        "path": show::json(&entry.path),
        "mode": format!("{:04o}", entry.mode),
        "mtime": entry.mtime.seconds,
        "mtime_ns": entry.mtime.nanoseconds,
    });
    match &entry.kind {
        Kind::Folder => json["kind"] = "folder".into(),
        Kind::File(content) => {
            json["kind"] = "file".into();
            json["size"] = content.size.into();
            json["blake3"] = data_encoding::HEXLOWER.encode(&content.blake3).into();
            json["git"] = content.id.to_string().into();
            if let Some(first) = &entry.hard_link {
                json["hard_link"] = show::json(first);
            }
        }
        Kind::Link { target, id } => {
            json["kind"] = "link".into();
            json["target"] = show::json(target);
            json["git"] = id.to_string().into();
        }
    }
    json
}

/// Compares.
pub fn diff(app: &App, args: &Diff) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let archive = setup.archive()?;
    let a = archive.resolve(args.a.as_deref())?;
    let old = archive.reader()?.manifest(&a)?;
    match &args.b {
        Some(b) => {
            let b = archive.resolve(Some(b))?;
            let new = archive.reader()?.manifest(&b)?;
            let mut side = Side::Stored(Box::new(archive.reader()?));
            compare(&archive, (&old, &new), &mut side, args, (a, Some(b)))
        }
        None => {
            let root = setup.root()?;
            let new = present(app, &setup, &archive)?;
            let mut side = Side::Present(&root);
            compare(&archive, (&old, &new), &mut side, args, (a, None))
        }
    }
}

/// What is there now, as a manifest.
fn present(app: &App, setup: &Setup, archive: &Archive) -> Result<Manifest, Failure> {
    let root = setup.root()?;
    let options = Options {
        rehash: false,
        store: false,
        list: false,
        message: None,
        packages: None,
        level: Level::BEST_SPEED,
        fs: Archive::fs(),
        progress: &app.display,
    };
    Ok(capture::present(archive, &setup.source(&root), &options)?)
}

fn compare(
    archive: &Archive,
    (old, new): (&Manifest, &Manifest),
    new_side: &mut Side<'_>,
    args: &Diff,
    (a, b): (ObjectId, Option<ObjectId>),
) -> Result<Report, Failure> {
    let mut differences: Vec<(What, Option<EntryRef<'_>>, Option<EntryRef<'_>>)> = Vec::new();
    capture::compare(
        old.entries.iter().map(Entry::borrow),
        new.entries.iter().map(Entry::borrow),
        &mut |what, old, new| differences.push((what, old, new)),
    );
    let mut old_side = Side::Stored(Box::new(archive.reader()?));
    let (mut text, mut rows) = (String::new(), Vec::new());
    let (mut added, mut removed, mut files) = (0, 0, 0);
    for (what, old, new) in &differences {
        let file = diff::file(*what, old.as_ref(), new.as_ref(), (&mut old_side, new_side));
        let file = file.map_err(archive::Error::from)?;
        let Some(entry) = new.as_ref().or(old.as_ref()) else {
            continue;
        };
        files += 1;
        added += file.added;
        removed += file.removed;
        if args.stat {
            let lines = match file.binary {
                true => "binary".to_owned(),
                false => format!("+{} -{}", file.added, file.removed),
            };
            text += &format!("{} {} | {lines}\n", what.letter(), show::path(entry.path));
        } else {
            text += &file.text;
        }
        let mut row = change_json(&Change {
            path: entry.path.to_vec(),
            what: *what,
            is_folder: entry.kind == KindRef::Folder,
        });
        row["added_lines"] = file.added.into();
        row["removed_lines"] = file.removed.into();
        row["binary"] = file.binary.into();
        if !args.stat {
            row["text"] = file.text.into();
        }
        rows.push(row);
    }
    if args.stat {
        text += &format!("{files} files, {added} lines added, {removed} removed\n");
    }
    let json = json!({
        "command": "diff",
        "a": a.to_string(),
        "b": b.map(|id| id.to_string()),
        "files": rows,
    });
    Ok(Report::data(text, json))
}
