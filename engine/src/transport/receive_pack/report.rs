//! What became of a push (gitprotocol-pack(5), "Report Status").

use std::io::Read;

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::Command;
use crate::transport::Error;
use crate::transport::advertisement::{Lines, chomp, parse_id};
use crate::transport::error::printable;
use crate::transport::pkt_line::{Line, Reader};

/// Lines of a report for each command: its status, and options behind it.
const LINES_EACH: usize = 16;

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether the pack was taken; if not, why not, in the server's words, and then no reference was touched.
    pub unpack: Result<(), BString>,
    /// What became of each command, in their order.
    pub refs: Vec<RefReport>,
}

/// What became of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefReport {
    /// The reference of the command.
    pub name: BString,
    /// What became of it.
    pub status: Status,
}

/// What became of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It was carried out. What differs from the command is given where the server says so.
    Done {
        /// The reference that was touched instead.
        ref_name: Option<BString>,
        /// What it had been.
        old: Option<ObjectId>,
        /// What it is now.
        new: Option<ObjectId>,
        /// Whether it did not go forward.
        forced: bool,
    },
    /// It was refused, for the reason that the server gives.
    Rejected(BString),
    /// The server does not say.
    Unreported,
}

impl Report {
    /// What is known of a server that does not report.
    pub(super) fn none(commands: &[Command]) -> Report {
        Report {
            unpack: Ok(()),
            refs: commands
                .iter()
                .map(|command| RefReport {
                    name: command.name.clone(),
                    status: Status::Unreported,
                })
                .collect(),
        }
    }

    /// Reads a report up to the flush behind it.
    pub(super) fn read<R: Read>(
        reader: &mut Reader<R>,
        commands: &[Command],
        format: gix_hash::Kind,
        remote: &str,
    ) -> Result<Report, Error> {
        let mut lines = Lines::new(reader, remote, "waiting for the report");
        let mut report = Report::none(commands);
        let unexpected = |line: &[u8]| Error::NotGit {
            remote: remote.to_owned(),
            message: format!(
                "unexpected line '{}' in its report",
                printable(&line[..line.len().min(80)])
            ),
        };
        report.unpack = match lines.next()? {
            Line::Data(line) => match chomp(line).strip_prefix(b"unpack ") {
                Some(b"ok") => Ok(()),
                Some(reason) => Err(printable(reason).into()),
                None => return Err(unexpected(line)),
            },
            _ => return Err(lines.not_git("a report without a beginning")),
        };
        let mut current: Option<usize> = None;
        let most = commands
            .len()
            .saturating_mul(LINES_EACH)
            .saturating_add(LINES_EACH);
        for _ in 0..most {
            let line = match lines.next()? {
                Line::Flush => return Ok(report),
                Line::Data(line) => chomp(line).to_vec(),
                _ => return Err(lines.not_git("a report that ends in the middle")),
            };
            let (word, rest) = line.split_once_str(" ").unwrap_or((&line, b""));
            match word {
                b"ok" => {
                    let status = Status::Done {
                        ref_name: None,
                        old: None,
                        new: None,
                        forced: false,
                    };
                    current = report.set(rest, status);
                }
                b"ng" => {
                    let (name, reason) = rest.split_once_str(" ").unwrap_or((rest, b"refused"));
                    report.set(name, Status::Rejected(printable(reason).into()));
                    current = None;
                }
                b"option" => {
                    let (name, value) = rest.split_once_str(" ").unwrap_or((rest, b""));
                    if let Some(place) = current
                        && !report.refs[place].status.add(name, value, format)
                    {
                        return Err(unexpected(&line));
                    }
                }
                _ => return Err(unexpected(&line)),
            }
        }
        Err(Error::TooLarge {
            remote: remote.to_owned(),
            what: "lines of a report",
            limit: most as u64,
        })
    }

    /// The first word about a command counts: a server may report one more reference for the same command.
    fn set(&mut self, name: &[u8], status: Status) -> Option<usize> {
        let place = self
            .refs
            .iter()
            .position(|known| known.name == name && known.status == Status::Unreported)?;
        self.refs[place].status = status;
        Some(place)
    }
}

impl Status {
    /// False if the value of a known option is none.
    fn add(&mut self, option: &[u8], value: &[u8], format: gix_hash::Kind) -> bool {
        let Status::Done {
            ref_name,
            old,
            new,
            forced,
        } = self
        else {
            return true;
        };
        let id = |place: &mut Option<ObjectId>| {
            *place = parse_id(value, format);
            place.is_some()
        };
        match option {
            b"refname" => {
                *ref_name = Some(value.into());
                true
            }
            b"old-oid" => id(old),
            b"new-oid" => id(new),
            b"forced-update" => {
                *forced = true;
                true
            }
            _ => true,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::transport::pkt_line;

    const ID: &str = "0123456789012345678901234567890123456789";

    fn read(lines: &[&str]) -> Result<Report, Error> {
        let mut stream = Vec::new();
        for line in lines {
            pkt_line::data(&mut stream, line.as_bytes()).unwrap();
        }
        stream.extend_from_slice(pkt_line::FLUSH);
        let id = ObjectId::from_hex(ID.as_bytes()).unwrap();
        let commands = ["refs/heads/a", "refs/heads/b", "refs/heads/c"].map(|name| Command::create(name, id));
        Report::read(
            &mut Reader::new(stream.as_slice()),
            &commands,
            gix_hash::Kind::Sha1,
            "there",
        )
    }

    #[test]
    fn each_command_gets_its_answer() {
        let report = read(&[
            "unpack ok\n",
            "ng refs/heads/b pre-receive hook declined\n",
            "ok refs/heads/a\n",
            "option refname refs/heads/x\n",
            &format!("option new-oid {ID}\n"),
            "option forced-update\n",
            "option something-new 1\n",
            "ok refs/heads/unknown\n",
        ])
        .unwrap();
        assert_eq!(report.unpack, Ok(()));
        assert!(matches!(
            &report.refs[0].status,
            Status::Done { ref_name: Some(name), new: Some(_), old: None, forced: true } if name == "refs/heads/x"
        ));
        assert_eq!(
            report.refs[1].status,
            Status::Rejected("pre-receive hook declined".into())
        );
        assert_eq!(report.refs[2].status, Status::Unreported);
    }

    #[test]
    fn a_refused_pack_has_a_reason() {
        let report = read(&[
            "unpack index-pack abnormal exit\n",
            "ng refs/heads/a unpacker error\n",
        ])
        .unwrap();
        assert_eq!(report.unpack, Err("index-pack abnormal exit".into()));
    }

    #[test]
    fn nonsense_is_refused() {
        for lines in [
            &["ok refs/heads/a\n"][..],
            &["unpack ok\n", "perhaps refs/heads/a\n"],
            &["unpack ok\n", "ok refs/heads/a\n", "option old-oid 12\n"],
            &[],
        ] {
            assert!(matches!(read(lines), Err(Error::NotGit { .. })), "{lines:?}");
        }
        let mut endless = vec!["unpack ok\n"];
        endless.resize(1000, "ok refs/heads/z\n");
        assert!(matches!(read(&endless), Err(Error::TooLarge { .. })));
    }
}
