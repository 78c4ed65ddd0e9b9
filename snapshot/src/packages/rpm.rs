//! rpm's database is SQLite, Berkeley DB or a format of its own, and no maintained crate in pure Rust reads it.

use super::source::Source;
use super::{Found, Manager, ask};

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let folders = ["usr/lib/sysimage/rpm", "var/lib/rpm"];
    let files = ["rpmdb.sqlite", "Packages.db", "Packages"];
    let path = folders
        .iter()
        .flat_map(|folder| files.iter().map(move |file| format!("{folder}/{file}")))
        .map(|path| source.system(&path))
        .collect::<Vec<_>>()
        .into_iter()
        .find(|path| source.is_file(path))?;
    let question = ask::question(Manager::Rpm).unwrap_or_default();
    Some(Found::NotRead(format!(
        "{} is not read in-process; with --ask rpm itself is asked: {question}",
        path.display()
    )))
}
