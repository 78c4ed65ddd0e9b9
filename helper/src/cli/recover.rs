//! `recover`: what is left of a damaged store, and a head in place of a wrong one.

use serde_json::{Value, json};

use super::app::{App, bytes};
use super::args;
use super::exit::{Code, Failure, one_line};
use super::report::Report;
use crate::config::Remote;
use crate::remote::recover::{self, Class, Options};
use bstr::ByteSlice as _;

/// Reports, and publishes where that is asked for.
pub fn run(app: &App, args: &args::Recover) -> Result<Report, Failure> {
    let base = match &args.base {
        None => None,
        Some(text) => {
            let id = text.parse();
            Some(id.map_err(|error| Failure::usage(format!("--base {text}: {error}")))?)
        }
    };
    let mut found = app.found_of(&args.store)?;
    if let Some(name) = &args.remote_name {
        let name = bytes(name)?;
        let remote = Remote::find(&found.settings, name.as_bstr());
        let unknown = || Failure::usage(format!("no remote is called {name}"));
        found.remote = Some(remote.ok_or_else(unknown)?);
    }
    let place = found.only()?;
    let options = Options {
        publish: args.publish,
        base,
        discard_newer: args.discard_newer,
        accept_stale_floor: args.accept_stale_floor,
    };
    let report = place.remote(&app.display).recover(&place.key_file, &options)?;
    Ok(Report {
        code: code(&report),
        ..Report::data(text(&report, args.publish), json(&report, &place.url.to_string()))
    })
}

/// A report about a store in which all is well, and a recovery that was made, are successes.
fn code(report: &recover::Report) -> Code {
    if report.published.is_some() {
        return Code::Done;
    }
    match report.class {
        Class::Valid => Code::Done,
        Class::Invalid | Class::Discontinuous => Code::Integrity,
        Class::Unverifiable => Code::CannotOpen,
        Class::Unsupported => Code::Failed,
        Class::Unavailable => Code::NoStore,
    }
}

fn text(report: &recover::Report, publish: bool) -> String {
    let mut text = format!(
        "storage head: {} ({})\n",
        report.class.as_str(),
        one_line(&report.reason)
    );
    let mut line = |name: &str, value: &str| text += &format!("{name}: {}\n", one_line(value));
    if let Some(head) = &report.head {
        line("head manifest", &head.to_string());
    }
    if let Some(signer) = &report.verified_signer {
        line("verified signer", &signer.to_string());
    }
    if let Some(signer) = &report.claimed_signer {
        line("claimed signer (signature not verified)", &signer.to_string());
    }
    if let Some((id, generation)) = &report.floor {
        line("continuity floor", &format!("{id} (generation {generation})"));
    }
    for candidate in &report.candidates {
        let outer = candidate.outer.as_deref();
        let value = format!(
            "{} generation={} {} verified-signer={}",
            candidate.id,
            candidate.generation,
            outer.map_or("directory backend".to_owned(), |outer| format!("outer={outer}")),
            candidate.signer
        );
        line("candidate", &value);
    }
    for replay in &report.replays {
        line("replay", &replay.to_string());
    }
    for conflict in &report.conflicts {
        line("conflict", conflict);
    }
    if let Some(base) = &report.default_base {
        line("default base", &base.to_string());
    }
    for warning in &report.warnings {
        line("warning", warning);
    }
    if let Some(refused) = report
        .refused
        .as_ref()
        .filter(|_| report.class != Class::Valid || publish)
    {
        line("recovery refused", refused);
    } else if let (None, Class::Invalid) = (report.published, report.class) {
        line(
            "next",
            "git-e2ee recover --publish goes on from the default base, once nobody knows of anything newer",
        );
    }
    if let Some((id, _)) = &report.published {
        line("published recovery manifest", &id.to_string());
    }
    text
}

fn json(report: &recover::Report, url: &str) -> Value {
    let text = |id: &dyn std::fmt::Display| id.to_string();
    json!({
        "command": "recover",
        "url": url,
        "class": report.class.as_str(),
        "reason": report.reason,
        "head": report.head.map(|id| text(&id)),
        "verified_signer": report.verified_signer.map(|id| text(&id)),
        "claimed_signer": report.claimed_signer.map(|id| text(&id)),
        "floor": report.floor.map(|(id, generation)| json!({"manifest": text(&id), "generation": generation})),
        "candidates": report.candidates.iter().map(|candidate| json!({
            "manifest": text(&candidate.id),
            "generation": candidate.generation,
            "outer_commit": candidate.outer,
            "verified_signer": text(&candidate.signer),
        })).collect::<Vec<_>>(),
        "replays": report.replays.iter().map(|id| text(id)).collect::<Vec<_>>(),
        "conflicts": report.conflicts,
        "warnings": report.warnings,
        "default_base": report.default_base.map(|id| text(&id)),
        "refused": report.refused,
        "published": report.published.map(|(id, generation)| json!({"manifest": text(&id), "generation": generation})),
    })
}
