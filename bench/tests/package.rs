//! The Debian package: built, installed below a root of its own, its programs run.

#![allow(clippy::unwrap_used)] // in tests, failing is the point

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAMS: [&str; 4] = ["git-e2ee", "git-remote-e2ee", "rivet", "git-chunk"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The folder with the programs that were built along with this test.
fn programs() -> PathBuf {
    let bench = Path::new(env!("CARGO_BIN_EXE_ingot-bench"));
    let folder = bench.parent().unwrap().to_owned();
    for program in PROGRAMS {
        let path = folder.join(program);
        assert!(
            path.exists(),
            "{} is missing: cargo build --workspace",
            path.display()
        );
    }
    folder
}

fn has_dpkg() -> bool {
    let there = Command::new("dpkg-deb").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: this machine has no dpkg-deb, and so no use for a Debian package");
    }
    there
}

#[track_caller]
fn good(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds a package; its path.
fn build(into: &Path) -> PathBuf {
    let mut command = Command::new(workspace().join("packaging/build-deb"));
    command
        .arg(programs())
        .arg(into)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        // The programs of a debug build are large.
        .env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let said = good(command.output().unwrap());
    let named: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_suffix(" bytes")?.split_once(": "))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(named[..4], PROGRAMS, "the size of each program is told");
    PathBuf::from(named[4])
}

#[test]
fn the_package_installs_and_its_programs_run() {
    if !has_dpkg() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let package = build(&temp.path().join("out"));
    let mut fields = Command::new("dpkg-deb");
    let control = good(fields.arg("--field").arg(&package).output().unwrap());
    let version = env!("CARGO_PKG_VERSION");
    assert!(control.contains("Package: ingot\n"), "{control}");
    assert!(control.contains(&format!("Version: {version}\n")), "{control}");

    let root = temp.path().join("root");
    for folder in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(root.join("var/lib/dpkg").join(folder)).unwrap();
    }
    for file in ["status", "available"] {
        std::fs::write(root.join("var/lib/dpkg").join(file), "").unwrap();
    }
    let mut install = Command::new("dpkg");
    install
        .arg(format!("--root={}", root.display()))
        .arg(format!("--log={}", temp.path().join("log").display()))
        .args(["--force-not-root", "--force-depends", "--install"])
        .arg(&package);
    good(install.output().unwrap());
    let status = std::fs::read_to_string(root.join("var/lib/dpkg/status")).unwrap();
    assert!(status.contains("Status: install ok installed"), "{status}");

    let share = root.join("usr/share");
    for program in PROGRAMS {
        let mut command = Command::new(root.join("usr/bin").join(program));
        command.env("HOME", temp.path());
        assert!(share.join(format!("man/man1/{program}.1.gz")).is_file());
        if program == "git-remote-e2ee" {
            // It speaks with Git alone, and says so.
            assert_eq!(command.output().unwrap().status.code(), Some(2));
            continue;
        }
        let said = good(command.arg("--version").output().unwrap());
        assert!(said.contains(version), "{said}");
        for file in [
            format!("bash-completion/completions/{program}"),
            format!("zsh/vendor-completions/_{program}"),
            format!("fish/vendor_completions.d/{program}.fish"),
        ] {
            assert!(share.join(&file).is_file(), "{file}");
        }
        let script = share.join("bash-completion/completions").join(program);
        good(Command::new("bash").arg("-n").arg(script).output().unwrap());
    }
    for file in ["man/man1/rivet-secrets-scan.1.gz", "doc/ingot/copyright"] {
        assert!(share.join(file).is_file(), "{file}");
    }
    // Nobody but root may change what is installed, and everybody may read it.
    let mut contents = Command::new("dpkg-deb");
    let list = good(contents.arg("--contents").arg(&package).output().unwrap());
    for line in list.lines() {
        let (mode, rest) = line.split_once(' ').unwrap();
        assert!(rest.starts_with("root/root"), "{line}");
        assert!(
            ["drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"].contains(&mode),
            "{line}"
        );
    }
}

#[test]
fn the_same_programs_give_the_same_package() {
    if !has_dpkg() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (build(&temp.path().join("a")), build(&temp.path().join("b")));
    assert!(std::fs::read(a).unwrap() == std::fs::read(b).unwrap());
}

/// What `cargo deb` would put into its package is what the script puts into its own.
#[test]
fn cargo_deb_has_the_same_files() {
    let manifest = std::fs::read_to_string(workspace().join("helper/Cargo.toml")).unwrap();
    let (_, metadata) = manifest.split_once("[package.metadata.deb]").unwrap();
    for program in PROGRAMS {
        let asset = format!("[\"target/release/{program}\", \"usr/bin/\", \"755\"]");
        assert!(metadata.contains(&asset), "{asset}");
    }
    for folder in [
        "share/man/man1/",
        "share/bash-completion/completions/",
        "share/zsh/vendor-completions/",
        "share/fish/vendor_completions.d/",
    ] {
        let asset = format!("[\"../target/package-root/usr/{folder}*\", \"usr/{folder}\", \"644\"]");
        assert!(metadata.contains(&asset), "{asset}");
    }
}
