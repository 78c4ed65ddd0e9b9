//! Snaps: the mounted images tell name, revision and version.

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 1 << 20;

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let folder = ["snap", "var/lib/snapd/snap"]
        .map(|place| source.system(place))
        .into_iter()
        .find(|place| source.exists(&place.join("README")) || source.exists(&place.join("bin")))?;
    let mut packages = Vec::new();
    for name in source.names(&folder)? {
        let current = folder.join(&name).join("current");
        // `bin` and `README` are no snaps, and a disabled one has no current revision.
        let Some(revision) = source.link(&current) else {
            continue;
        };
        let path = current.join("meta/snap.yaml");
        let Some(description) = source.text(&path, MAX_BYTES) else {
            packages.push(Package::new(
                name,
                format!("revision {revision}"),
                Reason::Unknown,
            ));
            continue;
        };
        let value = |key: &str| {
            let line = description
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(|value| value.trim().trim_matches(['\'', '"']).to_owned())
        };
        let reason = match value("type").as_deref() {
            Some("base" | "os" | "core" | "kernel" | "gadget" | "snapd") => Reason::Dependency,
            _ => Reason::Explicit,
        };
        let classic = value("confinement").filter(|confinement| confinement == "classic");
        packages.push(Package::new(name, value("version").unwrap_or_default(), reason).from(classic));
    }
    Some(Found::Packages(packages))
}
