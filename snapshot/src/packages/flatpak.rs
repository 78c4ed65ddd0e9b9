//! Flatpak's installations: `app/NAME/ARCH/BRANCH/active`, of the system and of the person.

use std::io::Read as _;
use std::path::Path;

use super::source::Source;
use super::{Found, Package, Reason};

/// Bytes of the deployment record that are looked at for the remote, its first field.
const HEAD: u64 = 256;

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    for base in [
        source.system("var/lib/flatpak"),
        source.home(".local/share/flatpak"),
    ] {
        for (kind, reason) in [("app", Reason::Explicit), ("runtime", Reason::Dependency)] {
            let folder = base.join(kind);
            for name in source
                .names(&folder)
                .inspect(|_| there = true)
                .unwrap_or_default()
            {
                for architecture in source.names(&folder.join(&name)).unwrap_or_default() {
                    // `current` is a link to the branch in use.
                    if architecture == "current" {
                        continue;
                    }
                    let branches = folder.join(&name).join(&architecture);
                    for branch in source.names(&branches).unwrap_or_default() {
                        let active = branches.join(&branch).join("active");
                        if !source.is_folder(&active) {
                            source.warn(&active, "no active deployment; left out");
                            continue;
                        }
                        let remote = remote(source, &active.join("deploy"));
                        packages.push(Package::new(&name, branch, reason).from(remote));
                    }
                }
            }
        }
    }
    there.then_some(Found::Packages(packages))
}

/// The remote: the record is a serialised tuple whose first member is a text that ends in a zero byte.
fn remote(source: &mut Source<'_>, path: &Path) -> Option<String> {
    let head = source.open(path).and_then(|file| {
        let mut head = Vec::new();
        if let Some((file, _)) = file {
            file.take(HEAD).read_to_end(&mut head)?;
        }
        Ok(head)
    });
    match head {
        Ok(head) => {
            let end = head.iter().position(|byte| *byte == 0)?;
            let name = std::str::from_utf8(&head[..end]).ok()?;
            (!name.is_empty() && !name.chars().any(char::is_control)).then(|| name.to_owned())
        }
        Err(error) => {
            source.warn(path, error);
            None
        }
    }
}
