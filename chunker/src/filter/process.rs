//! Cleans and smudges.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::Stage;
use ingot_engine::chunked::{self, Pointer, RestoreOptions, pointer_length};
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};

use super::packets::Packets;
use crate::Error;
use crate::repo::Index;
use crate::store::{Source, Writer, use_chunks};

/// Files below this size stay as they are.
pub const THRESHOLD: usize = crate::cut::TARGET;
/// Content that is only passed on is held in memory up to this size.
const IN_MEMORY: usize = 1 << 20;

/// Packs below this size are worth uniting.
const SMALL_PACK: u64 = 8 << 20;

/// What the process has to say to the user, and what it may ask for.
pub trait Messages {
    /// One line.
    fn say(&self, text: &str);

    /// Tries to get the chunks of these pointers from somewhere. False if there is no such place.
    fn fetch(&self, repository: &Repository, pointers: &[Pointer]) -> Result<bool, Error>;
}

/// Talks with Git until it ends the conversation.
pub fn serve(
    repository: &Repository,
    input: impl Read + Send,
    output: impl Write + Send,
    messages: &dyn Messages,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut packets = Packets::new(input, output);
    greet(&mut packets)?;
    // Until Git ends the conversation it has written what refers to the chunks.
    let _guard = use_chunks(repository)?;
    let before = repository.store()?;
    let mut session = Session {
        repository,
        writer: Writer::new(repository, &before),
        store: repository.store()?,
        stale: false,
        messages,
        progress,
        delayed: BTreeMap::new(),
        told: false,
        index: OnceCell::new(),
    };
    loop {
        let Some(lines) = packets.lines().map_err(broken)? else {
            return session.end();
        };
        let request = Request::of(&lines)?;
        match request.command.as_slice() {
            b"clean" => session.clean(&request, &mut packets)?,
            b"smudge" => session.smudge(&request, &mut packets)?,
            b"list_available_blobs" => session.list(&mut packets)?,
            other => {
                packets.content().drain().map_err(broken)?;
                session
                    .messages
                    .say(&format!("unknown command {}", other.as_bstr()));
                answer(&mut packets, "abort")?;
            }
        }
    }
}

fn broken(error: io::Error) -> Error {
    Error::Protocol(error.to_string())
}

fn greet<R: Read, W: Write>(packets: &mut Packets<R, W>) -> Result<(), Error> {
    let hello = packets.lines().map_err(broken)?.unwrap_or_default();
    let version = hello.iter().any(|line| line == b"version=2");
    if hello.first().map(Vec::as_slice) != Some(b"git-filter-client") || !version {
        return Err(Error::Protocol(
            "no greeting of a client of version 2; this command is for Git to start".to_owned(),
        ));
    }
    let say = |packets: &mut Packets<R, W>, lines: &[&str]| {
        lines.iter().try_for_each(|line| packets.line(line.as_bytes()))?;
        packets.flush()
    };
    say(packets, &["git-filter-server", "version=2"]).map_err(broken)?;
    let offered = packets.lines().map_err(broken)?.unwrap_or_default();
    let known: Vec<&str> = ["capability=clean", "capability=smudge", "capability=delay"]
        .into_iter()
        .filter(|name| offered.iter().any(|line| line == name.as_bytes()))
        .collect();
    say(packets, &known).map_err(broken)
}

fn answer<R: Read, W: Write>(packets: &mut Packets<R, W>, status: &str) -> Result<(), Error> {
    packets
        .line(format!("status={status}").as_bytes())
        .and_then(|()| packets.flush())
        .map_err(broken)
}

struct Request {
    command: Vec<u8>,
    path: BString,
    can_delay: bool,
}

impl Request {
    fn of(lines: &[Vec<u8>]) -> Result<Request, Error> {
        let value = |name: &[u8]| lines.iter().find_map(|line| line.strip_prefix(name));
        Ok(Request {
            command: value(b"command=")
                .ok_or_else(|| Error::Protocol("a request without a command".to_owned()))?
                .to_vec(),
            path: value(b"pathname=").unwrap_or_default().into(),
            can_delay: value(b"can-delay=") == Some(b"1"),
        })
    }
}

struct Session<'r> {
    repository: &'r Repository,
    /// Knows the packs that it has made; the store does not.
    writer: Writer<'r>,
    store: Store,
    /// The store was opened before the last pack was made.
    stale: bool,
    messages: &'r dyn Messages,
    progress: &'r dyn Progress,
    /// Files that were put off until their chunks are here.
    delayed: BTreeMap<BString, Pointer>,
    told: bool,
    /// The index as it was when it was first needed; Git changes it when the conversation is over.
    index: OnceCell<Option<Index>>,
}

impl Session<'_> {
    fn clean<R: Read + Send, W: Write + Send>(
        &mut self,
        request: &Request,
        packets: &mut Packets<R, W>,
    ) -> Result<(), Error> {
        let mut content = packets.content();
        let mut head = Vec::new();
        let read = content.by_ref().take(THRESHOLD as u64).read_to_end(&mut head);
        read.map_err(broken)?;
        if head.len() < THRESHOLD {
            // Pointers are among these: what was never restored goes back as it is.
            answer(packets, "success")?;
            packets.write_all(&head).map_err(broken)?;
            return finish_content(packets);
        }
        let before = self.before(request.path.as_bstr());
        let mut whole = head.as_slice().chain(&mut content);
        let added = (self.writer).add(Source::stream(&mut whole), before.as_ref(), self.progress);
        content.drain().map_err(broken)?;
        // What is answered has to be durable, so each file has a pack of its own at first.
        let durable = added.and_then(|added| {
            self.stale |= self.writer.publish()?;
            Ok(added)
        });
        match durable {
            Ok(added) => {
                answer(packets, "success")?;
                packets.write_all(&added.pointer.to_bytes()).map_err(broken)?;
                finish_content(packets)
            }
            Err(error) => {
                self.messages
                    .say(&format!("cannot add '{}': {error}", request.path));
                answer(packets, "error")
            }
        }
    }

    /// The version that the index has of a file. Content that is equal gets the same pointer again, whatever chunks and
    /// deltas it was divided into, so that Git sees no change where there is none. In a conflict, this side's.
    fn before(&self, path: &BStr) -> Option<Pointer> {
        // Without an index that can be read there is no earlier version, and files are chunked all the same.
        let index = self
            .index
            .get_or_init(|| Index::read(self.repository).ok())
            .as_ref()?;
        let entry = [Stage::Unconflicted, Stage::Ours]
            .into_iter()
            .find_map(|stage| index.state.entry_by_path_and_stage(path, stage))?;
        chunked::read_pointer(&self.store, &entry.id, &mut Cache::new(0)).ok()?
    }

    /// All files are here, so their small packs become one.
    fn end(self) -> Result<(), Error> {
        let created = self.writer.finish()?;
        let small: Vec<PathBuf> = created
            .into_iter()
            .filter(|pack| pack.bytes < SMALL_PACK)
            .map(|pack| pack.pack)
            .collect();
        if let Err(error) = crate::care::unite(self.repository, &small) {
            self.messages
                .say(&format!("small packs stay as they are: {error}"));
        }
        Ok(())
    }

    fn smudge<R: Read + Send, W: Write + Send>(
        &mut self,
        request: &Request,
        packets: &mut Packets<R, W>,
    ) -> Result<(), Error> {
        let mut content = packets.content();
        let mut head = Vec::new();
        let length = pointer_length(self.store.format());
        let read = content.by_ref().take(length as u64 + 1).read_to_end(&mut head);
        read.map_err(broken)?;
        let pointer = match self.delayed.remove(&request.path) {
            Some(pointer) => Some(pointer),
            None => Pointer::parse(&head, self.store.format()),
        };
        let Some(pointer) = pointer else {
            let held = hold(&mut head.as_slice().chain(&mut content))?;
            return pass_on(held, packets);
        };
        content.drain().map_err(broken)?;
        if std::mem::take(&mut self.stale) {
            self.store = self.repository.store()?;
        }
        if let Err(error) = self.is_complete(&pointer) {
            if error.is_missing() && request.can_delay {
                self.delayed.insert(request.path.clone(), pointer);
                return answer(packets, "delayed");
            }
            return match error.is_missing() {
                true => {
                    self.tell_missing(&request.path, &error);
                    answer(packets, "success")?;
                    packets.write_all(&pointer.to_bytes()).map_err(broken)?;
                    finish_content(packets)
                }
                false => {
                    self.messages
                        .say(&format!("cannot restore '{}': {error}", request.path));
                    answer(packets, "error")
                }
            };
        }
        answer(packets, "success")?;
        let options = RestoreOptions {
            progress: self.progress,
        };
        match chunked::write_to(&self.store, &pointer, packets, &options) {
            Ok(_) => finish_content(packets),
            Err(chunked::Error::Io { source, .. }) => Err(broken(source)),
            Err(error) => {
                // Git throws away what it has got when the status changes in the end.
                self.messages
                    .say(&format!("cannot restore '{}': {error}", request.path));
                packets.flush().map_err(broken)?;
                packets.line(b"status=error").map_err(broken)?;
                packets.flush().map_err(broken)
            }
        }
    }

    fn is_complete(&self, pointer: &Pointer) -> Result<(), Error> {
        crate::care::complete(&self.store, pointer)
    }

    fn tell_missing(&mut self, path: &BString, error: &Error) {
        self.messages.say(&format!("'{path}' stays a pointer: {error}"));
        if !self.told {
            self.told = true;
            self.messages
                .say("when the chunks are here, 'git chunk restore' puts the files in place");
        }
    }

    /// Everything that was put off is fetched at once, and is available afterwards, be it as a pointer.
    fn list<R: Read, W: Write>(&mut self, packets: &mut Packets<R, W>) -> Result<(), Error> {
        let pointers: Vec<Pointer> = self.delayed.values().copied().collect();
        if !pointers.is_empty() {
            match self.messages.fetch(self.repository, &pointers) {
                Ok(true) => self.store = self.repository.store()?,
                Ok(false) => {}
                Err(error) => self.messages.say(&format!("cannot fetch chunks: {error}")),
            }
        }
        for path in self.delayed.keys() {
            packets
                .line(&[b"pathname=", path.as_slice()].concat())
                .map_err(broken)?;
        }
        packets.flush().map_err(broken)?;
        answer(packets, "success")
    }
}

/// Ends a content and keeps the status that was sent before it.
fn finish_content<R: Read, W: Write>(packets: &mut Packets<R, W>) -> Result<(), Error> {
    packets.flush().and_then(|()| packets.flush()).map_err(broken)
}

/// Keeps content that is given back as it is: Git reads nothing before it has sent everything.
fn hold(content: &mut dyn Read) -> Result<tempfile::SpooledTempFile, Error> {
    let mut held = tempfile::SpooledTempFile::new(IN_MEMORY);
    io::copy(content, &mut held).map_err(broken)?;
    io::Seek::rewind(&mut held).map_err(broken)?;
    Ok(held)
}

fn pass_on<R: Read, W: Write>(
    mut held: tempfile::SpooledTempFile,
    packets: &mut Packets<R, W>,
) -> Result<(), Error> {
    answer(packets, "success")?;
    io::copy(&mut held, packets).map_err(broken)?;
    finish_content(packets)
}
