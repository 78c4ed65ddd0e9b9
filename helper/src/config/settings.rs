//! Git configuration, asked by section, name between the dots, and key.

use bstr::{BStr, BString};
use gix::config::File;
use ingot_engine::repository::Config;

/// A read-only copy of the configuration that holds for a repository, or outside of any. Later values win.
#[derive(Debug, Clone)]
pub struct Settings {
    file: File,
}

impl Settings {
    /// What the engine has read: system, user, repository, environment and command line.
    pub fn of(config: &Config<'_>) -> Settings {
        Settings {
            file: config.file().clone(),
        }
    }

    /// The text of a configuration file, for tests.
    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Settings {
        Settings {
            file: text.parse().expect("tests write valid configuration"),
        }
    }

    /// The last value of `section.subsection.name`.
    pub fn string(&self, section: &str, subsection: Option<&BStr>, name: &str) -> Option<BString> {
        self.file.string_by(section, subsection, name)
    }

    /// All values, in order.
    pub fn strings(&self, section: &str, subsection: Option<&BStr>, name: &str) -> Vec<BString> {
        self.file
            .strings_by(section, subsection, name)
            .unwrap_or_default()
    }

    /// The last value as a boolean; what is no boolean counts as unset.
    pub fn boolean(&self, section: &str, subsection: Option<&BStr>, name: &str) -> Option<bool> {
        self.file.boolean_by(section, subsection, name).ok().flatten()
    }

    /// The names of all subsections of a section, each once, in order of first mention.
    pub fn subsections(&self, section: &str) -> Vec<BString> {
        let mut names: Vec<BString> = Vec::new();
        for section in self.file.sections_by_name(section).into_iter().flatten() {
            if let Some(name) = section.header().subsection_name()
                && !names.iter().any(|seen| *seen == name)
            {
                names.push(name.to_owned());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn later_values_win_and_names_are_exact() {
        let settings = Settings::from_text(
            "[e2ee]\n\tkey = /a\n\tKEY = /b\n[remote \"a.B/c\"]\n\turl = /x\n\turl = /y\n",
        );
        assert_eq!(settings.string("e2ee", None, "key").unwrap(), "/b");
        assert_eq!(
            settings.strings("remote", Some("a.B/c".into()), "url"),
            ["/x", "/y"]
        );
        assert_eq!(settings.string("remote", Some("a.b/c".into()), "url"), None);
        assert_eq!(settings.subsections("remote"), ["a.B/c"]);
    }
}
