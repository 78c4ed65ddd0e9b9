//! What is left out, in gitignore syntax.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// A line that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{line}': {reason}")]
pub struct Error {
    line: String,
    reason: String,
}

/// Compiled rules. As in Git, later ones win, `!` takes back, and what lies in a folder that is left out cannot be
/// taken back.
#[derive(Debug, Clone)]
pub struct Rules {
    matcher: Option<Gitignore>,
}

impl Rules {
    /// Compiles lines.
    pub fn new<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Rules, Error> {
        let mut builder = GitignoreBuilder::new("");
        let mut any = false;
        for line in lines {
            let failed = |error: ignore::Error| Error {
                line: line.to_owned(),
                reason: error.to_string(),
            };
            builder.add_line(None, line).map_err(failed)?;
            any = true;
        }
        if !any {
            return Ok(Rules { matcher: None });
        }
        let matcher = builder.build().map_err(|error| Error {
            line: String::new(),
            reason: error.to_string(),
        })?;
        Ok(Rules {
            matcher: Some(matcher),
        })
    }

    /// Whether a path below the root is left out. Its folders are asked for first.
    pub fn leaves_out(&self, relative: &[u8], is_folder: bool) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let Some(matcher) = &self.matcher else {
            return false;
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(relative));
        matcher.matched(path, is_folder).is_ignore()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    #[test]
    fn rules_as_in_git() {
        let rules = Rules::new([
            "# comment",
            "*.swp",
            "!keep.swp",
            "node_modules/",
            "/top",
            "a/**/z",
            "sp\\ ",
        ])
        .unwrap();
        for (path, is_folder, out) in [
            ("x.swp", false, true),
            ("deep/x.swp", false, true),
            ("deep/keep.swp", false, false),
            ("deep/node_modules", true, true),
            ("deep/node_modules", false, false),
            ("top", false, true),
            ("deep/top", false, false),
            ("a/b/c/z", false, true),
            ("sp ", false, true),
            ("# comment", false, false),
        ] {
            assert_eq!(rules.leaves_out(path.as_bytes(), is_folder), out, "{path}");
        }
        assert!(!Rules::new([]).unwrap().leaves_out(b"x", false));
        assert!(Rules::new(["a{b"]).unwrap_err().to_string().starts_with("'a{b'"));
    }
}
