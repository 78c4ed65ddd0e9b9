//! Fetch, push, gc, prune, fsck, stats and migrate.

use std::fmt::Write as _;
use std::time::Duration;

use bstr::ByteSlice as _;
use ingot_engine::durable;
use ingot_engine::progress::{Progress as _, Unit};
use ingot_engine::repository::Repository;
use ingot_engine::transport::Direction;
use ingot_helper::cli::exit::{Code, Failure, warn};
use ingot_helper::cli::report::Report;
use serde_json::{Value, json};

use super::args::{Fetch, Fsck, Gc, Migrate, Prune, Push, Stats};
use super::{App, bytes, from_here, shown};
use crate::care::{self, Collected, Source};

fn source(
    app: &App,
    repository: &Repository,
    name: Option<&str>,
    direction: Direction,
) -> Result<Source, Failure> {
    // A path is meant from where the user stands.
    let from_here = name
        .map(|name| app.here.join(name))
        .filter(|path| path.is_dir())
        .map(|path| path.display().to_string());
    let configured =
        name.is_some_and(|name| repository.config().string(format!("remote.{name}.url")).is_some());
    let name = if configured {
        name
    } else {
        from_here.as_deref().or(name)
    };
    care::source(repository, name, direction, app.messages())?.ok_or_else(|| {
        Failure::failed("there is no remote to exchange chunks with")
            .next("name one, or the path of a repository")
    })
}

/// Gets chunks.
pub fn fetch(app: &App, repository: &Repository, args: &Fetch) -> Result<Report, Failure> {
    let source = source(app, repository, args.remote.as_deref(), Direction::Fetch)?;
    let store = repository.store().map_err(crate::Error::from)?;
    let pointers: Vec<_> = care::reachable(repository, &store, args.all, &app.display)?
        .into_iter()
        .map(|(_, pointer)| pointer)
        .collect();
    app.display.begin("Fetching chunks", None, Unit::Objects);
    let fetched = care::fetch(repository, &source, &pointers, &app.display)?;
    app.display.end();
    if fetched.absent > 0 {
        warn(&format!(
            "{} lists or chunks are not in '{}' either",
            fetched.absent, source.name
        ));
    }
    let mut report = Report::done(
        format!("{} chunks fetched, {}\n", fetched.objects, bytes(fetched.bytes)),
        json!({
            "command": "fetch",
            "source": source.name,
            "objects": fetched.objects,
            "bytes": fetched.bytes,
            "absent": fetched.absent,
        }),
    );
    if fetched.absent > 0 {
        report.code = Code::Partial;
    }
    Ok(report)
}

/// Publishes chunks.
pub fn push(app: &App, repository: &Repository, args: &Push) -> Result<Report, Failure> {
    if args.hook {
        // Nothing to do for a push that goes elsewhere, such as one that carries chunks by itself.
        let Some(source) = care::source(
            repository,
            args.remote.as_deref(),
            Direction::Push,
            app.messages(),
        )
        .ok()
        .flatten() else {
            return Ok(Report::done("", json!({"command": "push", "skipped": true})));
        };
        return publish(app, repository, &source);
    }
    let source = source(app, repository, args.remote.as_deref(), Direction::Push)?;
    publish(app, repository, &source)
}

fn publish(app: &App, repository: &Repository, source: &Source) -> Result<Report, Failure> {
    let pushed = care::push(repository, source, &app.display)?;
    if pushed.absent > 0 {
        warn(&format!(
            "{} lists or chunks are not here and were not published",
            pushed.absent
        ));
    }
    Ok(Report::done(
        format!("{} chunks published, {}\n", pushed.objects, bytes(pushed.bytes)),
        json!({
            "command": "push",
            "source": source.name,
            "objects": pushed.objects,
            "bytes": pushed.bytes,
            "absent": pushed.absent,
        }),
    ))
}

fn collected(command: &str, done: &Collected, dry_run: bool) -> Report {
    let (verb, becoming) = match dry_run {
        true => ("would be removed", "would become"),
        false => ("removed", "became"),
    };
    let mut text = format!(
        "{} objects in {} packs {verb}, {} freed; {} young packs spared\n",
        done.removed_objects,
        done.removed_packs,
        bytes(done.freed),
        done.young
    );
    if done.deltas > 0 {
        // Memory takes everything.
        let _ = writeln!(
            text,
            "{} chunks {becoming} differences from later ones, which saves {}",
            done.deltas,
            bytes(done.saved)
        );
    }
    Report::done(
        text,
        json!({
            "command": command,
            "dry_run": dry_run,
            "packs": done.packs,
            "removed_packs": done.removed_packs,
            "removed_objects": done.removed_objects,
            "freed": done.freed,
            "young": done.young,
            "united_packs": done.united_packs,
            "deltas": done.deltas,
            "saved": done.saved,
        }),
    )
}

/// Collects garbage.
pub fn gc(app: &App, repository: &Repository, args: &Gc) -> Result<Report, Failure> {
    let options = care::Collection {
        grace: Duration::from_secs(args.grace.saturating_mul(24 * 60 * 60)),
        dry_run: args.dry_run,
    };
    let done = care::collect(repository, options, &app.display)?;
    Ok(collected("gc", &done, args.dry_run))
}

/// Removes what another repository has.
pub fn prune(app: &App, repository: &Repository, args: &Prune) -> Result<Report, Failure> {
    let source = source(app, repository, args.remote.as_deref(), Direction::Fetch)?;
    let done = care::prune(repository, &source, args.all, args.dry_run, &app.display)?;
    Ok(collected("prune", &done, args.dry_run))
}

/// Checks.
pub fn fsck(app: &App, repository: &Repository, args: &Fsck) -> Result<Report, Failure> {
    app.display.begin("Checking chunks", None, Unit::Objects);
    let checked = care::fsck(repository, args.quick, &app.display)?;
    app.display.end();
    let mut text = String::new();
    let mut list = Vec::new();
    for damage in &checked.damage {
        let path = damage
            .path
            .as_ref()
            .map_or("an earlier version".to_owned(), |path| {
                format!("'{}'", shown(path.as_bstr()))
            });
        // Memory takes everything.
        let _ = writeln!(text, "{path}: {}", damage.message);
        list.push(json!({
            "path": damage.path.as_ref().map(ToString::to_string),
            "id": damage.id.map(|id| id.to_string()),
            "offset": damage.offset,
            "message": damage.message,
            "missing": damage.missing,
        }));
    }
    let _ = writeln!(
        text,
        "{} files with {} checked, {} faults",
        checked.files,
        bytes(checked.bytes),
        checked.damage.len()
    );
    let damaged = checked.damage.iter().any(|damage| !damage.missing);
    let code = match (damaged, checked.damage.is_empty()) {
        (true, _) => Code::Integrity,
        (false, false) => Code::Failed,
        (false, true) => Code::Done,
    };
    Ok(Report {
        code,
        ..Report::data(
            text,
            json!({
                "command": "fsck",
                "files": checked.files,
                "bytes": checked.bytes,
                "damage": list,
            }),
        )
    })
}

/// Counts.
pub fn stats(app: &App, repository: &Repository, args: &Stats) -> Result<Report, Failure> {
    let stats = care::stats(repository, args.history || args.svg.is_some(), &app.display)?;
    if let Some(path) = &args.svg {
        let path = from_here(app, path);
        durable::write_atomic(
            &durable::Real,
            &path,
            care::chart(&stats.history).as_bytes(),
            0o644,
        )
        .map_err(crate::Error::from)?;
    }
    let mut text = String::new();
    let _ = writeln!(text, "versions       {:>12}", stats.versions);
    let _ = writeln!(text, "logical        {:>12}", bytes(stats.logical));
    let _ = writeln!(
        text,
        "deduplicated   {:>12}  in {} chunks",
        bytes(stats.deduplicated),
        stats.chunks
    );
    let _ = writeln!(text, "stored         {:>12}", bytes(stats.stored));
    if !stats.files.is_empty() {
        text.push('\n');
    }
    for file in &stats.files {
        let state = if file.complete { "" } else { "  incomplete" };
        let _ = writeln!(
            text,
            "{:>12} {:>8} chunks {:>12} of its own  {}{state}",
            bytes(file.size),
            file.chunks,
            bytes(file.unique),
            shown(file.path.as_bstr())
        );
    }
    if args.history {
        text.push('\n');
        for point in &stats.history {
            let _ = writeln!(
                text,
                "{} {:>12} {:>12}",
                point.id.to_hex_with_len(7),
                bytes(point.logical),
                bytes(point.deduplicated)
            );
        }
    }
    let files: Vec<Value> = stats
        .files
        .iter()
        .map(|file| {
            json!({
                "path": file.path.to_string(),
                "size": file.size,
                "chunks": file.chunks,
                "unique": file.unique,
                "complete": file.complete,
            })
        })
        .collect();
    let history: Vec<Value> = stats
        .history
        .iter()
        .map(|point| {
            json!({
                "id": point.id.to_string(),
                "time": point.time,
                "logical": point.logical,
                "deduplicated": point.deduplicated,
            })
        })
        .collect();
    Ok(Report::data(
        text,
        json!({
            "command": "stats",
            "versions": stats.versions,
            "logical": stats.logical,
            "deduplicated": stats.deduplicated,
            "chunks": stats.chunks,
            "stored": stats.stored,
            "files": files,
            "history": history,
        }),
    ))
}

/// Rewrites history.
pub fn migrate(app: &App, repository: &Repository, args: &Migrate) -> Result<Report, Failure> {
    let migration = care::Migration {
        patterns: args.patterns.clone(),
        above: args.above,
        back: args.back,
        dry_run: args.dry_run,
    };
    app.display.begin("Rewriting commits", None, Unit::Objects);
    let done = care::migrate(repository, &migration, &app.display)?;
    app.display.end();
    let mut text = String::new();
    for (name, old, new) in &done.references {
        let _ = writeln!(
            text,
            "{} {} -> {}",
            shown(name.as_bstr()),
            old.to_hex_with_len(7),
            new.to_hex_with_len(7)
        );
    }
    let verb = if args.dry_run {
        "would be converted"
    } else {
        "converted"
    };
    let _ = writeln!(
        text,
        "{} files with {} {verb}, {} of {} commits changed",
        done.files,
        bytes(done.bytes),
        done.changed_commits,
        done.commits
    );
    let references: Vec<Value> = done
        .references
        .iter()
        .map(|(name, old, new)| json!({"name": name.to_string(), "old": old.to_string(), "new": new.to_string()}))
        .collect();
    Ok(Report::done(
        text,
        json!({
            "command": "migrate",
            "dry_run": args.dry_run,
            "files": done.files,
            "bytes": done.bytes,
            "commits": done.commits,
            "changed_commits": done.changed_commits,
            "references": references,
        }),
    ))
}
