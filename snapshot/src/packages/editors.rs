//! Extensions and plugins of editors.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 16 << 20;

/// Folders with extensions in the form of Visual Studio Code, and the program that installs into them.
const FAMILY: &[(&str, &str)] = &[
    (".vscode/extensions", "code"),
    (".vscode-insiders/extensions", "code-insiders"),
    (".vscode-oss/extensions", "codium"),
    (".cursor/extensions", "cursor"),
    (".windsurf/extensions", "windsurf"),
    (".positron/extensions", "positron"),
    (".vscode-server/extensions", "code-server-remote"),
    (".local/share/code-server/extensions", "code-server"),
];

#[derive(Deserialize)]
struct Extension {
    identifier: Identifier,
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
struct Identifier {
    id: String,
}

#[derive(Deserialize)]
struct Description {
    publisher: String,
    name: String,
    version: String,
}

pub(super) fn vscode(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    for (folder, program) in FAMILY {
        let folder = source.home(folder);
        let Some(names) = source.names(&folder) else {
            continue;
        };
        there = true;
        let origin = Some((*program).to_owned());
        let index = folder.join("extensions.json");
        match source.json::<Vec<Value>>(&index, MAX_BYTES) {
            Some(extensions) => {
                for extension in extensions {
                    match serde_json::from_value::<Extension>(extension) {
                        Ok(Extension { identifier, version }) => packages.push(
                            Package::new(identifier.id.to_ascii_lowercase(), version, Reason::Explicit)
                                .from(origin.clone()),
                        ),
                        Err(error) => {
                            source.warn(&index, format_args!("an entry is damaged and left out: {error}"))
                        }
                    }
                }
            }
            // Older versions have no index; each extension describes itself.
            None => {
                for name in names.iter().filter(|name| !name.starts_with('.')) {
                    let path = folder.join(name).join("package.json");
                    if let Some(found) = source.json::<Description>(&path, MAX_BYTES) {
                        let id = format!("{}.{}", found.publisher, found.name).to_ascii_lowercase();
                        packages.push(Package::new(id, found.version, Reason::Explicit).from(origin.clone()));
                    }
                }
            }
        }
    }
    there.then_some(Found::Packages(packages))
}

pub(super) fn vim(source: &mut Source<'_>) -> Option<Found> {
    // Folders whose folders are plugins.
    let mut folders = vec![
        source.home(".vim/plugged"),
        source.home(".vim/bundle"),
        source.home(".local/share/nvim/plugged"),
        source.home(".local/share/nvim/lazy"),
        source.home(".config/nvim/plugged"),
    ];
    for packs in [".vim/pack", ".config/nvim/pack", ".local/share/nvim/site/pack"] {
        let packs = source.home(packs);
        for pack in source.names(&packs).unwrap_or_default() {
            folders.push(packs.join(&pack).join("start"));
            folders.push(packs.join(&pack).join("opt"));
        }
    }
    let mut packages = Vec::new();
    let mut there = false;
    for folder in folders {
        for name in source
            .names(&folder)
            .inspect(|_| there = true)
            .unwrap_or_default()
        {
            let plugin = folder.join(&name);
            if !source.is_folder(&plugin) || name.starts_with('.') {
                continue;
            }
            let (origin, version) = clone(source, &plugin);
            packages.push(Package::new(name, version.unwrap_or_default(), Reason::Explicit).from(origin));
        }
    }
    there.then_some(Found::Packages(packages))
}

/// Where a plugin was cloned from, and the commit that is checked out.
fn clone(source: &mut Source<'_>, plugin: &Path) -> (Option<String>, Option<String>) {
    let git = plugin.join(".git");
    if !source.is_folder(&git) {
        return (None, None);
    }
    let config = source.text(&git.join("config"), MAX_BYTES).unwrap_or_default();
    let url = config
        .lines()
        .skip_while(|line| line.trim() != "[remote \"origin\"]")
        .skip(1)
        .take_while(|line| !line.trim_start().starts_with('['))
        .find_map(|line| line.trim().strip_prefix("url")?.trim_start().strip_prefix('='))
        .map(|url| url.trim().to_owned());
    (url, commit(source, &git))
}

/// The commit of a clone, through one reference at most.
fn commit(source: &mut Source<'_>, git: &Path) -> Option<String> {
    let head = source.text(&git.join("HEAD"), 4096)?;
    let head = head.trim();
    let id = match head.strip_prefix("ref: ") {
        None => head.to_owned(),
        Some(name) => {
            let plain = Path::new(name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            let loose: PathBuf = git.join(name);
            match source.text(&loose, 4096).filter(|_| plain) {
                Some(id) => id.trim().to_owned(),
                None => {
                    let packed = source.text(&git.join("packed-refs"), MAX_BYTES)?;
                    packed
                        .lines()
                        .find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name))?
                        .0
                        .to_owned()
                }
            }
        }
    };
    (id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

pub(super) fn emacs(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    for folder in [".emacs.d/elpa", ".config/emacs/elpa"] {
        let folder = source.home(folder);
        for name in source
            .names(&folder)
            .inspect(|_| there = true)
            .unwrap_or_default()
        {
            // `NAME-VERSION`; `archives`, `gnupg` and signatures are no packages.
            let parts = name.rsplit_once('-');
            if let Some((name, version)) =
                parts.filter(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
                && !version.ends_with(".signed")
            {
                packages.push(Package::new(name, version, Reason::Unknown));
            }
        }
    }
    there.then_some(Found::Packages(packages))
}
