//! The file `packed-refs`: looking up, and writing it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::Error;
use crate::durable::Fs;

/// One version of the file, checked line by line.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// What the first line claims about the file.
    traits: Vec<BString>,
    /// By name: the object, and what is behind it if the file says so.
    entries: BTreeMap<BString, (ObjectId, Option<ObjectId>)>,
}

/// Where the file is.
pub(super) fn file(common: &Path) -> PathBuf {
    common.join("packed-refs")
}

impl Packed {
    /// Reads the file; there need not be one.
    pub fn read(fs: &dyn Fs, common: &Path, format: gix_hash::Kind) -> Result<Packed, Error> {
        let path = file(common);
        match fs.read(&path) {
            Ok(bytes) => Packed::parse(&bytes, format).map_err(|line| Error::Packed { path, line }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Packed {
                traits: ["peeled", "fully-peeled", "sorted"].map(BString::from).to_vec(),
                entries: BTreeMap::new(),
            }),
            Err(error) => Err(Error::Unreadable {
                name: "packed-refs".into(),
                message: error.to_string(),
            }),
        }
    }

    fn parse(bytes: &[u8], format: gix_hash::Kind) -> Result<Packed, usize> {
        let mut packed = Packed::default();
        let mut last: Option<BString> = None;
        let length = format.len_in_hex();
        for (number, line) in bytes.lines().enumerate() {
            let bad = number + 1;
            let id = |hex: &[u8]| ObjectId::from_hex(hex).map_err(|_| bad);
            if let Some(header) = line.strip_prefix(b"#") {
                if let Some(traits) = header.strip_prefix(b" pack-refs with:") {
                    packed.traits = traits.fields().map(BString::from).collect();
                }
            } else if let Some(hex) = line.strip_prefix(b"^") {
                let entry = last
                    .take()
                    .and_then(|name| packed.entries.get_mut(&name))
                    .ok_or(bad)?;
                if hex.len() != length {
                    return Err(bad);
                }
                entry.1 = Some(id(hex)?);
            } else {
                if line.len() < length + 2 || line[length] != b' ' {
                    return Err(bad);
                }
                let name = BString::from(&line[length + 1..]);
                packed.entries.insert(name.clone(), (id(&line[..length])?, None));
                last = Some(name);
            }
        }
        Ok(packed)
    }

    /// The object of a reference.
    pub fn get(&self, name: &BStr) -> Option<ObjectId> {
        self.entries.get(name).map(|(id, _)| *id)
    }

    /// A reference whose name continues `name` after a slash.
    pub fn below(&self, name: &BStr) -> Option<&BStr> {
        let mut prefix = name.to_owned();
        prefix.push(b'/');
        let (found, _) = self.entries.range(prefix.clone()..).next()?;
        found.starts_with(&prefix).then(|| found.as_bstr())
    }

    /// Adds or replaces an entry. `peeled` is what is behind an annotated tag, and `None` for all other objects.
    pub fn set(&mut self, name: BString, id: ObjectId, peeled: Option<ObjectId>) {
        self.entries.insert(name, (id, peeled));
    }

    /// Removes entries; returns whether any of them was there.
    pub fn remove(&mut self, names: &BTreeSet<&BStr>) -> bool {
        let before = self.entries.len();
        self.entries.retain(|name, _| !names.contains(name.as_bstr()));
        self.entries.len() != before
    }

    /// The content of the file, in Git's order.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = b"# pack-refs with:".to_vec();
        // What was not promised before cannot be promised now, except for the order.
        let sorted = BString::from("sorted");
        for claim in self
            .traits
            .iter()
            .filter(|claim| **claim != sorted)
            .chain([&sorted])
        {
            out.push(b' ');
            out.extend_from_slice(claim);
        }
        out.extend_from_slice(b" \n");
        for (name, (id, peeled)) in &self.entries {
            out.extend_from_slice(id.to_string().as_bytes());
            out.push(b' ');
            out.extend_from_slice(name);
            out.push(b'\n');
            if let Some(peeled) = peeled {
                out.push(b'^');
                out.extend_from_slice(peeled.to_string().as_bytes());
                out.push(b'\n');
            }
        }
        out
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef0123456789abcdef01234567";
    const B: &str = "89abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_file_survives_reading_and_writing() {
        let text = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{A} refs/heads/a/b\n{B} refs/tags/t\n^{A}\n"
        );
        let mut packed = Packed::parse(text.as_bytes(), gix_hash::Kind::Sha1).unwrap();
        assert_eq!(packed.to_bytes(), text.as_bytes());
        assert_eq!(packed.get("refs/tags/t".into()).unwrap().to_string(), B);
        assert_eq!(
            packed.below("refs/heads/a".into()),
            Some(BStr::new("refs/heads/a/b"))
        );
        assert_eq!(packed.below("refs/heads/a/b".into()), None);
        assert_eq!(
            packed.below("refs/heads".into()),
            Some(BStr::new("refs/heads/a/b"))
        );
        assert!(packed.remove(&BTreeSet::from([BStr::new("refs/tags/t")])));
        assert!(!packed.remove(&BTreeSet::from([BStr::new("refs/tags/t")])));
        assert!(!packed.to_bytes().contains_str("tags"));
    }

    #[test]
    fn an_old_header_promises_no_more_than_before() {
        let packed = Packed::parse(format!("{A} refs/tags/t\n").as_bytes(), gix_hash::Kind::Sha1).unwrap();
        assert!(packed.to_bytes().starts_with(b"# pack-refs with: sorted \n"));
    }

    #[test]
    fn damage_is_named_by_line() {
        for (text, line) in [
            (format!("{A}\n"), 1),
            (format!("{A} refs/heads/a\nzz\n"), 2),
            (format!("^{A}\n"), 1),
            (format!("{A} refs/heads/a\n^{A}\n^{A}\n"), 3),
            ("\0\0\0\0".to_owned(), 1),
        ] {
            assert_eq!(
                Packed::parse(text.as_bytes(), gix_hash::Kind::Sha1).unwrap_err(),
                line,
                "{text}"
            );
        }
    }
}
