//! Fetches (gitprotocol-pack(5), "Fetching Data From a Server"; gitprotocol-v2(5)).

mod stream;
mod v0;
mod v2;

use std::fmt;

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;

pub use stream::PackStream;

use super::advertisement::{self, AdvertisedRef, Advertisement, chomp, parse_id};
use super::channel::{Channel, Service};
use super::options::Version;
use super::pkt_line::{self, Reader};
use super::{Error, Remote};

/// The service that fetches are made from. It stays connected between requests where the protocol allows that, and
/// connects again where not.
pub struct UploadPack {
    remote: Remote,
    reader: Reader<Channel>,
    advertisement: Advertisement,
    /// Whether the server waits for a request.
    ready: bool,
}

/// What to fetch.
pub struct Fetch<'a> {
    /// What is wanted, with everything that it reaches and that the haves do not. Not empty.
    pub wants: Vec<ObjectId>,
    /// What is here already, with everything that it reaches.
    pub haves: Haves<'a>,
    /// Which objects to leave out: `blob:none`, `tree:0` and so on (git-rev-list(1), "--filter"). Not heeded where the
    /// server does not offer it.
    pub filter: Option<&'a str>,
    /// Whether deltas may be against objects that are not in the pack.
    pub thin: bool,
    /// Whether annotated tags come along whose targets do.
    pub include_tag: bool,
    /// How many commits of each history are enough. Heeded in version 2 of the protocol alone, by servers that can cut
    /// history off; what is cut off is not told.
    pub depth: Option<u32>,
}

impl Fetch<'_> {
    /// Everything that `wants` reach.
    pub fn new(wants: Vec<ObjectId>) -> Fetch<'static> {
        Fetch {
            wants,
            haves: Haves::Known(Vec::new()),
            filter: None,
            thin: false,
            include_tag: false,
            depth: None,
        }
    }
}

impl fmt::Debug for Fetch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("wants", &self.wants)
            .field("filter", &self.filter)
            .field("thin", &self.thin)
            .finish_non_exhaustive()
    }
}

/// Commits that are here already.
pub enum Haves<'a> {
    /// The server is known to have them, too, as it said so: one round.
    Known(Vec<ObjectId>),
    /// It may have them; newest first. It is asked in rounds that grow, until it has heard enough.
    Candidates(&'a mut dyn Iterator<Item = ObjectId>),
}

/// Haves of the first round.
const FIRST_ROUND: usize = 16;
/// Haves of the largest round.
const LARGEST_ROUND: usize = 4096;
/// Haves after the last one in common before the rest is not asked about any more, as in Git.
const IN_VAIN: usize = 256;

/// The rounds of a negotiation.
struct Rounds<'a> {
    candidates: &'a mut dyn Iterator<Item = ObjectId>,
    size: usize,
    /// What both have.
    common: Vec<ObjectId>,
    in_vain: usize,
}

impl<'a> Rounds<'a> {
    fn new(candidates: &'a mut dyn Iterator<Item = ObjectId>) -> Rounds<'a> {
        Rounds {
            candidates,
            size: FIRST_ROUND,
            common: Vec::new(),
            in_vain: 0,
        }
    }

    /// What to ask about next; nothing when it is enough.
    fn next(&mut self) -> Vec<ObjectId> {
        if !self.common.is_empty() && self.in_vain >= IN_VAIN {
            return Vec::new();
        }
        let round: Vec<ObjectId> = (&mut self.candidates).take(self.size).collect();
        self.size = (self.size * 2).min(LARGEST_ROUND);
        self.in_vain += round.len();
        round
    }

    /// The server has this one, too. False if it was not asked about.
    fn acknowledge(&mut self, id: ObjectId, round: &[ObjectId]) -> bool {
        if self.common.contains(&id) {
            return true;
        }
        if !round.contains(&id) {
            return false;
        }
        self.common.push(id);
        self.in_vain = 0;
        true
    }
}

impl fmt::Debug for UploadPack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadPack")
            .field("remote", &self.remote)
            .field("version", &self.advertisement.version)
            .finish_non_exhaustive()
    }
}

impl UploadPack {
    pub(super) fn connect(remote: &Remote) -> Result<UploadPack, Error> {
        let (reader, advertisement) = open(remote)?;
        Ok(UploadPack {
            remote: remote.clone(),
            reader,
            advertisement,
            ready: true,
        })
    }

    /// The hash that names objects there.
    pub fn object_format(&self) -> gix_hash::Kind {
        self.advertisement.format
    }

    /// Whether a filter is heeded.
    pub fn offers_filter(&self) -> bool {
        match self.advertisement.version {
            Version::V2 => self.advertisement.capabilities.value_has("fetch", "filter"),
            _ => self.advertisement.capabilities.has("filter"),
        }
    }

    /// Whether any object that is reachable may be wanted, not only what references point to. A server that says so may
    /// still refuse.
    pub fn offers_any_want(&self) -> bool {
        let capabilities = &self.advertisement.capabilities;
        self.advertisement.version == Version::V2
            || capabilities.has("allow-reachable-sha1-in-want")
            || capabilities.has("allow-any-sha1-in-want")
    }

    /// Whether [`UploadPack::refs`] asks the server each time.
    pub fn lists_anew(&self) -> bool {
        self.advertisement.version == Version::V2
    }

    /// The references whose names start with one of `prefixes`, or all of them without any. Asked for anew each time in
    /// version 2 of the protocol; otherwise what the server said when the connection was made.
    pub fn refs(&mut self, prefixes: &[&BStr]) -> Result<Vec<AdvertisedRef>, Error> {
        let mut refs = match self.advertisement.version {
            Version::V2 => {
                self.make_ready()?;
                v2::refs(self, prefixes)?
            }
            _ => self.advertisement.refs.clone(),
        };
        // Prefixes are a wish that servers need not fulfil.
        refs.retain(|known| {
            prefixes.is_empty()
                || prefixes
                    .iter()
                    .any(|prefix| known.name.starts_with(prefix.as_bytes()))
        });
        Ok(refs)
    }

    /// Asks for a pack, which is then read from the stream.
    pub fn fetch(&mut self, request: Fetch<'_>) -> Result<PackStream<'_>, Error> {
        let name = self.remote.name();
        let bad = |message: String| Error::Request {
            remote: name.clone(),
            message,
        };
        if request.wants.is_empty() {
            return Err(bad("nothing is wanted".to_owned()));
        }
        let format = self.object_format();
        if let Some(id) = request.wants.iter().find(|id| id.kind() != format) {
            return Err(bad(format!("{id} is no id of the format {format}")));
        }
        if let Some(filter) = request.filter
            && filter.bytes().any(|byte| !matches!(byte, 0x21..=0x7e))
        {
            return Err(bad(format!("'{filter}' is no filter")));
        }
        self.make_ready()?;
        self.ready = false;
        let banded = match self.advertisement.version {
            Version::V2 => {
                v2::fetch(self, request)?;
                true
            }
            _ => v0::fetch(self, request)?,
        };
        Ok(PackStream::new(self, banded))
    }

    /// Connects again if the server does not wait for a request.
    fn make_ready(&mut self) -> Result<(), Error> {
        if !self.ready {
            let format = self.object_format();
            let (reader, advertisement) = open(&self.remote)?;
            if advertisement.format != format {
                return Err(Error::ObjectFormat {
                    remote: self.remote.name(),
                    format: format!("{} after {format}", advertisement.format),
                });
            }
            self.reader = reader;
            self.advertisement = advertisement;
            self.ready = true;
        }
        Ok(())
    }

    /// Capabilities that every request names, for those that the server knows.
    fn own_capabilities(&self) -> Vec<String> {
        let capabilities = &self.advertisement.capabilities;
        let mut own = Vec::new();
        if capabilities.has("agent") {
            own.push(format!("agent={}", self.remote.agent()));
        }
        if capabilities.has("object-format") {
            own.push(format!("object-format={}", self.advertisement.format));
        }
        own
    }
}

fn open(remote: &Remote) -> Result<(Reader<Channel>, Advertisement), Error> {
    let mut reader = Reader::new(remote.open(Service::UploadPack)?);
    let advertisement = advertisement::read(&mut reader, &remote.name(), Service::UploadPack)?;
    if let Channel::Http(service) = reader.get_mut() {
        service.drain();
    }
    Ok((reader, advertisement))
}

impl Drop for UploadPack {
    fn drop(&mut self) {
        // Otherwise the server complains of a client that hung up.
        if self.ready
            && let Channel::Duplex(_) = self.reader.get_mut()
        {
            let _ = self.reader.get_mut().ask(pkt_line::FLUSH);
        }
    }
}

/// Appends a line, which is short: an id with a word, a filter, a prefix.
fn line(out: &mut Vec<u8>, text: &[u8], remote: &str) -> Result<(), Error> {
    pkt_line::data(out, text).map_err(|error| Error::Request {
        remote: remote.to_owned(),
        message: error.to_string(),
    })
}

/// Reads `ACK <id>` with an optional word behind it.
fn acknowledged(line: &[u8], format: gix_hash::Kind) -> Option<(ObjectId, &[u8])> {
    let rest = chomp(line).strip_prefix(b"ACK ")?;
    let (id, word) = rest.split_once_str(" ").unwrap_or((rest, b""));
    Some((parse_id(id, format)?, word))
}
