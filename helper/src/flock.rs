//! Whole-file locks that the system drops when their holder ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ingot_engine::progress::{Progress, Silent};

/// How long to stand in line for a lock, and what happens meanwhile.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Gives up after this time.
    pub wait: Duration,
    /// Called once, with the lock file, before the wait begins: the place to tell the user.
    pub waiting: &'a dyn Fn(&Path),
    /// Ends the wait early when it says that the user wants to stop.
    pub progress: &'a dyn Progress,
}

impl Patience<'static> {
    /// Waits in silence.
    pub fn silent(wait: Duration) -> Self {
        Patience {
            wait,
            waiting: &|_| {},
            progress: &Silent,
        }
    }
}

impl std::fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patience")
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else holds it.
    #[error("{} is locked by another process; waited {} s for it", .path.display(), .waited.as_secs())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// The user ended the wait.
    #[error("interrupted while waiting for the lock {}", .path.display())]
    Interrupted {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be made, opened or locked.
    #[error("cannot lock {}: {source}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

/// An exclusive lock, held until dropped. The lock file stays: removing it would let two processes hold "the" lock on
/// two different files.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

impl FileLock {
    /// Locks the file at `path`, which is created empty if it is absent. A symbolic link there is refused.
    pub fn acquire(path: &Path, patience: Patience<'_>) -> Result<FileLock, Error> {
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let file = open(path).map_err(failed)?;
        let start = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FileLock { _file: file }),
                Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Interrupted => continue,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if patience.progress.interrupted() {
                return Err(Error::Interrupted {
                    path: path.to_owned(),
                });
            }
            let waited = start.elapsed();
            if waited >= patience.wait {
                return Err(Error::Held {
                    path: path.to_owned(),
                    waited,
                });
            }
            if !told {
                (patience.waiting)(path);
                told = true;
            }
            std::thread::sleep(PAUSE.min(patience.wait - waited));
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32);
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    #[test]
    fn a_held_lock_is_waited_for_told_once_and_then_given_up() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("x.lock");
        let held = FileLock::acquire(&path, Patience::silent(Duration::ZERO)).expect("free");
        let told = AtomicU32::new(0);
        let waiting = |_: &Path| {
            told.fetch_add(1, Ordering::Relaxed);
        };
        let patience = Patience {
            wait: Duration::from_millis(80),
            waiting: &waiting,
            progress: &Silent,
        };
        assert!(matches!(
            FileLock::acquire(&path, patience),
            Err(Error::Held { .. })
        ));
        assert_eq!(told.load(Ordering::Relaxed), 1);
        drop(held);
        // A program that another test is just starting has a copy of the open file until it runs.
        FileLock::acquire(&path, Patience::silent(Duration::from_secs(10))).expect("free again");
    }

    #[test]
    fn an_interrupted_wait_ends() {
        struct Stop(AtomicBool);
        impl Progress for Stop {
            fn interrupted(&self) -> bool {
                self.0.swap(true, Ordering::Relaxed)
            }
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("x.lock");
        let _held = FileLock::acquire(&path, Patience::silent(Duration::ZERO)).expect("free");
        let stop = Stop(AtomicBool::new(false));
        let patience = Patience {
            wait: Duration::from_secs(60),
            waiting: &|_| {},
            progress: &stop,
        };
        assert!(matches!(
            FileLock::acquire(&path, patience),
            Err(Error::Interrupted { .. })
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("x.lock")).expect("link");
        let error = FileLock::acquire(&folder.path().join("x.lock"), Patience::silent(Duration::ZERO));
        assert!(matches!(error, Err(Error::Io { .. })));
        assert!(!elsewhere.exists());
    }
}
