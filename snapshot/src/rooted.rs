//! A folder and what is beneath it, reached without following a link.
//!
//! Whoever can write below the folder can put a link where a folder was a moment ago. So nothing here resolves a path
//! by name twice: every access starts at the open folder, and the system is asked to refuse links on the way
//! (`openat2`), or each component is opened for itself where it cannot be asked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Flags of every open: children of this process get nothing, and no terminal becomes ours.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY);

/// An open folder. Paths below it are bytes, relative, with `/` between names; the empty one is the folder itself.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens the folder at `path`, which may itself be reached through links: it is the user's own word.
    pub fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root {
            folder: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder for listing and as a start for names in it.
    pub fn folder(&self, relative: &[u8]) -> io::Result<OwnedFd> {
        Ok(self.open_beneath(relative, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?)
    }

    /// Opens a file for reading. Does not wait for the other end should it have become a pipe.
    pub fn file(&self, relative: &[u8]) -> io::Result<OwnedFd> {
        Ok(self.open_beneath(relative, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?)
    }

    /// What is at `relative`; a link is not followed.
    pub fn stat(&self, relative: &[u8]) -> io::Result<Stat> {
        let (parent, name) = self.place(relative)?;
        Ok(rustix::fs::statat(
            parent.fd(self),
            name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// What the link at `relative` says.
    pub fn link(&self, relative: &[u8]) -> io::Result<Vec<u8>> {
        let (parent, name) = self.place(relative)?;
        Ok(rustix::fs::readlinkat(parent.fd(self), name, Vec::new())?.into_bytes())
    }

    /// The folder that a name is in, and the name.
    pub fn place<'p>(&self, relative: &'p [u8]) -> io::Result<(Parent, &'p [u8])> {
        match relative.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => Ok((
                Parent::Open(self.folder(&relative[..slash])?),
                &relative[slash + 1..],
            )),
            None if relative.is_empty() => Ok((Parent::Root, b".")),
            None => Ok((Parent::Root, relative)),
        }
    }

    fn open_beneath(&self, relative: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let relative: &[u8] = if relative.is_empty() { b"." } else { relative };
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            static UNKNOWN: AtomicBool = AtomicBool::new(false);
            if !UNKNOWN.load(Ordering::Relaxed) {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                match rustix::fs::openat2(&self.folder, relative, flags | ALWAYS, mode, resolve) {
                    // An older system, or one that filters calls that it does not know.
                    Err(Errno::NOSYS) => UNKNOWN.store(true, Ordering::Relaxed),
                    Err(Errno::AGAIN) => {} // something was renamed meanwhile; the slow way decides
                    result => return result,
                }
            }
        }
        by_component(self.folder.as_fd(), relative, flags, mode)
    }
}

/// Opens the file of this name, which is one name, in a folder that was reached as above. Does not wait for the other end
/// should it have become a pipe.
pub fn file_in(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | ALWAYS;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// The folder that a name is in.
#[derive(Debug)]
pub enum Parent {
    /// The root itself.
    Root,
    /// A folder below it.
    Open(OwnedFd),
}

impl Parent {
    /// To give to system calls.
    pub fn fd<'a>(&'a self, root: &'a Root) -> BorrowedFd<'a> {
        match self {
            Parent::Root => root.folder.as_fd(),
            Parent::Open(folder) => folder.as_fd(),
        }
    }
}

fn by_component(start: BorrowedFd<'_>, relative: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut at: Option<OwnedFd> = None;
    let mut names = relative.split(|&byte| byte == b'/').peekable();
    while let Some(name) = names.next() {
        if name == b".." || (name.is_empty() && names.peek().is_some()) {
            return Err(Errno::INVAL);
        }
        let from = at.as_ref().map_or(start, AsFd::as_fd);
        let last = names.peek().is_none();
        let wanted = if last {
            flags
        } else {
            OFlags::RDONLY | OFlags::DIRECTORY
        };
        let opened = rustix::fs::openat(
            from,
            name,
            wanted | ALWAYS,
            if last { mode } else { Mode::empty() },
        )?;
        if last {
            return Ok(opened);
        }
        at = Some(opened);
    }
    Err(Errno::INVAL)
}

/// Whether an error says that something is not there, or not there any more.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Whether an error says that a link is in the way.
pub fn is_link(error: &io::Error) -> bool {
    let code = Errno::from_io_error(error);
    code == Some(Errno::LOOP) || code == Some(Errno::XDEV)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    #[test]
    fn no_link_is_followed_on_the_way_or_at_the_end() {
        let temp = tempfile::tempdir().unwrap();
        let (inside, outside) = (temp.path().join("root"), temp.path().join("outside"));
        std::fs::create_dir_all(inside.join("real/deep")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("file"), "x").unwrap();
        std::fs::write(inside.join("real/deep/file"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("out")).unwrap();
        std::os::unix::fs::symlink("real", inside.join("alias")).unwrap();
        std::os::unix::fs::symlink("file", inside.join("real/deep/link")).unwrap();
        let root = Root::open(&inside).unwrap();
        assert!(root.file(b"real/deep/file").is_ok());
        assert!(root.folder(b"").is_ok());
        assert!(root.stat(b"real/deep").is_ok());
        assert_eq!(root.link(b"real/deep/link").unwrap(), b"file");
        assert_eq!(root.link(b"out").unwrap(), outside.as_os_str().as_encoded_bytes());
        for refused in [
            &b"out/file"[..],
            b"alias/deep/file",
            b"real/deep/link",
            b"../outside/file",
            b"real/../real/deep/file",
        ] {
            let both = [
                root.file(refused).map(drop),
                by_component(root.folder.as_fd(), refused, OFlags::RDONLY, Mode::empty())
                    .map(drop)
                    .map_err(io::Error::from),
            ];
            for (number, result) in both.into_iter().enumerate() {
                // Where `..` stays inside, the system allows it; paths with such names never come here.
                if refused.ends_with(b"../real/deep/file") && number == 0 {
                    continue;
                }
                assert!(result.is_err(), "{}", refused.escape_ascii());
            }
        }
        assert!(is_link(&root.file(b"out/file").unwrap_err()));
        assert!(is_absent(&root.file(b"nothing").unwrap_err()));
    }
}
