//! The command line of `rivet`, as clap reads it. Completions and manual pages are made from it too.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Keep what makes a machine yours: dotfiles, configuration, the list of installed packages.
#[derive(Debug, Parser)]
#[command(
    name = "rivet",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(after_help = "\
Examples:
  rivet init                           Make the configuration and the repository of snapshots
  rivet track .bashrc .config/app      Say what to keep
  rivet snapshot                       Capture it, at every login if you like
  rivet restore --dry-run              See what putting the newest snapshot back would do
  rivet push                           Send snapshots to an encrypted store

Exit codes: 0 done, 1 failed, 2 usage, 3 done but some files could not be read, 10 no repository, 11 locked,
12 this key cannot open the store, 13 integrity alarm, 14 a secret was found, 130 interrupted.")]
pub struct Cli {
    /// What applies to every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Print errors, and data that was asked for, but nothing else
    #[arg(long, short, global = true, conflicts_with = "progress")]
    pub quiet: bool,
    /// Show progress even when standard error is no terminal
    #[arg(long, global = true)]
    pub progress: bool,
    /// Report as one JSON object on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Tell on standard error how long each phase of the work took, one JSON object a line
    #[arg(long, global = true)]
    pub trace_json: bool,
    /// Configuration file, in place of $XDG_CONFIG_HOME/rivet/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// One command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the configuration and the repository of snapshots
    Init(Init),
    /// Keep files and folders from now on
    Track(Track),
    /// Stop keeping files and folders
    Untrack(Untrack),
    /// List what is kept
    Tracked,
    /// Capture what is tracked
    Snapshot(Snapshot),
    /// Show what the next snapshot would change
    Status(Status),
    /// List snapshots, newest first
    List(List),
    /// Show what a snapshot holds
    Show(Show),
    /// Show what differs between two snapshots, or between one and what is there now
    Diff(Diff),
    /// Put files back as a snapshot has them
    Restore(Restore),
    /// Take the last restore back
    Undo,
    /// Read everything that is stored again and compare it with what was captured
    Verify(Verify),
    /// Let old snapshots go and pack what is left
    Prune(Prune),
    /// List installed packages
    Packages(Packages),
    /// Look for secrets
    Secrets(Secrets),
    /// Send the snapshots of this machine to the encrypted store
    Push(Transfer),
    /// Get the snapshots of all machines from the encrypted store
    Pull(Transfer),
    /// Capture whenever something tracked changes
    Watch(Watch),
    /// Check configuration, repository and store
    Doctor,
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write manual pages into a folder
    Man(Man),
}

/// Makes configuration and repository.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet init
  rivet init --machine laptop --remote e2ee::/mnt/nas/rivet
  rivet init --remote e2ee::/mnt/nas/rivet --key ~/rivet.key.json && rivet pull    On a second machine")]
pub struct Init {
    /// Name of this machine; by default its host name
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Where to push snapshots: e2ee::/path or /path
    #[arg(long, value_name = "URL")]
    pub remote: Option<String>,
    /// Device key of that store
    #[arg(long, value_name = "FILE", requires = "remote")]
    pub key: Option<String>,
    /// Hash that names objects
    #[arg(long, value_name = "FORMAT", default_value = "sha1", value_parser = ["sha1", "sha256"])]
    pub object_format: String,
}

/// Adds to what is tracked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet track .bashrc .config/app
  rivet track --pattern '.config/*/settings.json'")]
pub struct Track {
    /// Files and folders below the root
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// The paths are patterns relative to the root: * ? [...] {...} within a name, ** for any folders
    #[arg(long)]
    pub pattern: bool,
}

/// Takes from what is tracked.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rivet untrack .config/app/cache      Left out of a folder that is tracked as a whole")]
pub struct Untrack {
    /// Files, folders, or patterns as `rivet tracked` lists them
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}

/// Captures.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet snapshot -m 'before the upgrade'
  rivet snapshot --rehash              Read every file, whatever its times say")]
pub struct Snapshot {
    /// What to remember about it
    #[arg(long, short, value_name = "MESSAGE")]
    pub message: Option<String>,
    /// Read every file, whatever its times say
    #[arg(long)]
    pub rehash: bool,
}

/// Says what would change.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rivet status --json")]
pub struct Status {
    /// Read every file, whatever its times say
    #[arg(long)]
    pub rehash: bool,
}

/// Lists snapshots.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet list
  rivet list --all                     Of every machine")]
pub struct List {
    /// Snapshots of every machine
    #[arg(long, short)]
    pub all: bool,
    /// No more than this
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub max_count: Option<usize>,
}

/// Shows a snapshot.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet show
  rivet show laptop~2                  The third newest of another machine
  rivet show --skipped                 What was not captured, and why")]
pub struct Show {
    /// A machine's name, an id or its beginning, each with ~N for the N-th before; by default the newest here
    pub snapshot: Option<String>,
    /// List what was not captured instead
    #[arg(long)]
    pub skipped: bool,
}

/// Compares.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet diff                           The newest snapshot and what is there now
  rivet diff HEAD~1 HEAD --stat
  rivet diff laptop desk")]
pub struct Diff {
    /// The older side; by default the newest snapshot
    pub a: Option<String>,
    /// The newer side; by default what is there now
    pub b: Option<String>,
    /// Only how many lines differ in each file
    #[arg(long)]
    pub stat: bool,
}

/// Puts files back.
#[derive(Debug, Args)]
#[command(after_help = "\
What is overwritten or deleted is kept until the next restores: rivet undo puts it back.

Examples:
  rivet restore --dry-run
  rivet restore HEAD~1 .config/app
  rivet restore laptop --to /tmp/look
  rivet restore laptop --packages      The commands that install its packages here; nothing is run")]
pub struct Restore {
    /// Which snapshot; by default the newest. A word that names none is the first path
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    /// What of it; by default all
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Folder that takes the place of the root; made if need be
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// Take away what is tracked and not in the snapshot
    #[arg(long)]
    pub delete: bool,
    /// Print the commands that install the snapshot's packages on this machine, and restore no files
    #[arg(long, conflicts_with_all = ["to", "delete", "dry_run"])]
    pub packages: bool,
}

/// Verifies.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet verify
  rivet verify HEAD                    The newest snapshot alone")]
pub struct Verify {
    /// One snapshot; by default all of every machine
    pub snapshot: Option<String>,
}

/// Lets snapshots go.
#[derive(Debug, Args)]
#[command(after_help = "\
Each rule keeps the newest snapshot of as many periods as it says; what no rule keeps goes. Without rules nothing goes,
and everything is packed anew.

Example:
  rivet prune --keep-last 5 --keep-daily 7 --keep-weekly 4 --keep-monthly 12")]
pub struct Prune {
    /// The newest snapshots
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_last: usize,
    /// One for each of the last N hours that have one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_hourly: usize,
    /// One for each of the last N days that have one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_daily: usize,
    /// One for each of the last N weeks that have one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_weekly: usize,
    /// One for each of the last N months that have one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_monthly: usize,
    /// One for each of the last N years that have one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_yearly: usize,
    /// Only show what would go
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Lists packages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rivet packages
  rivet packages --diff laptop         What that machine has and this one lacks, and the other way round")]
pub struct Packages {
    /// Compare with a snapshot's list; by default the newest's
    #[arg(long, value_name = "SNAPSHOT", num_args = 0..=1, default_missing_value = "latest")]
    pub diff: Option<String>,
    /// Also packages that others brought along
    #[arg(long)]
    pub all: bool,
    /// Ask managers whose databases cannot be read here, by running their own programs
    #[arg(long)]
    pub ask: bool,
}

/// Looks for secrets.
#[derive(Debug, Args)]
pub struct Secrets {
    /// What to do.
    #[command(subcommand)]
    pub command: SecretsCommand,
}

/// What to do about secrets.
#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Look for secrets in files and folders, tracked or not
    Scan(Scan),
    /// List the rules
    Rules,
}

/// Scans files.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rivet secrets scan .config")]
pub struct Scan {
    /// Files and folders
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}

/// Sends or fetches.
#[derive(Debug, Args)]
#[command(after_help = "\
The store and its key come from [remote] in the configuration. The first push makes both where there are none.

Examples:
  rivet push
  rivet pull --remote e2ee::/mnt/nas/rivet --key laptop.key.json")]
pub struct Transfer {
    /// The store, in place of the configured one
    #[arg(long, value_name = "URL")]
    pub remote: Option<String>,
    /// The device key, in place of the configured one
    #[arg(long, value_name = "FILE")]
    pub key: Option<String>,
}

/// Captures on changes.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rivet watch --quiet &")]
pub struct Watch {
    /// Wait until nothing has changed for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub debounce: f64,
    /// Look every so many seconds at what the system does not tell, such as network folders
    #[arg(long, value_name = "SECONDS", default_value_t = 900.0)]
    pub interval: f64,
}

/// Prints completions.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rivet completions bash > ~/.local/share/bash-completion/completions/rivet")]
pub struct Completions {
    /// Which shell
    pub shell: clap_complete::Shell,
}

/// Writes manual pages.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rivet man ~/.local/share/man/man1")]
pub struct Man {
    /// A folder that exists
    pub directory: PathBuf,
}
