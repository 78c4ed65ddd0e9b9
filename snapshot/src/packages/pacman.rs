//! pacman's local database: one folder for each package, with a file `desc`.

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 4 << 20;

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let folder = source.system("var/lib/pacman/local");
    let mut packages = Vec::new();
    for entry in source.names(&folder)? {
        // A file of its own tells the version of the database.
        if entry == "ALPM_DB_VERSION" {
            continue;
        }
        let path = folder.join(&entry).join("desc");
        let Some(desc) = source.text(&path, MAX_BYTES) else {
            source.warn(&folder.join(&entry), "no description; left out");
            continue;
        };
        match (value(&desc, "%NAME%"), value(&desc, "%VERSION%")) {
            (Some(name), Some(version)) => {
                let reason = match value(&desc, "%REASON%") {
                    Some("1") => Reason::Dependency,
                    _ => Reason::Explicit,
                };
                packages.push(Package::new(name, version, reason));
            }
            _ => source.warn(&path, "damaged: no name or version; left out"),
        }
    }
    Some(Found::Packages(packages))
}

/// The line after a heading.
fn value<'a>(desc: &'a str, heading: &str) -> Option<&'a str> {
    let mut lines = desc.lines();
    lines.find(|line| line.trim() == heading)?;
    lines
        .next()
        .map(str::trim)
        .filter(|value| !value.is_empty() && !value.starts_with('%'))
}
