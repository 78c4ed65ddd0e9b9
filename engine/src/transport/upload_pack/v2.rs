//! Version 2: commands, to a server that remembers nothing.

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;

use super::{Fetch, Haves, Rounds, UploadPack, acknowledged, line};
use crate::transport::Error;
use crate::transport::advertisement::{AdvertisedRef, Lines, MOST_REFS, chomp, parse_id, parse_pair};
use crate::transport::channel::Channel;
use crate::transport::pkt_line::{self, Line};

/// Prefixes that servers accept in one request.
const MOST_PREFIXES: usize = 60_000;

fn command(upload_pack: &UploadPack, name: &str, remote: &str) -> Result<Vec<u8>, Error> {
    if !upload_pack.advertisement.capabilities.has(name) {
        return Err(Error::Unsupported {
            remote: remote.to_owned(),
            what: "the commands that a fetch needs",
        });
    }
    let mut request = Vec::new();
    line(&mut request, format!("command={name}\n").as_bytes(), remote)?;
    for capability in upload_pack.own_capabilities() {
        line(&mut request, capability.as_bytes(), remote)?;
    }
    request.extend_from_slice(pkt_line::DELIMITER);
    Ok(request)
}

/// Asks for references.
pub(super) fn refs(upload_pack: &mut UploadPack, prefixes: &[&BStr]) -> Result<Vec<AdvertisedRef>, Error> {
    let remote = upload_pack.remote.name();
    let mut request = command(upload_pack, "ls-refs", &remote)?;
    line(&mut request, b"peel\n", &remote)?;
    line(&mut request, b"symrefs\n", &remote)?;
    if prefixes.len() <= MOST_PREFIXES {
        for prefix in prefixes {
            line(
                &mut request,
                &[b"ref-prefix ", prefix.as_bytes(), b"\n"].concat(),
                &remote,
            )?;
        }
    }
    request.extend_from_slice(pkt_line::FLUSH);
    upload_pack.ready = false;
    upload_pack.reader.get_mut().ask(&request)?;

    let format = upload_pack.advertisement.format;
    let mut lines = Lines::new(&mut upload_pack.reader, &remote, "reading the references");
    let mut refs = Vec::new();
    loop {
        let parsed = match lines.next()? {
            Line::Flush => break,
            Line::Data(data) => parse_ref(chomp(data), format),
            Line::Delimiter | Line::ResponseEnd => {
                return Err(lines.not_git("a section ends where none began"));
            }
        };
        match parsed {
            Some(Some(known)) => refs.push(known),
            Some(None) => {}
            None => return Err(lines.not_git("an unexpected line among its references")),
        }
        if refs.len() as u64 > MOST_REFS {
            return Err(Error::TooLarge {
                remote,
                what: "references",
                limit: MOST_REFS,
            });
        }
    }
    if let Channel::Http(service) = upload_pack.reader.get_mut() {
        service.drain();
    }
    upload_pack.ready = true;
    Ok(refs)
}

/// `<id> <name>` with attributes. What has no id yet is left out.
fn parse_ref(line: &[u8], format: gix_hash::Kind) -> Option<Option<AdvertisedRef>> {
    if line.starts_with(b"unborn ") {
        return Some(None);
    }
    let (id, rest) = parse_pair(line, format)?;
    let mut words = rest.split_str(" ");
    let mut known = AdvertisedRef {
        name: words.next()?.into(),
        id,
        peeled: None,
        symref_target: None,
    };
    for word in words {
        if let Some(target) = word.strip_prefix(b"symref-target:") {
            known.symref_target = Some(target.into());
        } else if let Some(peeled) = word.strip_prefix(b"peeled:") {
            known.peeled = Some(parse_id(peeled, format)?);
        }
    }
    Some(Some(known))
}

/// Asks for a pack, in as many rounds as it takes. Afterwards, the pack is the next thing to read.
pub(super) fn fetch(upload_pack: &mut UploadPack, request: Fetch<'_>) -> Result<(), Error> {
    let remote = upload_pack.remote.name();
    let mut wishes = command(upload_pack, "fetch", &remote)?;
    line(&mut wishes, b"ofs-delta", &remote)?;
    if request.thin {
        line(&mut wishes, b"thin-pack", &remote)?;
    }
    if request.include_tag {
        line(&mut wishes, b"include-tag", &remote)?;
    }
    if let (Some(filter), true) = (request.filter, upload_pack.offers_filter()) {
        line(&mut wishes, format!("filter {filter}").as_bytes(), &remote)?;
    }
    let capabilities = &upload_pack.advertisement.capabilities;
    if let (Some(depth), true) = (request.depth, capabilities.value_has("fetch", "shallow")) {
        line(&mut wishes, format!("deepen {depth}").as_bytes(), &remote)?;
    }
    for want in &request.wants {
        line(&mut wishes, format!("want {want}\n").as_bytes(), &remote)?;
    }
    let candidates = match request.haves {
        Haves::Known(haves) => {
            ask(upload_pack, &wishes, &[&haves], true, &remote)?;
            return pack_section(upload_pack, &remote);
        }
        Haves::Candidates(candidates) => candidates,
    };
    let mut rounds = Rounds::new(candidates);
    loop {
        let round = rounds.next();
        let done = round.is_empty();
        ask(upload_pack, &wishes, &[&rounds.common, &round], done, &remote)?;
        if done || acknowledgments(upload_pack, &mut rounds, &round, &remote)? {
            return pack_section(upload_pack, &remote);
        }
    }
}

fn ask(
    upload_pack: &mut UploadPack,
    wishes: &[u8],
    haves: &[&[ObjectId]],
    done: bool,
    remote: &str,
) -> Result<(), Error> {
    let mut request = wishes.to_vec();
    for have in haves.iter().copied().flatten() {
        line(&mut request, format!("have {have}\n").as_bytes(), remote)?;
    }
    if done {
        line(&mut request, b"done\n", remote)?;
    }
    request.extend_from_slice(pkt_line::FLUSH);
    upload_pack.reader.get_mut().ask(&request)
}

/// Reads what the server has, too. True when the pack follows.
fn acknowledgments(
    upload_pack: &mut UploadPack,
    rounds: &mut Rounds<'_>,
    round: &[ObjectId],
    remote: &str,
) -> Result<bool, Error> {
    let format = upload_pack.advertisement.format;
    let mut lines = Lines::new(&mut upload_pack.reader, remote, "negotiating");
    let begins = match lines.next()? {
        Line::Data(data) => chomp(data) == b"acknowledgments",
        _ => false,
    };
    if !begins {
        return Err(lines.not_git("no acknowledgments where they belong"));
    }
    let mut ready = false;
    loop {
        let understood = match lines.next()? {
            Line::Flush => {
                if let Channel::Http(service) = upload_pack.reader.get_mut() {
                    service.drain();
                }
                return Ok(false);
            }
            Line::Delimiter if ready => return Ok(true),
            Line::Data(data) => match chomp(data) {
                b"NAK" => true,
                b"ready" => {
                    ready = true;
                    true
                }
                line => match acknowledged(line, format) {
                    Some((id, b"")) => rounds.acknowledge(id, round),
                    _ => false,
                },
            },
            Line::Delimiter | Line::ResponseEnd => false,
        };
        if !understood {
            return Err(lines.not_git("an unexpected line among its acknowledgments"));
        }
    }
}

/// Reads up to the pack, past sections that a server may send unasked.
fn pack_section(upload_pack: &mut UploadPack, remote: &str) -> Result<(), Error> {
    let mut lines = Lines::new(&mut upload_pack.reader, remote, "waiting for the pack");
    loop {
        let name = match lines.next()? {
            Line::Data(data) => chomp(data).to_vec(),
            _ => return Err(lines.not_git("no pack where one belongs")),
        };
        match name.as_slice() {
            b"packfile" => return Ok(()),
            b"shallow-info" | b"wanted-refs" => loop {
                match lines.next()? {
                    Line::Delimiter => break,
                    Line::Data(_) => {}
                    _ => return Err(lines.not_git("no pack where one belongs")),
                }
            },
            _ => return Err(lines.not_git("an unknown section before the pack")),
        }
    }
}
