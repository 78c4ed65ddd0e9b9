//! The command line of `git-e2ee key`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What people do with a key file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  git-e2ee key show
  git-e2ee key change-passphrase       Protect the key by a passphrase
  git-e2ee key backup | lpr            A recovery sheet on paper
  git-e2ee key import --words --output ~/.config/ingot/keys/notes.key.json")]
pub struct Key {
    /// What to do.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// One thing to do with a key file.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Show which device a key is, and whether a passphrase protects it
    Show(Show),
    /// Write a copy that a passphrase protects
    Export(Export),
    /// Make a key file from a copy or a recovery sheet
    Import(Import),
    /// Add a passphrase, change it, or remove it
    ChangePassphrase(ChangePassphrase),
    /// Print a recovery sheet: the key as words and as a picture
    Backup(Backup),
    /// Let the keychain of the desktop hold the passphrase
    Keychain(Keychain),
}

/// The key file that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct KeyOf {
    /// Remote whose key is meant; by default the one that push would use
    #[arg(value_name = "REMOTE", conflicts_with = "key")]
    pub target: Option<OsString>,
    /// Key file, in place of the configured one
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Repository, in place of the one around the current folder
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
}

/// Shows a key.
#[derive(Debug, Args)]
pub struct Show {
    /// The key file.
    #[command(flatten)]
    pub key: KeyOf,
}

/// Copies a key.
#[derive(Debug, Args)]
#[command(after_help = "\
A key with a passphrase keeps it in the copy, unless --new-passphrase is given. The copy is an age file: age -d opens it, too.

Example:
  git-e2ee key export --output /media/stick/notes.key.age")]
pub struct Export {
    /// The key file.
    #[command(flatten)]
    pub key: KeyOf,
    /// File to create, which must not exist; - for standard output, unless that is a terminal
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Ask for a passphrase for the copy
    #[arg(long)]
    pub new_passphrase: bool,
}

/// Makes a key file from a copy.
#[derive(Debug, Args)]
#[command(after_help = "\
Words are read from the file that is named, or typed on the terminal, never taken from the command line.

Examples:
  git-e2ee key import /media/stick/notes.key.age --output ~/.config/ingot/keys/notes.key.json
  git-e2ee key import --words --output ~/.config/ingot/keys/notes.key.json")]
pub struct Import {
    /// The copy: a key file, or with --words the text of a recovery sheet
    #[arg(value_name = "FILE", required_unless_present = "words")]
    pub source: Option<PathBuf>,
    /// Read the words of a recovery sheet, or the line that a camera read from its picture
    #[arg(long)]
    pub words: bool,
    /// File to create; it must not exist
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Refuse any other device: its id, the first eight or more digits of it, or its fingerprint
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Protect it by a passphrase, if the copy has none
    #[arg(long)]
    pub passphrase: bool,
}

/// Changes the passphrase.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is replaced as a whole: whatever happens, it is the old one or the new one. Copies keep the old passphrase.

Examples:
  git-e2ee key change-passphrase
  git-e2ee key change-passphrase --remove --key notes.key.json")]
pub struct ChangePassphrase {
    /// The key file.
    #[command(flatten)]
    pub key: KeyOf,
    /// Leave the key without a passphrase
    #[arg(long)]
    pub remove: bool,
}

/// Prints a recovery sheet.
#[derive(Debug, Args)]
#[command(after_help = "\
The sheet opens the store for whoever holds it. A file gets the form that its name says: .html is a page to print, .svg the
picture alone, anything else text. Remove the file when it is printed.

Examples:
  git-e2ee key backup
  git-e2ee key backup --output sheet.html
  git-e2ee key backup --wrapped --output sheet.html     Useless without its passphrase")]
pub struct Backup {
    /// The key file.
    #[command(flatten)]
    pub key: KeyOf,
    /// File to create, readable by you alone; it must not exist
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the protected file in place of words
    #[arg(long)]
    pub wrapped: bool,
}

/// Uses the keychain.
#[derive(Debug, Args)]
#[command(after_help = "\
Whoever is logged in as you can then use the key without being asked. Needs a program built with the feature keychain.

Example:
  git-e2ee key keychain --store")]
pub struct Keychain {
    /// The key file.
    #[command(flatten)]
    pub key: KeyOf,
    /// Store the passphrase
    #[arg(long, required_unless_present = "remove", conflicts_with = "remove")]
    pub store: bool,
    /// Forget the passphrase
    #[arg(long)]
    pub remove: bool,
}
