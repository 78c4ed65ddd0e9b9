//! New repositories.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{Error, Repository, edit, environment};
use crate::durable::{self, Fs, Kind};

/// What to make.
#[derive(Debug, Clone)]
pub struct Init {
    /// Without a work tree.
    pub bare: bool,
    /// The hash that is to name its objects.
    pub format: gix_hash::Kind,
    /// The short name of the branch that `HEAD` points to; `None` for `init.defaultBranch`, or `main`.
    pub branch: Option<String>,
    /// Settings of its own configuration beside the usual ones: keys, as `remote.origin.url`, and their values.
    pub settings: Vec<(String, String)>,
}

impl Default for Init {
    fn default() -> Init {
        Init {
            bare: false,
            format: gix_hash::Kind::Sha1,
            branch: None,
            settings: Vec::new(),
        }
    }
}

/// What a repository has beside its files; a folder comes before those in it.
const FOLDERS: [&str; 10] = [
    "",
    "branches",
    "hooks",
    "info",
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
];

const DESCRIPTION: &[u8] = b"Unnamed repository; edit this file 'description' to name the repository.\n";
const EXCLUDE: &[u8] =
    b"# Files to leave out of this repository alone, one pattern a line, as in .gitignore.\n";

/// Makes a repository in the folder `path`, which is created if need be: with a work tree, `path` is its top and must
/// not hold a `.git` yet; a bare one needs an empty folder. Everything is durable when this returns. The hooks that
/// Git ships as samples are not written; a template folder that `init.templateDir` or `GIT_TEMPLATE_DIR` names is
/// copied.
pub fn init(path: &Path, what: &Init) -> Result<Repository, Error> {
    let fs: &dyn Fs = &durable::Real;
    let path = environment::absolute(path)?;
    let git_dir = if what.bare {
        path.clone()
    } else {
        path.join(".git")
    };
    if let Some(branch) = &what.branch {
        check_branch(branch)?;
    }
    durable::create_dirs(fs, &path, 0o777)?;
    let taken = if what.bare {
        !fs.read_dir(&git_dir)
            .map_err(|error| Error::read(&git_dir, error))?
            .is_empty()
    } else {
        fs.kind(&git_dir)
            .map_err(|error| Error::read(&git_dir, error))?
            .is_some()
    };
    if taken {
        return Err(Error::Exists { path: git_dir });
    }
    // All of it first, then what waits for the disk, at once: file systems with a journal write it once for all.
    for folder in FOLDERS {
        let folder = git_dir.join(folder);
        match fs.create_dir(&folder, 0o777) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            result => result.map_err(|error| durable::Error::new("create folder", folder, error))?,
        }
    }
    let config = git_dir.join("config");
    let text = edit::with_settings(&config, configuration(&git_dir, what).as_bytes(), &what.settings)?;
    let files = [
        write(fs, git_dir.join("description"), DESCRIPTION)?,
        write(fs, git_dir.join("info/exclude"), EXCLUDE)?,
        write(fs, config, &text)?,
    ];
    let folders = ["info", "objects", "refs"].map(|folder| git_dir.join(folder));
    durable::sync_all(fs, &files, &folders)?;
    // The folder is a repository from here on: HEAD is what is looked for.
    let branch = what.branch.as_deref().unwrap_or("main");
    let head = format!("ref: refs/heads/{branch}\n");
    let head = write(fs, git_dir.join("HEAD"), head.as_bytes())?;
    durable::sync_all(fs, &[head], &[git_dir.clone(), path])?;
    let repository = Repository::open_at(&git_dir, true)?;
    if what.branch.is_none()
        && let Some(name) = repository.config().string("init.defaultBranch")
        && name != "main"
    {
        let name = name.to_string();
        check_branch(&name)?;
        durable::write_atomic(
            fs,
            &git_dir.join("HEAD"),
            format!("ref: refs/heads/{name}\n").as_bytes(),
            0o666,
        )?;
    }
    if let Some(template) = template(&repository)? {
        copy(fs, &template, &git_dir)?;
    }
    Ok(repository)
}

fn check_branch(name: &str) -> Result<(), Error> {
    let full = format!("refs/heads/{name}");
    match gix_validate::reference::branch_name(full.as_str().into()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Value {
            key: "init.defaultBranch".to_owned(),
            message: format!("'{name}' is not a branch name: {error}"),
        }),
    }
}

/// Writes a file that is not there yet, to be synced by the caller.
fn write(fs: &dyn Fs, path: PathBuf, bytes: &[u8]) -> Result<PathBuf, Error> {
    let mut file = fs
        .create_new(&path, 0o666)
        .map_err(|error| durable::Error::new("create", &path, error))?;
    match file.write_all(bytes) {
        Ok(()) => Ok(path),
        Err(error) => Err(durable::Error::new("write", path, error).into()),
    }
}

fn configuration(git_dir: &Path, what: &Init) -> String {
    let able = gix::fs::Capabilities::probe(git_dir);
    let sha256 = what.format == gix_hash::Kind::Sha256;
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {}\n\tfilemode = {}\n\tbare = {}\n",
        i32::from(sha256),
        able.executable_bit,
        what.bare
    );
    if !what.bare {
        text.push_str("\tlogallrefupdates = true\n");
    }
    if !able.symlink {
        text.push_str("\tsymlinks = false\n");
    }
    if able.ignore_case {
        text.push_str("\tignorecase = true\n");
    }
    if able.precompose_unicode {
        text.push_str("\tprecomposeunicode = true\n");
    }
    if sha256 {
        text.push_str("[extensions]\n\tobjectformat = sha256\n");
    }
    text
}

fn template(repository: &Repository) -> Result<Option<PathBuf>, Error> {
    if let Some(path) = std::env::var_os("GIT_TEMPLATE_DIR") {
        return Ok((!path.is_empty()).then(|| PathBuf::from(path)));
    }
    Ok(repository
        .config()
        .path("init.templateDir")?
        .filter(|path| !path.as_os_str().is_empty()))
}

/// Copies what the template has and the repository lacks; names with a leading dot are left out, as Git does.
fn copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<(), Error> {
    let entries = match fs.read_dir(from) {
        Ok(entries) => entries,
        // Git warns and goes on.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::read(from, error)),
    };
    for name in entries {
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let (source, target) = (from.join(&name), to.join(&name));
        let read = |error| Error::read(&source, error);
        match fs.kind(&source).map_err(read)? {
            Some(Kind::Folder) => {
                durable::create_dirs(fs, &target, 0o777)?;
                copy(fs, &source, &target)?;
            }
            Some(Kind::File) if fs.kind(&target).map_err(read)?.is_none() => {
                let bytes = fs.read(&source).map_err(read)?;
                let target = write(fs, target, &bytes)?;
                durable::sync_all(fs, std::slice::from_ref(&target), &[])?;
                let permissions = std::fs::metadata(&source).map_err(read)?.permissions();
                std::fs::set_permissions(&target, permissions)
                    .map_err(|error| Error::read(&target, error))?;
            }
            _ => {}
        }
    }
    fs.sync_dir(to)
        .map_err(|error| durable::Error::new("sync folder", to, error).into())
}
