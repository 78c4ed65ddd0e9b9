//! apk's installed database, and `world`, the list of what was asked for.

use std::collections::HashSet;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 256 << 20;

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let places = ["lib/apk/db/installed", "usr/lib/apk/db/installed"];
    let (path, database) = places.iter().find_map(|place| {
        let path = source.system(place);
        source.text(&path, MAX_BYTES).map(|text| (path, text))
    })?;
    let world = source.system("etc/apk/world");
    let world: Option<HashSet<String>> = source.text(&world, MAX_BYTES).map(|text| {
        text.split_whitespace()
            .filter_map(wanted)
            .map(str::to_owned)
            .collect()
    });
    let mut packages = Vec::new();
    let mut damaged = 0;
    for stanza in database.split("\n\n").filter(|stanza| !stanza.trim().is_empty()) {
        let value = |key: &str| {
            stanza
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .map(str::trim)
        };
        match (value("P:"), value("V:")) {
            (Some(name), Some(version)) if !name.is_empty() => {
                let reason = match &world {
                    None => Reason::Unknown,
                    Some(world) if world.contains(name) => Reason::Explicit,
                    Some(_) => Reason::Dependency,
                };
                packages.push(Package::new(name, version, reason));
            }
            _ => damaged += 1,
        }
    }
    if damaged > 0 {
        source.warn(&path, format_args!("{damaged} damaged entries were left out"));
    }
    Some(Found::Packages(packages))
}

/// The name in an entry of `world`, which may carry a version, a repository, or a ban.
fn wanted(entry: &str) -> Option<&str> {
    let end = entry.find(['=', '<', '>', '~', '@']).unwrap_or(entry.len());
    (!entry.starts_with('!') && end > 0).then(|| &entry[..end])
}
