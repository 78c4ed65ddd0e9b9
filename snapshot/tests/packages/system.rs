//! Managers of systems and applications.

use ingot_snapshot::packages::{Manager, system_manager};

use super::machine::Machine;

#[test]
fn dpkg_with_the_marks_of_apt() {
    let machine = Machine::new();
    machine
        .write(
            "var/lib/dpkg/status",
            "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.21.22\n\n\
             Package: vim\nStatus: install ok installed\nPriority: optional\nArchitecture: amd64\nVersion: 2:9.1.0-1\nDescription: editor\n Package: not this\n .\n Status: nor this\n\n\
             Package: libgpm2\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.20.7\n\n\
             Package: libc6\nStatus: hold ok installed\nArchitecture: i386\nVersion: 2.36\n\n\
             Package: tzdata\nStatus: install ok installed\nArchitecture: all\nVersion: 2024a\n\n\
             Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1.0\n\n",
        )
        .write(
            "var/lib/apt/extended_states",
            "Package: libgpm2\nArchitecture: amd64\nAuto-Installed: 1\n\n\
             Package: libc6\nArchitecture: i386\nAuto-Installed: 1\n\n\
             Package: vim\nArchitecture: amd64\nAuto-Installed: 0\n\n",
        );
    assert_eq!(
        machine.listing(Manager::Apt),
        [
            "dpkg 1.21.22 explicit",
            "libc6:i386 2.36 dependency",
            "libgpm2 1.20.7 dependency",
            "tzdata 2024a explicit",
            "vim 2:9.1.0-1 explicit"
        ]
    );
    assert_eq!(system_manager(&machine.root()), Some(Manager::Apt));
}

#[test]
fn pacman_with_its_reasons() {
    let machine = Machine::new();
    machine
        .write("var/lib/pacman/local/ALPM_DB_VERSION", "9\n")
        .write(
            "var/lib/pacman/local/jq-1.7.1-2/desc",
            "%NAME%\njq\n\n%VERSION%\n1.7.1-2\n\n%DESC%\nCommand-line JSON processor\n",
        )
        .write(
            "var/lib/pacman/local/oniguruma-6.9-1/desc",
            "%NAME%\noniguruma\n\n%VERSION%\n6.9-1\n\n%REASON%\n1\n",
        );
    assert_eq!(
        machine.listing(Manager::Pacman),
        ["jq 1.7.1-2 explicit", "oniguruma 6.9-1 dependency"]
    );
    assert_eq!(system_manager(&machine.root()), Some(Manager::Pacman));
}

#[test]
fn apk_with_its_world() {
    let machine = Machine::new();
    machine
        .write("lib/apk/db/installed", "C:Q1abc=\nP:busybox\nV:1.36-r5\nA:x86_64\n\nP:curl\nV:8.5-r0\n\nP:libcurl\nV:8.5-r0\n\nP:py3-x\nV:1-r0\n\n")
        .write("etc/apk/world", "busybox\ncurl>8\npy3-x@edge\n!libcurl\n");
    assert_eq!(
        machine.listing(Manager::Apk),
        [
            "busybox 1.36-r5 explicit",
            "curl 8.5-r0 explicit",
            "libcurl 8.5-r0 dependency",
            "py3-x 1-r0 explicit"
        ]
    );
}

#[test]
fn rpm_is_said_not_to_be_read() {
    let machine = Machine::new();
    machine.write("usr/lib/sysimage/rpm/rpmdb.sqlite", "SQLite format 3\0");
    let inventory = machine.inventory();
    let listing = &inventory.managers[&Manager::Rpm];
    let why = listing.not_read.as_ref().expect("a reason");
    assert!(
        why.contains("rpmdb.sqlite is not read in-process")
            && why.contains("--ask")
            && why.contains("rpm -qa"),
        "{why}"
    );
    assert!(listing.packages.is_empty());
    assert_eq!(system_manager(&machine.root()), Some(Manager::Rpm));
}

#[test]
fn homebrew_with_receipts_taps_and_casks() {
    let machine = Machine::new();
    let receipt = |asked: bool, tap: &str| {
        format!(
            "{{\"homebrew_version\":\"4.2\",\"installed_on_request\":{asked},\"installed_as_dependency\":{},\"source\":{{\"tap\":\"{tap}\",\"spec\":\"stable\"}}}}",
            !asked
        )
    };
    machine
        .write(
            "opt/homebrew/Cellar/fd/10.1.0/INSTALL_RECEIPT.json",
            receipt(true, "homebrew/core"),
        )
        .write(
            "opt/homebrew/Cellar/fd/9.0.0/INSTALL_RECEIPT.json",
            receipt(false, "homebrew/core"),
        )
        .link("opt/homebrew/opt/fd", "../Cellar/fd/10.1.0")
        .write(
            "opt/homebrew/Cellar/oniguruma/6.9.9/INSTALL_RECEIPT.json",
            receipt(false, "homebrew/core"),
        )
        .write(
            "opt/homebrew/Cellar/tool/1.0/INSTALL_RECEIPT.json",
            receipt(true, "somebody/tap"),
        )
        .folder("opt/homebrew/Caskroom/kitty/0.35.2")
        .folder("opt/homebrew/Caskroom/kitty/.metadata");
    assert_eq!(
        machine.listing(Manager::Brew),
        [
            "fd 10.1.0 explicit",
            "oniguruma 6.9.9 dependency",
            "somebody/tap/tool 1.0 explicit somebody/tap"
        ]
    );
    assert_eq!(machine.listing(Manager::Cask), ["kitty 0.35.2 explicit"]);
}

#[test]
fn flatpak_with_remotes() {
    let machine = Machine::new();
    machine
        .write(
            "var/lib/flatpak/app/org.gimp.GIMP/x86_64/stable/active/deploy",
            b"flathub\0 0123456789abcdef\0\xff\xfe",
        )
        .link("var/lib/flatpak/app/org.gimp.GIMP/current", "x86_64/stable")
        .folder("var/lib/flatpak/runtime/org.gnome.Platform/x86_64/46/active")
        .write(
            "~/.local/share/flatpak/app/org.kde.krita/x86_64/beta/active/deploy",
            b"\xff\xfe\0",
        );
    assert_eq!(
        machine.listing(Manager::Flatpak),
        [
            "org.gimp.GIMP stable explicit flathub",
            "org.gnome.Platform 46 dependency",
            "org.kde.krita beta explicit"
        ]
    );
}

#[test]
fn snaps_with_bases_and_confinement() {
    let machine = Machine::new();
    machine
        .write("snap/README", "")
        .write(
            "snap/code/180/meta/snap.yaml",
            "name: code\nversion: 1a2b3c\nconfinement: classic\n",
        )
        .link("snap/code/current", "180")
        .write(
            "snap/core22/1380/meta/snap.yaml",
            "name: core22\ntype: base\nversion: '20240408'\n",
        )
        .link("snap/core22/current", "1380")
        .link("snap/unmounted/current", "7")
        .folder("snap/bin");
    assert_eq!(
        machine.listing(Manager::Snap),
        [
            "code 1a2b3c explicit classic",
            "core22 20240408 dependency",
            "unmounted revision 7 unknown"
        ]
    );
}

#[test]
fn nix_profiles_of_every_age() {
    let element = "{\"active\":true,\"attrPath\":\"legacyPackages.x86_64-linux.zoom-us\",\"originalUrl\":\"flake:nixpkgs\",\"storePaths\":[\"/nix/store/wbhg2ga8-zoom-us-5.3.469\"]}";
    for manifest in [
        format!("{{\"version\":2,\"elements\":[{element}]}}"),
        format!("{{\"version\":3,\"elements\":{{\"zoom-us\":{element}}}}}"),
    ] {
        let machine = Machine::new();
        machine.write("~/.local/state/nix/profiles/profile/manifest.json", manifest);
        assert_eq!(
            machine.listing(Manager::Nix),
            ["zoom-us 5.3.469 explicit flake:nixpkgs"]
        );
    }
    let machine = Machine::new();
    machine.write(
        "~/.nix-profile/manifest.nix",
        "[ { meta = { name = \"no\"; }; name = \"hello-2.12\"; type = \"derivation\"; } ]",
    );
    assert_eq!(machine.listing(Manager::Nix), ["hello 2.12 explicit"]);
}
