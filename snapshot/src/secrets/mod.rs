//! Finds secrets before they are stored.
//!
//! A [`Scanner`] knows the rules and what is allowed; a [`FileScan`] takes the bytes of one file as they are
//! read and never holds more than some hundred KiB of them. What it finds does not depend on how the bytes are cut.
//!
//! One pass: a table over four-byte pieces of all literals tells where a rule may match, and only there does the
//! pattern of that rule run, on a window of bounded size. Patterns are those of the crate `regex`, so the whole is
//! linear in the size of the file, whatever the file holds.
//!
//! No size cap: a scan is faster than the disk and its memory does not grow, and a secret behind a cap would be stored.
//! Text and binary files are read alike, but in a file with a NUL among its first 8000 bytes only rules with a fixed
//! form apply; assignments and URLs in machine code are noise. UTF-16 with a byte order mark is read as text.
//! Compressed and encrypted content is not opened. See `docs/secret-rules.md`.

mod allow;
mod encoding;
mod engine;
#[cfg(test)]
mod examples;
mod finding;
mod judge;
mod paths;
mod prefilter;
mod rule;
mod rules;
mod scan;
mod stand_ins;
#[cfg(test)]
mod tests;

pub use allow::{AllowError, AllowList};
pub use finding::Finding;
pub use scan::{Effort, FileScan};

/// Version of what a scan finds. Whoever changes a rule, a judgement or how bytes are read raises it, and everything
/// that was cleared before is read again. A test knows the content of the rules that belongs to it.
pub const SECRET_SCAN_VERSION: u32 = 1;

/// The rules, and what is allowed in spite of them. Cheap to make: all scanners share the compiled rules.
pub struct Scanner {
    engine: &'static engine::Engine,
    allow: AllowList,
}

/// A rule, for listing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct RuleInfo {
    /// Its name, as findings show it.
    pub name: &'static str,
    /// What it finds.
    pub what: &'static str,
    /// Whether it looks at paths instead of content.
    pub path: bool,
    /// Whether it applies to binary files, too.
    pub binary: bool,
}

impl Scanner {
    /// A scanner that passes over what `allow` names.
    pub fn new(allow: &AllowList) -> Scanner {
        Scanner {
            engine: engine::Engine::shared(),
            allow: allow.clone(),
        }
    }

    /// Whether a file may not be stored because of where it is: private keys, key stores, credentials of tools,
    /// browser profiles. `relative` has `/` between its parts and no particular root.
    pub fn scan_path(&self, relative: &[u8]) -> Option<Finding> {
        paths::find(relative).filter(|finding| !self.allow.contains(&finding.fingerprint))
    }

    /// Begins to scan the content of a file. The path is only for what a finding says about it.
    pub fn file(&self, relative: &[u8]) -> FileScan<'_> {
        FileScan::new(self.engine, &self.allow, relative)
    }

    /// All rules: those for content in order of precedence, then those for paths.
    pub fn rules() -> impl Iterator<Item = RuleInfo> {
        let content = rules::all().map(|rule| RuleInfo {
            name: rule.name,
            what: rule.what,
            path: false,
            binary: rule.binary,
        });
        content.chain(paths::rules())
    }
}
