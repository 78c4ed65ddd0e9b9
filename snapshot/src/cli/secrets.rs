//! `secrets scan` and `secrets rules`.

use std::path::Path;

use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Progress as _;
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::place;
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::App;
use super::args::{Scan, Secrets, SecretsCommand};
use super::capture::{offender_json, offender_lines, skipped_lines};
use crate::capture::{Source, scan as scan_files};
use crate::config;
use crate::rooted::Root;
use crate::rules::Rules;
use crate::secrets::{AllowList, Scanner};
use crate::tracked::{Tracked, escape};

/// Looks for secrets, or lists what is looked for.
pub fn secrets(app: &App, args: &Secrets) -> Result<Report, Failure> {
    match &args.command {
        SecretsCommand::Scan(args) => scan(app, args),
        SecretsCommand::Rules => Ok(rules()),
    }
}

fn rules() -> Report {
    let all: Vec<_> = Scanner::rules().collect();
    let text = all.iter().fold(String::new(), |text, rule| {
        let kind = if rule.path { "path" } else { "content" };
        text + &format!("{:<32} {kind:<8} {}\n", rule.name, rule.what)
    });
    Report::data(text, json!({"command": "secrets rules", "rules": all}))
}

fn scan(app: &App, args: &Scan) -> Result<Report, Failure> {
    // The allow-list counts here as well, but no configuration is needed.
    let allow = match app.config() {
        Ok(config) => AllowList::new(&config.allow_secrets)?,
        Err(_) if !app.places.config.exists() => AllowList::default(),
        Err(failure) => return Err(failure),
    };
    let here = place::current_folder()?;
    let (mut text, mut json, mut found) = (String::new(), Vec::new(), false);
    let mut files = 0;
    for path in &args.paths {
        let whole = here.join(path);
        let (folder, name) = match (whole.parent(), whole.file_name()) {
            (Some(folder), Some(name)) if !whole.is_dir() => (folder, name.to_str()),
            _ => (whole.as_path(), Some(".")),
        };
        let name = name.ok_or_else(|| config::Error::NotText(path.clone()))?;
        let pattern = if name == "." {
            name.to_owned()
        } else {
            escape(name)
        };
        if std::fs::symlink_metadata(&whole).is_err() {
            return Err(Failure::failed(format!("there is nothing at {}", path.display())));
        }
        let captured = scan_one(app, folder, &pattern, &allow)?;
        files += captured.read;
        for offender in &captured.offenders {
            found = true;
            text += &offender_lines(offender);
            json.push(offender_json(offender));
        }
        text += &skipped_lines(&captured.skipped);
    }
    if !found {
        text += &format!("No secret was found in {files} files\n");
    }
    app.display.end();
    let code = match found {
        true => Code::Secret,
        false => Code::Done,
    };
    Ok(Report {
        code,
        ..Report::data(
            text,
            json!({"command": "secrets scan", "files": files, "offenders": json}),
        )
    })
}

fn scan_one(
    app: &App,
    folder: &Path,
    pattern: &str,
    allow: &AllowList,
) -> Result<crate::capture::Scanned, Failure> {
    let root = Root::open(folder)
        .map_err(|error| Failure::failed(format!("cannot open {}: {error}", folder.display())))?;
    let tracked = Tracked::new([pattern]).map_err(|error| Failure::failed(error.to_string()))?;
    let rules = Rules::new([]).map_err(|error| Failure::failed(error.to_string()))?;
    let source = Source {
        root: &root,
        tracked: &tracked,
        rules: &rules,
        allow,
        max_file_size: u64::MAX,
        cross_mounts: false,
        skip_caches: false,
        own: Vec::new(),
    };
    Ok(scan_files(&source, Level::BEST_SPEED, &app.display)?)
}
