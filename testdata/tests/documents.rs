//! Every command of the README and of the guides is run, in a home folder of its own, and what it prints is compared.

#![allow(clippy::unwrap_used)] // a test that stops where it stands

use std::path::{Path, PathBuf};

use ingot_testdata::git;
use ingot_testdata::guide::Stage;

/// The programs of this workspace, which `cargo test --workspace` has built.
fn programs() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().nth(2).unwrap().to_owned();
    for name in ["git-e2ee", "git-remote-e2ee", "rivet", "git-chunk"] {
        assert!(
            folder.join(name).is_file(),
            "{name} is not in {}: run `cargo test --workspace`, which builds it",
            folder.display()
        );
    }
    folder
}

fn document(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(&place).unwrap()
}

/// Plays a document after a shell has done `before` on its first machine.
#[track_caller]
fn plays(name: &str, before: &str) {
    let room = tempfile::tempdir().unwrap();
    let mut stage = Stage::new(
        room.path(),
        &[programs()],
        &["/mnt/nas", "/mnt/usb", "/mnt/backup"],
    );
    // The host of the examples is a folder of bare repositories here.
    let host = room.path().canonicalize().unwrap().join("host");
    std::fs::create_dir(&host).unwrap();
    git::git(&host, &["init", "-q", "--bare", "storage.git"]);
    stage.replace(
        "https://git.example.org/alice",
        &format!("file://{}", host.display()),
    );
    let (said, code) = stage.shell("", before);
    assert_eq!(code, 0, "{said}");
    let mut text = document(name);
    if std::process::Command::new("git-lfs")
        .arg("version")
        .output()
        .is_err()
    {
        eprintln!("git-lfs is not installed: how to come from it is not tried");
        text = without_part(&text, "## Coming from Git LFS");
    }
    match stage.play(&text) {
        Ok(steps) => assert!(steps > 0, "{name} shows no command"),
        Err(wrong) => panic!("{name}:\n{wrong}"),
    }
}

/// A document without what stands below one of its headings.
fn without_part(text: &str, heading: &str) -> String {
    let Some((before, part)) = text.split_once(heading) else {
        return text.to_owned();
    };
    let after = part.find("\n## ").map_or("", |at| &part[at..]);
    format!("{before}{after}")
}

#[test]
fn readme() {
    plays(
        "README.md",
        "printf 'alias ll=ls\\n' >.bashrc && mkdir -p .config/app && echo a >.config/app/settings && git init -q my-project &&
         cd my-project && echo notes >notes.md && git add . && git commit -q -m notes &&
         head -c 10000000 /dev/urandom >take.mov && cd ~",
    );
}

#[test]
fn reference_of_encrypted_remotes() {
    plays(
        "docs/git-e2ee.md",
        "git init -q my-project && cd my-project && echo notes >notes.md && git add . && git commit -q -m notes && cd ~",
    );
}

#[test]
fn reference_of_snapshots() {
    plays(
        "docs/rivet.md",
        "printf 'alias ll=ls\\n' >.bashrc && mkdir -p .config/app && echo a >.config/app/settings",
    );
}

#[test]
fn reference_of_big_files() {
    plays(
        "docs/git-chunk.md",
        "git init -q scene && cd scene && head -c 200000 /dev/urandom >scene.blend",
    );
}

#[test]
fn guide_to_encrypted_remotes() {
    plays(
        "docs/guide-encrypted-remotes.md",
        "git init -q --bare old.git && git init -q seed && cd seed && git commit -q --allow-empty -m seed &&
         git tag v1 && git push -q ../old.git main v1 && cd && rm -rf seed && cd ~",
    );
}

#[test]
fn guide_to_snapshots() {
    plays("docs/guide-snapshots.md", "true");
}

#[test]
fn guide_to_big_files() {
    plays(
        "docs/guide-big-files.md",
        "git init -q --bare /mnt/nas/film.git && git init -q lfs && cd lfs && git lfs install --local >/dev/null &&
         git lfs track '*.psd' >/dev/null && head -c 3000000 /dev/urandom >a.psd && git add . && git commit -q -m lfs && cd ~",
    );
}
