//! A machine in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use ingot_snapshot::packages::{Inventory, Manager, Package, Reason, installed};

/// A root with the home folder of one person.
pub struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Machine {
        Machine {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Writes a file; `~/` is the home folder.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Machine {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("folders");
        fs::write(&path, content).expect("a file");
        self
    }

    pub fn folder(&self, path: &str) -> &Machine {
        fs::create_dir_all(self.path(path)).expect("folders");
        self
    }

    #[cfg(unix)]
    pub fn link(&self, path: &str, target: &str) -> &Machine {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("folders");
        std::os::unix::fs::symlink(target, &path).expect("a link");
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(path) => self.home().join(path),
            None => self.folder.path().join(path),
        }
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home/me")
    }

    pub fn inventory(&self) -> Inventory {
        installed(self.folder.path(), &self.home())
    }

    /// Packages of one manager as `name version reason origin`, and that it had no warnings.
    pub fn listing(&self, manager: Manager) -> Vec<String> {
        let inventory = self.inventory();
        let listing = inventory.managers.get(&manager).expect("a listing");
        assert_eq!(listing.warnings, [""; 0]);
        assert_eq!(listing.not_read, None);
        listing.packages.iter().map(shown).collect()
    }

    /// Packages and warnings of one manager, the warnings with paths below the root.
    pub fn damaged(&self, manager: Manager) -> (Vec<String>, Vec<String>) {
        let inventory = self.inventory();
        let listing = inventory.managers.get(&manager).expect("a listing");
        let root = format!("{}/", self.folder.path().display());
        let warnings = listing
            .warnings
            .iter()
            .map(|warning| warning.replace(&root, ""))
            .collect();
        (listing.packages.iter().map(shown).collect(), warnings)
    }

    /// A machine with every manager.
    pub fn full() -> Machine {
        let machine = Machine::new();
        machine
            .write(
                "var/lib/dpkg/status",
                "Package: vim\nStatus: install ok installed\nVersion: 2:9.1\nArchitecture: amd64\n",
            )
            .write(
                "var/lib/pacman/local/jq-1.7-1/desc",
                "%NAME%\njq\n\n%VERSION%\n1.7-1\n",
            )
            .write("lib/apk/db/installed", "P:curl\nV:8.1-r0\n")
            .write("var/lib/rpm/rpmdb.sqlite", "SQLite format 3\0")
            .write(
                "opt/homebrew/Cellar/fd/10.1/INSTALL_RECEIPT.json",
                "{\"installed_on_request\": true}",
            )
            .folder("opt/homebrew/Caskroom/kitty/0.35")
            .folder("var/lib/flatpak/app/org.gimp.GIMP/x86_64/stable/active")
            .write("snap/README", "")
            .write("snap/hello/42/meta/snap.yaml", "name: hello\nversion: '2.10'\n")
            .link("snap/hello/current", "42")
            .write(
                "~/.nix-profile/manifest.json",
                "{\"version\":3,\"elements\":{\"hello\":{\"storePaths\":[\"/nix/store/abc-hello-2.12\"]}}}",
            )
            .write(
                "~/.cargo/.crates2.json",
                "{\"installs\":{\"bat 0.24.0 (registry+https://github.com/rust-lang/crates.io-index)\":{}}}",
            )
            .write(
                "~/.local/lib/python3.12/site-packages/rich-13.7.dist-info/METADATA",
                "Name: rich\nVersion: 13.7\n",
            )
            .write(
                "~/.local/share/pipx/venvs/black/pipx_metadata.json",
                "{\"main_package\":{\"package\":\"black\",\"package_version\":\"24.1\"}}",
            )
            .write("~/.local/share/uv/tools/ruff/uv-receipt.toml", "[tool]\n")
            .write(
                "usr/local/lib/node_modules/prettier/package.json",
                "{\"name\":\"prettier\",\"version\":\"3.0.0\"}",
            )
            .folder("~/go/bin")
            .write(
                "~/.vscode/extensions/extensions.json",
                "[{\"identifier\":{\"id\":\"rust-lang.rust-analyzer\"},\"version\":\"0.4\"}]",
            )
            .folder("~/.vim/pack/mine/start/fugitive")
            .folder("~/.emacs.d/elpa/magit-3.3.0");
        machine
    }
}

fn shown(package: &Package) -> String {
    let reason = match package.reason {
        Reason::Explicit => "explicit",
        Reason::Dependency => "dependency",
        Reason::Unknown => "unknown",
    };
    let origin = package
        .origin
        .as_ref()
        .map(|origin| format!(" {origin}"))
        .unwrap_or_default();
    format!("{} {} {reason}{origin}", package.name, package.version)
}

/// Every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort_unstable();
    found
}
