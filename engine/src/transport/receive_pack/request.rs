//! The head of a push: commands, capabilities, options.

use std::collections::HashSet;

use bstr::ByteSlice as _;

use super::{Command, Push, ReceivePack};
use crate::transport::Error;
use crate::transport::pkt_line;

/// What is sent before the pack, and what is expected back.
pub(super) struct Request {
    pub head: Vec<u8>,
    pub has_pack: bool,
    pub banded: bool,
    pub reported: bool,
    pub format: gix_hash::Kind,
}

impl Request {
    pub(super) fn new(push: &Push, to: &ReceivePack, remote: &str) -> Result<Request, Error> {
        check(push, to, remote)?;
        let format = to.object_format();
        let capabilities = &to.advertisement.capabilities;
        let mut words: Vec<String> = Vec::new();
        let mut wish = |name: &str, wanted: bool| {
            let granted = wanted && capabilities.has(name);
            if granted {
                words.push(name.to_owned());
            }
            granted
        };
        let reported = wish("report-status-v2", true) || wish("report-status", true);
        let banded = wish("side-band-64k", true);
        wish("quiet", push.quiet);
        wish("atomic", push.atomic);
        wish("push-options", !push.options.is_empty());
        if capabilities.has("object-format") {
            words.push(format!("object-format={format}"));
        }
        if capabilities.has("agent") {
            words.push(format!("agent={}", to.remote.agent()));
        }

        let mut head = Vec::new();
        for (place, command) in push.commands.iter().enumerate() {
            let mut line = format!("{} {} ", command.old, command.new).into_bytes();
            line.extend_from_slice(&command.name);
            if place == 0 {
                line.extend_from_slice(b"\0 ");
                line.extend_from_slice(words.join(" ").as_bytes());
            }
            add(&mut head, &line, remote)?;
        }
        head.extend_from_slice(pkt_line::FLUSH);
        if !push.options.is_empty() {
            for option in &push.options {
                add(&mut head, option, remote)?;
            }
            head.extend_from_slice(pkt_line::FLUSH);
        }
        Ok(Request {
            head,
            has_pack: push.commands.iter().any(|command| !command.new.is_null()),
            banded,
            reported,
            format,
        })
    }
}

fn add(head: &mut Vec<u8>, line: &[u8], remote: &str) -> Result<(), Error> {
    pkt_line::data(head, line).map_err(|error| Error::Request {
        remote: remote.to_owned(),
        message: error.to_string(),
    })
}

/// Refuses what the server could not understand, or would understand as something else.
fn check(push: &Push, to: &ReceivePack, remote: &str) -> Result<(), Error> {
    let bad = |message: String| Error::Request {
        remote: remote.to_owned(),
        message,
    };
    let unsupported = |what: &'static str| Error::Unsupported {
        remote: remote.to_owned(),
        what,
    };
    if push.commands.is_empty() {
        return Err(bad("nothing is to be pushed".to_owned()));
    }
    let mut seen = HashSet::new();
    for command in &push.commands {
        let Command { name, old, new } = command;
        if name.is_empty() || name.iter().any(|byte| matches!(byte, 0..=b' ' | 127)) {
            return Err(bad(format!("'{}' is no name of a reference", name.as_bstr())));
        }
        let format = to.object_format();
        if old.kind() != format || new.kind() != format {
            return Err(Error::ObjectFormat {
                remote: remote.to_owned(),
                format: format!("{format}, and the objects to push are {}", new.kind()),
            });
        }
        if old.is_null() && new.is_null() {
            return Err(bad(format!("'{name}' would neither be made nor deleted")));
        }
        if new.is_null() && !to.offers.delete_refs {
            return Err(unsupported("the deletion of references"));
        }
        if !seen.insert(name) {
            return Err(bad(format!("'{name}' is named twice")));
        }
    }
    if push.atomic && !to.offers.atomic {
        return Err(unsupported("pushes of all references or none (atomic)"));
    }
    if !push.options.is_empty() && !to.offers.push_options {
        return Err(unsupported("push options"));
    }
    if let Some(option) = push
        .options
        .iter()
        .find(|option| option.iter().any(|byte| matches!(byte, 0 | b'\n')))
    {
        return Err(bad(format!(
            "the push option '{}' has a line end",
            option.as_bstr()
        )));
    }
    Ok(())
}
