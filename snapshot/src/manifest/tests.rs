#![allow(clippy::unwrap_used)] // in tests, failing is the point

use proptest::prelude::*;

use super::*;

const FORMATS: [gix_hash::Kind; 2] = [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256];

fn file(path: &[u8], format: gix_hash::Kind) -> Entry {
    Entry {
        path: path.to_vec(),
        kind: Kind::File(Content {
            size: 12,
            blake3: [7; 32],
            id: ObjectId::empty_blob(format),
        }),
        mode: 0o644,
        mtime: Time {
            seconds: -5,
            nanoseconds: 999_999_999,
        },
        hard_link: None,
    }
}

fn folder(path: &[u8]) -> Entry {
    Entry {
        path: path.to_vec(),
        kind: Kind::Folder,
        mode: 0o2755,
        mtime: Time::default(),
        hard_link: None,
    }
}

fn sample(format: gix_hash::Kind) -> Manifest {
    Manifest {
        secret_scan_version: 3,
        entries: vec![
            folder(b"a"),
            file(b"a/new\nline \"quoted\" \\ \x01", format),
            file(b"a/z\xff", format),
            file("a-größe".as_bytes(), format),
            Entry {
                path: b"link".to_vec(),
                kind: Kind::Link {
                    target: b"../\xfe".to_vec(),
                    id: ObjectId::empty_blob(format),
                },
                mode: 0o777,
                mtime: Time::default(),
                hard_link: None,
            },
        ],
        skipped: vec![Skip {
            path: b"a/socket".to_vec(),
            reason: Reason::Socket,
        }],
    }
}

#[test]
fn what_is_written_is_read() {
    for format in FORMATS {
        for manifest in [sample(format), Manifest::default()] {
            let bytes = manifest.encode();
            assert_eq!(decode(&bytes, format).unwrap(), manifest);
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(value["entries"].as_array().unwrap().len(), manifest.entries.len());
        }
    }
    let text = String::from_utf8(sample(gix_hash::Kind::Sha1).encode()).unwrap();
    assert!(text.contains(r#""path_hex":"612f7aff""#) && text.contains(r#"new\nline \"quoted\" \\ \u0001"#));
}

/// The sample, in which a file has two more names.
fn linked(format: gix_hash::Kind) -> Manifest {
    let mut manifest = sample(format);
    let first = manifest.entries[1].path.clone();
    for at in [2, 3] {
        manifest.entries[at].hard_link = Some(first.clone());
    }
    let mut last = file(b"zz", format);
    last.hard_link = Some(b"a/\xff".to_vec());
    let mut other = file(b"a/\xff", format);
    other.hard_link = None;
    manifest.entries.insert(3, other); // the last one in its folder
    manifest.entries.push(last);
    manifest
}

#[test]
fn both_versions_are_what_they_always_were() {
    for (name, manifest) in [
        ("version-1.json", sample(gix_hash::Kind::Sha1)),
        ("version-2.json", linked(gix_hash::Kind::Sha1)),
        ("version-2-sha256.json", linked(gix_hash::Kind::Sha256)),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testdata/golden/rivet-manifest")
            .join(name);
        if std::env::var_os("INGOT_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, manifest.encode()).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert_eq!(
            String::from_utf8(manifest.encode()),
            String::from_utf8(golden.clone()),
            "{name}"
        );
        let format = if name.contains("sha256") {
            gix_hash::Kind::Sha256
        } else {
            gix_hash::Kind::Sha1
        };
        assert_eq!(decode(&golden, format).unwrap(), manifest, "{name}");
        let version = &golden[..50];
        let expected = if name.starts_with("version-1") {
            "\"version\":1,"
        } else {
            "\"version\":2,"
        };
        assert!(String::from_utf8_lossy(version).contains(expected), "{name}");
    }
}

#[test]
fn hard_links_are_to_the_first_name_of_the_same_file() {
    let format = gix_hash::Kind::Sha1;
    let good = linked(format);
    assert_eq!(decode(&good.encode(), format).unwrap(), good);
    let first = good.entries[1].path.clone();
    let change = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        decode(&manifest.encode(), format)
    };
    let bad: [&dyn Fn(&mut Manifest); 8] = [
        &|manifest| manifest.entries[2].mode = 0o600,
        &|manifest| manifest.entries[2].mtime.seconds += 1,
        &|manifest| {
            if let Kind::File(content) = &mut manifest.entries[2].kind {
                content.size += 1;
            }
        },
        &|manifest| manifest.entries[2].hard_link = Some(b"a".to_vec()),
        &|manifest| manifest.entries[2].hard_link = Some(b"nowhere".to_vec()),
        &|manifest| manifest.entries[2].hard_link = Some(manifest.entries[2].path.clone()),
        &|manifest| manifest.entries[1].hard_link = Some(b"zz".to_vec()),
        // A name of a name.
        &|manifest| manifest.entries[6].hard_link = Some(manifest.entries[2].path.clone()),
    ];
    for (number, bad) in bad.iter().enumerate() {
        let error = change(*bad).unwrap_err().to_string();
        assert!(error.contains("not the same file"), "{number}: {error}");
    }
    // Only files have more names, and what has none is of the first version.
    let mut text = String::from_utf8(good.encode()).unwrap();
    text = text.replacen("\"version\":2", "\"version\":1", 1);
    assert!(decode(text.as_bytes(), format).is_err());
    let plain = String::from_utf8(sample(format).encode()).unwrap();
    assert!(
        decode(
            plain.replacen("\"version\":1", "\"version\":2", 1).as_bytes(),
            format
        )
        .is_err()
    );
    let at = format!("\"hard_link\":\"{}\"", "link");
    let bad = plain.replacen("\"kind\":\"folder\"", &format!("\"kind\":\"folder\",{at}"), 1);
    assert!(decode(bad.as_bytes(), format).is_err());
    assert_eq!(
        good.find(b"zz").unwrap().hard_link.as_deref(),
        Some(&b"a/\xff"[..])
    );
    assert_ne!(first, b"zz");
}

#[test]
fn the_order_puts_folders_before_what_is_in_them() {
    let sorted: [&[u8]; 8] = [b"a", b"a/b", b"a/b/c", b"a/b-c", b"a\x01", b"a-b", b"aa", b"b"];
    for (at, left) in sorted.iter().enumerate() {
        for (other, right) in sorted.iter().enumerate() {
            assert_eq!(order(left, right), at.cmp(&other), "{left:?} {right:?}");
        }
    }
    assert!(is_in(b"a/b", b"a") && is_in(b"a", b"a") && is_in(b"a", b"") && !is_in(b"ab", b"a"));
}

#[test]
fn paths_that_would_leave_the_root_are_refused() {
    let format = gix_hash::Kind::Sha1;
    for path in ["../x", "/x", "a//b", "a/./b", "", "a/..", "a\0b", "."] {
        let manifest = Manifest {
            entries: vec![folder(b"a"), file(path.as_bytes(), format)],
            ..Manifest::default()
        };
        assert!(decode(&manifest.encode(), format).is_err(), "{path:?}");
    }
}

#[test]
fn nothing_lies_in_a_link_or_in_no_folder() {
    let format = gix_hash::Kind::Sha1;
    let mut through_a_link = sample(format);
    through_a_link.entries.push(file(b"link/x", format));
    let mut lost = sample(format);
    lost.entries.push(file(b"nowhere/x", format));
    let mut twice = sample(format);
    twice.entries.push(twice.entries[4].clone());
    let mut unsorted = sample(format);
    unsorted.entries.swap(1, 2);
    for (manifest, words) in [
        (through_a_link, "does not lie in a folder"),
        (lost, "does not lie in a folder"),
        (twice, "out of order"),
        (unsorted, "out of order"),
    ] {
        let error = decode(&manifest.encode(), format).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn there_is_one_form() {
    let format = gix_hash::Kind::Sha1;
    let good = String::from_utf8(sample(format).encode()).unwrap();
    for (from, to) in [
        ("\"size\":12", "\"size\": 12"),
        ("\"size\":12,", ""),
        ("\"mode\":\"0644\"", "\"mode\":\"644\""),
        ("\"mode\":\"0644\"", "\"mode\":\"77777\""),
        ("größe", "gr\\u00f6\\u00dfe"),
        ("\"kind\":\"file\"", "\"kind\":\"socket\""),
        ("\"reason\":\"socket\"", "\"reason\":\"spite\""),
        ("\n]}\n", "\n]}"),
        ("\n]}\n", ""),
        ("\n]}\n", "\n]}\n "),
        ("\"version\":1,", "\"version\":2,"),
        ("\"version\":1,", "\"version\":0,"),
        ("\"version\":1,", "\"version\":3,"),
        ("\"format\":\"rivet-manifest\"", "\"format\":\"other\""),
        ("0707", "07zz"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        assert!(decode(bad.as_bytes(), format).is_err(), "{from} {to}");
    }
    assert!(decode(good.as_bytes(), gix_hash::Kind::Sha256).is_err());
}

#[test]
fn the_time_of_a_folder_is_not_affirmed() {
    let manifest = sample(gix_hash::Kind::Sha1);
    let hash = |manifest: &Manifest| {
        affirmation(
            manifest.secret_scan_version,
            manifest.entries.iter().map(Entry::borrow),
            manifest
                .skipped
                .iter()
                .map(|skip| (skip.path.as_slice(), skip.reason)),
        )
    };
    let mut other = manifest.clone();
    other.entries[0].mtime.seconds = 99;
    assert_eq!(hash(&manifest), hash(&other));
    other.entries[1].mtime.seconds = 99;
    assert_ne!(hash(&manifest), hash(&other));
    let mut other = manifest.clone();
    other.entries[2].hard_link = Some(other.entries[1].path.clone());
    assert_ne!(hash(&manifest), hash(&other));
    let mut other = manifest.clone();
    other.skipped.clear();
    assert_ne!(hash(&manifest), hash(&other));
}

proptest! {
    #[test]
    fn any_bytes_are_a_manifest_or_refused(bytes: Vec<u8>) {
        let _ = decode(&bytes, gix_hash::Kind::Sha1);
    }

    #[test]
    fn a_damaged_manifest_never_panics(at in 0usize..2000, byte: u8) {
        let mut bytes = sample(gix_hash::Kind::Sha1).encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(manifest) = decode(&bytes, gix_hash::Kind::Sha1) {
            prop_assert_eq!(manifest.encode(), bytes);
        }
    }

    #[test]
    fn any_names_survive(names in proptest::collection::btree_set("[^/\0]{1,12}", 0..20)) {
        let mut entries: Vec<Entry> = names
            .iter()
            .filter(|name| *name != "." && *name != "..")
            .map(|name| file(name.as_bytes(), gix_hash::Kind::Sha1))
            .collect();
        entries.sort_by(|a, b| order(&a.path, &b.path));
        let manifest = Manifest { entries, ..Manifest::default() };
        prop_assert_eq!(decode(&manifest.encode(), gix_hash::Kind::Sha1).unwrap(), manifest);
    }
}
