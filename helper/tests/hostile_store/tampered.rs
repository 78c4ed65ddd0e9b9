//! Manifests and packs whose bytes are not those that were published.

use std::fs;
use std::path::Path;

use ingot_helper::remote::Kind;

use super::good::{ALL, Good, Spoilt, Try, Watched};

/// Everything that can be done to the bytes of one file, one after the other, with the other's bytes for the swap.
fn damage(path: &Path, other: &Path, mut check: impl FnMut(&str)) {
    let good = fs::read(path).unwrap();
    let mut put = |what: &str, bytes: &[u8]| {
        fs::write(path, bytes).unwrap();
        check(what);
    };
    put("emptied", b"");
    put("without its last byte", &good[..good.len() - 1]);
    put("cut in half", &good[..good.len() / 2]);
    put("longer by a byte", &[&good[..], b"\n"].concat());
    put("doubled", &[&good[..], &good[..]].concat());
    for at in [0, 9, 40, good.len() / 3, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        put(&format!("with byte {at} changed"), &bytes);
    }
    put("swapped with another", &fs::read(other).unwrap());
    fs::remove_file(path).unwrap();
    check("removed");
    fs::create_dir(path).unwrap();
    check("made a folder");
    fs::remove_dir(path).unwrap();
    #[cfg(unix)]
    {
        let elsewhere = path.with_extension("elsewhere");
        fs::write(&elsewhere, &good).unwrap();
        std::os::unix::fs::symlink(&elsewhere, path).unwrap();
        check("made a symbolic link to what is right");
        fs::remove_file(path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).unwrap();
        check("made a pipe");
        fs::remove_file(path).unwrap();
        fs::remove_file(elsewhere).unwrap();
    }
    fs::write(path, &good).unwrap();
}

/// Makes a file look as large as no disk is.
fn blow_up(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(1 << 40).unwrap();
}

fn restored(spoilt: &Spoilt, good: &Good) {
    assert_eq!(
        super::client::listing(&spoilt.store),
        super::client::listing(&good.path("store"))
    );
}

#[test]
fn no_manifest_may_differ_by_a_byte() {
    let good = Good::new();
    let fresh = Watched::new("fresh", &good.fresh);
    let behind = Watched::new("older", &good.behind);
    let current = Watched::new("newer", &good.current);
    let spoilt = good.spoil("store");
    for (generation, id) in good.manifests.iter().enumerate() {
        let other = good.manifests[(generation + 2) % good.manifests.len()];
        damage(&spoilt.manifest(id), &spoilt.manifest(&other), |what| {
            let what = format!("manifest of generation {generation} {what}");
            fresh.refuses(
                &good,
                &spoilt.store,
                &what,
                &[Try::List, Try::Fetch],
                &[Kind::Alarm],
            );
            // Below what a clone has seen, only a verification reads it again.
            let tries = |pinned| if generation < pinned { &ALL[3..] } else { &ALL[..] };
            behind.refuses(&good, &spoilt.store, &what, tries(2), &[Kind::Alarm]);
            current.refuses(&good, &spoilt.store, &what, tries(4), &[Kind::Alarm]);
        });
    }
    restored(&spoilt, &good);
    let path = spoilt.manifest(&good.manifests[2]);
    blow_up(&path);
    current.refuses_large(&good, &spoilt.store, "manifest of a terabyte", &ALL[3..]);
    behind.refuses_large(&good, &spoilt.store, "manifest of a terabyte", &ALL);
}

#[test]
fn a_manifest_under_its_own_name_still_has_to_be_signed() {
    let good = Good::new();
    let fresh = Watched::new("fresh", &good.fresh);
    let current = Watched::new("newer", &good.current);
    let newest = good.manifests.last().unwrap();
    let bytes = fs::read(good.spoil("store").manifest(newest)).unwrap();
    // Before anything of a manifest is authenticated, a damaged envelope is like that of another reader, and a damaged
    // version like one to come.
    let kinds = [Kind::Alarm, Kind::Key, Kind::Failed];
    let mut alarms = 0;
    let step = bytes.len() / 60;
    for at in (0..bytes.len()).step_by(step) {
        for mask in [1, 0x20] {
            let spoilt = good.spoil("store");
            let mut changed = bytes.clone();
            changed[at] ^= mask;
            spoilt.add_head(&changed);
            let what = format!("newest manifest with byte {at} changed by {mask}, and its name");
            fresh.refuses(&good, &spoilt.store, &what, &[Try::List, Try::Fetch], &kinds);
            let kind = current.refused(&good, &spoilt.store, &what, &[Try::Push], &kinds);
            alarms += usize::from(kind == Kind::Alarm);
        }
    }
    assert!(alarms > 60, "only {alarms} alarms");

    for (what, bytes) in [
        ("no bytes", Vec::new()),
        ("no manifest", b"hello\n".to_vec()),
        ("16 MiB of spaces", vec![b' '; 16 << 20]),
        ("16 MiB of brackets", vec![b'['; 16 << 20]),
        ("more than 16 MiB", vec![b' '; (16 << 20) + 1]),
        ("half a manifest", bytes[..bytes.len() / 2].to_vec()),
        ("two manifests", [&bytes[..], &bytes[..]].concat()),
    ] {
        let spoilt = good.spoil("store");
        spoilt.add_head(&bytes);
        fresh.refuses(
            &good,
            &spoilt.store,
            what,
            &[Try::List, Try::Fetch],
            &[Kind::Alarm],
        );
        current.refuses(&good, &spoilt.store, what, &ALL, &[Kind::Alarm]);
    }
}

#[test]
fn no_pack_may_differ_by_a_byte() {
    let good = Good::new();
    let fresh = Watched::new("fresh", &good.fresh);
    let behind = Watched::new("older", &good.behind);
    let spoilt = good.spoil("store");
    for (number, (id, generation)) in good.packs.iter().enumerate() {
        let (other, _) = good.packs[(number + 1) % good.packs.len()];
        damage(&spoilt.pack(id), &spoilt.pack(&other), |what| {
            let what = format!("pack {number} {what}");
            let tries = [Try::Fetch, Try::Verify];
            fresh.refuses(&good, &spoilt.store, &what, &tries, &[Kind::Alarm]);
            let tries = if *generation > 2 { &tries[..] } else { &tries[1..] };
            behind.refuses(&good, &spoilt.store, &what, tries, &[Kind::Alarm]);
        });
    }
    restored(&spoilt, &good);
    for (id, _) in &good.packs {
        let path = spoilt.pack(id);
        let content = fs::read(&path).unwrap();
        blow_up(&path);
        fresh.refuses_large(
            &good,
            &spoilt.store,
            "pack of a terabyte",
            &[Try::Fetch, Try::Verify],
        );
        fs::write(&path, content).unwrap();
    }
    restored(&spoilt, &good);
}

#[test]
fn a_store_without_its_folders_is_damaged_and_not_new() {
    let good = Good::new();
    let current = Watched::new("newer", &good.current);
    let fresh = Watched::new("fresh", &good.fresh);
    for folder in ["manifests", "objects"] {
        let spoilt = good.spoil("store");
        fs::remove_dir_all(spoilt.store.join(folder)).unwrap();
        let tries: &[Try] = if folder == "objects" {
            &[Try::Fetch, Try::Verify]
        } else {
            &ALL
        };
        fresh.refuses(&good, &spoilt.store, folder, tries, &[Kind::Alarm]);
        fs::write(spoilt.store.join(folder), "no folder").unwrap();
        fresh.refuses(&good, &spoilt.store, folder, tries, &[Kind::Alarm]);
    }
    let spoilt = good.spoil("store");
    for entry in fs::read_dir(&spoilt.store).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
    current.refuses(&good, &spoilt.store, "emptied store", &ALL, &[Kind::NoStore]);
    fs::remove_dir(&spoilt.store).unwrap();
    current.refuses_gone(&good, &spoilt.store, "removed store", &ALL);
}
