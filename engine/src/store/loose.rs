//! Objects in files of their own.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::{Error, Fault, Store};
use crate::pack::inflate::Inflater;

/// "commit", a space, 20 digits and a zero byte are 28.
const LONGEST_HEADER: usize = 32;
/// What is read of a file at once.
const PIECE: usize = 32 * 1024;

/// In which of the folders `00` to `ff` there was anything when this was made. Spares whoever asks for many objects, most
/// of them absent, a system call for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LooseFolders([bool; 256]);

impl LooseFolders {
    /// Looks into the object folders of `store`. What cannot be read may hold everything.
    pub(crate) fn of(store: &Store) -> LooseFolders {
        let mut present = [false; 256];
        for folder in store.object_dirs() {
            let Ok(entries) = fs::read_dir(folder) else {
                return LooseFolders([true; 256]);
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    return LooseFolders([true; 256]);
                };
                let name = entry.file_name();
                let number = name.to_str().filter(|name| name.len() == 2);
                if let Some(number) = number.and_then(|name| u8::from_str_radix(name, 16).ok()) {
                    present[usize::from(number)] = true;
                }
            }
        }
        LooseFolders(present)
    }

    /// False if the object had no file of its own.
    pub(crate) fn may_hold(&self, id: &oid) -> bool {
        self.0[usize::from(id.first_byte())]
    }
}

/// An open loose object of which the header is known.
struct Opened {
    id: ObjectId,
    path: PathBuf,
    file: BufReader<File>,
    kind: Kind,
    size: u64,
    /// The length of the header, which the content follows in the same stream.
    header: usize,
}

impl Opened {
    fn damaged(self, fault: impl Into<Fault>) -> Error {
        Error::Loose {
            id: self.id,
            path: self.path,
            fault: fault.into(),
        }
    }

    /// Starts again at the first byte, to inflate header and content as one stream.
    fn rewind(&mut self) -> Result<(), Error> {
        io::Seek::rewind(&mut self.file).map_err(|source| Error::Io {
            action: "read the loose object",
            path: self.path.clone(),
            source,
        })
    }

    /// Git refuses bytes after the stream, which a file that was written over may have.
    fn end(mut self) -> Result<Kind, Error> {
        match io::BufRead::fill_buf(&mut self.file) {
            Ok([]) => Ok(self.kind),
            Ok(_) => Err(self.damaged(Fault::Header("bytes follow its compressed data"))),
            Err(source) => Err(Error::Io {
                action: "read the loose object",
                path: self.path,
                source,
            }),
        }
    }
}

impl Store {
    /// The file of a loose object in this store's own folder, whether it exists or not.
    pub fn loose_path(&self, id: &oid) -> PathBuf {
        path_in(self.objects_dir(), id)
    }

    /// True if the store or an alternate has the object in a file of its own.
    pub fn contains_loose(&self, id: &oid) -> bool {
        self.object_dirs().any(|folder| path_in(folder, id).exists())
    }

    /// Kind and size of a loose object.
    pub(super) fn loose_header(
        &self,
        id: &oid,
        inflater: &mut Inflater,
    ) -> Result<Option<(Kind, u64)>, Error> {
        Ok(self
            .open_loose(id, inflater)?
            .map(|opened| (opened.kind, opened.size)))
    }

    /// Reads a whole loose object.
    pub(super) fn read_loose(
        &self,
        id: &oid,
        inflater: &mut Inflater,
        out: &mut Vec<u8>,
    ) -> Result<Option<Kind>, Error> {
        let Some(mut opened) = self.open_loose(id, inflater)? else {
            return Ok(None);
        };
        if opened.size > self.options().object_limit {
            return Err(Error::TooLarge {
                id: opened.id,
                size: opened.size,
                limit: self.options().object_limit,
            });
        }
        opened.rewind()?;
        let whole = opened.size.saturating_add(opened.header as u64);
        match inflater.exact_from(&mut opened.file, whole, out) {
            Ok(_) => {
                out.drain(..opened.header);
                opened.end().map(Some)
            }
            Err(error) => Err(opened.damaged(error)),
        }
    }

    /// Hands the content of a loose object to `sink` in pieces.
    pub(super) fn stream_loose(
        &self,
        id: &oid,
        inflater: &mut Inflater,
        sink: &mut dyn io::Write,
    ) -> Result<Option<(Kind, u64)>, Error> {
        let Some(mut opened) = self.open_loose(id, inflater)? else {
            return Ok(None);
        };
        opened.rewind()?;
        let whole = opened.size.saturating_add(opened.header as u64);
        let size = opened.size;
        let mut header = opened.header;
        let mut refused = None;
        let result = inflater.stream(&mut opened.file, whole, &mut |bytes| {
            let skip = header.min(bytes.len());
            header -= skip;
            sink.write_all(&bytes[skip..]).map_err(|error| {
                let kind = error.kind();
                refused = Some(error);
                kind.into()
            })
        });
        match (result, refused) {
            (_, Some(source)) => Err(Error::Sink {
                id: opened.id,
                source,
            }),
            (Ok(_), None) => opened.end().map(|kind| Some((kind, size))),
            (Err(error), None) => Err(opened.damaged(error)),
        }
    }

    /// The loose objects of the store's own folder, without those of alternates, in the order of their ids within each
    /// of the 256 folders. Names that are no ids, such as temporary files, are passed over.
    pub fn loose(&self) -> impl Iterator<Item = Result<ObjectId, Error>> + '_ {
        (0..=u8::MAX).flat_map(|first| {
            let folder = self.objects_dir().join(format!("{first:02x}"));
            match ids_in(&folder, first, self.format()) {
                Ok(ids) => ids.into_iter().map(Ok).collect(),
                Err(source) => vec![Err(Error::Io {
                    action: "list the folder of loose objects",
                    path: folder,
                    source,
                })],
            }
        })
    }

    fn open_loose(&self, id: &oid, inflater: &mut Inflater) -> Result<Option<Opened>, Error> {
        for folder in self.object_dirs() {
            let path = path_in(folder, id);
            match File::open(&path) {
                Ok(file) => return open(id.to_owned(), path, file, inflater).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(Error::Io {
                        action: "open the loose object",
                        path,
                        source,
                    });
                }
            }
        }
        Ok(None)
    }
}

/// Inflates and parses the header.
fn open(id: ObjectId, path: PathBuf, file: File, inflater: &mut Inflater) -> Result<Opened, Error> {
    let length = file.metadata().map(|metadata| metadata.len()).unwrap_or(u64::MAX);
    let mut opened = Opened {
        id,
        path,
        file: BufReader::with_capacity(usize::try_from(length).unwrap_or(PIECE).clamp(64, PIECE), file),
        kind: Kind::Blob,
        size: 0,
        header: 0,
    };
    let mut bytes = [0; LONGEST_HEADER];
    let read = match inflater.prefix(&mut opened.file, &mut bytes) {
        Ok(read) => read,
        Err(error) => return Err(opened.damaged(error)),
    };
    match parse_header(&bytes[..read]) {
        Some((kind, size, header)) => Ok(Opened {
            kind,
            size,
            header,
            ..opened
        }),
        None => Err(opened.damaged(Fault::Header("it does not start with a kind and a size"))),
    }
}

/// `kind SP decimal-size NUL`, with no sign and no leading zero: kind, size and the length of the header.
pub(super) fn parse_header(bytes: &[u8]) -> Option<(Kind, u64, usize)> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let space = bytes[..end].iter().position(|&byte| byte == b' ')?;
    let kind = Kind::from_bytes(&bytes[..space]).ok()?;
    let digits = &bytes[space + 1..end];
    if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut size = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        size = size.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some((kind, size, end + 1))
}

pub(super) fn path_in(folder: &Path, id: &oid) -> PathBuf {
    let mut hex = gix_hash::Kind::hex_buf();
    let hex = id.hex_to_buf(&mut hex);
    let mut path = PathBuf::with_capacity(folder.as_os_str().len() + hex.len() + 2);
    path.push(folder);
    path.push(&hex[..2]);
    path.push(&hex[2..]);
    path
}

fn ids_in(folder: &Path, first: u8, format: gix_hash::Kind) -> io::Result<Vec<ObjectId>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(rest) = name.to_str() else { continue };
        if rest.len() + 2 == format.len_in_hex()
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            && let Ok(id) = ObjectId::from_hex(format!("{first:02x}{rest}").as_bytes())
        {
            ids.push(id);
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers() {
        assert_eq!(parse_header(b"blob 0\0"), Some((Kind::Blob, 0, 7)));
        assert_eq!(
            parse_header(b"commit 123\0content"),
            Some((Kind::Commit, 123, 11))
        );
        let largest = b"tree 18446744073709551615\0";
        assert_eq!(parse_header(largest), Some((Kind::Tree, u64::MAX, largest.len())));
        for wrong in [
            &b""[..],
            b"blob 1",
            b"blob\0",
            b"blob \0",
            b"blob 01\0",
            b"blob -1\0",
            b"blob 1 \0",
            b"blob  1\0",
            b"blub 1\0",
            b"tree 18446744073709551616\0",
        ] {
            assert_eq!(parse_header(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(bytes: Vec<u8>) {
            if let Some((_, _, length)) = parse_header(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
