//! Which files are chunked ones.

use std::io::Write as _;

use bstr::{BStr, BString, ByteSlice as _};
use gix::worktree::stack::state::attributes::Source;
use ingot_engine::chunked::FILTER;
use ingot_engine::durable;
use ingot_engine::repository::Repository;

use crate::Error;
use crate::error::During as _;

/// Answers for path after path whether `filter=chunk` is set.
pub struct Attributes<'r> {
    stack: gix::AttributeStack<'r>,
    found: gix::attrs::search::Outcome,
}

/// What attributes say that matters here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The file is a chunked one if it is large enough.
    pub chunked: bool,
    /// Something else may change the content on its way in or out.
    pub converted: bool,
}

impl<'r> Attributes<'r> {
    /// For files on their way into the repository (`checkout` false) or out of it.
    pub fn new(
        repository: &'r Repository,
        index: &gix::index::State,
        checkout: bool,
    ) -> Result<Attributes<'r>, Error> {
        let gix = repository.gix();
        let source = match checkout {
            true => Source::IdMappingThenWorktree,
            false => Source::WorktreeThenIdMapping,
        };
        let stack = gix
            .attributes_only(index, source)
            .map_err(|error| Error::Other(format!("attributes cannot be read: {error}")))?;
        let found = stack.selected_attribute_matches([
            "filter",
            "crlf",
            "ident",
            "eol",
            "text",
            "working-tree-encoding",
        ]);
        Ok(Attributes { stack, found })
    }

    /// What is said about a file.
    pub fn of(&mut self, path: &BStr) -> Result<Wishes, Error> {
        let place = self
            .stack
            .at_entry(path, None)
            .map_err(|error| Error::Other(format!("the attributes of '{path}' cannot be read: {error}")))?;
        self.found.reset();
        place.matching_attributes(&mut self.found);
        let mut wishes = Wishes::default();
        for found in self.found.iter_selected() {
            let state = found.assignment.state;
            if state.is_unspecified() {
                continue;
            }
            match (found.assignment.name.as_str(), state) {
                ("filter", gix::attrs::StateRef::Value(value)) if value.as_bstr() == FILTER => {
                    wishes.chunked = true;
                }
                (_, gix::attrs::StateRef::Unset) => {}
                _ => wishes.converted = true,
            }
        }
        Ok(wishes)
    }
}

/// What [`track`] did with a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// As given.
    pub pattern: String,
    /// False if it stood there already.
    pub new: bool,
}

/// Adds patterns to the attribute file at the top of the work tree. They go to its end, where they outrank the rest.
pub fn track(repository: &Repository, patterns: &[String]) -> Result<Vec<Tracked>, Error> {
    let top = repository
        .work_dir()
        .ok_or_else(|| Error::Other("a bare repository has no files to track".to_owned()))?;
    let path = top.join(".gitattributes");
    let mut text = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).during("read", &path),
    };
    let before = text.len();
    let mut tracked = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        if pattern.is_empty() || pattern.starts_with('!') || pattern.contains('\n') {
            return Err(Error::Refused {
                path: pattern.as_str().into(),
                reason: "it is no pattern that .gitattributes can hold".to_owned(),
            });
        }
        let line = line_of(pattern);
        let new = !text.lines().any(|other| other == line.as_bytes());
        if new {
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            // Memory takes everything.
            let _ = writeln!(text, "{line}");
        }
        tracked.push(Tracked {
            pattern: pattern.clone(),
            new,
        });
    }
    if text.len() != before {
        durable::write_atomic(&durable::Real, &path, &text, 0o644)?;
    }
    Ok(tracked)
}

/// A line of the attribute file. Patterns with blanks or quotes are quoted as Git does it.
pub(crate) fn line_of(pattern: &str) -> String {
    let quoted = if pattern.contains([' ', '\t', '"', '\\']) || pattern.starts_with('#') {
        format!(
            "\"{}\"",
            pattern
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\t', "\\t")
        )
    } else {
        pattern.to_owned()
    };
    format!("{quoted} filter={FILTER} diff={FILTER} merge={FILTER} -text")
}

/// The patterns in the attribute file at the top that make files chunked ones.
pub fn tracked(repository: &Repository) -> Result<Vec<BString>, Error> {
    let Some(top) = repository.work_dir() else {
        return Ok(Vec::new());
    };
    let path = top.join(".gitattributes");
    let text = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).during("read", &path),
    };
    let wanted = format!("filter={FILTER}");
    Ok(text
        .lines()
        .filter(|line| !line.starts_with(b"#"))
        .filter_map(|line| {
            let (pattern, rest) = match line.strip_prefix(b"\"") {
                Some(quoted) => quoted.split_once_str("\"")?,
                None => line.split_once_str(" ")?,
            };
            rest.fields_with(char::is_whitespace)
                .any(|field| field == wanted.as_bytes())
                .then(|| pattern.into())
        })
        .collect())
}
