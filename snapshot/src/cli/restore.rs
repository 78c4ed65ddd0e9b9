//! `restore` and `undo`.

use std::path::PathBuf;

use ingot_engine::durable;
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::place;
use ingot_helper::cli::report::Report;
use serde_json::{Value, json};

use super::app::{App, Setup};
use super::args::Restore;
use crate::archive;
use crate::capture;
use crate::restore::plan::{self, Question};
use crate::restore::{self as putting, Action, Conflict, Plan, Step};
use crate::rooted::Root;
use crate::show;

/// Puts files back.
pub fn restore(app: &App, mut args: Restore) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let archive = setup.archive()?;
    let id = match archive.resolve(args.snapshot.as_deref()) {
        // A first word that names no snapshot may be a path of the newest one.
        Err(error @ archive::Error::Unknown { .. }) => {
            let newest = archive.resolve(None)?;
            let word = args.snapshot.take().map(PathBuf::from).unwrap_or_default();
            let relative = setup.relative(&word).map_err(|_| Failure::from(error))?;
            if archive.reader()?.manifest(&newest)?.find(&relative).is_none() {
                let word = word.display();
                let message = format!("'{word}' is neither a snapshot nor a path of the newest one");
                return Err(Failure::failed(message).next("see: rivet list --all"));
            }
            args.paths.insert(0, word);
            newest
        }
        id => id?,
    };
    if args.packages {
        return super::packages::install(app, &archive, id);
    }
    let mut reader = archive.reader()?;
    let manifest = reader.manifest(&id)?;
    let saved = match archive.tip()? {
        Some(tip) if tip != id => Some(reader.manifest(&tip)?),
        Some(_) => Some(manifest.clone()),
        None => None,
    };
    let paths = args
        .paths
        .iter()
        .map(|path| setup.relative(path))
        .collect::<Result<Vec<_>, _>>()?;
    let root = target(&setup, &args)?;
    let present = match (&root, args.delete) {
        (Some(root), true) => Some(capture::look(&setup.source(root), &app.display)?),
        _ => None,
    };
    let question = Question {
        manifest: &manifest,
        paths: &paths,
        saved: saved.as_ref(),
        present: present.as_ref(),
        ignores_case: None,
    };
    let mut plan = plan::plan(&question, root.as_ref())?;
    if args.dry_run {
        return Ok(report(&plan, &id.to_string(), None));
    }
    let Some(root) = root else {
        return Err(Failure::failed("there is no folder to restore to"));
    };
    let _lock = setup.files().lock(app.patience())?;
    let undo = &app.places.undo;
    let done = putting::carry_out(&mut plan, &manifest, &reader, &root, undo, &app.display)?;
    Ok(report(&plan, &id.to_string(), Some(done)))
}

/// Where files go; `None` for a folder that a dry run does not make.
fn target(setup: &Setup, args: &Restore) -> Result<Option<Root>, Failure> {
    let Some(to) = &args.to else {
        return setup.root().map(Some);
    };
    let to = place::current_folder()?.join(to);
    if !to.exists() {
        if args.dry_run {
            return Ok(None);
        }
        durable::create_dirs(&durable::Real, &to, 0o700)
            .map_err(|error| Failure::failed(error.to_string()))?;
    }
    let opened = Root::open(&to);
    opened
        .map(Some)
        .map_err(|error| Failure::failed(format!("cannot open {}: {error}", to.display())))
}

fn report(plan: &Plan, id: &str, done: Option<putting::Restored>) -> Report {
    let mut text = String::new();
    if done.is_none() {
        for step in &plan.steps {
            text += &step_line(step);
        }
    }
    for conflict in &plan.conflicts {
        text += &conflict_line(conflict);
    }
    let nothing = plan.steps.is_empty() && plan.conflicts.is_empty();
    match done {
        Some(_) if nothing => text += "Everything is as the snapshot has it\n",
        None if nothing => text += "Everything is as the snapshot has it\n",
        Some(done) => {
            text += &format!(
                "Restored {} files and links, made {} folders, adjusted {}, took away {}; {} were as they should be\n",
                done.written, done.folders, done.adjusted, done.deleted, plan.unchanged
            );
            if done.written + done.deleted > 0 {
                text += "What was there before is kept: rivet undo\n";
            }
        }
        None => text += "This was a dry run: nothing was changed\n",
    }
    let code = match plan.conflicts.is_empty() {
        true => Code::Done,
        false => Code::Failed,
    };
    let json = json!({
        "command": "restore",
        "snapshot": id,
        "dry_run": done.is_none(),
        "steps": plan.steps.iter().map(step_json).collect::<Vec<_>>(),
        "conflicts": plan.conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
        "unchanged": plan.unchanged,
        "written": done.map_or(0, |done| done.written),
        "folders": done.map_or(0, |done| done.folders),
        "adjusted": done.map_or(0, |done| done.adjusted),
        "deleted": done.map_or(0, |done| done.deleted),
    });
    Report {
        text,
        json,
        code,
        essential: done.is_none() || code != Code::Done,
    }
}

fn word(action: &Action) -> &'static str {
    match action {
        Action::MakeFolder => "make",
        Action::Create => "create",
        Action::Replace(_) => "replace",
        Action::Adjust(_) => "adjust",
        Action::Delete(_) => "delete",
    }
}

fn step_line(step: &Step) -> String {
    let unsaved = match step.unsaved {
        true => " (what is there is in no snapshot; it will be kept for undo)",
        false => "",
    };
    format!("{:<8} {}{unsaved}\n", word(&step.action), show::path(&step.path))
}

fn step_json(step: &Step) -> Value {
    json!({"path": show::json(&step.path), "action": word(&step.action), "unsaved": step.unsaved})
}

fn conflict_line(conflict: &Conflict) -> String {
    format!(
        "conflict {}: {}\n",
        show::path(&conflict.path),
        conflict.obstacle.explain()
    )
}

fn conflict_json(conflict: &Conflict) -> Value {
    json!({"path": show::json(&conflict.path), "obstacle": conflict.obstacle.word()})
}

/// Takes the last restore back.
pub fn undo(app: &App) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let _lock = setup.files().lock(app.patience())?;
    let undone = putting::undo::undo(&app.places.undo, &app.display)?;
    let mut text = String::new();
    for conflict in &undone.conflicts {
        text += &conflict_line(conflict);
    }
    text += &format!("{} paths are as they were before the restore\n", undone.undone);
    if !undone.conflicts.is_empty() {
        text += &format!("What was kept is still below {}\n", app.short(&app.places.undo));
    }
    let code = match undone.conflicts.is_empty() {
        true => Code::Done,
        false => Code::Failed,
    };
    Ok(Report {
        text,
        json: json!({
            "command": "undo",
            "undone": undone.undone,
            "conflicts": undone.conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
        }),
        code,
        essential: code != Code::Done,
    })
}
