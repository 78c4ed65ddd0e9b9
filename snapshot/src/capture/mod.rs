//! Captures what is tracked into a snapshot.
//!
//! One sequential walk says what is there ([`walk`]). A file that looks as it did at the last capture is not opened
//! ([`stat_cache`]). The others are read in parallel ([`read`]): what has the same BLAKE3 as before is reused; the rest is
//! scanned for secrets, hashed and compressed. Then, and only if nothing blocks the capture, everything new goes into one
//! pack: content in path order, trees, the manifest, the commit; one reference transaction makes it a snapshot.
//!
//! The order of everything that comes out is that of the walk, whatever the number of threads.

mod changes;
mod conclude;
mod intake;
mod matching;
pub mod read;
pub mod stat_cache;
pub mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gix_hash::ObjectId;
use ingot_engine::durable::Fs;
use ingot_engine::pack::create::{self, Creator};
use ingot_engine::pack::inflate::Level;
use ingot_engine::phase::Phase;
use ingot_engine::progress::{Progress, Unit};
use ingot_engine::refs;
use rustix::fs::FileType;

pub use changes::{Change, Counts, What, compare};
use intake::{Intake, Known};
use read::Reader;
use stat_cache::StatCache;
use walk::{Listing, Walk};

use crate::archive::{self, Archive, Files};
use crate::manifest::{Manifest, Skip, Time};
use crate::rooted::Root;
use crate::rules::Rules;
use crate::secrets::{AllowList, Finding, SECRET_SCAN_VERSION, Scanner};
use crate::tracked::Tracked;

/// The list of installed packages in the tree of a snapshot.
pub const PACKAGES_FILE: &str = "packages.json";

/// What is captured, and from where.
pub struct Source<'a> {
    /// The root.
    pub root: &'a Root,
    /// What is tracked.
    pub tracked: &'a Tracked,
    /// What is left out.
    pub rules: &'a Rules,
    /// Findings that are no secrets.
    pub allow: &'a AllowList,
    /// Larger files are left out.
    pub max_file_size: u64,
    /// Goes into other file systems.
    pub cross_mounts: bool,
    /// Leaves caches out.
    pub skip_caches: bool,
    /// Folders of this program itself, which are left out.
    pub own: Vec<PathBuf>,
}

/// How to capture.
pub struct Options<'a> {
    /// Reads every file, and trusts no times.
    pub rehash: bool,
    /// Stores what it finds; otherwise only says what would change.
    pub store: bool,
    /// Lists every change, rather than counting them.
    pub list: bool,
    /// What the user says about the snapshot.
    pub message: Option<String>,
    /// The list of packages.
    pub packages: Option<Vec<u8>>,
    /// Effort of compression.
    pub level: Level,
    /// Where files are written.
    pub fs: Arc<dyn Fs>,
    /// Who is told how far the work is.
    pub progress: &'a dyn Progress,
}

/// A file with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// Relative to the root.
    pub path: Vec<u8>,
    /// What was found in it, by line.
    pub findings: Vec<Finding>,
}

/// What a capture found and did.
#[derive(Debug, Default)]
pub struct Captured {
    /// The snapshot that was made; `None` where nothing had changed, or nothing was to be stored.
    pub snapshot: Option<ObjectId>,
    /// The newest snapshot before it.
    pub before: Option<ObjectId>,
    /// How much is new, changed and gone.
    pub counts: Counts,
    /// What is, if a list was wanted.
    pub changes: Vec<Change>,
    /// Whether the list of packages differs.
    pub packages_changed: bool,
    /// What was not captured.
    pub skipped: Vec<Skip>,
    /// Files with secrets, in path order, where nothing was to be stored.
    pub offenders: Vec<Offender>,
    /// Files that were opened.
    pub read: u64,
    /// Bytes of the pack that was written.
    pub stored: u64,
}

/// Why a capture failed. Nothing of it is stored then.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Files with secrets, in path order.
    #[error("{}", blocked(.0))]
    Blocked(Vec<Offender>),
    /// The repository could not be used.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// The pack could not be written.
    #[error(transparent)]
    Pack(#[from] create::Error),
    /// The user wanted it.
    #[error("interrupted")]
    Interrupted,
    /// The machine has no clock that can be read.
    #[error("the clock of this machine stands before 1970")]
    Clock,
}

impl From<walk::Interrupted> for Error {
    fn from(_: walk::Interrupted) -> Error {
        Error::Interrupted
    }
}

impl From<refs::Error> for Error {
    fn from(error: refs::Error) -> Error {
        Error::Archive(error.into())
    }
}

fn blocked(offenders: &[Offender]) -> String {
    let Some(first) = offenders.first() else {
        return "a secret was found".to_owned();
    };
    let path = crate::show::path(&first.path);
    let found = first.findings.first().map_or(String::new(), |finding| {
        format!(" line {}: {} ({})", finding.line, finding.what, finding.rule)
    });
    match offenders.len() {
        1 => format!("{path}{found}; nothing was stored"),
        count => format!(
            "{path}{found}; {} more files have secrets; nothing was stored",
            count - 1
        ),
    }
}

/// Captures. The repository has to be locked by the caller when anything is to be stored.
pub fn capture(
    files: &Files,
    path: &Path,
    machine: &str,
    source: &Source<'_>,
    options: &Options<'_>,
) -> Result<Captured, Error> {
    let _phase = Phase::begin("capture");
    let began = now()?;
    let cache = StatCache::read(&files.stat_cache());
    let progress = options.progress;
    let mut listing = look(source, progress)?;
    let settings = source.allow.digest();
    let packages = options
        .packages
        .as_ref()
        .map_or([0; 32], |packages| *blake3::hash(packages).as_bytes());
    // Content that other rules cleared is not cleared.
    let trusted = cache.as_ref().filter(|cache| {
        cache.head.secret_scan_version == SECRET_SCAN_VERSION && cache.head.settings == settings
    });
    let matched = matching::match_up(&listing, trusted, options.rehash);
    if let Some(cache) = trusted
        && matched.is_all
        && cache.head.packages == packages
        && matching::same_skips(&listing, cache)
        && files.is_at(machine, &cache.head.commit)
    {
        return Ok(Captured {
            before: Some(cache.head.commit),
            counts: Counts::all_unchanged(listing.items.len() as u64),
            skipped: listing.skipped,
            ..Captured::default()
        });
    }

    let archive = Archive::open(path, machine)?;
    if options.store {
        archive.clear_leftovers(&*options.fs);
    }
    let tip = archive.tip()?;
    let store = archive.store()?;
    let mut known = matched.known;
    // After a fetch or a prune, what the cache names may be gone.
    if trusted.is_some_and(|cache| Some(cache.head.commit) != tip) {
        matching::forget_absent(&store, &mut known);
    }
    let format = archive.repository().format();
    let scanner = Scanner::new(source.allow);
    let reader = Reader::new(
        source.root,
        Some(&scanner),
        options.store.then_some(&store),
        format,
        options.level,
    );
    let mut intake = Intake {
        reader: &reader,
        progress,
        creator: options.store.then(|| begin(&archive, &listing, &known, options)),
        skipped: std::mem::take(&mut listing.skipped),
        known,
        old: matched.old,
        offenders: Vec::new(),
        read: 0,
    };
    intake.read_all(&listing)?;
    if options.store && !intake.offenders.is_empty() {
        return Err(Error::Blocked(intake.offenders));
    }
    let state = State {
        cache: cache.as_ref(),
        tip,
        began,
        settings,
        packages,
    };
    conclude::conclude(files, &archive, &listing, intake, &state, options)
}

/// What is there now, without opening anything but folders.
pub fn look(source: &Source<'_>, progress: &dyn Progress) -> Result<Listing, Error> {
    let _phase = Phase::begin("capture scan");
    let interrupted = || progress.interrupted();
    let walk = Walk {
        root: source.root,
        tracked: source.tracked,
        rules: source.rules,
        max_file_size: source.max_file_size,
        cross_mounts: source.cross_mounts,
        skip_caches: source.skip_caches,
        own: own(&source.own),
        interrupted: &interrupted,
    };
    progress.begin("Looking", None, Unit::Files);
    let listing = walk.run()?;
    progress.end();
    Ok(listing)
}

/// What is there now, as a manifest. Nothing is scanned or stored.
pub fn present(archive: &Archive, source: &Source<'_>, options: &Options<'_>) -> Result<Manifest, Error> {
    let cache = StatCache::read(&archive.files().stat_cache());
    let mut listing = look(source, options.progress)?;
    let matched = matching::match_up(&listing, cache.as_ref(), options.rehash);
    let format = archive.repository().format();
    let reader = Reader::new(source.root, None, None, format, options.level);
    let mut intake = Intake {
        reader: &reader,
        progress: options.progress,
        creator: None,
        skipped: std::mem::take(&mut listing.skipped),
        known: matched.known,
        old: matched.old,
        offenders: Vec::new(),
        read: 0,
    };
    intake.read_all(&listing)?;
    Ok(Manifest {
        secret_scan_version: SECRET_SCAN_VERSION,
        entries: intake
            .entries(&listing)
            .map(|(entry, _)| entry.to_owned())
            .collect(),
        skipped: Vec::new(),
    })
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Files with secrets, in path order.
    pub offenders: Vec<Offender>,
    /// What was not read.
    pub skipped: Vec<Skip>,
    /// Files that were read.
    pub read: u64,
}

/// Looks for secrets and stores nothing.
pub fn scan(source: &Source<'_>, level: Level, progress: &dyn Progress) -> Result<Scanned, Error> {
    let mut listing = look(source, progress)?;
    let matched = matching::match_up(&listing, None, false);
    let scanner = Scanner::new(source.allow);
    let reader = Reader::new(source.root, Some(&scanner), None, gix_hash::Kind::Sha1, level);
    let mut intake = Intake {
        reader: &reader,
        progress,
        creator: None,
        skipped: std::mem::take(&mut listing.skipped),
        known: matched.known,
        old: matched.old,
        offenders: Vec::new(),
        read: 0,
    };
    intake.read_all(&listing)?;
    Ok(Scanned {
        offenders: intake.offenders,
        skipped: intake.skipped,
        read: intake.read,
    })
}

/// What is common to the end of a capture.
struct State<'a> {
    cache: Option<&'a StatCache>,
    tip: Option<ObjectId>,
    began: Time,
    settings: [u8; 32],
    packages: [u8; 32],
}

fn begin(archive: &Archive, listing: &Listing, known: &[Known], options: &Options<'_>) -> Creator {
    let new = known
        .iter()
        .filter(|known| matches!(known, Known::Unknown))
        .count();
    let is_folder = |item: &&walk::Item| item.stat.file_type() == FileType::Directory;
    let folders = listing.items.iter().filter(is_folder).count();
    let create = create::Options {
        level: options.level,
        fs: Arc::clone(&options.fs),
        // Trees of all folders, the two on top, manifest, packages and commit.
        expected: u32::try_from(new + folders + 5).unwrap_or(u32::MAX),
        ..create::Options::default()
    };
    let repository = archive.repository();
    Creator::begin(repository.objects_dir(), repository.format(), &create)
}

/// The clock, as file systems use it.
fn now() -> Result<Time, Error> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| Error::Clock)?;
    Ok(Time {
        seconds: i64::try_from(now.as_secs()).map_err(|_| Error::Clock)?,
        nanoseconds: now.subsec_nanos(),
    })
}

/// Folders by device and number of the file; those that do not exist cannot be met.
fn own(paths: &[PathBuf]) -> Vec<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    paths
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|meta| (meta.dev(), meta.ino()))
        .collect()
}
