//! Programs that `go install` built: each tells its package and version itself.

use super::source::Source;
use super::{Found, Package, Reason, buildinfo};

const MAX_BYTES: u64 = 1 << 20;

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let mut folders = vec![source.home("go/bin")];
    for settings in [".config/go/env", "Library/Application Support/go/env"] {
        let settings = source.home(settings);
        let text = source.text(&settings, MAX_BYTES).unwrap_or_default();
        folders.extend(text.lines().filter_map(|line| match line.split_once('=')? {
            ("GOBIN", folder) => Some(source.absolute(folder.trim())),
            ("GOPATH", folder) => Some(source.absolute(folder.trim()).join("bin")),
            _ => None,
        }));
    }
    folders.sort_unstable();
    folders.dedup();
    let mut packages = Vec::new();
    let mut there = false;
    for folder in folders {
        for name in source
            .names(&folder)
            .inspect(|_| there = true)
            .unwrap_or_default()
        {
            let path = folder.join(name);
            if source.is_folder(&path) {
                continue;
            }
            let info = source.open(&path).and_then(|file| match file {
                Some((mut file, _)) => buildinfo::read(&mut file),
                None => Ok(None),
            });
            match info {
                Ok(Some(info)) => packages.push(Package::new(info.path, info.version, Reason::Explicit)),
                Ok(None) => source.warn(&path, "no module information of Go 1.18 or later; left out"),
                Err(error) => source.warn(&path, error),
            }
        }
    }
    there.then_some(Found::Packages(packages))
}
