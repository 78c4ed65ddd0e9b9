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
    }
}

fn folder(path: &[u8]) -> Entry {
    Entry {
        path: path.to_vec(),
        kind: Kind::Folder,
        mode: 0o2755,
        mtime: Time::default(),
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
