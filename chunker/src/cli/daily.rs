//! Add, commit, switch, restore, status, log and diff.

use bstr::{BString, ByteSlice as _};
use ingot_engine::progress::{Progress as _, Unit};
use ingot_engine::repository::Repository;
use ingot_helper::cli::exit::{Code, Failure, warn};
use ingot_helper::cli::report::Report;
use serde_json::{Value, json};

use super::args::{Add, Checkout, Commit, Diff, Log, Restore, Status, Switch};
use super::{App, bytes, shown};
use crate::repo::add::{self, specs};
use crate::repo::checkout::{self, Summary};
use crate::repo::commit;
use crate::repo::{history, status};

fn whole_tree() -> Vec<BString> {
    vec![BString::default()]
}

/// Puts files into the index.
pub fn add(app: &App, repository: &Repository, args: &Add) -> Result<Report, Failure> {
    let specs = match args.paths.is_empty() {
        true => whole_tree(),
        false => specs(repository, &app.here, &args.paths)?,
    };
    let options = add::Options {
        force: args.force,
        update: args.update,
    };
    app.display.begin("Adding", None, Unit::Bytes);
    let summary = add::add(repository, &specs, options, &app.display)?;
    app.display.end();
    for path in &summary.repositories {
        warn(&format!(
            "'{}' is a repository of its own and was left out",
            shown(path.as_bstr())
        ));
    }
    let text = format!(
        "{} added, {} of them chunked with {} of new chunks; {} removed\n",
        summary.added.len(),
        summary.chunked,
        bytes(summary.new_chunk_bytes),
        summary.removed.len()
    );
    Ok(Report::done(
        text,
        json!({
            "command": "add",
            "added": names(&summary.added),
            "chunked": summary.chunked,
            "new_chunk_bytes": summary.new_chunk_bytes,
            "removed": names(&summary.removed),
            "repositories": names(&summary.repositories),
        }),
    ))
}

fn names(paths: &[BString]) -> Vec<String> {
    paths.iter().map(|path| path.to_string()).collect()
}

/// Records the index.
pub fn commit(app: &App, repository: &Repository, args: &Commit) -> Result<Report, Failure> {
    if args.all {
        let options = add::Options {
            force: false,
            update: true,
        };
        add::add(repository, &whole_tree(), options, &app.display)?;
    }
    let mut message = args.message.join("\n\n");
    if message.is_empty() && args.amend {
        let last = history::log(repository, None, 1)?;
        message = last
            .first()
            .map(|entry| entry.message.to_string())
            .unwrap_or_default();
    }
    let options = commit::Options {
        message,
        allow_empty: args.allow_empty,
        amend: args.amend,
        unsigned: args.no_gpg_sign,
    };
    let made = commit::commit(repository, &options)?;
    let branch = made
        .branch
        .as_ref()
        .map_or("detached HEAD".to_owned(), ToString::to_string);
    let root = if made.root { " (root-commit)" } else { "" };
    Ok(Report::done(
        format!(
            "[{branch}{root} {}] {}\n",
            made.id.to_hex_with_len(7),
            made.subject
        ),
        json!({
            "command": "commit",
            "id": made.id.to_string(),
            "branch": made.branch.map(|branch| branch.to_string()),
            "subject": made.subject,
        }),
    ))
}

/// Switches, or restores files.
pub fn checkout(app: &App, repository: &Repository, args: Checkout) -> Result<Report, Failure> {
    if !args.paths.is_empty() {
        let restore = checkout::Restore {
            source: args.target,
            // As with Git: naming files is asking for them.
            force: true,
            pointers: false,
        };
        let specs = specs(repository, &app.here, &args.paths)?;
        let summary = checkout::restore(repository, &specs, &restore, &app.display)?;
        return Ok(written("checkout", &summary));
    }
    let (target, create) = match (args.create, args.target) {
        (Some(branch), start) => (branch, Some(start)),
        (None, Some(target)) => (target, None),
        (None, None) => return Err(Failure::usage("name a branch, a commit, or files after --")),
    };
    let switch = checkout::Switch {
        target,
        create: create.is_some(),
        start: create.flatten(),
        detach: false,
        force: args.force,
    };
    switch_to(app, repository, &switch, "checkout")
}

/// Switches.
pub fn switch(app: &App, repository: &Repository, args: Switch) -> Result<Report, Failure> {
    let switch = match (args.create, args.target) {
        (Some(branch), start) => checkout::Switch {
            target: branch,
            create: true,
            start,
            detach: false,
            force: args.force,
        },
        (None, Some(target)) => checkout::Switch {
            target,
            create: false,
            start: None,
            detach: args.detach,
            force: args.force,
        },
        (None, None) => return Err(Failure::usage("name a branch")),
    };
    switch_to(app, repository, &switch, "switch")
}

fn switch_to(
    app: &App,
    repository: &Repository,
    switch: &checkout::Switch,
    command: &str,
) -> Result<Report, Failure> {
    app.display.begin("Writing files", None, Unit::Files);
    let summary = checkout::switch(repository, switch, &app.display)?;
    app.display.end();
    let mut report = written(command, &summary);
    report.text = format!("on '{}'; {}", switch.target, report.text);
    Ok(report)
}

fn written(command: &str, summary: &Summary) -> Report {
    for (path, reason) in &summary.pointers {
        warn(&format!("'{}' stays a pointer: {reason}", shown(path.as_bstr())));
    }
    let pointers: Vec<Value> = summary
        .pointers
        .iter()
        .map(|(path, reason)| json!({"path": path.to_string(), "reason": reason}))
        .collect();
    let code = match summary.pointers.is_empty() {
        true => Code::Done,
        false => Code::Partial,
    };
    let report = Report::done(
        format!("{} files written, {} removed\n", summary.written, summary.removed),
        json!({
            "command": command,
            "written": summary.written,
            "removed": summary.removed,
            "bytes": summary.bytes,
            "pointers": pointers,
        }),
    );
    Report { code, ..report }
}

/// Writes files anew.
pub fn restore(app: &App, repository: &Repository, args: &Restore) -> Result<Report, Failure> {
    let specs = match args.paths.is_empty() {
        true => whole_tree(),
        false => specs(repository, &app.here, &args.paths)?,
    };
    let restore = checkout::Restore {
        source: args.source.clone(),
        force: args.force,
        pointers: args.paths.is_empty(),
    };
    app.display.begin("Writing files", None, Unit::Files);
    let summary = checkout::restore(repository, &specs, &restore, &app.display)?;
    app.display.end();
    Ok(written("restore", &summary))
}

/// Shows what differs.
pub fn status(repository: &Repository, args: &Status) -> Result<Report, Failure> {
    let status = status::status(repository)?;
    let mut text = String::new();
    for line in &status.lines {
        let letters = [line.staged.letter(), line.unstaged.letter()];
        text.extend(letters);
        text.push(' ');
        match args.nul {
            true => {
                text.push_str(&line.path.to_string());
                text.push('\0');
            }
            false => {
                text.push_str(&shown(line.path.as_bstr()));
                text.push('\n');
            }
        }
    }
    if !args.nul {
        for path in &status.pointers {
            text += &format!("only the pointer is here: {}\n", shown(path.as_bstr()));
        }
    }
    let lines: Vec<Value> = status
        .lines
        .iter()
        .map(|line| {
            json!({
                "path": line.path.to_string(),
                "staged": line.staged.letter().to_string(),
                "unstaged": line.unstaged.letter().to_string(),
            })
        })
        .collect();
    Ok(Report::data(
        text,
        json!({
            "command": "status",
            "branch": status.branch.as_ref().map(ToString::to_string),
            "head": status.head.map(|id| id.to_string()),
            "files": lines,
            "pointers": names(&status.pointers),
        }),
    ))
}

/// Shows commits.
pub fn log(repository: &Repository, args: &Log) -> Result<Report, Failure> {
    let limit = args.max_count.unwrap_or(usize::MAX);
    let entries = history::log(repository, args.start.as_deref(), limit)?;
    let mut text = String::new();
    for entry in &entries {
        if args.oneline {
            text += &format!(
                "{} {}\n",
                entry.id.to_hex_with_len(7),
                history::subject(&entry.message)
            );
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text += &format!("commit {}\nAuthor: {}\n\n", entry.id, entry.author);
        for line in entry.message.lines() {
            text += &format!("    {}\n", line.as_bstr());
        }
    }
    let json: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "id": entry.id.to_string(),
                "parents": entry.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "author": entry.author.to_string(),
                "time": entry.time,
                "message": entry.message.to_string(),
            })
        })
        .collect();
    Ok(Report::data(text, json!({"command": "log", "commits": json})))
}

/// Shows which files differ.
pub fn diff(repository: &Repository, args: &Diff) -> Result<Report, Failure> {
    let changed = history::diff(repository, args.from.as_deref(), args.to.as_deref())?;
    let mut text = String::new();
    for one in &changed {
        text += &format!("{}\t{}", one.letter.letter(), shown(one.path.as_bstr()));
        if let Some(chunked) = &one.chunked {
            let size = |size: Option<u64>| size.map_or("not chunked".to_owned(), bytes);
            text += &format!("\t{} -> {}", size(chunked.before), size(chunked.after));
            if let Some(count) = chunked.new_chunks {
                text += &format!(", {count} new chunks");
            }
        }
        text.push('\n');
    }
    let json: Vec<Value> = changed
        .iter()
        .map(|one| {
            json!({
                "path": one.path.to_string(),
                "change": one.letter.letter().to_string(),
                "size_before": one.chunked.and_then(|chunked| chunked.before),
                "size_after": one.chunked.and_then(|chunked| chunked.after),
                "new_chunks": one.chunked.and_then(|chunked| chunked.new_chunks),
            })
        })
        .collect();
    Ok(Report::data(text, json!({"command": "diff", "files": json})))
}
