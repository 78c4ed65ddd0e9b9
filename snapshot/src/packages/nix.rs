//! Nix profiles: `manifest.json` of `nix profile`, `manifest.nix` of `nix-env`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Manifest {
    elements: Value,
}

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let profiles = [
        source.home(".nix-profile"),
        source.home(".local/state/nix/profiles/profile"),
        source.home(".local/state/nix/profile"),
    ];
    for profile in profiles {
        let path = profile.join("manifest.json");
        if let Some(manifest) = source.json::<Manifest>(&path, MAX_BYTES) {
            let packages = elements(&manifest.elements);
            if packages.is_none() {
                source.warn(&path, "damaged: elements are neither a list nor an object");
            }
            return packages.map(Found::Packages);
        }
        let path = profile.join("manifest.nix");
        if let Some(text) = source.text(&path, MAX_BYTES) {
            let packages = names(&text).into_iter().map(|name| {
                let (name, version) = split(&name);
                Package::new(name, version, Reason::Explicit)
            });
            return Some(Found::Packages(packages.collect()));
        }
    }
    None
}

/// Version 3 has an object by name, older ones a list.
fn elements(elements: &Value) -> Option<Vec<Package>> {
    match elements {
        Value::Object(named) => Some(
            named
                .iter()
                .filter_map(|(name, element)| package(Some(name), element.as_object()?))
                .collect(),
        ),
        Value::Array(list) => Some(
            list.iter()
                .filter_map(|element| package(None, element.as_object()?))
                .collect(),
        ),
        _ => None,
    }
}

/// The name to install by is the last part of the attribute path, the version stands in the store path.
fn package(key: Option<&String>, element: &Map<String, Value>) -> Option<Package> {
    let text = |key: &str| {
        element
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let stored = element
        .get("storePaths")
        .and_then(Value::as_array)
        .and_then(|paths| paths.first()?.as_str())
        .and_then(|path| path.rsplit('/').next()?.split_once('-'))
        .map(|(_hash, name)| split(name));
    let attribute = text("attrPath").and_then(|path| path.rsplit('.').next());
    let name = attribute
        .filter(|name| *name != "default")
        .map(str::to_owned)
        .or_else(|| key.cloned())
        .or_else(|| stored.as_ref().map(|(name, _)| name.clone()))?;
    let version = stored.map(|(_, version)| version).unwrap_or_default();
    let origin = text("originalUrl").or(text("originalUri")).map(str::to_owned);
    Some(Package::new(name, version, Reason::Explicit).from(origin))
}

/// Nix's own rule: the version begins at the first dash that no letter follows.
fn split(name: &str) -> (String, String) {
    let dash = name.match_indices('-').map(|(at, _)| at).find(|at| {
        name[at + 1..]
            .chars()
            .next()
            .is_some_and(|next| !next.is_alphabetic())
    });
    match dash {
        Some(at) => (name[..at].to_owned(), name[at + 1..].to_owned()),
        None => (name.to_owned(), String::new()),
    }
}

/// The names in a list of attribute sets: `name = "…";` where no further bracket is open. Strings may hold anything.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0usize;
    let mut rest = text;
    while let Some(at) = rest.find(['[', ']', '{', '}', '"', '\'', '#']) {
        let (before, found) = rest.split_at(at);
        rest = &found[1..];
        match found.as_bytes()[0] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'#' => rest = rest.split_once('\n').map_or("", |(_, rest)| rest),
            b'\'' => {
                if let Some(inside) = rest.strip_prefix('\'') {
                    rest = inside.split_once("''").map_or("", |(_, rest)| rest);
                }
            }
            _ => {
                let (string, after) = string(rest);
                let assigned = before.trim_end().strip_suffix('=').map(str::trim_end);
                let assigned =
                    assigned.is_some_and(|key| key.rsplit([';', ' ', '\n', '\t']).next() == Some("name"));
                if depth == 2 && assigned && !string.is_empty() {
                    names.push(string.to_owned());
                }
                rest = after;
            }
        }
    }
    names
}

/// A string up to its closing quote, and what follows. Escapes stay as they are: names have none.
fn string(rest: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (&rest[..at], &rest[at + 1..]),
            _ => {}
        }
    }
    (rest, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_begin_at_a_dash_without_a_letter() {
        let parts = |name| {
            let (name, version) = split(name);
            [name, version]
        };
        assert_eq!(parts("hello-2.12.1"), ["hello", "2.12.1"]);
        assert_eq!(parts("zoom-us-5.3"), ["zoom-us", "5.3"]);
        assert_eq!(parts("hello"), ["hello", ""]);
    }

    #[test]
    fn only_names_of_packages_count() {
        let text = r#"[ { meta = { name = "no"; maintainers = [{ name = "nor this"; }]; long = '' name = "x"; { ''; };
            # name = "comment";
            name = "hello-2.12"; note = "a \" { b"; } { name="jq-1.7"; } ]"#;
        assert_eq!(names(text), ["hello-2.12", "jq-1.7"]);
        for end in 0..text.len() {
            let _ = names(&text[..end]);
        }
    }
}
