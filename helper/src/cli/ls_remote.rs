//! `ls-remote`: the references of a store.

use bstr::{BStr, BString, ByteSlice as _};
use serde_json::{Map, json};

use super::app::{App, Direction, bytes};
use super::args::LsRemote;
use super::exit::Failure;
use super::report::Report;
use crate::remote::Local;
use crate::remote::decide::History as _;

/// Lists references as `git ls-remote` does.
pub fn run(app: &App, args: LsRemote) -> Result<Report, Failure> {
    let (target, patterns) = super::words(&args.place, args.target, args.patterns);
    let patterns = patterns
        .iter()
        .map(|word| bytes(word))
        .collect::<Result<Vec<_>, _>>()?;
    let found = app.require(&args.place, target.as_deref(), Direction::Fetch)?;
    let place = found.only()?;
    let local = found.repository.as_ref().map(Local::open).transpose()?;
    let view = place.remote(&app.display).list(local.as_ref())?;
    let everything = !args.heads && !args.tags;
    let wanted = |name: &str| {
        let kind = everything
            || args.heads && name.starts_with("refs/heads/")
            || args.tags && name.starts_with("refs/tags/");
        kind && (patterns.is_empty()
            || patterns
                .iter()
                .any(|pattern| matches(pattern.as_bstr(), name.into())))
    };

    let mut text = String::new();
    let mut refs = Map::new();
    let mut peeled_tags = Map::new();
    if let Some(id) = view.default_branch().and_then(|branch| view.refs().get(branch))
        && everything
        && !args.refs
        && wanted("HEAD")
    {
        text += &format!("{id}\tHEAD\n");
    }
    for (name, id) in view.refs().iter().filter(|(name, _)| wanted(name)) {
        text += &format!("{id}\t{name}\n");
        refs.insert(name.clone(), id.to_string().into());
        let Some(local) = local
            .as_ref()
            .filter(|_| !args.refs && name.starts_with("refs/tags/"))
        else {
            continue;
        };
        if let Some((peeled, _)) = local.peel(*id)?.filter(|(peeled, _)| peeled != id) {
            text += &format!("{peeled}\t{name}^{{}}\n");
            peeled_tags.insert(name.clone(), peeled.to_string().into());
        }
    }
    let json = json!({
        "command": "ls-remote",
        "url": place.url.to_string(),
        "generation": view.generation(),
        "head": view.default_branch(),
        "refs": refs,
        "peeled": peeled_tags,
    });
    Ok(Report::data(text, json))
}

/// Whether the last components of a name match a pattern, which may have wildcards, as `git ls-remote` decides it.
fn matches(pattern: &BStr, name: &BStr) -> bool {
    let anywhere: BString = bstr::concat([b"*/", pattern.as_bytes()]).into();
    let path: BString = bstr::concat([b"/", name.as_bytes()]).into();
    gix::glob::wildmatch(
        anywhere.as_bstr(),
        path.as_bstr(),
        gix::glob::wildmatch::Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_last_components() {
        for (pattern, name, expected) in [
            ("main", "refs/heads/main", true),
            ("heads/main", "refs/heads/main", true),
            ("refs/heads/main", "refs/heads/main", true),
            ("ain", "refs/heads/main", false),
            ("v*", "refs/tags/v1.0", true),
            ("refs/*", "refs/heads/a/b", true),
            ("HEAD", "HEAD", true),
        ] {
            assert_eq!(matches(pattern.into(), name.into()), expected, "{pattern} {name}");
        }
    }
}
