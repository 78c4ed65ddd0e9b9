//! What the commands share: the configuration, the root, the repository.

use std::path::{Path, PathBuf};

use ingot_helper::cli::ask::key_files;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::interrupt::Interrupt;
use ingot_helper::cli::place;
use ingot_helper::cli::progress::{Display, Mode};
use ingot_helper::keys::KeyFiles;

use super::args::Global;
use crate::archive::{Archive, Files};
use crate::capture::Source;
use crate::config::{self, Config, Places};
use crate::rooted::Root;
use crate::rules::Rules;
use crate::secrets::AllowList;
use crate::tracked::Tracked;

/// One run of the program.
pub struct App {
    /// Options of every command.
    pub global: Global,
    /// The user's folders.
    pub places: Places,
    /// Shows progress.
    pub display: Display,
    /// Key files, opened once.
    pub keys: KeyFiles,
}

impl App {
    /// A run with these options.
    pub fn new(global: Global, interrupt: Interrupt) -> Result<App, Failure> {
        let mode = Mode::choose(global.progress.then_some(true), global.quiet);
        let mut places = Places::of_user()?;
        if let Some(file) = &global.config {
            places.config = place::current_folder()?.join(file);
        }
        Ok(App {
            global,
            places,
            display: Display::new(mode, interrupt),
            keys: key_files(),
        })
    }

    /// The configuration.
    pub fn config(&self) -> Result<Config, Failure> {
        Ok(Config::read(&self.places.config, &self.places.home)?)
    }

    /// The configuration and all that it says where things are.
    pub fn setup(&self) -> Result<Setup, Failure> {
        let config = self.config()?;
        let machine = match &config.machine {
            Some(name) if config::is_machine_name(name) => name.clone(),
            Some(name) => return Err(bad_machine(name)),
            None => config::machine_name(),
        };
        let repository = config
            .repository
            .clone()
            .unwrap_or_else(|| self.places.repository.clone());
        Ok(Setup {
            tracked: config.tracked()?,
            rules: config.rules()?,
            allow: AllowList::new(&config.allow_secrets)?,
            config,
            machine,
            repository,
            own: Vec::new(),
        }
        .with_own(&self.places))
    }

    /// How to stand in line for another run.
    pub fn patience(&self) -> ingot_helper::flock::Patience<'_> {
        ingot_helper::flock::Patience {
            wait: Archive::patience(),
            ..place::patience(&self.display)
        }
    }

    /// A path for people.
    pub fn short(&self, path: &Path) -> String {
        config::short(path, &self.places.home)
    }
}

/// A name that cannot be a machine's.
pub fn bad_machine(name: &str) -> Failure {
    Failure::usage(format!(
        "'{name}' cannot be the name of a machine: letters, digits, dots, dashes and underscores can"
    ))
}

/// What the configuration says, ready for use.
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// The name of this machine.
    pub machine: String,
    /// Where the repository is.
    pub repository: PathBuf,
    /// What is tracked.
    pub tracked: Tracked,
    /// What is left out.
    pub rules: Rules,
    /// Findings that are no secrets.
    pub allow: AllowList,
    own: Vec<PathBuf>,
}

impl Setup {
    fn with_own(mut self, places: &Places) -> Setup {
        self.own = vec![self.repository.clone(), places.undo.clone()];
        self
    }

    /// The repository's own files.
    pub fn files(&self) -> Files {
        Files::of(&self.repository)
    }

    /// The repository.
    pub fn archive(&self) -> Result<Archive, Failure> {
        Ok(Archive::open(&self.repository, &self.machine)?)
    }

    /// The root.
    pub fn root(&self) -> Result<Root, Failure> {
        let root = &self.config.root;
        Root::open(root)
            .map_err(|error| Failure::failed(format!("cannot open the root {}: {error}", root.display())))
    }

    /// What a capture captures.
    pub fn source<'a>(&'a self, root: &'a Root) -> Source<'a> {
        Source {
            root,
            tracked: &self.tracked,
            rules: &self.rules,
            allow: &self.allow,
            max_file_size: self.config.max_file_size,
            cross_mounts: self.config.cross_mounts,
            skip_caches: self.config.skip_caches,
            own: self.own.clone(),
        }
    }

    /// A path that the user typed, relative to the root, as bytes.
    pub fn relative(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let relative = self.config.relative(&place::current_folder()?, path)?;
        use std::os::unix::ffi::OsStrExt as _;
        Ok(relative.as_os_str().as_bytes().to_vec())
    }
}
