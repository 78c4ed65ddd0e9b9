//! What `cargo install` recorded.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 16 << 20;

#[derive(Deserialize)]
struct Installs {
    installs: BTreeMap<String, serde_json::Value>,
}

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let path = source.home(".cargo/.crates2.json");
    let keys: Option<Vec<String>> = source
        .json::<Installs>(&path, MAX_BYTES)
        .map(|installs| installs.installs.into_keys().collect());
    let (path, keys) = match keys {
        Some(keys) => (path, keys),
        None => {
            let path = source.home(".cargo/.crates.toml");
            let text = source.text(&path, MAX_BYTES)?;
            // `"name 1.0.0 (source)" = ["program"]`, one a line.
            let keys = text
                .lines()
                .filter_map(|line| line.strip_prefix('"')?.split_once('"'));
            (path, keys.map(|(key, _)| key.to_owned()).collect())
        }
    };
    let mut packages = Vec::new();
    for key in keys {
        match package(&key) {
            Some(package) => packages.push(package),
            None => source.warn(&path, format_args!("the entry {key:?} is no package; left out")),
        }
    }
    Some(Found::Packages(packages))
}

/// `name 1.0.0 (registry+https://…)`.
fn package(key: &str) -> Option<Package> {
    let (name, rest) = key.split_once(' ')?;
    let (version, origin) = rest.split_once(' ')?;
    let origin = origin.strip_prefix('(')?.strip_suffix(')')?;
    let usual = origin.starts_with("registry+https://github.com/rust-lang/crates.io-index")
        || origin.starts_with("sparse+https://index.crates.io");
    let origin = (!usual).then(|| origin.to_owned());
    (!name.is_empty()).then(|| Package::new(name, version, Reason::Explicit).from(origin))
}
