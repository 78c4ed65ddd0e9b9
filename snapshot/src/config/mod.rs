//! What the user wants kept: `config.toml`.

mod edit;
mod places;
mod size;

use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table};

pub use edit::Editor;
pub use places::{Places, home, is_machine_name, machine_name, short};
pub use size::parse as parse_size;

use crate::rules::{self, Rules};
use crate::tracked::{self, Tracked};

/// The largest file that is captured unless the configuration says otherwise: 32 GiB.
const MAX_FILE_SIZE: u64 = 32 << 30;
/// No configuration file comes near this size.
const MAX_BYTES: u64 = 4 << 20;

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none yet.
    #[error("there is no configuration at {}; run: rivet init", .0.display())]
    Absent(PathBuf),
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// Not TOML.
    #[error("{}: {message}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        message: String,
    },
    /// A setting that does not exist.
    #[error("{}: there is no setting '{key}'; see: rivet help config", .path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The setting.
        key: String,
    },
    /// A setting with a value of the wrong kind.
    #[error("{}: '{key}' must be {wanted}", .path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The setting.
        key: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// A pattern of `track`.
    #[error("{}: track: {source}", .path.display())]
    Tracked {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: tracked::Error,
    },
    /// A pattern of `ignore`.
    #[error("{}: ignore: {source}", .path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rules::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] ingot_engine::durable::Error),
    /// The user's folders are not known.
    #[error("no home folder is known; set HOME")]
    NoHome,
    /// A path that is to be tracked and cannot be.
    #[error("{} is not below {}, the root of snapshots", .path.display(), .root.display())]
    Outside {
        /// The path.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// A path that cannot be written down in the configuration.
    #[error("{}: paths in the configuration are text; track the folder that holds it", .0.display())]
    NotText(PathBuf),
}

/// Where snapshots are pushed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remote {
    /// `e2ee::…`
    pub url: Option<String>,
    /// The device key.
    pub key: Option<String>,
}

/// The configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The folder that snapshots are of.
    pub root: PathBuf,
    /// The name of this machine, under which its snapshots are kept.
    pub machine: Option<String>,
    /// The repository of snapshots.
    pub repository: Option<PathBuf>,
    /// Patterns of what is tracked, relative to the root.
    pub track: Vec<String>,
    /// What is left out, in gitignore syntax.
    pub ignore: Vec<String>,
    /// Fingerprints of findings that are no secrets.
    pub allow_secrets: Vec<String>,
    /// Larger files are left out.
    pub max_file_size: u64,
    /// Goes into other file systems that are mounted below a tracked folder.
    pub cross_mounts: bool,
    /// Leaves folders out that a `CACHEDIR.TAG` declares to be caches.
    pub skip_caches: bool,
    /// Keeps the list of installed packages.
    pub packages: bool,
    /// Where to push.
    pub remote: Remote,
}

impl Config {
    /// What holds where nothing is written.
    pub fn default_at(file: &Path, root: &Path) -> Config {
        Config {
            file: file.to_owned(),
            root: root.to_owned(),
            machine: None,
            repository: None,
            track: Vec::new(),
            ignore: Vec::new(),
            allow_secrets: Vec::new(),
            max_file_size: MAX_FILE_SIZE,
            cross_mounts: false,
            skip_caches: true,
            packages: true,
            remote: Remote::default(),
        }
    }

    /// Reads a configuration file. Unknown settings are refused: a misspelt one would otherwise leave something out.
    pub fn read(file: &Path, home: &Path) -> Result<Config, Error> {
        let text = read_text(file)?;
        let document = parse(file, &text)?;
        Reader { file, home }.config(&document)
    }

    /// The compiled patterns.
    pub fn tracked(&self) -> Result<Tracked, Error> {
        Tracked::new(self.track.iter().map(String::as_str)).map_err(|source| Error::Tracked {
            path: self.file.clone(),
            source,
        })
    }

    /// The compiled rules.
    pub fn rules(&self) -> Result<Rules, Error> {
        Rules::new(self.ignore.iter().map(String::as_str)).map_err(|source| Error::Rules {
            path: self.file.clone(),
            source,
        })
    }

    /// The root-relative form of a path that the user typed while standing in `here`.
    pub fn relative(&self, here: &Path, path: &Path) -> Result<PathBuf, Error> {
        let mut whole = PathBuf::new();
        for part in here.join(path).components() {
            match part {
                std::path::Component::ParentDir => {
                    whole.pop();
                }
                std::path::Component::CurDir => {}
                part => whole.push(part),
            }
        }
        let outside = || Error::Outside {
            path: whole.clone(),
            root: self.root.clone(),
        };
        if let Ok(relative) = whole.strip_prefix(&self.root) {
            return Ok(relative.to_owned());
        }
        // The root, or the folder where the user stands, may be known by another name.
        let root = self.root.canonicalize().map_err(|_| outside())?;
        let (parent, name) = (whole.parent(), whole.file_name());
        let parent = parent
            .and_then(|parent| parent.canonicalize().ok())
            .ok_or_else(outside)?;
        let real = match name {
            Some(name) => parent.join(name),
            None => parent,
        };
        real.strip_prefix(&root)
            .map(Path::to_owned)
            .map_err(|_| outside())
    }
}

fn read_text(file: &Path) -> Result<String, Error> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Error::Absent(file.to_owned()),
        _ => Error::Read {
            path: file.to_owned(),
            source,
        },
    };
    if std::fs::metadata(file).map_err(failed)?.len() > MAX_BYTES {
        return Err(failed(io::Error::other("it is too large for a configuration")));
    }
    std::fs::read_to_string(file).map_err(failed)
}

fn parse(file: &Path, text: &str) -> Result<DocumentMut, Error> {
    text.parse::<DocumentMut>().map_err(|error| Error::Syntax {
        path: file.to_owned(),
        message: {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            match line {
                Some(line) => format!("line {line}: {}", error.message()),
                None => error.message().to_owned(),
            }
        },
    })
}

struct Reader<'a> {
    file: &'a Path,
    home: &'a Path,
}

impl Reader<'_> {
    fn config(&self, document: &DocumentMut) -> Result<Config, Error> {
        let mut config = Config::default_at(self.file, self.home);
        for (key, item) in document.as_table() {
            match key {
                "root" => config.root = self.path(key, item)?,
                "machine" => config.machine = Some(self.text(key, item)?),
                "repository" => config.repository = Some(self.path(key, item)?),
                "track" => config.track = self.texts(key, item)?,
                "ignore" => config.ignore = self.texts(key, item)?,
                "secrets" => config.allow_secrets = self.secrets(item)?,
                "max_file_size" => config.max_file_size = self.size(key, item)?,
                "cross_mounts" => config.cross_mounts = self.boolean(key, item)?,
                "skip_caches" => config.skip_caches = self.boolean(key, item)?,
                "packages" => config.packages = self.boolean(key, item)?,
                "remote" => config.remote = self.remote(item)?,
                _ => return Err(self.unknown(key)),
            }
        }
        Ok(config)
    }

    fn remote(&self, item: &Item) -> Result<Remote, Error> {
        let table = item
            .as_table_like()
            .ok_or_else(|| self.wrong("remote", "a table with url and key"))?;
        let mut remote = Remote::default();
        for (key, item) in table.iter() {
            match key {
                "url" => remote.url = Some(self.text("remote.url", item)?),
                "key" => remote.key = Some(self.text("remote.key", item)?),
                _ => return Err(self.unknown(&format!("remote.{key}"))),
            }
        }
        Ok(remote)
    }

    fn secrets(&self, item: &Item) -> Result<Vec<String>, Error> {
        let table = item
            .as_table_like()
            .ok_or_else(|| self.wrong("secrets", "a table with allow"))?;
        let mut allow = Vec::new();
        for (key, item) in table.iter() {
            match key {
                "allow" => allow = self.texts("secrets.allow", item)?,
                _ => return Err(self.unknown(&format!("secrets.{key}"))),
            }
        }
        Ok(allow)
    }

    fn unknown(&self, key: &str) -> Error {
        Error::Unknown {
            path: self.file.to_owned(),
            key: key.to_owned(),
        }
    }

    fn wrong(&self, key: &str, wanted: &'static str) -> Error {
        Error::Value {
            path: self.file.to_owned(),
            key: key.to_owned(),
            wanted,
        }
    }

    fn text(&self, key: &str, item: &Item) -> Result<String, Error> {
        match item.as_str() {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(self.wrong(key, "a text")),
        }
    }

    fn boolean(&self, key: &str, item: &Item) -> Result<bool, Error> {
        item.as_bool().ok_or_else(|| self.wrong(key, "true or false"))
    }

    fn path(&self, key: &str, item: &Item) -> Result<PathBuf, Error> {
        let text = self.text(key, item)?;
        let path = expand(&text, self.home);
        match path.is_absolute() {
            true => Ok(path),
            false => Err(self.wrong(key, "an absolute path, or one that begins with ~/")),
        }
    }

    fn texts(&self, key: &str, item: &Item) -> Result<Vec<String>, Error> {
        let wrong = || self.wrong(key, "a list of texts");
        let array = item.as_array().ok_or_else(wrong)?;
        array
            .iter()
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect()
    }

    fn size(&self, key: &str, item: &Item) -> Result<u64, Error> {
        let size = match (item.as_integer(), item.as_str()) {
            (Some(bytes), _) => u64::try_from(bytes).ok(),
            (None, Some(text)) => size::parse(text),
            _ => None,
        };
        size.ok_or_else(|| self.wrong(key, "a number of bytes, or a text such as \"100 MiB\""))
    }
}

/// `~` and `~/…` stand for the home folder.
pub fn expand(text: &str, home: &Path) -> PathBuf {
    match text.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => PathBuf::from(text),
    }
}

/// Makes sure that a table is there.
fn table<'d>(document: &'d mut DocumentMut, key: &str) -> Option<&'d mut Table> {
    document
        .entry(key)
        .or_insert_with(|| Item::Table(Table::new()))
        .as_table_mut()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, Error> {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        Config::read(&file, Path::new("/home/me"))
    }

    #[test]
    fn everything_that_can_be_set() {
        let config = read(
            "root = \"~/sub\"\nmachine = \"desk\"\nrepository = \"/srv/rivet.git\"\ntrack = [\".bashrc\"]\n\
             ignore = [\"*.swp\"]\nmax_file_size = \"2 MiB\"\ncross_mounts = true\n\
             skip_caches = false\npackages = false\n[remote]\nurl = \"e2ee::/srv/x\"\nkey = \"~/k\"\n[secrets]\nallow = [\"abc\"]\n",
        )
        .unwrap();
        assert_eq!(config.root, Path::new("/home/me/sub"));
        assert_eq!(config.machine.as_deref(), Some("desk"));
        assert_eq!(config.track, [".bashrc"]);
        assert_eq!(config.allow_secrets, ["abc"]);
        assert_eq!(config.max_file_size, 2 << 20);
        assert!(config.cross_mounts && !config.skip_caches && !config.packages);
        assert_eq!(config.remote.url.as_deref(), Some("e2ee::/srv/x"));
        let empty = read("").unwrap();
        assert_eq!(empty.root, Path::new("/home/me"));
        assert!(empty.packages && empty.track.is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("trak = []", "no setting 'trak'"),
            ("track = \"x\"", "'track' must be a list of texts"),
            ("track = [1]", "'track' must be a list of texts"),
            ("root = \"relative\"", "'root' must be an absolute path"),
            ("[remote]\nname = \"x\"", "'remote.name'"),
            ("max_file_size = \"much\"", "'max_file_size' must be"),
            ("a = = b", "line 1"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
        }
        let bad = read("track = [\"../x\"]").unwrap();
        assert!(bad.tracked().unwrap_err().to_string().contains("'../x'"));
        let absent = Config::read(Path::new("/nowhere/config.toml"), Path::new("/")).unwrap_err();
        assert!(absent.to_string().ends_with("rivet init"), "{absent}");
    }

    #[test]
    fn typed_paths_become_relative() {
        let config = Config::default_at(Path::new("c"), Path::new("/home/me"));
        let relative = |here: &str, path: &str| config.relative(Path::new(here), Path::new(path));
        assert_eq!(relative("/home/me", ".bashrc").unwrap(), Path::new(".bashrc"));
        assert_eq!(relative("/home/me/a/b", "../c").unwrap(), Path::new("a/c"));
        assert_eq!(relative("/tmp", "/home/me/x").unwrap(), Path::new("x"));
        assert_eq!(relative("/home/me", ".").unwrap(), Path::new(""));
        assert!(relative("/home/me", "../you/x").is_err());
        assert!(relative("/", "/home").is_err());
    }
}
