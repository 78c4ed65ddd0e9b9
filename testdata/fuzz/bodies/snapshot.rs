//! What the fuzz targets of snapshots do with their input. Any outcome but a panic is fine.

use ingot_snapshot::packages::installed;
use ingot_snapshot::secrets::{AllowList, Scanner};

/// A file, scanned whole and in two pieces: what is found is the same. The input is also taken for a path.
pub fn secret_scan(data: &[u8]) {
    let scanner = Scanner::new(&AllowList::default());
    let _ = scanner.scan_path(data);
    let scan = |pieces: &[&[u8]]| {
        let mut file = scanner.file(b"file");
        pieces.iter().for_each(|piece| file.feed(piece));
        file.finish()
    };
    let cut = data
        .first()
        .map_or(0, |first| usize::from(*first) * data.len() / 256);
    assert_eq!(scan(&[data]), scan(&[&data[..cut], &data[cut..]]), "cut at {cut}");
}

/// A database of a package manager; the first byte tells of which.
pub fn package_database(data: &[u8]) {
    const PLACES: [&str; 12] = [
        "var/lib/dpkg/status",
        "var/lib/pacman/local/a-1-1/desc",
        "lib/apk/db/installed",
        "opt/homebrew/Cellar/a/1/INSTALL_RECEIPT.json",
        "var/lib/flatpak/app/a/b/c/active/deploy",
        ".nix-profile/manifest.json",
        ".nix-profile/manifest.nix",
        ".cargo/.crates2.json",
        ".cargo/.crates.toml",
        "go/bin/a",
        ".vscode/extensions/extensions.json",
        ".local/lib/python3.12/site-packages/a-1.dist-info/METADATA",
    ];
    let Some((first, data)) = data.split_first() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(PLACES[usize::from(*first) % PLACES.len()]);
    std::fs::create_dir_all(path.parent().expect("a folder above")).expect("folders");
    std::fs::write(&path, data).expect("a file");
    let inventory = installed(folder.path(), folder.path());
    let _ = inventory.install_commands(None);
}
