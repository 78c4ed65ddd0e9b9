//! Python packages: pip outside of environments, and the programs of pipx and uv.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 4 << 20;

pub(super) fn pip(source: &mut Source<'_>) -> Option<Found> {
    let mut packages = Vec::new();
    let mut there = false;
    let roots = [
        (source.home(".local/lib"), false),
        (source.home("Library/Python"), false),
        (source.system("usr/local/lib"), false),
        (source.system("usr/lib"), true),
    ];
    for (lib, of_the_system) in roots {
        for version in source.names(&lib).unwrap_or_default() {
            for site in sites(&lib, &version) {
                for entry in source.names(&site).unwrap_or_default() {
                    let Some(stem) = entry.strip_suffix(".dist-info") else {
                        continue;
                    };
                    let info = site.join(&entry);
                    let installer = source.text(&info.join("INSTALLER"), 4096).unwrap_or_default();
                    // What the distribution installed is listed by its own manager.
                    let by_pip = matches!(installer.trim(), "pip" | "uv");
                    if !by_pip && (of_the_system || !installer.trim().is_empty()) {
                        continue;
                    }
                    there = true;
                    let reason = match (source.exists(&info.join("REQUESTED")), by_pip) {
                        (true, _) => Reason::Explicit,
                        (false, true) => Reason::Dependency,
                        (false, false) => Reason::Unknown,
                    };
                    packages.push(distribution(source, &info, stem, reason));
                }
            }
        }
    }
    there.then_some(Found::Packages(packages))
}

/// Folders for packages below a folder of libraries.
fn sites(lib: &Path, version: &str) -> Vec<PathBuf> {
    let folder = lib.join(version);
    if version.starts_with("python3") {
        vec![folder.join("site-packages"), folder.join("dist-packages")]
    } else if version.starts_with("3.") {
        vec![folder.join("lib/python/site-packages")]
    } else {
        Vec::new()
    }
}

/// A package from its metadata, or from the name of the folder when that cannot be read.
fn distribution(source: &mut Source<'_>, info: &Path, stem: &str, reason: Reason) -> Package {
    let metadata = source.text(&info.join("METADATA"), MAX_BYTES).unwrap_or_default();
    let header = |key: &str| {
        metadata
            .lines()
            .take_while(|line| !line.is_empty())
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    };
    let (name, version) = stem.rsplit_once('-').unwrap_or((stem, ""));
    let origin = source
        .json::<Direct>(&info.join("direct_url.json"), MAX_BYTES)
        .map(|direct| match direct.vcs_info {
            Some(vcs) => format!("{}+{}", vcs.vcs, direct.url),
            None => direct.url,
        });
    Package::new(
        header("Name").unwrap_or_else(|| name.to_owned()),
        header("Version").unwrap_or_else(|| version.to_owned()),
        reason,
    )
    .from(origin)
}

#[derive(Deserialize)]
struct Direct {
    url: String,
    #[serde(default)]
    vcs_info: Option<Vcs>,
}

#[derive(Deserialize)]
struct Vcs {
    vcs: String,
}

#[derive(Deserialize)]
struct Environment {
    main_package: Main,
}

#[derive(Deserialize)]
struct Main {
    package: Option<String>,
    #[serde(default)]
    package_or_url: Option<String>,
    #[serde(default)]
    package_version: Option<String>,
}

pub(super) fn pipx(source: &mut Source<'_>) -> Option<Found> {
    let places = [
        source.home(".local/share/pipx/venvs"),
        source.home(".local/pipx/venvs"),
        source.home("Library/Application Support/pipx/venvs"),
    ];
    let mut packages = Vec::new();
    let mut there = false;
    for place in places {
        for name in source.names(&place).inspect(|_| there = true).unwrap_or_default() {
            let path = place.join(&name).join("pipx_metadata.json");
            match source.json::<Environment>(&path, MAX_BYTES) {
                Some(Environment { main_package: main }) => {
                    let name = main.package.unwrap_or(name);
                    let origin = main.package_or_url.filter(|from| *from != name);
                    let version = main.package_version.unwrap_or_default();
                    packages.push(Package::new(name, version, Reason::Explicit).from(origin));
                }
                None => source.warn(&path, "no metadata; left out"),
            }
        }
    }
    there.then_some(Found::Packages(packages))
}

pub(super) fn uv(source: &mut Source<'_>) -> Option<Found> {
    let place = source.home(".local/share/uv/tools");
    let mut packages = Vec::new();
    for name in source.names(&place)? {
        let tool = place.join(&name);
        if !source.is_file(&tool.join("uv-receipt.toml")) {
            continue;
        }
        let version = version_of(source, &tool, &name).unwrap_or_default();
        packages.push(Package::new(name, version, Reason::Explicit));
    }
    Some(Found::Packages(packages))
}

/// The version of a package inside an environment.
fn version_of(source: &mut Source<'_>, environment: &Path, name: &str) -> Option<String> {
    let lib = environment.join("lib");
    let wanted = normal(name);
    for python in source.names(&lib)? {
        for entry in source
            .names(&lib.join(python).join("site-packages"))
            .unwrap_or_default()
        {
            let found = entry
                .strip_suffix(".dist-info")
                .and_then(|stem| stem.rsplit_once('-'));
            if let Some((_, version)) = found.filter(|(found, _)| normal(found) == wanted) {
                return Some(version.to_owned());
            }
        }
    }
    None
}

/// Names of Python packages are equal in spite of case and separators.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}
