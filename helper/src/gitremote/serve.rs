//! The conversation with Git: commands in, answers out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};

use bstr::{BString, ByteSlice};
use gix_hash::ObjectId;

use super::backend::{Backend, Fetched, Listing, Outcome, Update, Verdict};
use super::options::{Answer, ObjectFormat, Options};
use super::parse::{self, Command};
use super::{lines, quote};

/// What this helper can do, as it tells Git.
const CAPABILITIES: &[u8] = b"fetch\npush\noption\ncheck-connectivity\nobject-format\n\n";

/// Why the conversation ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// What the store's side reported.
    #[error("{0}")]
    Backend(E),
    /// Git's end could not be read.
    #[error(transparent)]
    Read(#[from] lines::Error),
    /// The answer could not be written.
    #[error("cannot answer Git")]
    Write(#[source] std::io::Error),
    /// A line that is no command.
    #[error(transparent)]
    Parse(#[from] parse::Error),
    /// A command of another kind within a batch.
    #[error("unexpected command within a {batch} batch: {line}")]
    Mixed {
        /// `fetch` or `push`.
        batch: &'static str,
        /// The line that does not belong there.
        line: BString,
    },
    /// The stream ended before the blank line that completes a batch; nothing of the batch was done.
    #[error("the command stream ended within a {batch} batch; nothing was done")]
    Unfinished {
        /// `fetch` or `push`.
        batch: &'static str,
    },
    /// Two updates of one reference in a single batch.
    #[error("the push names {destination} twice; nothing was published")]
    Twice {
        /// The reference.
        destination: BString,
    },
    /// Git insists on an object format that the store does not have.
    #[error(
        "the store holds {store} objects, Git asks for {asked}; use a repository with the store's object format"
    )]
    ObjectFormat {
        /// The store's.
        store: gix_hash::Kind,
        /// Git's.
        asked: gix_hash::Kind,
    },
    /// The path of a lock file cannot be told to Git.
    #[error(
        "the repository's path has a line feed, which Git's helper protocol cannot carry; move the repository"
    )]
    Unprintable,
}

/// Answers commands until a blank line outside a batch, or the end of the stream. `output` is flushed after every
/// answer and receives nothing but protocol.
pub fn serve<B: Backend>(
    input: impl BufRead,
    output: impl Write,
    backend: &mut B,
) -> Result<(), Error<B::Error>> {
    let mut server = Server {
        input,
        output,
        backend,
        options: Options::default(),
        listed: BTreeMap::new(),
    };
    server.run()
}

struct Server<'b, R, W, B> {
    input: R,
    output: W,
    backend: &'b mut B,
    options: Options,
    /// What Git was told last: it reports updates relative to this.
    listed: BTreeMap<BString, ObjectId>,
}

impl<R: BufRead, W: Write, B: Backend> Server<'_, R, W, B> {
    fn run(&mut self) -> Result<(), Error<B::Error>> {
        let mut line = Vec::new();
        while lines::read(&mut self.input, &mut line)? {
            match parse::command(&line)? {
                Command::Blank => return Ok(()),
                Command::Capabilities => self.answer(CAPABILITIES)?,
                Command::Option { name, value } => {
                    let text = match self.options.set(name, value) {
                        Answer::Ok => BString::from("ok\n"),
                        Answer::Unsupported => BString::from("unsupported\n"),
                        Answer::Error(text) => format!("error {text}\n").into(),
                    };
                    self.answer(&text)?;
                }
                Command::List { for_push } => self.list(for_push)?,
                Command::Fetch { id, .. } => {
                    let wanted = self.fetch_batch(id)?;
                    self.fetch(&wanted)?;
                }
                Command::Push { .. } => {
                    let updates = self.push_batch(&line)?;
                    self.push(&updates)?;
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, text: &[u8]) -> Result<(), Error<B::Error>> {
        self.output
            .write_all(text)
            .and_then(|()| self.output.flush())
            .map_err(Error::Write)
    }

    fn list(&mut self, for_push: bool) -> Result<(), Error<B::Error>> {
        let mut listing = self
            .backend
            .list(&self.options, for_push)
            .map_err(Error::Backend)?;
        if let (Some(ObjectFormat::Only(asked)), Some(store)) =
            (self.options.object_format, listing.object_format)
            && asked != store
        {
            return Err(Error::ObjectFormat { store, asked });
        }
        // Git stops at a name it would not accept itself, and takes an all-zero id for an object.
        listing.refs.retain(|listed| {
            gix_validate::reference::name(listed.name.as_bstr()).is_ok() && !listed.id.is_null()
        });
        self.listed = listing
            .refs
            .iter()
            .map(|listed| (listed.name.clone(), listed.id))
            .collect();
        let text = listing_text(
            &listing,
            &self.listed,
            self.options.object_format.is_some(),
            for_push,
        );
        self.answer(&text)
    }

    /// The ids of a batch whose first line is read already, without duplicates, in the order given.
    fn fetch_batch(&mut self, first: ObjectId) -> Result<Vec<ObjectId>, Error<B::Error>> {
        let mut wanted = vec![first];
        let mut seen = BTreeSet::from([first]);
        let mut line = Vec::new();
        loop {
            if !lines::read(&mut self.input, &mut line)? {
                return Err(Error::Unfinished { batch: "fetch" });
            }
            match parse::command(&line)? {
                Command::Blank => return Ok(wanted),
                Command::Fetch { id, .. } => {
                    if seen.insert(id) {
                        wanted.push(id);
                    }
                }
                _ => return Err(mixed("fetch", &line)),
            }
        }
    }

    fn fetch(&mut self, wanted: &[ObjectId]) -> Result<(), Error<B::Error>> {
        let Fetched { lock, connected } = self
            .backend
            .fetch(&self.options, wanted)
            .map_err(Error::Backend)?;
        let mut text = Vec::new();
        if let Some(path) = lock {
            let path = gix::path::into_bstr(path).map_err(|_| Error::Unprintable)?;
            if path.contains(&b'\n') {
                return Err(Error::Unprintable);
            }
            text.extend_from_slice(b"lock ");
            text.extend_from_slice(&path);
            text.push(b'\n');
        }
        if connected && self.options.check_connectivity {
            text.extend_from_slice(b"connectivity-ok\n");
        }
        text.push(b'\n');
        self.answer(&text)
    }

    /// The updates of a batch whose first line is given.
    fn push_batch(&mut self, first: &[u8]) -> Result<Vec<Update>, Error<B::Error>> {
        let mut updates = Vec::new();
        let mut seen = BTreeSet::new();
        let mut line = first.to_vec();
        loop {
            match parse::command(&line)? {
                Command::Blank => break,
                Command::Push {
                    force,
                    source,
                    destination,
                } => {
                    let destination = destination.to_owned();
                    if !seen.insert(destination.clone()) {
                        return Err(Error::Twice { destination });
                    }
                    // With both given, Git's own transports let the force win.
                    let lease = self.options.leases.get(&destination).copied().filter(|_| !force);
                    updates.push(Update {
                        source: source.map(ToOwned::to_owned),
                        destination,
                        force,
                        lease,
                    });
                }
                _ => return Err(mixed("push", &line)),
            }
            if !lines::read(&mut self.input, &mut line)? {
                return Err(Error::Unfinished { batch: "push" });
            }
        }
        self.options.leases.clear();
        Ok(updates)
    }

    fn push(&mut self, updates: &[Update]) -> Result<(), Error<B::Error>> {
        let outcomes = self
            .backend
            .push(&self.options, updates)
            .map_err(Error::Backend)?;
        let by_name: BTreeMap<_, _> = outcomes
            .iter()
            .map(|Outcome { destination, result }| (destination, result))
            .collect();
        let mut text = Vec::new();
        for Update { destination, .. } in updates {
            match by_name.get(destination) {
                Some(Verdict::Changed { old, new, forced }) => {
                    text.extend_from_slice(b"ok ");
                    text.extend_from_slice(destination);
                    text.push(b'\n');
                    // Someone else moved it in between: tell what was really replaced.
                    if *old != self.listed.get(destination).copied() && !self.options.dry_run {
                        let null = |id: &Option<ObjectId>, other: &Option<ObjectId>| {
                            id.or(other.map(|other| other.kind().null()))
                        };
                        if let (Some(old), Some(new)) = (null(old, new), null(new, old)) {
                            text.extend(format!("option old-oid {old}\noption new-oid {new}\n").bytes());
                            if *forced {
                                text.extend_from_slice(b"option forced-update\n");
                            }
                        }
                    }
                }
                Some(Verdict::UpToDate) => error(&mut text, destination, "up to date"),
                Some(Verdict::Refused(reason)) => error(&mut text, destination, reason),
                // Git takes silence for success.
                None => error(&mut text, destination, "no outcome is known for this reference"),
            }
        }
        text.push(b'\n');
        self.answer(&text)
    }
}

fn mixed<E>(batch: &'static str, line: &[u8]) -> Error<E> {
    let shown = &line[..line.len().min(200)];
    Error::Mixed {
        batch,
        line: quote::if_needed(shown.as_bstr()),
    }
}

fn error(text: &mut Vec<u8>, destination: &BString, reason: &str) {
    text.extend_from_slice(b"error ");
    text.extend_from_slice(destination);
    text.push(b' ');
    text.extend_from_slice(&quote::if_needed(reason.into()));
    text.push(b'\n');
}

fn listing_text(
    listing: &Listing,
    listed: &BTreeMap<BString, ObjectId>,
    with_format: bool,
    for_push: bool,
) -> Vec<u8> {
    let mut text = Vec::new();
    if let (true, Some(format)) = (with_format, listing.object_format) {
        text.extend(format!(":object-format {format}\n").bytes());
    }
    // In a listing for a push it would make `push --mirror` delete HEAD; without its target, `ls-remote` would
    // show an all-zero HEAD.
    if let Some(head) = listing
        .head
        .as_ref()
        .filter(|head| !for_push && listed.contains_key(*head))
    {
        text.extend_from_slice(b"@");
        text.extend_from_slice(head);
        text.extend_from_slice(b" HEAD\n");
    }
    for listed in &listing.refs {
        text.extend(format!("{} ", listed.id).bytes());
        text.extend_from_slice(&listed.name);
        text.push(b'\n');
        // Peeled tags are of use to a fetch, which follows them; a push would take them for references.
        if let Some(peeled) = listed.peeled.filter(|_| !for_push) {
            text.extend(format!("{peeled} ").bytes());
            text.extend_from_slice(&listed.name);
            text.extend_from_slice(b"^{}\n");
        }
    }
    text.push(b'\n');
    text
}
