//! The command line of `git-e2ee`, as clap reads it. Completions and manual pages are made from it too.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

/// Push a Git repository to storage that must not be able to read it, and get it back. Needs no Git.
#[derive(Debug, Parser)]
#[command(
    name = "git-e2ee",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(after_help = "\
Examples:
  git-e2ee push                      Encrypt the current branch to a new store; nothing needs to be configured
  git-e2ee clone e2ee::/mnt/store    Get a repository back
  git-e2ee verify --full             Check every stored byte and every Git object
  git push e2ee                      The same remote, used through Git

Exit codes: 0 done, 1 failed, 2 usage, 10 no store there, 11 locked, 12 this key cannot open it,
13 integrity or rollback alarm, 130 interrupted.")]
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
    #[arg(long, short, global = true, conflicts_with_all = ["verbose", "progress"])]
    pub quiet: bool,
    /// Say more; may be repeated
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub verbose: u8,
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
    /// Make a device key
    Keygen(Keygen),
    /// Show, protect, copy and back up a device key
    Key(super::key::args::Key),
    /// Write the public part of a device key, for an administrator to add
    DeviceExport(DeviceExport),
    /// Make an empty store
    Init(Init),
    /// Make an empty store on a branch of a Git repository
    CarrierInit(CarrierInit),
    /// Get a repository out of a store
    Clone(Clone),
    /// Encrypt branches and tags into a store
    Push(Push),
    /// Bring what is new in a store into a repository
    Fetch(Fetch),
    /// List the branches and tags of a store
    LsRemote(LsRemote),
    /// Check a store: its history of generations, every ciphertext and, with --full, every Git object
    Verify(Verify),
    /// Show a store's generation, references and size, and how far the repository and the store differ
    Status(Status),
    /// Give devices access to a store
    DeviceAdd(DeviceAdd),
    /// List the devices of a store
    DeviceList(DeviceList),
    /// Take access away from devices
    DeviceRevoke(DeviceRevoke),
    /// Replace this device's key by a new one
    DeviceRotate(DeviceRotate),
    /// Change what devices may do
    DeviceRole(DeviceRole),
    /// Give a device a name that is known here only
    DeviceName(DeviceName),
    /// Invite a device, so that it needs no trust in the storage
    Invite(Invite),
    /// Ask to join a store, or accept an invitation to one
    Join(Join),
    /// Check keys, configuration, pins and the store, and say what to do
    Doctor(Doctor),
    /// Show what happened in a store, generation by generation
    Log(Log),
    /// Show who could read what
    Audit(Audit),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write manual pages into a folder
    Man(Man),
}

/// Makes a device key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee keygen --output ~/.config/ingot/keys/notes.key.json
  git-e2ee keygen --output ~/.config/ingot/keys/notes.key.json --passphrase
  git-e2ee keygen --output laptop.key.json --repository-root 5f3c…   A further device of an existing repository")]
pub struct Keygen {
    /// File to create; it must not exist
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Root of an existing repository, 64 hexadecimal digits; a key without it can found one
    #[arg(long, value_name = "HEX")]
    pub repository_root: Option<String>,
    /// Protect it by a passphrase, which is asked for
    #[arg(long)]
    pub passphrase: bool,
}

/// Writes the public part of a device key.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  git-e2ee device-export --key laptop.key.json --output laptop.device.json")]
pub struct DeviceExport {
    /// Device key
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// File to create; it must not exist
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Makes an empty store.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  git-e2ee init --storage /mnt/nas/notes --key ~/.config/ingot/keys/notes.key.json")]
pub struct Init {
    /// Folder of the store; absent or empty
    #[arg(long, value_name = "DIR")]
    pub storage: PathBuf,
    /// Device key of the founder
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

/// Makes an empty store on a branch of a Git repository.
#[derive(Debug, Args)]
#[command(after_help = "\
The repository may hold other branches, which are left alone; the store is its branch git-remote-e2ee. Where --remote is a
path with nothing there, a bare repository is made.

Examples:
  git-e2ee carrier-init --remote https://git.example.org/alice/notes.git --key notes.key.json
  git-e2ee carrier-init --remote alice@git.example.org:notes.git --key notes.key.json
  git-e2ee carrier-init --remote /mnt/nas/notes.git --key notes.key.json")]
pub struct CarrierInit {
    /// Repository: anything that Git can push to, with or without git+ in front
    #[arg(long, value_name = "URL")]
    pub remote: OsString,
    /// Device key of the founder
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

/// How to find a store when no remote is named.
#[derive(Debug, Clone, Default, Args)]
pub struct Place {
    /// Folder of the store, in place of a remote or URL
    #[arg(long, value_name = "DIR")]
    pub storage: Option<PathBuf>,
    /// Device key, in place of the configured one
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Repository, in place of the one around the current folder
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
}

/// The store that a command about devices is about.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreOf {
    /// Remote or URL; with --storage or --remote there is none
    #[arg(value_name = "REMOTE|URL", conflicts_with_all = ["storage", "remote"])]
    pub target: Option<OsString>,
    /// Configured remote, or URL of a Git repository that holds the store
    #[arg(long, value_name = "REMOTE|URL", conflicts_with = "storage")]
    pub remote: Option<OsString>,
    /// How to find the store.
    #[command(flatten)]
    pub place: Place,
}

/// Roles as they are written on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Fetch
    Read,
    /// Fetch and push
    Write,
    /// Fetch, push, and decide who else may
    Admin,
}

/// Gives devices access.
#[derive(Debug, Args)]
#[command(after_help = "\
All changes are made in one generation, or none. The file of a device comes from git-e2ee device-export there.

Examples:
  git-e2ee device-add --device laptop.device.json --name laptop
  git-e2ee device-add vault --device a.device.json --device b.device.json --role read
  git-e2ee device-add --storage DIR --key FILE --device new.device.json --revoke old-laptop")]
pub struct DeviceAdd {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Public record of a device; may be repeated
    #[arg(long = "device", value_name = "FILE", required = true)]
    pub devices: Vec<PathBuf>,
    /// What the devices may do
    #[arg(long, value_enum, default_value = "write")]
    pub role: Role,
    /// Name for a device, known here only; one for each --device, in the same order
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Take access away from this device at the same time; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub revoke: Vec<String>,
}

/// Lists devices.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee device-list
  git-e2ee device-list --json --storage DIR --key FILE")]
pub struct DeviceList {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
}

/// Takes access away.
#[derive(Debug, Args)]
#[command(after_help = "\
What is published from then on cannot be opened by a revoked device. What it could read before, it may still have.

Examples:
  git-e2ee device-revoke --device-id laptop
  git-e2ee device-revoke --storage DIR --key FILE --device-id 5f3c… --device-id 90ab…")]
pub struct DeviceRevoke {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Device: its id, the beginning of it, or its name; may be repeated
    #[arg(long = "device-id", value_name = "DEVICE", required = true)]
    pub devices: Vec<String>,
}

/// Replaces one's own key.
#[derive(Debug, Args)]
#[command(after_help = "\
The new key is added and the old one revoked in one generation; then the key file is replaced. A rotation that was
interrupted is finished by the next command that uses the key file.

Example:
  git-e2ee device-rotate")]
pub struct DeviceRotate {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
}

/// Changes roles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee device-role --device-id laptop --role admin
  git-e2ee device-role vault --device-id 5f3c… --device-id phone --role read")]
pub struct DeviceRole {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Device: its id, the beginning of it, or its name; may be repeated
    #[arg(long = "device-id", value_name = "DEVICE", required = true)]
    pub devices: Vec<String>,
    /// What the devices may do from now on
    #[arg(long, value_enum)]
    pub role: Role,
}

/// Names a device.
#[derive(Debug, Args)]
#[command(after_help = "\
Names are kept beside the key file and never leave this machine.

Example:
  git-e2ee device-name --device-id 5f3c… --name laptop")]
pub struct DeviceName {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Device: its id, the beginning of it, or its present name
    #[arg(long = "device-id", value_name = "DEVICE")]
    pub device: String,
    /// The name
    #[arg(long, value_name = "NAME")]
    pub name: String,
}

/// Invites a device.
#[derive(Debug, Args)]
#[command(after_help = "\
Compare the fingerprint with the one that the new device shows, by telephone or side by side, before you repeat it here:
whoever could change the request on its way would otherwise be let in.

Examples:
  git-e2ee invite --request e2ee-request-1:eyJ…              Shows the fingerprint, changes nothing
  git-e2ee invite --request request.txt --fingerprint '04711 …' --role write --name laptop
  git-e2ee invite --device-id laptop --output invitation.json  For a device that is a member already")]
pub struct Invite {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Request of the new device: the line that it showed, or a file with it, or its public record
    #[arg(
        long,
        value_name = "LINE|FILE",
        required_unless_present = "device",
        conflicts_with = "device"
    )]
    pub request: Option<OsString>,
    /// Fingerprint of the new device, as it was told on another way
    #[arg(long, value_name = "DIGITS")]
    pub fingerprint: Option<String>,
    /// What the new device may do
    #[arg(long, value_enum, default_value = "write")]
    pub role: Role,
    /// Name for the new device, known here only
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Invite a device that is a member already: its id, the beginning of it, or its name
    #[arg(long = "device-id", value_name = "DEVICE")]
    pub device: Option<String>,
    /// Write the invitation into a file too; it must not exist
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Joins a store.
#[derive(Debug, Args)]
#[command(after_help = "\
First --request, on the new device: makes a key and shows a line for an administrator. With the invitation that comes
back, the repository and the least it has to show are known before anything is fetched.

Examples:
  git-e2ee join --request --key notes.key.json
  git-e2ee join --key notes.key.json --invitation e2ee-invitation-1:eyJ… e2ee::/mnt/nas/notes
  git-e2ee join --key notes.key.json --invitation invitation.json --fingerprint '04711 …'")]
pub struct Join {
    /// The store, to see whether it lets the device in and shows what the invitation says
    #[arg(value_name = "URL", conflicts_with = "request")]
    pub url: Option<OsString>,
    /// Device key; --request makes it where there is none
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Show what an administrator needs to invite this device
    #[arg(long)]
    pub request: bool,
    /// Invitation: the line, or a file with it or its record
    #[arg(
        long,
        value_name = "LINE|FILE",
        required_unless_present = "request",
        conflicts_with = "request"
    )]
    pub invitation: Option<OsString>,
    /// Fingerprint of the invitation, as the administrator told it on another way
    #[arg(long, value_name = "DIGITS", requires = "invitation")]
    pub fingerprint: Option<String>,
}

/// Checks everything.
#[derive(Debug, Args)]
#[command(after_help = "\
Ends with the code of the first trouble that it found.

Examples:
  git-e2ee doctor
  git-e2ee doctor --remove-stale --storage DIR --key FILE")]
pub struct Doctor {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Remove files that interrupted pushes left in a store in a folder, if nobody has written to them for a day
    #[arg(long)]
    pub remove_stale: bool,
}

/// Shows what happened.
#[derive(Debug, Args)]
#[command(after_help = "\
Times are those that the storage gives; nothing vouches for them.

Examples:
  git-e2ee log
  git-e2ee log -n 5 --json vault")]
pub struct Log {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
    /// Show the newest N generations only
    #[arg(short = 'n', long = "max-count", value_name = "N")]
    pub max_count: Option<usize>,
}

/// Shows who could read what.
#[derive(Debug, Args)]
#[command(after_help = "\
Each generation leads to the keys of those before it: a device that could open one could open all before it too.

Examples:
  git-e2ee audit
  git-e2ee audit --json --storage DIR --key FILE")]
pub struct Audit {
    /// The store.
    #[command(flatten)]
    pub store: StoreOf,
}

/// Gets a repository out of a store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee clone --key notes.key.json e2ee::/mnt/nas/notes
  git-e2ee clone --bare --key notes.key.json /mnt/nas/notes backup.git")]
pub struct Clone {
    /// Where the store is: e2ee::/path, e2ee::git+https://host/repository.git, or either without e2ee::
    pub url: OsString,
    /// Folder to create; by default named after the store
    pub directory: Option<PathBuf>,
    /// Device key; by default the one that e2ee.key names
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Make a repository without a work tree
    #[arg(long)]
    pub bare: bool,
    /// Check this branch out in place of the default one; a tag detaches HEAD
    #[arg(long, short, value_name = "NAME")]
    pub branch: Option<OsString>,
    /// Do not check anything out
    #[arg(long, short)]
    pub no_checkout: bool,
    /// Name of the remote in the new repository
    #[arg(long, short, value_name = "NAME", default_value = "origin")]
    pub origin: String,
}

/// Encrypts branches and tags into a store.
#[derive(Debug, Args)]
#[command(after_help = "\
Without any configured encrypted remote, makes a device key and a store, adds them as remote e2ee, and pushes the
current branch.

Examples:
  git-e2ee push                                   The current branch to the default encrypted remote
  git-e2ee push e2ee main v1.0                    A branch and a tag
  git-e2ee push e2ee +topic:review/topic :old     Overwrite one branch, delete another
  git-e2ee push --mirror e2ee::/mnt/nas/mirror    Everything, and delete what is not here
  git-e2ee push --storage DIR --key FILE --ref refs/heads/main")]
pub struct Push {
    /// Remote or URL; with --storage there is none
    #[arg(value_name = "REMOTE|URL")]
    pub target: Option<OsString>,
    /// What to push: `[+]source[:destination]`, or `:destination` to delete
    #[arg(value_name = "REFSPEC")]
    pub refspecs: Vec<OsString>,
    /// How to find the store.
    #[command(flatten)]
    pub place: Place,
    /// Push this reference under its own full name; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    pub refs: Vec<OsString>,
    /// Give up what the store has where histories differ, or a tag exists
    #[arg(long, short)]
    pub force: bool,
    /// Overwrite only what is still as expected: by default the remote-tracking branch
    #[arg(long, value_name = "REF[:EXPECT]", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub force_with_lease: Vec<OsString>,
    /// Push all branches
    #[arg(long, conflicts_with_all = ["mirror", "delete", "tags"])]
    pub all: bool,
    /// Push all tags, beside what else is named
    #[arg(long, conflicts_with_all = ["mirror", "delete"])]
    pub tags: bool,
    /// Make the store's branches and tags the same as here, deleting what is not here
    #[arg(long, conflicts_with = "delete")]
    pub mirror: bool,
    /// Delete the named references from the store
    #[arg(long, short)]
    pub delete: bool,
    /// Move all references or none
    #[arg(long)]
    pub atomic: bool,
    /// Decide everything, publish nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Brings what is new into a repository.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee fetch                         From the default encrypted remote
  git-e2ee fetch e2ee main               Only what that branch needs
  git-e2ee fetch --storage DIR --key FILE --remote-name backup")]
pub struct Fetch {
    /// Remote or URL; with --storage there is none
    #[arg(value_name = "REMOTE|URL")]
    pub target: Option<OsString>,
    /// What to fetch: `[+]source[:destination]`
    #[arg(value_name = "REFSPEC")]
    pub refspecs: Vec<OsString>,
    /// How to find the store.
    #[command(flatten)]
    pub place: Place,
    /// Name under which remote-tracking branches are kept when no remote is named
    #[arg(long, value_name = "NAME", default_value = "e2ee")]
    pub remote_name: String,
    /// Overwrite local references that are not contained in what is fetched
    #[arg(long, short)]
    pub force: bool,
    /// Delete remote-tracking branches that the store no longer has
    #[arg(long, short)]
    pub prune: bool,
}

/// Lists the references of a store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee ls-remote
  git-e2ee ls-remote --key notes.key.json e2ee::/mnt/nas/notes 'release-*'")]
pub struct LsRemote {
    /// Remote or URL; with --storage there is none
    #[arg(value_name = "REMOTE|URL")]
    pub target: Option<OsString>,
    /// Show only names that end with one of these patterns
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<OsString>,
    /// How to find the store.
    #[command(flatten)]
    pub place: Place,
    /// Show branches
    #[arg(long, visible_alias = "branches", short = 'b')]
    pub heads: bool,
    /// Show tags
    #[arg(long, short)]
    pub tags: bool,
    /// Show references only, without HEAD and peeled tags
    #[arg(long)]
    pub refs: bool,
}

/// Checks a store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee verify                        The default encrypted remote: history and ciphertexts
  git-e2ee verify --full --storage /mnt/nas/notes --key notes.key.json")]
pub struct Verify {
    /// Remote or URL; with --storage there is none
    #[arg(value_name = "REMOTE|URL")]
    pub target: Option<OsString>,
    /// How to find the store.
    #[command(flatten)]
    pub place: Place,
    /// Check every Git object too, and that no history is incomplete
    #[arg(long)]
    pub full: bool,
}

/// Shows how a store and the repository stand.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee status
  git-e2ee status --json e2ee")]
pub struct Status {
    /// Remote or URL; with --storage there is none
    #[arg(value_name = "REMOTE|URL")]
    pub target: Option<OsString>,
    /// How to find the store.
    #[command(flatten)]
    pub place: Place,
}

/// Prints a completion script.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  git-e2ee completions bash > ~/.local/share/bash-completion/completions/git-e2ee")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Writes manual pages.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  git-e2ee man ~/.local/share/man/man1")]
pub struct Man {
    /// Folder to write into; it must exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("git-e2ee").chain(line.split_whitespace()))
    }

    fn push(line: &str) -> Push {
        match parse(line).unwrap().command {
            Command::Push(push) => push,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Example"), "{} has no example", command.get_name());
        }
    }

    #[test]
    fn lines_of_the_existing_implementation() {
        for line in [
            "keygen --output k.json",
            "keygen --output k.json --repository-root 00ff",
            "device-export --key k.json --output d.json",
            "init --storage /s --key k.json",
            "carrier-init --remote ssh://host/s.git --key k.json",
            "push --storage /s --key k.json --ref refs/heads/main",
            "push --storage /s --key k.json --repo . --ref refs/heads/main --force",
            "fetch --storage /s --key k.json --repo . --remote-name e2ee",
            "verify --storage /s --key k.json",
            "device-add --storage /s --key k.json --device d.json",
            "device-add --remote ssh://host/s.git --key k.json --device d.json --role admin",
            "device-revoke --storage /s --key k.json --device-id 00ff",
            "device-revoke --remote ssh://host/s.git --key k.json --device-id 00ff",
            "device-list --storage /s --key k.json",
            "device-list --remote ssh://host/s.git --key k.json",
        ] {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn global_options_anywhere() {
        let before = parse("--json -vv ls-remote").unwrap().global;
        let after = parse("ls-remote --json -vv").unwrap().global;
        assert!(before.json && after.json);
        assert_eq!((before.verbose, after.verbose), (2, 2));
        assert!(parse("push --quiet --progress").is_err());
    }

    #[test]
    fn leases_in_their_three_forms() {
        let texts = |line: &str| push(line).force_with_lease;
        assert_eq!(texts("push e2ee --force-with-lease main"), [""]);
        assert_eq!(
            texts("push --force-with-lease=main --force-with-lease=x:abc e2ee"),
            ["main", "x:abc"]
        );
        assert!(texts("push").is_empty());
        assert_eq!(push("push e2ee --force-with-lease main").refspecs, ["main"]);
    }

    #[test]
    fn contradictions_are_usage_errors() {
        for line in [
            "push --all --mirror",
            "push --mirror --delete x",
            "push --all --tags",
            "clone",
            "frobnicate",
            "keygen",
            "device-add",
            "device-add --device d --role king",
            "device-list --storage s --remote r",
            "device-list --storage s vault",
            "device-role --device-id x",
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
