//! What is read again, what is reused, and what is gone.

use crate::home::{Home, tick};

#[test]
fn unchanged_files_are_not_opened() {
    let home = Home::new();
    for number in 0..20 {
        home.write(&format!("t/{number}"), format!("content {number}"));
    }
    tick();
    assert_eq!(home.json(&["snapshot"])["read"], 20);
    let again = home.json(&["snapshot"]);
    assert_eq!(
        (again["read"].as_u64(), again["snapshot"].is_null()),
        (Some(0), true)
    );
    home.write("t/7", "content seven");
    let changed = home.json(&["snapshot"]);
    assert_eq!(changed["read"], 1);
    assert_eq!(
        (changed["modified"].as_u64(), changed["unchanged"].as_u64()),
        (Some(1), Some(20))
    );
    // Every byte is looked at when that is wanted, and nothing is stored for it.
    let rehashed = home.json(&["snapshot", "--rehash"]);
    assert_eq!(
        (rehashed["read"].as_u64(), rehashed["snapshot"].is_null()),
        (Some(20), true)
    );
    home.sound();
}

#[test]
fn rehashing_tells_a_touch_from_a_change() {
    let home = Home::new();
    for number in 0..70 {
        home.write(&format!("t/{}/{number}", number % 3), format!("content {number}"));
    }
    home.write("t/large", vec![5u8; 3 << 20]);
    std::os::unix::fs::symlink("1", home.path("t/link")).unwrap();
    home.rivet(&["snapshot"]).good();
    home.age("t/0/0");
    home.write("t/1/1", "kontent 1"); // of the same length
    let mut large = vec![5u8; 3 << 20];
    large[1 << 20] = 6;
    home.write("t/large", &large);
    let json = home.json(&["snapshot", "--rehash"]);
    let number = |name: &str| json[name].as_u64().unwrap();
    assert_eq!(
        (number("read"), number("touched"), number("modified")),
        (72, 1, 2),
        "{json}"
    );
    assert_eq!(home.blob("t/1/1"), b"kontent 1");
    assert!(home.blob("t/large") == large);
    home.rivet(&["verify"]).good();
    let json = home.json(&["snapshot", "--rehash"]);
    assert!(json["snapshot"].is_null() && json["read"] == 72, "{json}");
    home.sound();
}

#[test]
fn a_change_within_the_same_tick_is_noticed() {
    let home = Home::new();
    // A file that looks the same by size and time of content, changed right after the capture.
    for round in 0..5 {
        home.write("t/racy", format!("a{round}"));
        home.rivet(&["snapshot"]).good();
        let meta = std::fs::metadata(home.path("t/racy")).unwrap();
        home.write("t/racy", format!("b{round}"));
        let file = std::fs::File::options()
            .write(true)
            .open(home.path("t/racy"))
            .unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
        home.rivet(&["snapshot"]).good();
        assert_eq!(home.blob("t/racy"), format!("b{round}").as_bytes());
    }
}

#[test]
fn what_is_gone_is_gone_from_the_next_snapshot() {
    let home = Home::new();
    home.write("t/stays", "x");
    home.write("t/goes/deep", "y");
    home.rivet(&["snapshot"]).good();
    std::fs::remove_dir_all(home.path("t/goes")).unwrap();
    let json = home.json(&["snapshot"]);
    assert_eq!(json["removed"], 2);
    assert_eq!(
        home.entries().keys().cloned().collect::<Vec<_>>(),
        ["t", "t/stays"]
    );
    assert!(
        !home
            .git(&["ls-tree", "-r", "--name-only", "desk"])
            .contains("goes")
    );
    home.rivet(&["untrack", "t/stays"]).good();
    home.rivet(&["snapshot"]).good();
    assert_eq!(home.entries().keys().cloned().collect::<Vec<_>>(), ["t"]);
    home.sound();
}

#[test]
fn everything_new_is_one_pack() {
    let home = Home::new();
    for number in 0..300 {
        home.write(&format!("t/{}/{number}", number % 7), format!("content {number}"));
    }
    home.write("t/large", vec![7u8; 3 << 20]);
    home.rivet(&["snapshot"]).good();
    let packs = || {
        let names = std::fs::read_dir(home.repository().join("objects/pack")).unwrap();
        names
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|end| end == "pack")
            })
            .count()
    };
    assert_eq!(packs(), 1);
    assert_eq!(home.git(&["count-objects"]), "0 objects, 0 kilobytes");
    home.write("t/1/new", "new");
    home.rivet(&["snapshot"]).good();
    assert_eq!(packs(), 2);
    home.sound();
}

#[test]
fn a_lost_or_damaged_cache_costs_time_only() {
    let home = Home::new();
    home.write("t/a", "a");
    home.rivet(&["snapshot"]).good();
    let cache = home.repository().join("rivet/stat-cache");
    let tip = home.git(&["rev-parse", "desk"]);
    for damage in [None, Some(&b"nonsense"[..]), Some(b"")] {
        match damage {
            None => std::fs::remove_file(&cache).unwrap(),
            Some(bytes) => std::fs::write(&cache, bytes).unwrap(),
        }
        let json = home.json(&["snapshot"]);
        assert!(json["snapshot"].is_null(), "{json}");
        assert_eq!(json["read"], 1);
        assert_eq!(home.git(&["rev-parse", "desk"]), tip);
    }
}

#[test]
fn a_hash_of_another_scan_is_not_trusted() {
    let home = Home::new();
    home.write("t/a", "a");
    tick();
    home.rivet(&["snapshot"]).good();
    assert_eq!(home.json(&["snapshot"])["read"], 0);
    // The version lies after the magic and the length of ids; the checksum is made to fit again.
    let cache = home.repository().join("rivet/stat-cache");
    let mut bytes = std::fs::read(&cache).unwrap();
    bytes[9] ^= 0x40;
    let end = bytes.len() - 32;
    let sum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(sum.as_bytes());
    std::fs::write(&cache, &bytes).unwrap();
    let json = home.json(&["snapshot"]);
    assert_eq!(json["read"], 1, "{json}");
    // So is a capture that other findings were allowed in.
    home.configure("[secrets]\nallow = [\"00112233445566778899aabbccddeeff\"]");
    assert_eq!(home.json(&["snapshot"])["read"], 1);
}

#[test]
fn status_shows_what_a_snapshot_would_do_and_does_nothing() {
    let home = Home::new();
    home.write("t/a", "a");
    home.write("t/b", "b");
    home.rivet(&["snapshot"]).good();
    home.write("t/a", "changed");
    std::fs::remove_file(home.path("t/b")).unwrap();
    home.write("t/c", "new");
    let before = home.git(&["rev-parse", "desk"]);
    let said = home.rivet(&["status"]).good();
    assert_eq!(said, "M t/a\nD t/b\nA t/c\n");
    assert_eq!(home.git(&["rev-parse", "desk"]), before);
    let diff = home.rivet(&["diff"]).good();
    for line in ["-a", "+changed", "-b", "+new", "--- a/t/a", "+++ /dev/null"] {
        assert!(diff.lines().any(|found| found == line), "{line}: {diff}");
    }
    let stat = home.rivet(&["diff", "--stat"]).good();
    assert!(stat.ends_with("3 files, 2 lines added, 2 removed\n"), "{stat}");
}

#[test]
fn the_settings_are_needed_and_explained() {
    let home = Home::bare();
    home.rivet(&["snapshot"]).ends(10);
    home.rivet(&["init", "--machine", "../evil"]).ends(2);
    home.rivet(&["init", "--machine", "desk"]).good();
    assert!(home.rivet(&["init"]).ends(1).contains("already"));
    let said = home.rivet(&["snapshot"]).ends(1);
    assert!(said.contains("rivet track"), "{said}");
    home.rivet(&["track", "missing"]).ends(1);
    home.write("a", "x");
    home.rivet(&["track", "a", "/etc/hosts"]).ends(2);
    home.rivet(&["track", "a"]).good();
    assert!(home.rivet(&["tracked"]).good().contains("\na\n"));
    home.rivet(&["restore"]).ends(1);
    home.rivet(&["frobnicate"]).ends(2);
    std::fs::write(home.path(".config/rivet/config.toml"), "trak = []").unwrap();
    assert!(home.rivet(&["status"]).ends(1).contains("no setting 'trak'"));
}

#[test]
fn two_runs_do_not_meet() {
    let home = Home::new();
    home.write("t/a", "a");
    let lock = std::fs::File::create(home.repository().join("rivet/lock")).unwrap();
    lock.lock().unwrap();
    let started = std::time::Instant::now();
    let mut waiting = home.command().arg("snapshot").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(waiting.try_wait().unwrap().is_none(), "it waits");
    drop(lock);
    assert!(waiting.wait().unwrap().success());
    assert!(started.elapsed().as_secs() < 9);
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let home = Home::new();
    let pack = home.repository().join("objects/pack");
    std::fs::write(pack.join("tmp_pack_new_0123"), "half").unwrap();
    std::fs::write(pack.join("tmp_idx_new_0123"), "half").unwrap();
    std::fs::write(pack.join("tmp_pack_of_git"), "not ours").unwrap();
    home.write("t/a", "a");
    home.rivet(&["snapshot"]).good();
    assert!(!pack.join("tmp_pack_new_0123").exists() && !pack.join("tmp_idx_new_0123").exists());
    assert!(pack.join("tmp_pack_of_git").exists());
}
