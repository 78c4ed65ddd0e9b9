//! dpkg's status file, with the marks of apt.

use std::collections::HashSet;

use super::source::Source;
use super::{Found, Package, Reason};

const MAX_BYTES: u64 = 256 << 20;

pub(super) fn read(source: &mut Source<'_>) -> Option<Found> {
    let path = source.system("var/lib/dpkg/status");
    let status = source.text(&path, MAX_BYTES)?;
    let native = native(source, &status);
    let automatic = automatic(source, &native);
    let mut packages = Vec::new();
    let mut damaged = 0;
    for stanza in stanzas(&status) {
        let installed = field(stanza, "Status").is_some_and(|status| status.ends_with(" installed"));
        match (installed, field(stanza, "Package"), field(stanza, "Version")) {
            (true, Some(name), Some(version)) if !name.is_empty() => {
                let name = qualified(name, field(stanza, "Architecture").unwrap_or_default(), &native);
                let reason = match &automatic {
                    Some(automatic) if automatic.contains(&name) => Reason::Dependency,
                    _ => Reason::Explicit,
                };
                packages.push(Package::new(name, version, reason));
            }
            (false, Some(_), _) if field(stanza, "Status").is_some() => {}
            _ => damaged += 1,
        }
    }
    if damaged > 0 {
        source.warn(&path, format_args!("{damaged} damaged entries were left out"));
    }
    Some(Found::Packages(packages))
}

/// The names that apt installed because something needed them. Without apt's file everything counts as asked for, as
/// it does for apt.
fn automatic(source: &mut Source<'_>, native: &str) -> Option<HashSet<String>> {
    let path = source.system("var/lib/apt/extended_states");
    let states = source.text(&path, MAX_BYTES)?;
    let automatic = stanzas(&states)
        .filter(|stanza| field(stanza, "Auto-Installed") == Some("1"))
        .filter_map(|stanza| {
            let architecture = field(stanza, "Architecture").unwrap_or_default();
            Some(qualified(field(stanza, "Package")?, architecture, native))
        });
    Some(automatic.collect())
}

/// The architecture of the machine: that of dpkg itself.
fn native(source: &mut Source<'_>, status: &str) -> String {
    let recorded = source.system("var/lib/dpkg/arch-native");
    if let Some(recorded) = source.text(&recorded, 4096) {
        return recorded.trim().to_owned();
    }
    stanzas(status)
        .find(|stanza| field(stanza, "Package") == Some("dpkg"))
        .and_then(|stanza| field(stanza, "Architecture"))
        .unwrap_or_default()
        .to_owned()
}

/// The name, with the architecture when it is a foreign one.
fn qualified(name: &str, architecture: &str, native: &str) -> String {
    if architecture.is_empty() || architecture == "all" || architecture == native || native.is_empty() {
        name.to_owned()
    } else {
        format!("{name}:{architecture}")
    }
}

/// Groups of lines between empty ones.
fn stanzas(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n")
        .map(|stanza| stanza.trim_matches('\n'))
        .filter(|stanza| !stanza.trim().is_empty())
}

fn field<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    stanza.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.eq_ignore_ascii_case(name)).then(|| value.trim())
    })
}
