//! Global npm packages, in the folders of the system, of the person, and of version managers.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 4 << 20;

#[derive(Deserialize)]
struct Description {
    name: String,
    #[serde(default)]
    version: String,
}

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    for modules in places(source) {
        for name in source
            .names(&modules)
            .inspect(|_| there = true)
            .unwrap_or_default()
        {
            let scope = modules.join(&name);
            if name.starts_with('@') {
                for inner in source.names(&scope).unwrap_or_default() {
                    packages.extend(package(source, &scope.join(inner)));
                }
            } else if !name.starts_with('.') {
                packages.extend(package(source, &scope));
            }
        }
    }
    there.then_some(Found::Packages(packages))
}

fn places(source: &mut Source<'_>) -> Vec<PathBuf> {
    let mut prefixes = vec![
        source.system("usr/local"),
        source.system("usr"),
        source.system("opt/homebrew"),
        source.home(".npm-global"),
        source.home(".npm-packages"),
        source.home(".local"),
    ];
    let npmrc = source.home(".npmrc");
    let configured = source.text(&npmrc, MAX_BYTES).unwrap_or_default();
    for line in configured.lines() {
        if let Some((key, prefix)) = line.split_once('=')
            && key.trim() == "prefix"
        {
            let prefix = prefix.trim().trim_matches('"').replace("${HOME}", "~");
            prefixes.push(match prefix.strip_prefix("~/") {
                Some(relative) => source.home(relative),
                None => source.absolute(&prefix),
            });
        }
    }
    for (folder, inside) in [
        (".nvm/versions/node", ""),
        (".local/share/fnm/node-versions", "installation"),
        (".local/share/mise/installs/node", ""),
        (".asdf/installs/nodejs", ""),
    ] {
        let folder = source.home(folder);
        let versions = source.names(&folder).unwrap_or_default();
        prefixes.extend(versions.iter().map(|version| folder.join(version).join(inside)));
    }
    let mut places: Vec<PathBuf> = prefixes
        .iter()
        .map(|prefix| prefix.join("lib/node_modules"))
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn package(source: &mut Source<'_>, folder: &Path) -> Option<Package> {
    let path = folder.join("package.json");
    let description = source.json::<Description>(&path, MAX_BYTES)?;
    // These two come with Node.
    let reason = match description.name.as_str() {
        "npm" | "corepack" => Reason::Dependency,
        _ => Reason::Explicit,
    };
    Some(Package::new(description.name, description.version, reason))
}
