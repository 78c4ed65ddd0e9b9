//! Versions 0 and 1: one request, with a conversation in the middle.

use gix_hash::ObjectId;

use super::{Fetch, Haves, IN_VAIN, Rounds, UploadPack, acknowledged, line};
use crate::transport::Error;
use crate::transport::advertisement::{Lines, chomp};
use crate::transport::channel::Channel;
use crate::transport::pkt_line::{self, Line};

const STAGE: &str = "negotiating";

/// Asks for a pack, in as many rounds as it takes. Afterwards, the pack is the next thing to read: in side bands if the
/// answer is true.
pub(super) fn fetch(upload_pack: &mut UploadPack, request: Fetch<'_>) -> Result<bool, Error> {
    let remote = upload_pack.remote.name();
    let offered = |name: &str| upload_pack.advertisement.capabilities.has(name);
    let mut words = Vec::new();
    let mut wish = |name: &str, wanted: bool| {
        let granted = wanted && offered(name);
        if granted {
            words.push(name.to_owned());
        }
        granted
    };
    let detailed = wish("multi_ack_detailed", true);
    let banded = wish("side-band-64k", true) || wish("side-band", true);
    wish("ofs-delta", true);
    wish("thin-pack", request.thin);
    wish("include-tag", request.include_tag);
    let filter = request.filter.filter(|_| wish("filter", true));
    words.extend(upload_pack.own_capabilities());

    let mut wishes = Vec::new();
    for (place, want) in request.wants.iter().enumerate() {
        match place {
            0 => line(
                &mut wishes,
                format!("want {want} {}\n", words.join(" ")).as_bytes(),
                &remote,
            )?,
            _ => line(&mut wishes, format!("want {want}\n").as_bytes(), &remote)?,
        }
    }
    if let Some(filter) = filter {
        line(&mut wishes, format!("filter {filter}\n").as_bytes(), &remote)?;
    }
    wishes.extend_from_slice(pkt_line::FLUSH);

    let mut conversation = Conversation {
        upload_pack,
        wishes,
        told: false,
        remote,
    };
    match request.haves {
        Haves::Known(haves) => conversation.say(&[&haves], true)?,
        // Without details, an acknowledgement does not say which commits it is about.
        Haves::Candidates(candidates) if !detailed => {
            let haves: Vec<ObjectId> = candidates.take(IN_VAIN).collect();
            conversation.say(&[&haves], true)?;
        }
        Haves::Candidates(candidates) => {
            let mut rounds = Rounds::new(candidates);
            loop {
                let round = rounds.next();
                if round.is_empty() {
                    break;
                }
                conversation.say(&[&rounds.common, &round], false)?;
                if conversation.hear(&mut rounds, &round)? {
                    break;
                }
            }
            conversation.say(&[&rounds.common], true)?;
        }
    }
    conversation.hear_last()?;
    Ok(banded)
}

struct Conversation<'a> {
    upload_pack: &'a mut UploadPack,
    wishes: Vec<u8>,
    /// Whether the server knows the wishes, and still remembers them.
    told: bool,
    remote: String,
}

impl Conversation<'_> {
    /// `haves` are those in common, and those that are new. A server that remembers is told the new ones alone.
    fn say(&mut self, haves: &[&[ObjectId]], done: bool) -> Result<(), Error> {
        let mut request = Vec::new();
        let mut haves = haves;
        if self.told {
            // Those in common were said before.
            haves = &haves[1..];
        } else {
            request.extend_from_slice(&self.wishes);
        }
        for have in haves.iter().copied().flatten() {
            line(&mut request, format!("have {have}\n").as_bytes(), &self.remote)?;
        }
        match done {
            true => line(&mut request, b"done\n", &self.remote)?,
            false => request.extend_from_slice(pkt_line::FLUSH),
        }
        let channel = self.upload_pack.reader.get_mut();
        self.told = !channel.is_stateless();
        channel.ask(&request)
    }

    /// Reads what the server has, too. True when it has heard enough.
    fn hear(&mut self, rounds: &mut Rounds<'_>, round: &[ObjectId]) -> Result<bool, Error> {
        let format = self.upload_pack.advertisement.format;
        let mut lines = Lines::new(&mut self.upload_pack.reader, &self.remote, STAGE);
        let mut ready = false;
        loop {
            let understood = match lines.next()? {
                Line::Data(data) => match chomp(data) {
                    b"NAK" => break,
                    line if line.starts_with(b"shallow ") => true,
                    line => match acknowledged(line, format) {
                        Some((id, word @ (b"common" | b"ready" | b"continue"))) => {
                            ready |= word == b"ready";
                            rounds.acknowledge(id, round)
                        }
                        _ => false,
                    },
                },
                _ => false,
            };
            if !understood {
                return Err(lines.not_git("an unexpected line among its acknowledgments"));
            }
        }
        if let Channel::Http(service) = self.upload_pack.reader.get_mut() {
            service.drain();
        }
        Ok(ready)
    }

    /// Reads up to the pack.
    fn hear_last(&mut self) -> Result<(), Error> {
        let format = self.upload_pack.advertisement.format;
        let mut lines = Lines::new(&mut self.upload_pack.reader, &self.remote, "waiting for the pack");
        loop {
            match lines.next()? {
                Line::Data(data) => match chomp(data) {
                    b"NAK" => return Ok(()),
                    line => match acknowledged(line, format) {
                        Some((_, b"")) => return Ok(()),
                        Some(_) => {}
                        None => return Err(lines.not_git("no pack where one belongs")),
                    },
                },
                _ => return Err(lines.not_git("no pack where one belongs")),
            }
        }
    }
}
