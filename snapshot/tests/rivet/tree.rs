//! Everything that a home folder can hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt, symlink};

use crate::home::Home;

const FORMATS: [&str; 2] = ["sha1", "sha256"];

#[test]
fn links_stay_links_and_are_never_followed() {
    for format in FORMATS {
        let home = Home::with(format);
        home.write("outside/file", "outside");
        symlink("nowhere", home.path("t/dangling")).unwrap();
        symlink("loop", home.path("t/loop")).unwrap();
        symlink("../outside", home.path("t/folder")).unwrap();
        symlink(OsStr::from_bytes(b"odd\xff\nname"), home.path("t/odd")).unwrap();
        home.rivet(&["snapshot"]).good();
        home.sound();
        let entries = home.entries();
        assert_eq!(entries["t/dangling"]["target"], "nowhere");
        assert_eq!(entries["t/folder"]["target"], "../outside");
        assert_eq!(entries["t/loop"]["kind"], "link");
        assert!(!entries.keys().any(|path| path.starts_with("t/folder/")));
        std::fs::remove_dir_all(home.path("t")).unwrap();
        home.rivet(&["restore"]).good();
        assert_eq!(
            std::fs::read_link(home.path("t/odd"))
                .unwrap()
                .as_os_str()
                .as_bytes(),
            b"odd\xff\nname"
        );
        assert!(
            std::fs::symlink_metadata(home.path("t/folder"))
                .unwrap()
                .is_symlink()
        );
        assert!(
            home.rivet(&["restore", "--dry-run"])
                .good()
                .contains("as the snapshot has it")
        );
    }
}

#[test]
fn modes_times_empty_files_and_empty_folders() {
    let home = Home::new();
    for mode in [0o600, 0o755, 0o444, 0o640, 0o4711, 0o777] {
        let name = format!("t/mode-{mode:o}");
        home.write(&name, "x");
        home.age(&name);
        std::fs::set_permissions(home.path(&name), PermissionsExt::from_mode(mode)).unwrap();
    }
    home.write("t/empty", "");
    std::fs::create_dir_all(home.path("t/deep/empty/folder")).unwrap();
    std::fs::set_permissions(home.path("t/deep"), PermissionsExt::from_mode(0o2750)).unwrap();
    home.rivet(&["snapshot"]).good();
    home.sound();
    assert!(home.git(&["ls-tree", "-r", "desk"]).contains("100755 blob"));
    std::fs::remove_dir_all(home.path("t")).unwrap();
    home.rivet(&["restore"]).good();
    for mode in [0o600, 0o755, 0o444, 0o640, 0o4711, 0o777] {
        let meta = std::fs::metadata(home.path(format!("t/mode-{mode:o}"))).unwrap();
        assert_eq!(meta.permissions().mode() & 0o7777, mode);
        let time = meta
            .modified()
            .unwrap()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        assert_eq!((time.as_secs(), time.subsec_nanos()), (1_600_000_000, 123));
    }
    assert_eq!(home.read("t/empty"), "");
    assert!(home.path("t/deep/empty/folder").is_dir());
    let deep = std::fs::metadata(home.path("t/deep")).unwrap();
    assert_eq!(deep.permissions().mode() & 0o7777, 0o2750);
}

/// Device and number of a file.
fn identity(home: &Home, path: &str) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::symlink_metadata(home.path(path)).unwrap();
    (meta.dev(), meta.ino())
}

fn linked() -> Home {
    let home = Home::new();
    home.write("t/a/one", "the same");
    std::fs::create_dir(home.path("t/b")).unwrap();
    for name in ["t/b/two", "t/three"] {
        std::fs::hard_link(home.path("t/a/one"), home.path(name)).unwrap();
    }
    home.write("t/lone", "the same");
    home
}

#[test]
fn hard_links_are_captured_and_restored() {
    for format in FORMATS {
        let home = Home::with(format);
        home.write("t/b/one", "the same");
        home.write("t/lone", "the same");
        std::fs::hard_link(home.path("t/b/one"), home.path("t/a")).unwrap();
        home.rivet(&["snapshot"]).good();
        home.sound();
        let entries = home.entries();
        assert_eq!(entries["t/b/one"]["hard_link"], "t/a");
        assert!(entries["t/a"]["hard_link"].is_null() && entries["t/lone"]["hard_link"].is_null());
        assert!(home.json(&["snapshot"])["snapshot"].is_null());
        assert_eq!(
            home.json(&["snapshot", "--rehash"])["snapshot"],
            serde_json::Value::Null
        );
        home.rivet(&["verify"]).good();
        std::fs::remove_dir_all(home.path("t")).unwrap();
        home.rivet(&["restore"]).good();
        assert_eq!(identity(&home, "t/a"), identity(&home, "t/b/one"));
        assert_ne!(identity(&home, "t/a"), identity(&home, "t/lone"));
        assert!(
            home.rivet(&["restore", "-n"])
                .good()
                .contains("as the snapshot has it")
        );
        home.rivet(&["undo"]).good();
        assert!(!home.path("t").exists());
    }
}

#[test]
fn one_name_alone_is_a_file_of_its_own() {
    let home = linked();
    home.rivet(&["snapshot"]).good();
    std::fs::remove_dir_all(home.path("t")).unwrap();
    home.rivet(&["restore", "HEAD", "t/three"]).good();
    assert_eq!(home.read("t/three"), "the same");
    assert!(!home.path("t/a/one").exists());
    // With the first name, it becomes one again.
    home.rivet(&["restore"]).good();
    assert_eq!(identity(&home, "t/a/one"), identity(&home, "t/three"));
    assert_eq!(identity(&home, "t/a/one"), identity(&home, "t/b/two"));
    home.rivet(&["undo"]).good();
    assert_eq!(home.read("t/three"), "the same");
    assert!(!home.path("t/a/one").exists());
}

#[test]
fn names_that_come_go_or_part_are_a_change() {
    let home = linked();
    home.rivet(&["snapshot"]).good();
    // The first name goes, and the next one is the first.
    std::fs::remove_file(home.path("t/a/one")).unwrap();
    let json = home.json(&["snapshot"]);
    assert_eq!(json["removed"], 1, "{json}");
    let entries = home.entries();
    assert_eq!(entries["t/three"]["hard_link"], "t/b/two");
    // One becomes a file of its own, with the same content and time.
    let time = std::fs::metadata(home.path("t/three"))
        .unwrap()
        .modified()
        .unwrap();
    std::fs::remove_file(home.path("t/three")).unwrap();
    home.write("t/three", "the same");
    std::fs::File::options()
        .write(true)
        .open(home.path("t/three"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(home.rivet(&["status"]).good(), "t t/three\n");
    let json = home.json(&["snapshot"]);
    assert_eq!(
        (json["touched"].as_u64(), json["modified"].as_u64()),
        (Some(1), Some(0))
    );
    assert!(home.entries()["t/three"]["hard_link"].is_null());
    // Going back makes them one file again.
    home.rivet(&["restore", "HEAD~1"]).good();
    assert_eq!(identity(&home, "t/b/two"), identity(&home, "t/three"));
    home.rivet(&["undo"]).good();
    assert_ne!(identity(&home, "t/b/two"), identity(&home, "t/three"));
    home.sound();
}

#[test]
fn what_concerns_one_name_concerns_all() {
    let home = linked();
    home.rivet(&["snapshot"]).good();
    // Permissions are those of the file; adjusting them for one name is no surprise for the next.
    std::fs::set_permissions(home.path("t/three"), PermissionsExt::from_mode(0o600)).unwrap();
    let before = identity(&home, "t/three");
    let json = home.json(&["restore"]);
    assert_eq!(
        (json["adjusted"].as_u64(), json["written"].as_u64()),
        (Some(3), Some(0)),
        "{json}"
    );
    assert_eq!(identity(&home, "t/three"), before);
    // Content too.
    home.write("t/three", "something else");
    home.rivet(&["restore"]).good();
    for name in ["t/a/one", "t/b/two", "t/three"] {
        assert_eq!(home.read(name), "the same");
        assert_eq!(identity(&home, name), identity(&home, "t/three"));
    }
    home.rivet(&["undo"]).good();
    assert_eq!(home.read("t/a/one"), "something else");
    assert_eq!(identity(&home, "t/a/one"), identity(&home, "t/three"));
    // What no snapshot links is not changed through another name.
    let home = Home::new();
    home.write("t/own", "mine");
    home.rivet(&["snapshot"]).good();
    std::fs::hard_link(home.path("t/own"), home.path("elsewhere")).unwrap();
    std::fs::set_permissions(home.path("t/own"), PermissionsExt::from_mode(0o600)).unwrap();
    home.rivet(&["restore"]).good();
    let mode = |name: &str| std::fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("t/own"), mode("elsewhere")), (0o644, 0o600));
}

#[test]
fn names_of_one_file_are_deleted_together() {
    let home = Home::new();
    home.write("t/stays", "x");
    home.rivet(&["snapshot"]).good();
    home.write("t/one", "the same");
    for name in ["t/two", "t/three"] {
        std::fs::hard_link(home.path("t/one"), home.path(name)).unwrap();
    }
    home.rivet(&["restore", "--delete"]).good();
    assert_eq!(std::fs::read_dir(home.path("t")).unwrap().count(), 1);
    home.rivet(&["undo"]).good();
    assert_eq!(home.read("t/three"), "the same");
    assert_eq!(identity(&home, "t/one"), identity(&home, "t/three"));
}

#[test]
fn sparse_files_stay_sparse() {
    use std::io::{Seek as _, Write as _};
    use std::os::unix::fs::MetadataExt as _;
    let home = Home::new();
    let mut sparse = std::fs::File::create(home.path("t/sparse")).unwrap();
    sparse.seek(std::io::SeekFrom::Start(20 << 20)).unwrap();
    sparse.write_all(b"end").unwrap();
    sparse.set_len(30 << 20).unwrap();
    drop(sparse);
    home.rivet(&["snapshot"]).good();
    home.sound();
    let before = std::fs::read(home.path("t/sparse")).unwrap();
    std::fs::remove_dir_all(home.path("t")).unwrap();
    home.rivet(&["restore"]).good();
    assert!(std::fs::read(home.path("t/sparse")).unwrap() == before);
    let blocks = std::fs::metadata(home.path("t/sparse")).unwrap().blocks();
    assert!(blocks * 512 < 4 << 20, "{blocks} blocks: the holes are gone");
}

#[test]
fn sockets_pipes_and_devices_are_skipped_with_a_line_and_never_opened() {
    let home = Home::new();
    home.write("t/file", "x");
    // Opening a pipe that nobody writes to would wait for ever.
    rustix::fs::mkfifoat(rustix::fs::CWD, home.path("t/pipe"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(home.path("t/socket")).unwrap();
    let json = home.json(&["snapshot"]);
    assert_eq!(Home::skipped(&json), ["t/pipe: pipe", "t/socket: socket"]);
    assert!(
        std::fs::metadata(home.path("t/pipe"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
    let said = home.rivet(&["snapshot"]).good();
    assert!(said.contains("Not captured: t/pipe"), "{said}");
    home.sound();
}

#[test]
fn devices_and_mount_points_are_skipped() {
    // The one folder that has both on every Linux machine.
    if !std::path::Path::new("/dev/shm").is_dir() {
        return;
    }
    let home = Home::new();
    home.configure("root = \"/dev\"\ntrack = [\".\"]\nignore = [\"/*\", \"!/null\", \"!/shm\"]");
    let json = home.json(&["status"]);
    let skipped = Home::skipped(&json);
    assert!(skipped.contains(&"null: device".to_owned()), "{skipped:?}");
    let same = {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata("/dev").unwrap().dev() == std::fs::metadata("/dev/shm").unwrap().dev()
    };
    assert!(same || skipped.contains(&"shm: mount".to_owned()), "{skipped:?}");
}

#[test]
fn names_in_any_bytes() {
    for format in FORMATS {
        let home = Home::with(format);
        let names: [&[u8]; 12] = [
            b"plain",
            b"new\nline",
            b"\xff\xfe\x80",
            b"quote\"back\\slash",
            b" spaces ",
            "größe ☃".as_bytes(),
            b"-dash",
            b".git",
            b".gitmodules",
            b"git~1",
            b"%percent",
            b"tab\tand\x01control",
        ];
        for name in names {
            let path = home.path("t").join(OsStr::from_bytes(name));
            std::fs::write(path, [b"content of ", name].concat()).unwrap();
        }
        std::fs::create_dir_all(home.path("t/nested/.git/objects")).unwrap();
        home.write("t/nested/.git/config", "[core]\n");
        home.write("t/nested/.gitattributes", "x".repeat(5000) + "\n");
        home.rivet(&["snapshot"]).good();
        home.sound();
        std::fs::remove_dir_all(home.path("t")).unwrap();
        home.rivet(&["restore"]).good();
        for name in names {
            let path = home.path("t").join(OsStr::from_bytes(name));
            assert_eq!(std::fs::read(path).unwrap(), [b"content of ", name].concat());
        }
        assert_eq!(home.read("t/nested/.git/config"), "[core]\n");
        assert!(home.path("t/nested/.git/objects").is_dir());
        // Nothing that a terminal would obey comes out.
        let shown = home.rivet(&["show"]).good();
        assert!(!shown.contains('\x01') && shown.contains("new\\nline"), "{shown}");
        home.rivet(&["verify"]).good();
    }
}

#[test]
fn caches_are_left_out_and_their_folder_stays() {
    let home = Home::new();
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    home.write("t/cache/CACHEDIR.TAG", tag);
    home.write("t/cache/big", "x");
    home.write("t/no-cache/CACHEDIR.TAG", "Signature: something else");
    home.write("t/no-cache/kept", "x");
    let json = home.json(&["snapshot"]);
    assert_eq!(Home::skipped(&json), ["t/cache: cache"]);
    let entries = home.entries();
    assert!(entries.contains_key("t/cache") && !entries.contains_key("t/cache/big"));
    assert!(entries.contains_key("t/no-cache/kept"));
    home.configure("skip_caches = false");
    home.rivet(&["snapshot"]).good();
    assert!(home.entries().contains_key("t/cache/big"));
}

#[test]
fn unreadable_files_and_folders_are_reported_and_the_rest_is_captured() {
    use std::os::unix::process::CommandExt as _;
    let home = Home::new();
    home.write("t/good", "good");
    home.write("t/secret-file", "closed");
    home.write("t/closed/inside", "x");
    std::fs::set_permissions(home.path("t/secret-file"), PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::set_permissions(home.path("t/closed"), PermissionsExt::from_mode(0o000)).unwrap();
    if rustix::process::geteuid().is_root() {
        // Permissions do not hold for root.
        let nobody = 65534;
        let all = |path: &std::path::Path| {
            let mut open = vec![path.to_owned()];
            while let Some(path) = open.pop() {
                std::os::unix::fs::lchown(&path, Some(nobody), Some(nobody)).unwrap();
                if std::fs::symlink_metadata(&path).unwrap().is_dir() {
                    open.extend(
                        std::fs::read_dir(&path)
                            .unwrap()
                            .map(|entry| entry.unwrap().path()),
                    );
                }
            }
        };
        all(home.root());
    }
    // The program may lie where nobody else can reach it.
    let program = home.path("rivet-program");
    std::fs::copy(env!("CARGO_BIN_EXE_rivet"), &program).unwrap();
    std::fs::set_permissions(home.root(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut lower = std::process::Command::new(&program);
    lower
        .current_dir(home.root())
        .env("HOME", home.root())
        .args(["snapshot", "--json"]);
    if rustix::process::geteuid().is_root() {
        lower.uid(65534).gid(65534);
    }
    let ran = crate::home::ran(lower.output().unwrap());
    std::fs::set_permissions(home.path("t/closed"), PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        Home::skipped(&json),
        ["t/closed: unreadable", "t/secret-file: unreadable"]
    );
    // The repository may belong to somebody else now, which Git minds.
    let archive = ingot_snapshot::archive::Files::of(&home.repository());
    assert!(archive.stat_cache().exists() && json["added"] == 3, "{json}");
}

#[test]
fn files_above_the_limit_and_ignored_ones_are_left_out() {
    let home = Home::new();
    home.configure("max_file_size = \"1 KiB\"\nignore = [\"*.swp\", \"/t/out/\"]");
    home.write("t/small", "x".repeat(1024));
    home.write("t/large", "x".repeat(1025));
    home.write("t/a.swp", "x");
    home.write("t/out/x", "x");
    let json = home.json(&["snapshot"]);
    assert_eq!(Home::skipped(&json), ["t/large: too-large"]);
    assert_eq!(
        home.entries().keys().cloned().collect::<Vec<_>>(),
        ["t", "t/small"]
    );
}

#[test]
fn what_lies_beyond_a_link_is_told() {
    let home = Home::new();
    home.write("real/inside/file", "x");
    symlink("real", home.path("alias")).unwrap();
    home.configure("track = [\"alias/inside\", \"gone/for/good\", \"t\"]");
    let ran = home.rivet(&["snapshot", "--json"]);
    assert_eq!(ran.code, 3);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(Home::skipped(&json), ["alias: beyond-link"]);
}
