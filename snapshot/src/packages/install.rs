//! Commands that would install what an inventory lists. They are text for a person; nothing here runs them.

use std::path::Path;

use serde::Serialize;

use super::{Inventory, Manager, Package};

/// Names in one command: far below what any shell takes.
const MAX_NAMES: usize = 200;

/// A command that would install packages on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstallCommand {
    /// The manager that it is for.
    pub manager: Manager,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The same, quoted for a POSIX shell.
    pub shell: String,
    /// What to know before running it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What the commands are, and what has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InstallPlan {
    /// In the order in which they would run.
    pub commands: Vec<InstallCommand>,
    /// Packages that no command installs, each with the reason, in one line.
    pub left_out: Vec<String>,
}

/// The manager of the system below `root`, by its database or, on a fresh machine, its program.
pub fn system_manager(root: &Path) -> Option<Manager> {
    let signs: [(Manager, &[&str]); 5] = [
        (Manager::Apt, &["var/lib/dpkg/status", "usr/bin/apt-get"]),
        (Manager::Pacman, &["var/lib/pacman/local", "usr/bin/pacman"]),
        (
            Manager::Apk,
            &["lib/apk/db/installed", "usr/lib/apk/db/installed", "sbin/apk"],
        ),
        (
            Manager::Rpm,
            &["usr/lib/sysimage/rpm", "var/lib/rpm", "usr/bin/rpm"],
        ),
        (
            Manager::Brew,
            &[
                "opt/homebrew/bin/brew",
                "usr/local/bin/brew",
                "home/linuxbrew/.linuxbrew/bin/brew",
            ],
        ),
    ];
    signs
        .into_iter()
        .find(|(_, signs)| signs.iter().any(|sign| root.join(sign).exists()))
        .map(|(manager, _)| manager)
}

impl Inventory {
    /// What is missing of this inventory on a machine that has `there`: the packages that a person asked for, without
    /// those that are there in any version. System packages are compared by name with those of the machine's own
    /// system manager, whatever it is.
    pub fn missing(&self, there: &Inventory, system: Option<Manager>) -> Inventory {
        let mut missing = Inventory::default();
        for (manager, listing) in &self.managers {
            let counterpart = if manager.is_system() {
                system.unwrap_or(*manager)
            } else {
                *manager
            };
            let found = there.managers.get(&counterpart);
            let has = |package: &Package| {
                found.is_some_and(|listing| {
                    let same = |other: &&Package| {
                        other.name == package.name
                            && (*manager != Manager::Vscode || other.origin == package.origin)
                    };
                    listing.packages.iter().any(|other| same(&other))
                })
            };
            let packages: Vec<Package> = listing
                .explicit()
                .filter(|package| !has(package))
                .cloned()
                .collect();
            if !packages.is_empty() {
                let listing = super::Listing {
                    packages,
                    ..super::Listing::default()
                };
                missing.managers.insert(*manager, listing);
            }
        }
        missing
    }

    /// The commands that install what a person asked for, on a machine whose system manager is `system`. Names are not
    /// translated between distributions; a note says where that matters.
    pub fn install_commands(&self, system: Option<Manager>) -> InstallPlan {
        let mut plan = InstallPlan::default();
        for (manager, listing) in &self.managers {
            let target = if manager.is_system() {
                system.unwrap_or(*manager)
            } else {
                *manager
            };
            let note = (target != *manager).then(|| {
                format!(
                    "these are names of {}; {} may know them by others",
                    manager.name(),
                    target.name()
                )
            });
            let mut packages = Vec::new();
            for package in listing.explicit() {
                match obstacle(target, package) {
                    None => packages.push(package),
                    Some(why) => {
                        plan.left_out
                            .push(format!("{} {}: {why}", manager.name(), shown(&package.name)))
                    }
                }
            }
            for argv in commands(target, &packages) {
                let shell = argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
                plan.commands.push(InstallCommand {
                    manager: target,
                    argv,
                    shell,
                    note: note.clone(),
                });
            }
            if let Some(why) = &listing.not_read {
                plan.left_out.push(format!("{}: {why}", manager.name()));
            }
        }
        plan
    }
}

/// Why a package cannot be installed by a command.
fn obstacle(manager: Manager, package: &Package) -> Option<&'static str> {
    let name = &package.name;
    if name.is_empty() || name.starts_with('-') || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("this is no name that a command may be given");
    }
    let origin = package.origin.as_deref().unwrap_or_default();
    if origin.starts_with('-') || origin.chars().any(|c| c.is_control()) {
        return Some("this is no origin that a command may be given");
    }
    match manager {
        Manager::Go if package.version == "(devel)" => Some("built in a work tree; build it there again"),
        Manager::Cargo if origin.starts_with("path+") => Some("built in a work tree; build it there again"),
        Manager::Pip if origin.starts_with("file:") => Some("installed from a file or folder"),
        Manager::Vim if origin.is_empty() => Some("not a clone; copy the folder"),
        Manager::Vim => Some("cloned; the editor's own plugin manager installs it from its configuration"),
        Manager::Emacs => Some("Emacs installs it from its configuration"),
        Manager::Vscode if origin == "code-server-remote" => {
            Some("the editor installs it on the remote side")
        }
        _ => None,
    }
}

/// The commands of a manager for these packages.
fn commands(manager: Manager, packages: &[&Package]) -> Vec<Vec<String>> {
    let all = |start: &[&str]| -> Vec<Vec<String>> {
        packages
            .chunks(MAX_NAMES)
            .map(|chunk| {
                let names = chunk.iter().map(|package| package.name.clone());
                start.iter().map(|&word| word.to_owned()).chain(names).collect()
            })
            .collect()
    };
    let each =
        |command: &dyn Fn(&Package) -> Vec<String>| packages.iter().map(|package| command(package)).collect();
    match manager {
        Manager::Apt => all(&["sudo", "apt-get", "install", "--"]),
        Manager::Pacman => all(&["sudo", "pacman", "-S", "--needed", "--"]),
        Manager::Apk => all(&["sudo", "apk", "add"]),
        Manager::Rpm => all(&["sudo", "dnf", "install", "--"]),
        Manager::Brew => all(&["brew", "install", "--formula"]),
        Manager::Cask => all(&["brew", "install", "--cask"]),
        Manager::Snap => each(&|package| {
            let classic = (package.origin.as_deref() == Some("classic")).then_some("--classic");
            words(
                ["sudo", "snap", "install"].into_iter().chain(classic),
                &package.name,
            )
        }),
        Manager::Flatpak => each(&|package| {
            let remote = package.origin.as_deref().unwrap_or("flathub");
            let branch = if package.version.is_empty() {
                String::new()
            } else {
                format!("//{}", package.version)
            };
            words(
                ["flatpak", "install", remote],
                &format!("{}{branch}", package.name),
            )
        }),
        Manager::Nix => each(&|package| {
            let flake = package
                .origin
                .as_deref()
                .unwrap_or("nixpkgs")
                .trim_start_matches("flake:");
            words(
                ["nix", "profile", "install"],
                &format!("{flake}#{}", package.name),
            )
        }),
        Manager::Cargo => cargo(packages),
        Manager::Pip => {
            each(&|package| words(["python3", "-m", "pip", "install", "--user"], &python(package)))
        }
        Manager::Pipx => each(&|package| {
            words(
                ["pipx", "install"],
                package.origin.as_deref().unwrap_or(&package.name),
            )
        }),
        Manager::Uv => each(&|package| words(["uv", "tool", "install"], &package.name)),
        Manager::Npm => all(&["npm", "install", "--global", "--"]),
        Manager::Go => each(&|package| words(["go", "install"], &format!("{}@latest", package.name))),
        Manager::Vscode => each(&|package| {
            words(
                [package.origin.as_deref().unwrap_or("code"), "--install-extension"],
                &package.name,
            )
        }),
        Manager::Vim | Manager::Emacs => Vec::new(),
    }
}

/// Registry packages in one command, each clone in its own.
fn cargo(packages: &[&Package]) -> Vec<Vec<String>> {
    let (registry, others): (Vec<&Package>, Vec<&Package>) =
        packages.iter().partition(|package| package.origin.is_none());
    let mut commands: Vec<Vec<String>> = registry
        .chunks(MAX_NAMES)
        .map(|chunk| {
            let names = chunk.iter().map(|package| package.name.clone());
            ["cargo", "install", "--locked", "--"]
                .map(str::to_owned)
                .into_iter()
                .chain(names)
                .collect()
        })
        .collect();
    for package in others {
        let origin = package.origin.as_deref().unwrap_or_default();
        match origin.strip_prefix("git+") {
            Some(url) => {
                let url = url.split(['#', '?']).next().unwrap_or_default();
                commands.push(words(
                    ["cargo", "install", "--locked", "--git", url],
                    &package.name,
                ));
            }
            None => {
                let index = origin.trim_start_matches("registry+");
                commands.push(words(
                    ["cargo", "install", "--locked", "--index", index],
                    &package.name,
                ));
            }
        }
    }
    commands
}

/// What pip installs: the name, or where it came from.
fn python(package: &Package) -> String {
    match &package.origin {
        Some(origin) => format!("{} @ {origin}", package.name),
        None => package.name.clone(),
    }
}

fn words<'a>(start: impl IntoIterator<Item = &'a str>, last: &'a str) -> Vec<String> {
    start.into_iter().chain([last]).map(str::to_owned).collect()
}

/// A word as a POSIX shell takes it. Names hold no control characters by now.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A name in a message.
fn shown(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
