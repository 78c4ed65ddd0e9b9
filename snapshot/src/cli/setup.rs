//! `init`, `track`, `untrack`, `tracked`.

use ingot_engine::durable;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::place;
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::{App, bad_machine};
use super::args::{Init, Track, Untrack};
use crate::archive::{self, Archive};
use crate::config::{self, Editor};
use crate::tracked::{Tracked, escape};
use crate::{show, transfer};

/// Makes what is missing: the configuration, and the repository.
pub fn init(app: &App, args: &Init) -> Result<Report, Failure> {
    let file = &app.places.config;
    let had_config = file.exists();
    let mut editor = Editor::open(file)?;
    if let Some(machine) = &args.machine {
        if !config::is_machine_name(machine) {
            return Err(bad_machine(machine));
        }
        editor.set("machine", machine);
    }
    if let Some(remote) = &args.remote {
        let url = transfer::location(remote, &app.places.home, &place::current_folder()?)?;
        editor.set_in("remote", "url", &url.to_string())?;
        if let Some(key) = &args.key {
            let key = place::current_folder()?.join(config::expand(key, &app.places.home));
            let text = key.to_str().map(str::to_owned);
            let text = text.ok_or_else(|| config::Error::NotText(key.clone()))?;
            editor.set_in("remote", "key", &text)?;
        }
    }
    if !had_config || args.machine.is_some() || args.remote.is_some() {
        editor.save(&durable::Real)?;
    }
    let setup = app.setup()?;
    let format = match args.object_format.as_str() {
        "sha256" => gix_hash::Kind::Sha256,
        _ => gix_hash::Kind::Sha1,
    };
    let made = match Archive::init(&setup.repository, &setup.machine, format) {
        Ok(_) => true,
        Err(archive::Error::Exists(_)) => false,
        Err(error) => return Err(error.into()),
    };
    if !made && had_config && args.machine.is_none() && args.remote.is_none() {
        return Err(archive::Error::Exists(setup.repository.clone()).into());
    }
    let text = format!(
        "Configuration: {}\nRepository of snapshots: {}{}\nMachine: {}\n{}",
        app.short(file),
        app.short(&setup.repository),
        if made { "" } else { " (was there)" },
        setup.machine,
        if setup.config.track.is_empty() {
            "Nothing is tracked yet; say what to keep with: rivet track PATH...\n"
        } else {
            ""
        },
    );
    let json = json!({
        "command": "init",
        "config": file.display().to_string(),
        "repository": setup.repository.display().to_string(),
        "machine": setup.machine,
        "made": made,
    });
    Ok(Report::done(text, json))
}

/// Adds patterns.
pub fn track(app: &App, args: &Track) -> Result<Report, Failure> {
    let config = app.config()?;
    let here = place::current_folder()?;
    let mut patterns = Vec::new();
    let mut missing = Vec::new();
    for path in &args.paths {
        let text = |path: &std::path::Path| {
            path.to_str()
                .map(str::to_owned)
                .ok_or_else(|| config::Error::NotText(path.to_owned()))
        };
        if args.pattern {
            patterns.push(text(path)?);
            continue;
        }
        let relative = config.relative(&here, path)?;
        if std::fs::symlink_metadata(config.root.join(&relative)).is_err() {
            missing.push(path.display().to_string());
        }
        let relative = text(&relative)?;
        patterns.push(if relative.is_empty() {
            ".".to_owned()
        } else {
            escape(&relative)
        });
    }
    if let Some(missing) = missing.first() {
        return Err(Failure::failed(format!("there is nothing at {missing}")));
    }
    Tracked::new(patterns.iter().map(String::as_str)).map_err(|error| Failure::usage(error.to_string()))?;
    let mut editor = Editor::open(&app.places.config)?;
    let added = editor.add("track", &patterns)?;
    if !added.is_empty() {
        editor.save(&durable::Real)?;
    }
    let lines: String = patterns
        .iter()
        .map(|pattern| match added.contains(pattern) {
            true => format!("Tracking {pattern}\n"),
            false => format!("{pattern} is tracked already\n"),
        })
        .collect();
    Ok(Report::done(lines, json!({"command": "track", "added": added})))
}

/// Takes patterns out, or leaves out what lies in a tracked folder.
pub fn untrack(app: &App, args: &Untrack) -> Result<Report, Failure> {
    let config = app.config()?;
    let here = place::current_folder()?;
    let mut editor = Editor::open(&app.places.config)?;
    let (mut removed, mut ignored, mut text) = (Vec::new(), Vec::new(), String::new());
    for path in &args.paths {
        let typed = path
            .to_str()
            .ok_or_else(|| config::Error::NotText(path.clone()))?
            .to_owned();
        let relative = config.relative(&here, path).ok();
        let relative = relative.as_deref().and_then(std::path::Path::to_str);
        let mut names = vec![typed.clone()];
        names.extend(relative.map(escape));
        let gone = editor.remove("track", &names)?;
        if !gone.is_empty() {
            text += &format!("Not tracking {} any more\n", gone.join(", "));
            removed.extend(gone);
        }
        // A folder above may still bring it along.
        let rest: Vec<&str> = config
            .track
            .iter()
            .filter(|pattern| !removed.contains(pattern))
            .map(String::as_str)
            .collect();
        let Some(relative) = relative.filter(|relative| !relative.is_empty()) else {
            continue;
        };
        if is_tracked(&rest, relative) {
            let rule = format!("/{}", escape(relative));
            if !editor.add("ignore", std::slice::from_ref(&rule))?.is_empty() {
                text += &format!("Leaving out {relative}, which lies in what is tracked\n");
            }
            ignored.push(rule);
        } else if removed.is_empty() {
            return Err(Failure::failed(format!("{typed} is not tracked")).next("see: rivet tracked"));
        }
    }
    editor.save(&durable::Real)?;
    let json = json!({"command": "untrack", "removed": removed, "ignored": ignored});
    Ok(Report::done(text, json))
}

fn is_tracked(patterns: &[&str], relative: &str) -> bool {
    let Ok(tracked) = Tracked::new(patterns.iter().copied()) else {
        return false;
    };
    let mut scope = tracked.root();
    for name in relative.split('/') {
        match tracked.enter(&scope, name.as_bytes()) {
            Some(next) => scope = next,
            None => return false,
        }
    }
    scope == crate::tracked::Scope::All
}

/// Lists patterns and rules.
pub fn tracked(app: &App) -> Result<Report, Failure> {
    let config = app.config()?;
    let mut text = format!("Root: {}\n", app.short(&config.root));
    if config.track.is_empty() {
        text += "Nothing is tracked; say what to keep with: rivet track PATH...\n";
    }
    for pattern in &config.track {
        text += &format!("{}\n", show::path(pattern.as_bytes()));
    }
    for rule in &config.ignore {
        text += &format!("left out: {}\n", show::path(rule.as_bytes()));
    }
    let json = json!({
        "command": "tracked",
        "root": config.root.display().to_string(),
        "track": config.track,
        "ignore": config.ignore,
    });
    Ok(Report::data(text, json))
}
