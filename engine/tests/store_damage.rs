//! Damaged and hostile stores: an error that names what is damaged, never a panic, never a wrong object.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_pack::data::entry::Header;
use ingot_engine::pack::{delta, inflate};
use ingot_engine::progress::Silent;
use ingot_engine::store::{Cache, Error, Fault, Options, Store};
use ingot_engine::walk;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

const FORMATS: [gix_hash::Kind; 2] = [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256];

fn hash(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn overwrite(path: &Path, content: &[u8]) {
    if path.exists() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    std::fs::write(path, content).unwrap();
}

/// Some hundred variants of a file: cut off, a byte changed, a stretch filled.
fn damaged(good: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let step = (good.len() / 250).max(1);
    let cut = (0..good.len())
        .step_by(step)
        .map(|length| good[..length].to_vec());
    let changed = (0..good.len()).step_by(step).map(|at| {
        let mut bytes = good.to_vec();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let filled = (0..good.len()).step_by(step * 4).map(|at| {
        let mut bytes = good.to_vec();
        let end = bytes.len().min(at + 12);
        bytes[at..end].fill(0xff);
        bytes
    });
    cut.chain(changed).chain(filled)
}

/// Asks everything about everything; what is answered must be right. Returns all errors.
fn ask(objects: &Path, ids: &[ObjectId]) -> Vec<String> {
    let store = Store::open(objects, ids[0].kind()).unwrap();
    let mut cache = Cache::new(1 << 20);
    let mut out = Vec::new();
    let mut errors: Vec<String> = store.set_aside().iter().map(Error::to_string).collect();
    let mut note = |error: Option<Error>| errors.extend(error.map(|error| error.to_string()));
    for id in ids {
        // Verified, so an answer is the right one; an object may be nowhere, if the index was damaged.
        note(store.read_verified(id, &mut cache, &mut out).err());
        note(store.stream_verified(id, &mut cache, &mut out).err());
        note(store.header(id).err());
    }
    for pack in store.packs() {
        for local in 0..pack.len().min(2000) {
            note(pack.end(local).err());
            let _ = (pack.crc(local), pack.local_at(pack.offset(local)));
        }
    }
    errors
}

#[test]
fn damaged_packs_and_indexes() {
    for format in Format::BOTH {
        for version in ["pack.indexVersion=1", "pack.indexVersion=2"] {
            let repo = Repo::empty(format);
            for step in 0..3 {
                repo.write("file", format!("{step}\n{}", "a line\n".repeat(40)));
                repo.commit("One");
            }
            repo.git(&["-c", version, "repack", "-adfq"]);
            let ids: Vec<ObjectId> = git::objects(repo.path(), &["--all"])
                .iter()
                .map(|hex| ObjectId::from_hex(hex.as_bytes()).unwrap())
                .collect();
            assert!(ask(&repo.objects(), &ids).is_empty());
            let pack = Store::open(&repo.objects(), ids[0].kind()).unwrap().packs()[0]
                .path()
                .to_owned();
            for path in [pack.clone(), pack.with_extension("idx")] {
                let good = std::fs::read(&path).unwrap();
                for bad in damaged(&good) {
                    overwrite(&path, &bad);
                    let errors = ask(&repo.objects(), &ids);
                    // The bytes that are not read are a checksum of the index and its CRCs.
                    if bad.len() < good.len() {
                        assert!(!errors.is_empty());
                    }
                    let name = path.file_stem().unwrap().to_str().unwrap();
                    for error in errors {
                        assert!(error.contains(name), "{error}");
                    }
                }
                overwrite(&path, &good);
            }
        }
    }
}

#[test]
fn damaged_loose_objects() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        repo.write("file", "some content\n".repeat(30));
        repo.commit("One");
        let blob = repo.git(&["rev-parse", "HEAD:file"]);
        let id = ObjectId::from_hex(blob.as_bytes()).unwrap();
        let store = Store::open(&repo.objects(), id.kind()).unwrap();
        let path = store.loose_path(&id);
        let good = std::fs::read(&path).unwrap();
        let mut extended = good.clone();
        extended.push(0);
        for bad in damaged(&good).chain([extended]) {
            if bad == good {
                continue;
            }
            overwrite(&path, &bad);
            let errors = ask(&repo.objects(), &[id]);
            // Some bits of a zlib stream mean nothing; where the length is another, something must be noticed.
            assert!(bad.len() == good.len() || !errors.is_empty());
            for error in errors {
                assert!(error.contains(&blob[2..]), "{error}");
            }
        }
    }
}

#[test]
fn an_object_under_another_name_is_a_mismatch() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        repo.write("one", "one");
        repo.write("two", "two");
        repo.commit("Both");
        let id = |path: &str| ObjectId::from_hex(repo.git(&["rev-parse", path]).as_bytes()).unwrap();
        let (one, two) = (id("HEAD:one"), id("HEAD:two"));
        let store = Store::open(&repo.objects(), one.kind()).unwrap();
        let content = std::fs::read(store.loose_path(&two)).unwrap();
        overwrite(&store.loose_path(&one), &content);
        let mut cache = Cache::new(0);
        let mut out = Vec::new();
        assert_eq!(store.read(&one, &mut cache, &mut out).unwrap(), Some(Kind::Blob));
        let error = store.read_verified(&one, &mut cache, &mut out).unwrap_err();
        assert!(matches!(&error, Error::Mismatch { id, actual, .. } if *id == one && *actual == two));
        let error = store.stream_verified(&one, &mut cache, &mut out).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }));
    }
}

/// Builds packs that Git would not make.
struct Pack {
    format: gix_hash::Kind,
    data: Vec<u8>,
    entries: Vec<(ObjectId, u64)>,
}

impl Pack {
    fn new(format: gix_hash::Kind) -> Pack {
        Pack {
            format,
            data: b"PACK\0\0\0\x02\0\0\0\0".to_vec(),
            entries: Vec::new(),
        }
    }

    fn add(&mut self, id: ObjectId, header: Header, size: u64, content: &[u8]) {
        self.entries.push((id, self.data.len() as u64));
        header.write_to(size, &mut self.data).unwrap();
        inflate::deflate(content, inflate::Level::DEFAULT, &mut self.data);
    }

    /// Writes pack and index; `large` puts every offset into the table of 64-bit ones.
    fn write(mut self, objects: &Path, name: &str, large: bool) -> PathBuf {
        let hash = |bytes: &[u8]| {
            let mut hasher = gix_hash::hasher(self.format);
            hasher.update(bytes);
            hasher.try_finalize().unwrap()
        };
        self.data[8..12].copy_from_slice(&(self.entries.len() as u32).to_be_bytes());
        let checksum = hash(&self.data);
        self.data.extend_from_slice(checksum.as_slice());
        self.entries.sort();
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        for first in 0..=255u8 {
            let below = self
                .entries
                .iter()
                .filter(|(id, _)| id.as_bytes()[0] <= first)
                .count();
            index.extend((below as u32).to_be_bytes());
        }
        for (id, _) in &self.entries {
            index.extend_from_slice(id.as_slice());
        }
        index.extend(vec![0; 4 * self.entries.len()]);
        for (number, (_, offset)) in self.entries.iter().enumerate() {
            let value = if large {
                0x8000_0000 | number as u32
            } else {
                *offset as u32
            };
            index.extend(value.to_be_bytes());
        }
        for (_, offset) in self.entries.iter().filter(|_| large) {
            index.extend(offset.to_be_bytes());
        }
        index.extend_from_slice(checksum.as_slice());
        let own = hash(&index);
        index.extend_from_slice(own.as_slice());
        std::fs::create_dir_all(objects.join("pack")).unwrap();
        let path = objects.join("pack").join(format!("pack-{name}.pack"));
        std::fs::write(&path, self.data).unwrap();
        std::fs::write(path.with_extension("idx"), index).unwrap();
        path
    }
}

fn blob(format: gix_hash::Kind, content: &[u8]) -> ObjectId {
    gix_object::compute_hash(format, Kind::Blob, content).unwrap()
}

/// A delta that copies all of a base of up to 64 KiB and appends `tail`.
fn append(base: usize, tail: &[u8]) -> Vec<u8> {
    let mut delta = Vec::new();
    size(base as u64, &mut delta);
    size((base + tail.len()) as u64, &mut delta);
    delta.extend([0xb0, base as u8, (base >> 8) as u8, tail.len() as u8]);
    delta.extend(tail);
    delta
}

fn size(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read(store: &Store, id: &ObjectId) -> Result<Option<(Kind, Vec<u8>)>, Error> {
    let mut out = Vec::new();
    let kind = store.read(id, &mut Cache::new(1 << 20), &mut out)?;
    let header = store.header(id)?;
    let read = kind.map(|kind| (kind, out));
    assert_eq!(header, read.as_ref().map(|(kind, out)| (*kind, out.len() as u64)));
    Ok(read)
}

#[test]
fn bases_in_other_packs_and_loose_files() {
    for format in FORMATS {
        for large in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (base, middle, top) = (
                b"the base".to_vec(),
                b"the base, more".to_vec(),
                b"the base, more, most".to_vec(),
            );
            let (base_id, middle_id, top_id) =
                (blob(format, &base), blob(format, &middle), blob(format, &top));
            let mut first = Pack::new(format);
            let delta = append(middle.len(), b", most");
            first.add(
                top_id,
                Header::RefDelta { base_id: middle_id },
                delta.len() as u64,
                &delta,
            );
            first.write(folder.path(), "a", large);
            let store = Store::open(folder.path(), format).unwrap();
            let missing = read(&store, &top_id).unwrap_err();
            assert!(
                matches!(&missing, Error::Entry { fault: Fault::BaseMissing(id), .. } if *id == middle_id),
                "{missing}"
            );
            let mut second = Pack::new(format);
            let delta = append(base.len(), b", more");
            second.add(
                middle_id,
                Header::RefDelta { base_id },
                delta.len() as u64,
                &delta,
            );
            second.write(folder.path(), "b", large);
            let loose = Store::open(folder.path(), format).unwrap().loose_path(&base_id);
            std::fs::create_dir_all(loose.parent().unwrap()).unwrap();
            let mut content = gix_object::encode::loose_header(Kind::Blob, base.len() as u64).to_vec();
            content.extend(&base);
            let mut deflated = Vec::new();
            inflate::deflate(&content, inflate::Level::DEFAULT, &mut deflated);
            std::fs::write(loose, deflated).unwrap();
            let store = Store::open(folder.path(), format).unwrap();
            for (id, content) in [(base_id, base), (middle_id, middle), (top_id, top)] {
                assert_eq!(read(&store, &id).unwrap(), Some((Kind::Blob, content)));
            }
        }
    }
}

#[test]
fn a_circle_of_deltas_ends() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (blob(format, b"one"), blob(format, b"two"));
        let mut pack = Pack::new(format);
        let delta = append(3, b"x");
        pack.add(one, Header::RefDelta { base_id: two }, delta.len() as u64, &delta);
        pack.add(two, Header::RefDelta { base_id: one }, delta.len() as u64, &delta);
        pack.write(folder.path(), "a", false);
        let store = Store::open(folder.path(), format).unwrap();
        let mut out = Vec::new();
        for error in [
            store.read(&one, &mut Cache::new(0), &mut out).unwrap_err(),
            store.header(&one).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(
                matches!(
                    error,
                    Error::Entry {
                        fault: Fault::ChainTooLong(_),
                        ..
                    }
                ),
                "{text}"
            );
        }
    }
}

#[test]
fn claims_of_size_cost_nothing() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let ids: Vec<ObjectId> = (0..5u8).map(|number| blob(format, &[number])).collect();
        let mut pack = Pack::new(format);
        // A terabyte that is five bytes, and as a delta's result.
        pack.add(ids[0], Header::Blob, 1 << 40, b"bytes");
        pack.add(ids[1], Header::Blob, 3 << 30, b"bytes");
        pack.add(ids[2], Header::Blob, 5, b"bytes");
        let mut delta = Vec::new();
        size(5, &mut delta);
        size(1 << 50, &mut delta);
        delta.extend([0xb0, 5, 0]);
        pack.add(
            ids[3],
            Header::RefDelta { base_id: ids[2] },
            delta.len() as u64,
            &delta,
        );
        let mut delta = Vec::new();
        size(5, &mut delta);
        size(3 << 30, &mut delta);
        delta.extend([0x90, 5]);
        pack.add(
            ids[4],
            Header::RefDelta { base_id: ids[2] },
            delta.len() as u64,
            &delta,
        );
        pack.write(folder.path(), "a", false);
        let store = Store::open(folder.path(), format).unwrap();
        let error = |id: &ObjectId| store.read(id, &mut Cache::new(0), &mut Vec::new()).unwrap_err();
        assert!(matches!(error(&ids[0]), Error::TooLarge { size, .. } if size == 1 << 40));
        assert!(matches!(
            error(&ids[1]),
            Error::Entry {
                fault: Fault::Inflate(inflate::Error::Shorter { actual: 5, .. }),
                ..
            }
        ));
        assert!(matches!(error(&ids[3]), Error::TooLarge { size, .. } if size == 1 << 50));
        assert!(matches!(
            error(&ids[4]),
            Error::Entry {
                fault: Fault::Delta(delta::Error::ResultSize { longer: false, .. }),
                ..
            }
        ));
    }
}

#[test]
fn the_limit_holds_for_whole_objects_and_not_for_streams() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        repo.write("large", vec![b'x'; 300_000]);
        repo.write("small", vec![b'x'; 1000]);
        repo.commit("Both");
        let id = |path: &str| ObjectId::from_hex(repo.git(&["rev-parse", path]).as_bytes()).unwrap();
        let (large, small) = (id("HEAD:large"), id("HEAD:small"));
        for packed in [false, true] {
            if packed {
                repo.git(&["repack", "-adq"]);
            }
            let options = Options {
                object_limit: 100_000,
                ..Options::default()
            };
            let store = Store::open_with(&repo.objects(), large.kind(), options).unwrap();
            let mut cache = Cache::new(0);
            let mut out = Vec::new();
            let error = store.read(&large, &mut cache, &mut out).unwrap_err();
            assert!(
                matches!(&error, Error::TooLarge { id, size: 300_000, limit: 100_000 } if *id == large),
                "{error}"
            );
            assert_eq!(
                store.read(&small, &mut cache, &mut out).unwrap(),
                Some(Kind::Blob)
            );
            let mut streamed = Vec::new();
            let header = store.stream_verified(&large, &mut cache, &mut streamed).unwrap();
            assert_eq!(header, Some((Kind::Blob, 300_000)));
            assert_eq!(streamed, vec![b'x'; 300_000]);
        }
    }
}

#[test]
fn a_receiver_that_fails_ends_the_stream() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            match taken {
                0 => Err(std::io::ErrorKind::StorageFull.into()),
                taken => Ok(taken),
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let repo = Repo::empty(Format::Sha1);
    repo.write("file", vec![b'x'; 300_000]);
    repo.commit("One");
    let id = ObjectId::from_hex(repo.git(&["rev-parse", "HEAD:file"]).as_bytes()).unwrap();
    for packed in [false, true] {
        if packed {
            repo.git(&["repack", "-adq"]);
        }
        let store = Store::open(&repo.objects(), id.kind()).unwrap();
        let error = store
            .stream(&id, &mut Cache::new(0), &mut Full(100_000))
            .unwrap_err();
        assert!(
            matches!(&error, Error::Sink { source, .. } if source.kind() == std::io::ErrorKind::StorageFull),
            "{error}"
        );
    }
}

#[test]
fn an_absent_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = Store::open(&folder.path().join("objects"), gix_hash::Kind::Sha1).unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}

#[test]
fn ids_made_to_collide_are_still_found() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let mut ids = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f"] {
            let mut pack = Pack::new(format);
            for number in 0..100u8 {
                // Equal but for the last bytes. The last pack repeats what the others have.
                let mut bytes = vec![0x5a; format.len_in_bytes()];
                let length = bytes.len();
                bytes[length - 2] = if name == "f" {
                    b'a' + number % 5
                } else {
                    name.as_bytes()[0]
                };
                bytes[length - 1] = number;
                let id = ObjectId::try_from(bytes.as_slice()).unwrap();
                pack.add(id, Header::Blob, 3, &[b'x', name.as_bytes()[0], number]);
                ids.push((id, name.as_bytes()[0], number));
            }
            pack.write(folder.path(), name, false);
        }
        let store = Store::open(folder.path(), format).unwrap();
        // More often than it takes to make the table that many packs are searched with.
        for _ in 0..3 {
            for &(id, name, number) in &ids {
                let at = store.find(&id).unwrap();
                assert_eq!(store.id(at), id);
                if name != b'f' {
                    assert_eq!(
                        read(&store, &id).unwrap(),
                        Some((Kind::Blob, vec![b'x', name, number]))
                    );
                } else {
                    assert!(store.pack_number(at) < 5);
                }
            }
            assert_eq!(store.find(&ObjectId::null(format)), None);
        }
    }
}

#[test]
fn stores_are_shared_and_caches_are_handed_on() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Store>();
    shared::<ingot_engine::store::Bitmap>();
    shared::<ingot_engine::store::CommitGraph>();
    sent::<Cache>();
    sent::<ingot_engine::store::Reader>();
}

/// Fills what lies between the header and the checksum of a pack, or a part of it.
fn spoil(pack: &Path, format: Format, from: u64, to: Option<u64>) {
    let mut bytes = std::fs::read(pack).unwrap();
    let end = bytes.len() - if format == Format::Sha1 { 20 } else { 32 };
    let to = to.map_or(end, |to| to as usize);
    bytes[from as usize..to].fill(0xff);
    overwrite(pack, &bytes);
}

#[test]
fn another_copy_is_read_in_place_of_a_damaged_one() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        for step in 0..12 {
            repo.write("file", format!("{step}\n{}", "a line\n".repeat(40 + step)));
            repo.write(&format!("folder/{step}"), format!("{step}\n"));
            repo.commit("One");
        }
        let ids: Vec<ObjectId> = git::objects(repo.path(), &["--all"])
            .iter()
            .map(|hex| ObjectId::from_hex(hex.as_bytes()).unwrap())
            .collect();
        let listed: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let folder = repo.objects().join("pack/pack");
        for how in ["--window=0", "--no-reuse-delta"] {
            let args = [
                "pack-objects",
                "-q",
                how,
                "--delta-base-offset",
                folder.to_str().unwrap(),
            ];
            git::with_input(repo.path(), &args, listed.as_bytes());
        }
        let head = [ObjectId::from_hex(repo.git(&["rev-parse", "HEAD"]).as_bytes()).unwrap()];
        let paths: Vec<PathBuf> = Store::open(&repo.objects(), ids[0].kind())
            .unwrap()
            .packs()
            .iter()
            .map(|pack| pack.path().to_owned())
            .collect();
        assert_eq!(paths.len(), 2);
        let sound = |what: &str| {
            let errors = ask(&repo.objects(), &ids);
            assert!(errors.is_empty(), "{what}: {errors:?}");
            let store = Store::open(&repo.objects(), ids[0].kind()).unwrap();
            for threads in [1, 4] {
                let request = walk::Request {
                    wants: &head,
                    threads,
                    ..walk::Request::default()
                };
                let found = walk::enumerate(&store, &request, &Silent).unwrap();
                assert_eq!(found.len() as usize, ids.len(), "{what}");
            }
        };
        // Beside the other pack, beside loose files, and beside nothing.
        spoil(&paths[0], format, 12, None);
        sound("one pack is damaged");
        spoil(&paths[1], format, 12, None);
        sound("both are");
        for folder in std::fs::read_dir(repo.objects()).unwrap() {
            let folder = folder.unwrap().path();
            if folder.file_name().unwrap().len() == 2 {
                std::fs::remove_dir_all(folder).unwrap();
            }
        }
        let errors = ask(&repo.objects(), &ids);
        assert_eq!(errors.len(), 3 * ids.len());
        let name = paths[0].file_stem().unwrap().to_str().unwrap();
        assert!(errors[0].contains(name), "{}", errors[0]);
    }
}

/// Only the base of a delta has another copy.
#[test]
fn another_copy_of_a_base_is_read() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        // Each version is closest to the one before it.
        for step in 0..12 {
            let line = |at| match at < step {
                true => format!("line {at} as it was changed\n"),
                false => format!("line {at}\n"),
            };
            repo.write("file", (0..40).map(line).collect::<String>());
            repo.commit("One");
        }
        repo.git(&["repack", "-adfq"]);
        let store = Store::open(&repo.objects(), hash(format)).unwrap();
        let pack = store.packs()[0].path().to_owned();
        drop(store);
        let listed = repo.git(&["verify-pack", "-v", pack.to_str().unwrap()]);
        // id, kind, size, size in the pack, offset, and for deltas: depth, base.
        let lines: Vec<Vec<&str>> = listed
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let entry = |id: &str| lines.iter().find(|line| line[0] == id).unwrap();
        let mut tried = BTreeSet::new();
        for line in lines.iter().filter(|line| line.len() == 7 && line[1] == "blob") {
            let base = entry(line[6]);
            tried.insert(base.len());
            let good = std::fs::read(&pack).unwrap();
            let folder = repo.objects().join("pack/pack");
            let args = ["pack-objects", "-q", folder.to_str().unwrap()];
            let name = git::with_input(repo.path(), &args, format!("{}\n", base[0]).as_bytes());
            let name = String::from_utf8(name).unwrap();
            let offset: u64 = base[4].parse().unwrap();
            // Behind the header, so that it still is an entry of its kind.
            spoil(&pack, format, offset + 5, Some(offset + 10));
            let wanted = ObjectId::from_hex(line[0].as_bytes()).unwrap();
            let read = || {
                let store = Store::open(&repo.objects(), hash(format)).unwrap();
                store.read_verified(&wanted, &mut Cache::new(0), &mut Vec::new())
            };
            assert_eq!(read().unwrap(), Some(Kind::Blob));
            for extension in ["pack", "idx", "rev"] {
                let path = repo
                    .objects()
                    .join(format!("pack/pack-{}.{extension}", name.trim()));
                let _ = std::fs::remove_file(path);
            }
            assert!(read().is_err(), "it was damaged");
            overwrite(&pack, &good);
        }
        assert_eq!(tried, BTreeSet::from([5, 7]), "whole bases and deltas");
    }
}
