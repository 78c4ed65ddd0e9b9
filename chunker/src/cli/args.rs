//! The command line of `git-chunk`, as clap reads it. Completions and manual pages are made from it too.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Keep big files in an ordinary Git repository, each changed chunk stored once.
#[derive(Debug, Parser)]
#[command(
    name = "git-chunk",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(after_help = "\
Examples:
  git chunk install                 Teach this repository's Git to handle chunked files
  git chunk track '*.psd' '*.bin'   Say which files are chunked; then git add, commit, checkout as always
  git-chunk add . && git-chunk commit -m 'new cut'
                                    The same without Git, and faster
  git chunk fetch origin            Get chunks that are missing here
  git chunk fsck                    Check every chunk

Exit codes: 0 done, 1 failed, 2 usage, 3 done but some chunks are missing, 11 locked, 13 damage found, 130 interrupted.")]
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
    /// Run as if started in that folder
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
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
}

/// One command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set up this repository's configuration for chunked files
    Install(Install),
    /// Say which files are chunked, or list the patterns
    Track(Track),
    /// Make a repository that is ready for chunked files
    Init(Init),
    /// Put files into the index
    Add(Add),
    /// Record the index in history
    Commit(Commit),
    /// Switch branches, or restore files
    Checkout(Checkout),
    /// Switch branches
    Switch(Switch),
    /// Write files of the index or of a commit into the work tree
    Restore(Restore),
    /// Show what differs between the last commit, the index and the work tree
    Status(Status),
    /// Show commits
    Log(Log),
    /// Show which files differ between two commits, or a commit and the index
    Diff(Diff),
    /// Get chunks that are missing here from another repository
    Fetch(Fetch),
    /// Publish chunks in another repository
    Push(Push),
    /// Remove chunks that nothing refers to
    Gc(Gc),
    /// Remove chunks here that another repository has
    Prune(Prune),
    /// Check every chunk and every list
    Fsck(Fsck),
    /// Show how much is stored, and how much is saved
    Stats(Stats),
    /// Turn big files of history into chunked ones, or back
    Migrate(Migrate),
    /// Talk with Git about files on their way in and out; Git starts this
    FilterProcess,
    /// Describe a chunked file in a few lines; Git starts this for diffs
    Textconv(Textconv),
    /// Merge versions of a chunked file; Git starts this
    MergeDriver(MergeDriver),
    /// Print the completion script for a shell
    Completions(Completions),
    /// Write manual pages into a folder
    Man(Man),
}

/// Sets up the configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk install                 For this repository
  git chunk install --pre-push      Also publish chunks with every git push")]
pub struct Install {
    /// Also make a pre-push hook that publishes chunks
    #[arg(long)]
    pub pre_push: bool,
    /// The program that Git is to start, instead of git-chunk on the PATH
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Take the configuration away again
    #[arg(long, conflicts_with_all = ["pre_push", "program"])]
    pub remove: bool,
}

/// Adds patterns to `.gitattributes`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk track '*.psd'           Every Photoshop file
  git chunk track 'assets/**'       Everything below assets
  git chunk track                   List the patterns")]
pub struct Track {
    /// Patterns as .gitattributes takes them
    pub patterns: Vec<String>,
}

/// Makes a repository.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk init film --track '*.mov'")]
pub struct Init {
    /// The folder; the current one by default
    pub folder: Option<PathBuf>,
    /// The name of the first branch
    #[arg(long, short = 'b', value_name = "BRANCH")]
    pub initial_branch: Option<String>,
    /// The hash that names objects
    #[arg(long, value_name = "FORMAT", value_parser = ["sha1", "sha256"], default_value = "sha1")]
    pub object_format: String,
    /// Patterns of files that are chunked
    #[arg(long, value_name = "PATTERN")]
    pub track: Vec<String>,
}

/// Puts files into the index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk add .                   Everything new, changed or gone below the current folder
  git-chunk add -A                  The same for the whole work tree
  git-chunk add scene.blend")]
pub struct Add {
    /// Files and folders
    #[arg(required_unless_present_any = ["all", "update"])]
    pub paths: Vec<PathBuf>,
    /// The whole work tree
    #[arg(long, short = 'A')]
    pub all: bool,
    /// Only files that the index has already
    #[arg(long, short = 'u')]
    pub update: bool,
    /// Ignored files, too
    #[arg(long, short)]
    pub force: bool,
}

/// Records the index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk commit -m 'second take'
  git-chunk commit -a -m 'all changes of files in the index'")]
pub struct Commit {
    /// The message; several make paragraphs
    #[arg(long, short, value_name = "TEXT")]
    pub message: Vec<String>,
    /// Adds changed files of the index first
    #[arg(long, short)]
    pub all: bool,
    /// Replaces the last commit
    #[arg(long)]
    pub amend: bool,
    /// Also when nothing differs
    #[arg(long)]
    pub allow_empty: bool,
    /// Make an unsigned commit although commit.gpgSign is set
    #[arg(long)]
    pub no_gpg_sign: bool,
}

/// Switches, or restores files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk checkout main
  git-chunk checkout -b topic
  git-chunk checkout -- scene.blend   The file as the index has it")]
pub struct Checkout {
    /// A branch or commit
    pub target: Option<String>,
    /// Make a branch of this name
    #[arg(short = 'b', value_name = "BRANCH", conflicts_with = "paths")]
    pub create: Option<String>,
    /// Give up local changes
    #[arg(long, short)]
    pub force: bool,
    /// Files to restore
    #[arg(last = true)]
    pub paths: Vec<PathBuf>,
}

/// Switches.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk switch main
  git-chunk switch -c topic main
  git-chunk switch --detach v1.0")]
pub struct Switch {
    /// A branch; with --create where it starts
    pub target: Option<String>,
    /// Make a branch of this name
    #[arg(long, short, value_name = "BRANCH")]
    pub create: Option<String>,
    /// Go to a commit and leave the branch
    #[arg(long, short)]
    pub detach: bool,
    /// Give up local changes
    #[arg(long, short, visible_alias = "discard-changes")]
    pub force: bool,
}

/// Writes files anew.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk restore                 Every file of which only the pointer is here
  git-chunk restore --force a.bin   The file as the index has it, whatever was changed
  git-chunk restore -s HEAD~1 a.bin")]
pub struct Restore {
    /// Files and folders; without any, files of which only the pointer is in the work tree
    pub paths: Vec<PathBuf>,
    /// A commit, instead of the index
    #[arg(long, short, value_name = "COMMIT", requires = "paths")]
    pub source: Option<String>,
    /// Give up local changes
    #[arg(long, short)]
    pub force: bool,
}

/// Shows what differs.
#[derive(Debug, Args)]
pub struct Status {
    /// End lines with NUL, and quote nothing
    #[arg(short = 'z')]
    pub nul: bool,
}

/// Shows commits.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk log -n 5
  git-chunk log --oneline main")]
pub struct Log {
    /// Where to start; the last commit by default
    pub start: Option<String>,
    /// How many to show
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub max_count: Option<usize>,
    /// One line for each
    #[arg(long)]
    pub oneline: bool,
}

/// Shows which files differ.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-chunk diff                    From the last commit to the index
  git-chunk diff HEAD~1 HEAD")]
pub struct Diff {
    /// The earlier side; the last commit by default
    pub from: Option<String>,
    /// The later side; the index by default
    pub to: Option<String>,
}

/// Gets chunks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk fetch                   What the current commit and the index need, from origin
  git chunk fetch --all ../copy     Everything that any reference needs, from a folder")]
pub struct Fetch {
    /// A remote or the path of a repository; origin by default
    pub remote: Option<String>,
    /// What any reference needs, not only the current commit and the index
    #[arg(long)]
    pub all: bool,
}

/// Publishes chunks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk push                    What all references need, to origin
  git chunk push /srv/git/film.git")]
pub struct Push {
    /// A remote or the path of a repository; origin by default
    pub remote: Option<String>,
    /// Read what Git tells a pre-push hook on standard input; Git's hook starts this
    #[arg(long, hide = true)]
    pub hook: bool,
}

/// Collects garbage.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk gc --dry-run            Show what would go
  git chunk gc --grace 0            Everything that nothing refers to, however new")]
pub struct Gc {
    /// Spare packs that are newer than so many days
    #[arg(long, value_name = "DAYS", default_value_t = 14)]
    pub grace: u64,
    /// Change nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Removes what another repository has.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk prune origin            Keep only what the current commit and the index need")]
pub struct Prune {
    /// A remote or the path of a repository; origin by default
    pub remote: Option<String>,
    /// Change nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// Also what the current commit and the index need
    #[arg(long)]
    pub all: bool,
}

/// Checks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk fsck
  git chunk fsck --json")]
pub struct Fsck {
    /// Only look whether chunks are here, without reading them
    #[arg(long)]
    pub quick: bool,
}

/// Counts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk stats
  git chunk stats --history         How it grew, commit by commit
  git chunk stats --svg growth.svg")]
pub struct Stats {
    /// One line for each commit
    #[arg(long)]
    pub history: bool,
    /// Draw the growth into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Rewrites history.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git chunk migrate '*.psd' --dry-run
  git chunk migrate '*' --above 10000000
  git chunk migrate --back '*.psd'")]
pub struct Migrate {
    /// Which files
    #[arg(required = true)]
    pub patterns: Vec<String>,
    /// Only files of at least so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576)]
    pub above: u64,
    /// Turn chunked files into ordinary ones
    #[arg(long)]
    pub back: bool,
    /// Only report
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Describes a file.
#[derive(Debug, Args)]
pub struct Textconv {
    /// The file
    pub file: PathBuf,
}

/// Merges.
#[derive(Debug, Args)]
pub struct MergeDriver {
    /// The version that both started from
    pub ancestor: PathBuf,
    /// The current version, which gets the result
    pub ours: PathBuf,
    /// The other version
    pub theirs: PathBuf,
    /// What the file is called
    pub name: Option<String>,
}

/// Prints a completion script.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Writes manual pages.
#[derive(Debug, Args)]
pub struct Man {
    /// An existing folder
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}
