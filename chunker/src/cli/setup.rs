//! Configuration and attributes.

use bstr::ByteSlice as _;
use ingot_engine::durable;
use ingot_engine::repository::{self, Repository};
use ingot_helper::cli::exit::{Failure, warn};
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::args::{Init, Install, Track};
use super::{App, PROGRAM, from_here};
use crate::attributes;

/// First line of the hook, by which it is known again.
const HOOK_MARK: &str = "# git-chunk: publishes chunks with every push";

/// Sets Git's configuration up.
pub fn install(repository: &mut Repository, args: &Install) -> Result<Report, Failure> {
    if args.remove {
        return remove(repository);
    }
    let program = match &args.program {
        Some(path) => quoted(&path.display().to_string()),
        None => PROGRAM.to_owned(),
    };
    configure(repository, &program)?;
    let mut text = format!("{} handles chunked files now\n", repository.git_dir().display());
    let mut hook = None;
    if args.pre_push {
        let path = hook_path(repository);
        write_hook(&path, &program)?;
        text += &format!("{} publishes chunks with every push\n", path.display());
        hook = Some(path.display().to_string());
    }
    Ok(Report::done(
        text,
        json!({"command": "install", "repository": repository.git_dir().display().to_string(), "hook": hook}),
    ))
}

fn configure(repository: &mut Repository, program: &str) -> Result<(), Failure> {
    repository.edit_config(|edit| {
        settings(program)
            .into_iter()
            .try_for_each(|(key, value)| edit.set(key, value))
    })?;
    Ok(())
}

/// What Git has to know of chunked files.
fn settings(program: &str) -> Vec<(String, String)> {
    [
        ("filter.chunk.process", format!("{program} filter-process")),
        ("filter.chunk.required", "true".to_owned()),
        ("diff.chunk.textconv", format!("{program} textconv")),
        ("merge.chunk.name", "chunked files".to_owned()),
        (
            "merge.chunk.driver",
            format!("{program} merge-driver %O %A %B %P"),
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn remove(repository: &mut Repository) -> Result<Report, Failure> {
    repository.edit_config(|edit| {
        for section in ["filter", "diff", "merge"] {
            edit.remove_section(section, Some(b"chunk".as_bstr()));
        }
        Ok::<(), repository::Error>(())
    })?;
    let path = hook_path(repository);
    if std::fs::read_to_string(&path).is_ok_and(|text| text.contains(HOOK_MARK)) {
        std::fs::remove_file(&path)
            .map_err(|error| Failure::failed(format!("cannot remove {}: {error}", path.display())))?;
    }
    Ok(Report::done(
        format!(
            "{} handles chunked files no more\n",
            repository.git_dir().display()
        ),
        json!({"command": "install", "removed": true}),
    ))
}

fn hook_path(repository: &Repository) -> std::path::PathBuf {
    let folder = match repository.config().path("core.hooksPath") {
        Ok(Some(folder)) => repository.work_dir().unwrap_or(repository.git_dir()).join(folder),
        _ => repository.common_dir().join("hooks"),
    };
    folder.join("pre-push")
}

fn write_hook(path: &std::path::Path, program: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    match std::fs::read_to_string(path) {
        Ok(text) if text.contains(HOOK_MARK) => {}
        Ok(_) => {
            return Err(
                Failure::failed(format!("{} is there already", path.display())).next(format!(
                    "add this line to it: {program} push --hook \"$1\" || exit 1"
                )),
            );
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let folder = path.parent().unwrap_or(std::path::Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let text = format!("#!/bin/sh\n{HOOK_MARK}\nexec {program} push --hook \"$1\"\n");
    durable::write_atomic(&durable::Real, path, text.as_bytes(), 0o755).map_err(crate::Error::from)?;
    Ok(())
}

/// For the shell that Git starts programs with.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Adds patterns, or lists them.
pub fn track(repository: &Repository, args: &Track) -> Result<Report, Failure> {
    if args.patterns.is_empty() {
        let patterns: Vec<String> = attributes::tracked(repository)?
            .into_iter()
            .map(|pattern| pattern.to_string())
            .collect();
        let text = patterns
            .iter()
            .fold(String::new(), |text, pattern| text + pattern + "\n");
        return Ok(Report::data(
            text,
            json!({"command": "track", "patterns": patterns}),
        ));
    }
    let tracked = attributes::track(repository, &args.patterns)?;
    if repository.config().string("filter.chunk.process").is_none() {
        warn("Git does not know of chunked files here; run: git chunk install");
    }
    let mut text = String::new();
    for one in &tracked {
        text += &match one.new {
            true => format!(
                "tracking '{}'; add .gitattributes to the next commit\n",
                one.pattern
            ),
            false => format!("'{}' is tracked already\n", one.pattern),
        };
    }
    let json: Vec<_> = tracked
        .iter()
        .map(|one| json!({"pattern": one.pattern, "new": one.new}))
        .collect();
    Ok(Report::done(text, json!({"command": "track", "tracked": json})))
}

/// Makes a repository.
pub fn init(app: &App, args: &Init) -> Result<Report, Failure> {
    let folder = match &args.folder {
        Some(folder) => from_here(app, folder),
        None => app.here.clone(),
    };
    let what = repository::Init {
        bare: false,
        format: match args.object_format.as_str() {
            "sha256" => gix_hash::Kind::Sha256,
            _ => gix_hash::Kind::Sha1,
        },
        branch: args.initial_branch.clone(),
        settings: settings(PROGRAM),
    };
    let repository = repository::init(&folder, &what)?;
    attributes::track(&repository, &args.track)?;
    Ok(Report::done(
        format!("made a repository in {}\n", repository.git_dir().display()),
        json!({"command": "init", "repository": repository.git_dir().display().to_string()}),
    ))
}
