//! Homebrew's cellar, with the receipt of each formula, and its casks.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 8 << 20;

#[derive(Deserialize)]
struct Receipt {
    #[serde(default)]
    installed_on_request: Option<bool>,
    #[serde(default)]
    source: Option<Origin>,
}

#[derive(Deserialize)]
struct Origin {
    #[serde(default)]
    tap: Option<String>,
}

fn prefixes(source: &Source<'_>) -> [PathBuf; 4] {
    [
        source.system("opt/homebrew"),
        source.system("usr/local"),
        source.system("home/linuxbrew/.linuxbrew"),
        source.home(".linuxbrew"),
    ]
}

pub(super) fn formulae(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    for prefix in prefixes(source) {
        let cellar = prefix.join("Cellar");
        for name in source
            .names(&cellar)
            .inspect(|_| there = true)
            .unwrap_or_default()
        {
            if name.starts_with('.') {
                continue;
            }
            let Some(version) = current(source, &prefix, &cellar, &name) else {
                continue;
            };
            let path = cellar.join(&name).join(&version).join("INSTALL_RECEIPT.json");
            let receipt = source.json::<Receipt>(&path, MAX_BYTES);
            let reason = match receipt.as_ref().and_then(|receipt| receipt.installed_on_request) {
                Some(true) => Reason::Explicit,
                Some(false) => Reason::Dependency,
                None => Reason::Unknown,
            };
            let tap = receipt
                .and_then(|receipt| receipt.source)
                .and_then(|origin| origin.tap);
            packages.push(package(name, version, reason, tap));
        }
    }
    there.then_some(Found::Packages(packages))
}

pub(super) fn casks(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    for prefix in prefixes(source) {
        let room = prefix.join("Caskroom");
        for name in source.names(&room).inspect(|_| there = true).unwrap_or_default() {
            if name.starts_with('.') {
                continue;
            }
            let versions = source.names(&room.join(&name)).unwrap_or_default();
            let version = versions
                .into_iter()
                .rfind(|version| !version.starts_with('.'))
                .unwrap_or_default();
            let receipt = room.join(&name).join(".metadata/INSTALL_RECEIPT.json");
            let tap = source
                .json::<Receipt>(&receipt, MAX_BYTES)
                .and_then(|receipt| receipt.source?.tap);
            packages.push(package(name, version, Reason::Explicit, tap));
        }
    }
    there.then_some(Found::Packages(packages))
}

/// The version that is linked, or else the last by name.
fn current(source: &mut Source<'_>, prefix: &Path, cellar: &Path, name: &str) -> Option<String> {
    let versions = source.names(&cellar.join(name))?;
    let linked = source.link(&prefix.join("opt").join(name));
    let linked = linked.as_deref().and_then(|target| target.rsplit('/').next());
    versions
        .iter()
        .find(|version| Some(version.as_str()) == linked)
        .or_else(|| versions.iter().rfind(|version| !version.starts_with('.')))
        .cloned()
}

/// Formulae of other taps are installed by their full name.
fn package(name: String, version: String, reason: Reason, tap: Option<String>) -> Package {
    match tap.filter(|tap| !tap.starts_with("homebrew/") && tap.contains('/')) {
        Some(tap) => Package::new(format!("{tap}/{name}"), version, reason).from(Some(tap)),
        None => Package::new(name, version, reason),
    }
}
