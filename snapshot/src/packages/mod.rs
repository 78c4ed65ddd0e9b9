//! What is installed, read from the package managers' own databases.
//!
//! [`installed`] starts no program: every reader here opens the files that a manager keeps, takes what it understands,
//! and says in a warning what it could not read. Sizes and counts are bounded, nothing is followed that is no regular
//! file, and the order of everything is that of names, so the same machine gives the same bytes.
//!
//! What no file tells in a form that can be read here is listed as not read, with the question for the manager's own
//! program; [`ask`](ask::ask) puts it, when a person wants that.

mod apk;
pub mod ask;
mod buildinfo;
mod cargo;
mod debian;
mod diff;
mod editors;
mod flatpak;
mod go;
mod homebrew;
mod install;
mod memory;
mod nix;
mod npm;
mod origin;
mod pacman;
mod python;
mod rpm;
mod snap;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use diff::{Change, InventoryDiff, ListingDiff};
pub use install::{InstallCommand, InstallPlan, system_manager};
use memory::Look;
pub use memory::{Document, document};
use source::Source;

/// A package manager. The order is that of reports: the system first, then languages, then editors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manager {
    /// dpkg and apt.
    Apt,
    /// pacman of Arch Linux.
    Pacman,
    /// apk of Alpine Linux.
    Apk,
    /// rpm, with dnf or zypper above it.
    Rpm,
    /// Homebrew formulae.
    Brew,
    /// Homebrew casks.
    Cask,
    /// Flatpak applications and runtimes.
    Flatpak,
    /// Snaps.
    Snap,
    /// `nix profile` and `nix-env`.
    Nix,
    /// Programs that `cargo install` built.
    Cargo,
    /// Python packages outside of environments.
    Pip,
    /// Python programs with an environment each, by pipx.
    Pipx,
    /// The same by uv.
    Uv,
    /// Global npm packages.
    Npm,
    /// Programs that `go install` built.
    Go,
    /// Extensions of Visual Studio Code and its relatives; the origin says whose.
    Vscode,
    /// Plugins of Vim and Neovim; the origin is where they were cloned from.
    Vim,
    /// Packages of Emacs.
    Emacs,
}

/// Why a package is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A person asked for it.
    Explicit,
    /// Another package needs it.
    Dependency,
    /// The manager does not record it.
    Unknown,
}

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// The name that the manager would install it by.
    pub name: String,
    /// The version as the manager writes it; empty where it records none.
    pub version: String,
    /// Why it is there.
    pub reason: Reason,
    /// Where it came from, when that is not the manager's usual source: a tap, a remote, a URL, an editor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What one manager has installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Set when the database is there but cannot be read in-process: why, and how to ask instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_read: Option<String>,
    /// By name, then origin and version.
    pub packages: Vec<Package>,
    /// What could not be read, each in one line; the rest was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Everything that is installed. Managers that are not there have no listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// One listing for each manager.
    pub managers: BTreeMap<Manager, Listing>,
}

/// Reads one manager's database. Nothing when it is not there.
type Reader = fn(&mut Source<'_>) -> Option<Found>;

/// What a reader found.
enum Found {
    /// These packages, in any order.
    Packages(Vec<Package>),
    /// A database that cannot be read here, and why.
    NotRead(String),
}

const READERS: &[(Manager, Reader)] = &[
    (Manager::Apt, debian::read),
    (Manager::Pacman, pacman::read),
    (Manager::Apk, apk::read),
    (Manager::Rpm, rpm::read),
    (Manager::Brew, homebrew::formulae),
    (Manager::Cask, homebrew::casks),
    (Manager::Flatpak, flatpak::read),
    (Manager::Snap, snap::read),
    (Manager::Nix, nix::read),
    (Manager::Cargo, cargo::read),
    (Manager::Pip, python::pip),
    (Manager::Pipx, python::pipx),
    (Manager::Uv, python::uv),
    (Manager::Npm, npm::read),
    (Manager::Go, go::read),
    (Manager::Vscode, editors::vscode),
    (Manager::Vim, editors::vim),
    (Manager::Emacs, editors::emacs),
];

/// Reads the databases below `root` (`/` on a running system) and those of the person whose home folder is `home`.
pub fn installed(root: &Path, home: &Path) -> Inventory {
    look(root, home).0
}

/// What is installed, and everything that was looked at to know it.
fn look(root: &Path, home: &Path) -> (Inventory, Vec<Look>) {
    let mut managers = BTreeMap::new();
    let mut looks = Vec::new();
    for (manager, reader) in READERS {
        let mut source = Source::new(root, home);
        let found = reader(&mut source);
        let (warnings, looked) = source.finish();
        looks.extend(looked);
        let listing = match found {
            None if warnings.is_empty() => continue,
            None => Listing::default(),
            Some(Found::Packages(packages)) => Listing {
                packages,
                ..Listing::default()
            },
            Some(Found::NotRead(why)) => Listing {
                not_read: Some(why),
                ..Listing::default()
            },
        };
        managers.insert(*manager, Listing { warnings, ..listing }.sorted());
    }
    (Inventory { managers }, looks)
}

impl Manager {
    /// The name in reports and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Manager::Apt => "apt",
            Manager::Pacman => "pacman",
            Manager::Apk => "apk",
            Manager::Rpm => "rpm",
            Manager::Brew => "brew",
            Manager::Cask => "cask",
            Manager::Flatpak => "flatpak",
            Manager::Snap => "snap",
            Manager::Nix => "nix",
            Manager::Cargo => "cargo",
            Manager::Pip => "pip",
            Manager::Pipx => "pipx",
            Manager::Uv => "uv",
            Manager::Npm => "npm",
            Manager::Go => "go",
            Manager::Vscode => "vscode",
            Manager::Vim => "vim",
            Manager::Emacs => "emacs",
        }
    }

    /// Whether it manages the whole system, so that a machine has one of its kind.
    pub fn is_system(self) -> bool {
        matches!(self, Manager::Apt | Manager::Pacman | Manager::Apk | Manager::Rpm)
    }
}

impl Package {
    fn new(name: impl Into<String>, version: impl Into<String>, reason: Reason) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            reason,
            origin: None,
        }
    }

    /// Inventories are stored, so what is kept of an origin holds no credentials.
    fn from(self, origin: Option<String>) -> Package {
        let origin = origin.as_deref().map(origin::without_credentials);
        Package { origin, ..self }
    }
}

impl Listing {
    /// In the order that all listings have, without doubles.
    fn sorted(mut self) -> Listing {
        // Some managers take a URL for a version, and a name is whatever a file says.
        for package in &mut self.packages {
            for text in [&mut package.name, &mut package.version] {
                if text.contains("://") {
                    *text = origin::without_credentials(text);
                }
            }
        }
        self.packages.sort_by(|a, b| {
            (&a.name, &a.origin, &a.version, a.reason).cmp(&(&b.name, &b.origin, &b.version, b.reason))
        });
        self.packages
            .dedup_by(|b, a| (&a.name, &a.origin, &a.version) == (&b.name, &b.origin, &b.version));
        self
    }

    /// The packages that a person asked for; where the manager does not record that, all of them.
    pub fn explicit(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| package.reason != Reason::Dependency)
    }
}
