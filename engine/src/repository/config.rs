//! Reading configuration.

use std::ffi::OsString;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice as _};
use gix::config::{File, KeyRef, Source};

use super::{Error, environment, explain};

/// Merged configuration. Keys are written as Git writes them, `section.name` or `section.any text.name`; of several
/// values, single-value methods return the last. A key without a dot has no value.
pub struct Config<'c>(Held<'c>);

enum Held<'c> {
    Snapshot(gix::config::Snapshot<'c>),
    File(&'c File),
}

/// Configuration on its own: what applies outside of any repository (system, user, environment and command line), or a
/// copy of what applies in one.
#[derive(Debug)]
pub struct Settings(File);

fn parse(key: &[u8]) -> Option<KeyRef<'_>> {
    KeyRef::parse_unvalidated(key.as_bstr())
}

impl<'c> Config<'c> {
    pub(super) fn of(snapshot: gix::config::Snapshot<'c>) -> Config<'c> {
        Config(Held::Snapshot(snapshot))
    }

    /// gix's view of the same values.
    pub fn file(&self) -> &File {
        match &self.0 {
            Held::Snapshot(snapshot) => snapshot.plumbing(),
            Held::File(file) => file,
        }
    }

    /// A copy of all values, which needs no repository. Without those that gix makes of single variables, such as
    /// `GIT_SSL_CAINFO`: they would outrank what configuration says of one URL, and of an environment that is given
    /// explicitly they know nothing.
    pub fn to_settings(&self) -> Settings {
        let mut file = self.file().clone();
        let made: Vec<_> = file
            .sections_and_ids()
            .filter(|(section, _)| section.meta().source == Source::EnvOverride)
            .map(|(_, id)| id)
            .collect();
        for id in made {
            file.remove_section_by_id(id);
        }
        Settings(file)
    }

    /// The last value.
    pub fn string(&self, key: impl AsRef<[u8]>) -> Option<BString> {
        self.file().string(parse(key.as_ref())?)
    }

    /// All values in the order in which they apply.
    pub fn strings(&self, key: impl AsRef<[u8]>) -> Vec<BString> {
        parse(key.as_ref())
            .and_then(|key| self.file().strings(key))
            .unwrap_or_default()
    }

    /// A truth value in any of Git's spellings; a key without a value is true.
    pub fn boolean(&self, key: impl AsRef<[u8]>) -> Result<Option<bool>, Error> {
        match parse(key.as_ref()) {
            Some(parsed) => self
                .file()
                .boolean(parsed)
                .map_err(|error| bad(key.as_ref(), &error)),
            None => Ok(None),
        }
    }

    /// A number, with Git's suffixes `k`, `m` and `g` multiplied out.
    pub fn integer(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>, Error> {
        match parse(key.as_ref()) {
            Some(parsed) => self
                .file()
                .integer(parsed)
                .map_err(|error| bad(key.as_ref(), &error)),
            None => Ok(None),
        }
    }

    /// A path, with `~/` and `~user/` resolved. A relative one stays relative.
    pub fn path(&self, key: impl AsRef<[u8]>) -> Result<Option<PathBuf>, Error> {
        let Some(path) = parse(key.as_ref()).and_then(|key| self.file().path(key)) else {
            return Ok(None);
        };
        let home = gix::path::env::home_dir();
        let context = gix::config::path::interpolate::Context {
            home_dir: home.as_deref(),
            home_for_user: Some(gix::config::path::interpolate::home_for_user),
            ..Default::default()
        };
        path.interpolate(context)
            .map(Some)
            .map_err(|error| bad(key.as_ref(), &error))
    }

    /// The names between the dots of `section`, sorted, each once: for `remote`, the remotes.
    pub fn names(&self, section: &str) -> Vec<BString> {
        let mut names: Vec<BString> = self
            .file()
            .sections_by_name(section)
            .into_iter()
            .flatten()
            .filter_map(|section| section.header().subsection_name().map(BStr::to_owned))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn bad(key: &[u8], error: &gix::Error) -> Error {
    Error::Value {
        key: key.as_bstr().to_string(),
        message: explain(error),
    }
}

impl Settings {
    /// Reads them, includes followed.
    pub fn load() -> Result<Settings, Error> {
        let failed = |error: gix::Error| Error::Environment {
            name: "configuration",
            message: explain(&error),
        };
        let mut variable = |name: &str| -> Option<OsString> { gix::path::env::var(name) };
        let mut sources = vec![Source::Git, Source::User];
        if !cfg!(windows) {
            sources.insert(0, Source::System);
        }
        let mut paths: Vec<(Source, PathBuf)> = Vec::new();
        for source in sources {
            if let Some(path) = source.storage_location(&mut variable)
                && !paths.iter().any(|(_, known)| *known == path)
                // Nobody needs to have configuration; what is there and cannot be read is an error below.
                && path.try_exists().unwrap_or(true)
            {
                paths.push((source, path));
            }
        }
        let home = gix::path::env::home_dir();
        let options = gix::config::file::init::Options {
            includes: gix::config::file::includes::Options::follow(
                gix::config::path::interpolate::Context {
                    home_dir: home.as_deref(),
                    home_for_user: Some(gix::config::path::interpolate::home_for_user),
                    ..Default::default()
                },
                Default::default(),
            ),
            ..Default::default()
        };
        let mut file = File::from_paths_metadata(
            paths
                .into_iter()
                .map(|(source, path)| gix::config::file::Metadata::from(source).at(path)),
            options,
        )
        .map_err(failed)?
        .unwrap_or_default();
        if let Some(variables) = File::from_env(options).map_err(failed)? {
            file.append(variables).map_err(failed)?;
        }
        let parameters = environment::parameters()?;
        for line in &parameters.plain {
            let (key, value) = match line.split_once_str("=") {
                Some((key, value)) => (key, Some(value.as_bstr())),
                None => (line.as_slice(), None),
            };
            let Some(key) = parse(key) else { continue };
            file.append_value(key, value).map_err(failed)?;
        }
        file.append(parameters.exact).map_err(failed)?;
        Ok(Settings(file))
    }

    /// The values.
    pub fn config(&self) -> Config<'_> {
        Config(Held::File(&self.0))
    }
}

trait Append {
    fn append_value(&mut self, key: KeyRef<'_>, value: Option<&BStr>) -> Result<(), gix::Error>;
}

impl Append for File {
    /// Appends in a section of its own, so that it comes last and wins.
    fn append_value(&mut self, key: KeyRef<'_>, value: Option<&BStr>) -> Result<(), gix::Error> {
        let mut file = File::new(gix::config::file::Metadata::from(Source::Cli));
        file.section_mut_or_create_new(key.section_name, key.subsection_name)?
            .push(key.value_name, value)?;
        self.append(file)?;
        Ok(())
    }
}
