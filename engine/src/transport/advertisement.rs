//! What a server says first: its capabilities and, but for version 2, its references (gitprotocol-pack(5),
//! "Reference Discovery"; gitprotocol-v2(5), "Capability Advertisement").

use std::io::Read;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::Error;
use super::channel::{Channel, Service};
use super::error::printable;
use super::options::Version;
use super::pkt_line::{self, Line, Reader};

/// References that are accepted.
pub(super) const MOST_REFS: u64 = 2_000_000;
/// Bytes of references that are accepted.
pub(super) const MOST_BYTES: u64 = 256 << 20;
/// References of which the capabilities say what they stand for, that are looked for.
const MOST_SYMREFS: usize = 64;
/// Capabilities that are accepted, in version 2, where each has a line.
const MOST_CAPABILITIES: usize = 1000;

/// A reference of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertisedRef {
    /// Its full name, or `HEAD`.
    pub name: BString,
    /// What it points to.
    pub id: ObjectId,
    /// What the annotated tag that it points to leads to, where the server says so.
    pub peeled: Option<ObjectId>,
    /// The reference that it stands for, where the server says so.
    pub symref_target: Option<BString>,
}

/// What a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Capabilities(Vec<(BString, Option<BString>)>);

impl Capabilities {
    fn parse(words: &[u8]) -> Capabilities {
        Capabilities(
            words
                .split(|byte| *byte == b' ')
                .filter(|word| !word.is_empty())
                .map(capability)
                .collect(),
        )
    }

    /// Whether a capability is there, with a value or without.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&BStr> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        value.as_ref().map(|value| value.as_bstr())
    }

    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a BStr> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .filter_map(|(_, value)| value.as_ref().map(|value| value.as_bstr()))
    }

    /// Whether one of the words of a capability's value is `word`.
    pub(super) fn value_has(&self, name: &str, word: &str) -> bool {
        self.value(name)
            .is_some_and(|value| value.split_str(" ").any(|known| known == word.as_bytes()))
    }

    /// The hash that names objects, SHA-1 where nothing is said.
    pub(super) fn object_format(&self, remote: &str) -> Result<gix_hash::Kind, Error> {
        match self.value("object-format").map(|name| name.as_bytes()) {
            None | Some(b"sha1") => Ok(gix_hash::Kind::Sha1),
            Some(b"sha256") => Ok(gix_hash::Kind::Sha256),
            Some(other) => Err(Error::ObjectFormat {
                remote: remote.to_owned(),
                format: printable(other),
            }),
        }
    }
}

fn capability(word: &[u8]) -> (BString, Option<BString>) {
    match word.split_once_str("=") {
        Some((name, value)) => (name.into(), Some(value.into())),
        None => (word.into(), None),
    }
}

/// What a server says first.
#[derive(Debug)]
pub(super) struct Advertisement {
    pub version: Version,
    pub capabilities: Capabilities,
    pub format: gix_hash::Kind,
    /// Not in version 2.
    pub refs: Vec<AdvertisedRef>,
    /// Objects that the server has besides (`.have`).
    pub haves: Vec<ObjectId>,
}

/// How the lines of one conversation are read, with the errors that they may mean.
pub(super) struct Lines<'a, R> {
    reader: &'a mut Reader<R>,
    remote: &'a str,
    stage: &'static str,
    bytes: u64,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(super) fn new(reader: &'a mut Reader<R>, remote: &'a str, stage: &'static str) -> Lines<'a, R> {
        Lines {
            reader,
            remote,
            stage,
            bytes: 0,
        }
    }

    /// The next frame; an error where the stream ends.
    pub(super) fn next(&mut self) -> Result<Line<'_>, Error> {
        let line = match self.reader.line() {
            Ok(Some(line)) => line,
            Ok(None) => {
                let end = std::io::ErrorKind::UnexpectedEof.into();
                return Err(Error::lost(self.remote, self.stage, end));
            }
            Err(pkt_line::Error::Read(error)) => return Err(Error::lost(self.remote, self.stage, error)),
            Err(pkt_line::Error::Invalid(message)) => return Err(not_git(self.remote, message)),
        };
        if let Line::Data(data) = line {
            self.bytes += data.len() as u64;
            if self.bytes > MOST_BYTES {
                return Err(Error::TooLarge {
                    remote: self.remote.to_owned(),
                    what: "bytes of references",
                    limit: MOST_BYTES,
                });
            }
            if let Some(message) = data.strip_prefix(b"ERR ") {
                return Err(refused(self.remote, message));
            }
        }
        Ok(line)
    }

    pub(super) fn not_git(&self, message: impl Into<String>) -> Error {
        not_git(self.remote, message)
    }

    fn unexpected(&self, line: &[u8]) -> Error {
        let start = &line[..line.len().min(80)];
        self.not_git(format!("unexpected line '{}'", printable(start)))
    }
}

fn not_git(remote: &str, message: impl Into<String>) -> Error {
    Error::NotGit {
        remote: remote.to_owned(),
        message: message.into(),
    }
}

/// A server that says that it knows no such repository is told apart from one that refuses.
pub(super) fn refused(remote: &str, message: &[u8]) -> Error {
    let (remote, message) = (remote.to_owned(), printable(message));
    let lower = message.to_ascii_lowercase();
    let absent = [
        "not found",
        "no such repository",
        "does not exist",
        "not exported",
    ];
    match absent.iter().any(|words| lower.contains(words)) {
        true => Error::NotFound { remote, message },
        false => Error::Refused { remote, message },
    }
}

pub(super) fn chomp(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Reads it. Over http, the name of the service may come first.
pub(super) fn read(
    reader: &mut Reader<Channel>,
    remote: &str,
    service: Service,
) -> Result<Advertisement, Error> {
    let stage = "reading the references";
    let result = read_lines(&mut Lines::new(reader, remote, stage), service);
    match result {
        // The program that carries the connection may say more.
        Err(Error::Lost { message, .. }) => {
            let error = reader
                .get_mut()
                .lost(stage, std::io::ErrorKind::UnexpectedEof.into());
            match error {
                Error::Lost { message: more, .. } if more.len() > message.len() => Err(Error::Connect {
                    remote: remote.to_owned(),
                    message: more,
                }),
                _ => Err(Error::Connect {
                    remote: remote.to_owned(),
                    message: format!("before the server said anything useful, {message}"),
                }),
            }
        }
        result => result,
    }
}

/// The same from any stream.
#[cfg(test)]
pub(super) fn read_any<R: Read>(reader: &mut Reader<R>, service: Service) -> Result<Advertisement, Error> {
    read_lines(&mut Lines::new(reader, "there", "reading"), service)
}

fn read_lines<R: Read>(lines: &mut Lines<'_, R>, service: Service) -> Result<Advertisement, Error> {
    let mut version = Version::V0;
    let mut first = next_owned(lines)?;
    if let Some(line) = &first
        && let Some(name) = line.strip_prefix(b"# service=")
    {
        if chomp(name) != service.name().as_bytes() {
            return Err(lines.unexpected(line));
        }
        // The flush behind it, and whatever else a newer server may say there.
        while next_owned(lines)?.is_some() {}
        first = next_owned(lines)?;
    }
    match first.as_deref().map(chomp) {
        Some(b"version 2") if service == Service::UploadPack => return capabilities(lines),
        Some(b"version 1") => {
            version = Version::V1;
            first = next_owned(lines)?;
        }
        _ => {}
    }
    let mut advertisement = Advertisement {
        version,
        capabilities: Capabilities::default(),
        format: gix_hash::Kind::Sha1,
        refs: Vec::new(),
        haves: Vec::new(),
    };
    // An empty repository of an old server says nothing at all.
    let Some(first) = first else {
        return Ok(advertisement);
    };
    let Some((line, words)) = first.split_once_str("\0") else {
        return Err(lines.unexpected(&first));
    };
    advertisement.capabilities = Capabilities::parse(chomp(words));
    advertisement.format = advertisement.capabilities.object_format(lines.remote)?;
    let mut line = Some(line.to_vec());
    let mut count = 0;
    while let Some(text) = line {
        count += 1;
        if count > MOST_REFS {
            return Err(Error::TooLarge {
                remote: lines.remote.to_owned(),
                what: "references",
                limit: MOST_REFS,
            });
        }
        if !advertisement.add(chomp(&text)) {
            return Err(lines.unexpected(&text));
        }
        line = next_owned(lines)?;
    }
    advertisement.name_targets();
    Ok(advertisement)
}

/// The next line of a list; `None` at its end.
fn next_owned<R: Read>(lines: &mut Lines<'_, R>) -> Result<Option<Vec<u8>>, Error> {
    match lines.next()? {
        Line::Data(data) => Ok(Some(data.to_vec())),
        Line::Flush => Ok(None),
        Line::Delimiter | Line::ResponseEnd => Err(lines.not_git("a section ends where none began")),
    }
}

/// Version 2: capabilities alone, one a line.
fn capabilities<R: Read>(lines: &mut Lines<'_, R>) -> Result<Advertisement, Error> {
    let mut list = Vec::new();
    while let Some(line) = next_owned(lines)? {
        if list.len() == MOST_CAPABILITIES {
            return Err(Error::TooLarge {
                remote: lines.remote.to_owned(),
                what: "capabilities",
                limit: MOST_CAPABILITIES as u64,
            });
        }
        list.push(capability(chomp(&line)));
    }
    let capabilities = Capabilities(list);
    Ok(Advertisement {
        version: Version::V2,
        format: capabilities.object_format(lines.remote)?,
        capabilities,
        refs: Vec::new(),
        haves: Vec::new(),
    })
}

impl Advertisement {
    /// Takes `<id> <name>`; false if it is none.
    fn add(&mut self, line: &[u8]) -> bool {
        // Where history is cut is for the check of what was fetched to find.
        if line.starts_with(b"shallow ") {
            return true;
        }
        let Some((id, name)) = parse_pair(line, self.format) else {
            return false;
        };
        match name {
            // A stand-in for the first reference where there is none.
            b"capabilities^{}" => id.is_null(),
            b".have" => {
                self.haves.push(id);
                true
            }
            _ => match name.strip_suffix(b"^{}") {
                Some(tag) => match self.refs.last_mut().filter(|last| last.name == tag) {
                    Some(last) => {
                        last.peeled = Some(id);
                        true
                    }
                    None => false,
                },
                None => {
                    self.refs.push(AdvertisedRef {
                        name: name.into(),
                        id,
                        peeled: None,
                        symref_target: None,
                    });
                    true
                }
            },
        }
    }

    fn name_targets(&mut self) {
        for symref in self.capabilities.values("symref").take(MOST_SYMREFS) {
            if let Some((name, target)) = symref.split_once_str(":")
                && let Some(known) = self.refs.iter_mut().find(|known| known.name == name)
            {
                known.symref_target = Some(target.into());
            }
        }
    }
}

/// An id of the right length, and a name that is not empty.
pub(super) fn parse_pair(line: &[u8], format: gix_hash::Kind) -> Option<(ObjectId, &[u8])> {
    let (id, name) = line.split_once_str(" ")?;
    let id = parse_id(id, format)?;
    (!name.is_empty()).then_some((id, name))
}

pub(super) fn parse_id(hex: &[u8], format: gix_hash::Kind) -> Option<ObjectId> {
    ObjectId::from_hex(hex).ok().filter(|id| id.kind() == format)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    fn stream(lines: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            match *line {
                "flush" => out.extend_from_slice(pkt_line::FLUSH),
                line => pkt_line::data(&mut out, line.as_bytes()).unwrap(),
            }
        }
        out
    }

    fn parse(lines: &[&str], service: Service) -> Result<Advertisement, Error> {
        let stream = stream(lines);
        let mut reader = Reader::new(stream.as_slice());
        read_lines(&mut Lines::new(&mut reader, "there", "reading"), service)
    }

    #[test]
    fn references_are_read() {
        let head =
            format!("{ID} HEAD\0ofs-delta symref=HEAD:refs/heads/main agent=git/2 object-format=sha1\n");
        let advertisement = parse(
            &[
                "# service=git-upload-pack\n",
                "flush",
                &head,
                &format!("{ID} refs/heads/main\n"),
                &format!("{ID} refs/tags/v1"),
                &format!("{} refs/tags/v1^{{}}\n", ID.replace('0', "a")),
                &format!("{ID} .have\n"),
                "flush",
            ],
            Service::UploadPack,
        )
        .unwrap();
        let names: Vec<_> = advertisement.refs.iter().map(|r| r.name.to_string()).collect();
        assert_eq!(names, ["HEAD", "refs/heads/main", "refs/tags/v1"]);
        assert_eq!(
            advertisement.refs[0].symref_target.as_ref().unwrap(),
            "refs/heads/main"
        );
        assert!(advertisement.refs[2].peeled.is_some());
        assert_eq!(advertisement.haves.len(), 1);
        assert!(advertisement.capabilities.has("ofs-delta"));
        assert_eq!(advertisement.capabilities.value("agent").unwrap(), "git/2");
    }

    #[test]
    fn an_empty_repository_has_capabilities_alone() {
        let null = "0".repeat(64);
        let advertisement = parse(
            &[
                &format!("{null} capabilities^{{}}\0atomic object-format=sha256"),
                "flush",
            ],
            Service::ReceivePack,
        )
        .unwrap();
        assert_eq!(advertisement.format, gix_hash::Kind::Sha256);
        assert!(advertisement.refs.is_empty() && advertisement.capabilities.has("atomic"));
        assert!(parse(&["flush"], Service::UploadPack).unwrap().refs.is_empty());
    }

    #[test]
    fn version_2_has_a_line_for_each_capability() {
        let advertisement = parse(
            &["version 2\n", "agent=git/2\n", "fetch=shallow filter\n", "flush"],
            Service::UploadPack,
        )
        .unwrap();
        assert_eq!(advertisement.version, Version::V2);
        assert!(advertisement.capabilities.value_has("fetch", "filter"));
        assert!(!advertisement.capabilities.value_has("fetch", "filt"));
    }

    #[test]
    fn nonsense_is_refused() {
        let caps = format!("{ID} HEAD\0x\n");
        for lines in [
            vec!["<!DOCTYPE html>"],
            vec!["# service=git-receive-pack\n", "flush"],
            vec![&caps, "0123 refs/heads/main", "flush"],
            vec![&caps, &caps[..40], "flush"],
        ] {
            let error = parse(&lines, Service::UploadPack).unwrap_err();
            assert!(matches!(error, Error::NotGit { .. }), "{error}");
        }
        let error = parse(
            &["ERR access denied or repository not exported: /x"],
            Service::UploadPack,
        );
        assert!(matches!(error, Err(Error::NotFound { .. })));
        let error = parse(&["ERR no\n"], Service::UploadPack);
        assert!(matches!(error, Err(Error::Refused { .. })));
        let error = parse(&[&caps], Service::UploadPack);
        assert!(matches!(error, Err(Error::Lost { .. })));
        let md5 = format!("{ID} HEAD\0object-format=md5\n");
        let error = parse(&[&md5, "flush"], Service::UploadPack);
        assert!(matches!(error, Err(Error::ObjectFormat { .. })));
    }
}
