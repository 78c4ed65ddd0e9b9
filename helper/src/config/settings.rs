//! Git configuration as one view: system, user, repository, environment and command line.

use bstr::{BStr, BString, ByteSlice};
use gix::config::{File, KeyRef, Source, file};

use super::parameters;

/// Why configuration could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file, or the environment.
    #[error("cannot read Git configuration")]
    Read(#[source] gix::Error),
    /// The command line's part.
    #[error(transparent)]
    Parameters(#[from] parameters::ParametersError),
    /// A name on the command line.
    #[error("invalid configuration name {0} on Git's command line")]
    Name(BString),
}

/// A read-only view. Later sources win.
#[derive(Debug, Clone)]
pub struct Settings {
    file: File,
}

impl Settings {
    /// The configuration that holds outside every repository.
    pub fn global() -> Result<Settings, SettingsError> {
        let sources = [Source::System, Source::Git, Source::User];
        let present = sources.into_iter().filter_map(|source| {
            let path = source.storage_location(&mut gix::path::env::var)?;
            path.is_file().then(|| file::Metadata::from(source).at(path))
        });
        let home = gix::path::env::home_dir();
        let options = gix::config::file::init::Options {
            includes: gix::config::file::includes::Options::follow_without_conditional(home.as_deref()),
            ..Default::default()
        };
        let mut file = File::from_paths_metadata(present, options)
            .map_err(SettingsError::Read)?
            .unwrap_or_default();
        let environment = File::from_environment_overrides().map_err(SettingsError::Read)?;
        file.append(environment).map_err(SettingsError::Read)?;
        Settings::with_parameters(file)
    }

    /// The configuration of an open repository, which includes the global one and the environment.
    pub fn of(repository: &gix::Repository) -> Result<Settings, SettingsError> {
        Settings::with_parameters(repository.config_snapshot().plumbing().clone())
    }

    fn with_parameters(mut file: File) -> Result<Settings, SettingsError> {
        if let Some(text) = gix::path::env::var(parameters::VARIABLE) {
            let text = gix::path::os_string_into_bstring(text).map_err(|_| parameters::ParametersError)?;
            append(&mut file, parameters::parse(text.as_bstr())?)?;
        }
        Ok(Settings { file })
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

fn append(file: &mut File, settings: Vec<(BString, Option<BString>)>) -> Result<(), SettingsError> {
    let mut added = File::new(file::Metadata::from(Source::Cli));
    for (name, value) in settings {
        let invalid = || SettingsError::Name(name.clone());
        let key = KeyRef::parse_unvalidated(name.as_bstr()).ok_or_else(invalid)?;
        let mut section = added
            .section_mut_or_create_new(key.section_name, key.subsection_name)
            .map_err(|_| invalid())?;
        section
            .push(key.value_name, value.as_ref().map(|value| value.as_bstr()))
            .map_err(|_| invalid())?;
    }
    file.append(added).map_err(SettingsError::Read)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn later_values_win_and_names_ignore_case() {
        let mut settings =
            Settings::from_text("[e2ee]\n\tkey = /first\n[remote \"a.B/c\"]\n\turl = /x\n\turl = /y\n");
        append(
            &mut settings.file,
            vec![("E2EE.KEY".into(), Some("/second".into()))],
        )
        .unwrap();
        assert_eq!(settings.string("e2ee", None, "key").unwrap(), "/second");
        assert_eq!(
            settings.strings("remote", Some("a.B/c".into()), "url"),
            ["/x", "/y"]
        );
        assert_eq!(settings.string("remote", Some("a.b/c".into()), "url"), None);
        assert_eq!(settings.subsections("remote"), ["a.B/c"]);
    }

    #[test]
    fn a_dotted_subsection_on_the_command_line() {
        let mut settings = Settings::from_text("");
        append(
            &mut settings.file,
            vec![("remote.my.server/x.e2ee-key".into(), Some("/k".into()))],
        )
        .unwrap();
        assert_eq!(
            settings
                .string("remote", Some("my.server/x".into()), "e2ee-key")
                .unwrap(),
            "/k"
        );
        let invalid = append(&mut settings.file, vec![("nodot".into(), None)]);
        assert!(matches!(invalid, Err(SettingsError::Name(_))));
    }
}
