//! Does everything for real and remembers it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::crash::{self, Crash};
use super::disk::{Disk, Node, Op};
use crate::durable::{Fs, Handle, Kind, Real};

struct Log {
    live: Disk,
    ops: Vec<Op>,
}

impl Log {
    fn push(&mut self, op: Op) {
        self.live.replay(&op);
        self.ops.push(op);
    }
}

/// How often the calls that cost time were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Files synced.
    pub file_syncs: usize,
    /// Folders synced.
    pub folder_syncs: usize,
    /// All calls that change something, syncs included.
    pub all: usize,
}

/// A file system below one folder that does everything and remembers it. What was there at the start counts as
/// durable; later changes that do not go through this value are not seen, except by [`Fs::sync_file`].
pub struct Recording {
    root: PathBuf,
    start: Disk,
    log: Arc<Mutex<Log>>,
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    /// Starts with what is in `root`.
    pub fn new(root: &Path) -> io::Result<Recording> {
        let start = Disk::capture(root)?;
        Ok(Recording {
            root: root.to_owned(),
            log: Arc::new(Mutex::new(Log {
                live: start.clone(),
                ops: Vec::new(),
            })),
            start,
        })
    }

    /// Remembers that the program got here: what it reported before must hold after every later power cut.
    pub fn mark(&self, text: &str) {
        lock(&self.log).push(Op::Mark(text.to_owned()));
    }

    /// Counts the calls so far.
    pub fn calls(&self) -> Calls {
        let log = lock(&self.log);
        Calls {
            file_syncs: log.ops.iter().filter(|op| matches!(op, Op::SyncFile(_))).count(),
            folder_syncs: log.ops.iter().filter(|op| matches!(op, Op::SyncDir(_))).count(),
            all: log.ops.iter().filter(|op| !matches!(op, Op::Mark(_))).count(),
        }
    }

    /// Builds every state that a power cut at any moment so far may leave, in a folder of its own, and calls `check`
    /// with it. For each moment: any of the unsynced names lost or kept; unsynced content lost, half there, there, or
    /// zeros of its length. Where that makes more than 512 states for one moment, only all lost, all kept, and single
    /// deviations from either are built. Returns the number of states.
    pub fn each_crash(&self, check: impl FnMut(&Crash)) -> usize {
        let ops = lock(&self.log).ops.clone();
        crash::each(&self.start, &ops, &self.root, check)
    }

    /// Leaves out what `drop` says, to prove that a test notices: for example every folder sync.
    pub fn each_crash_without_syncs(&self, files: bool, folders: bool, check: impl FnMut(&Crash)) -> usize {
        let ops: Vec<Op> = lock(&self.log)
            .ops
            .iter()
            .filter(|op| match op {
                Op::SyncFile(_) => !files,
                Op::SyncDir(_) => !folders,
                _ => true,
            })
            .cloned()
            .collect();
        crash::each(&self.start, &ops, &self.root, check)
    }

    fn relative<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        path.strip_prefix(&self.root)
            .map_err(|_| io::Error::other(format!("{} is outside of the recording", path.display())))
    }

    fn node(&self, log: &Log, path: &Path) -> io::Result<Node> {
        log.live
            .find(self.relative(path)?)
            .ok_or_else(|| io::Error::other(format!("{} was made behind the recording", path.display())))
    }

    fn place(&self, log: &Log, path: &Path) -> io::Result<(Node, OsString)> {
        let folder = self.node(log, path.parent().unwrap_or(path))?;
        Ok((folder, path.file_name().unwrap_or_default().to_owned()))
    }

    fn created(&self, path: &Path, mode: u32, is_folder: bool) -> io::Result<Node> {
        let mut log = lock(&self.log);
        let (folder, name) = self.place(&log, path)?;
        let node = log.live.nodes.len();
        log.push(Op::Create {
            folder,
            name,
            node,
            mode,
            is_folder,
        });
        Ok(node)
    }
}

struct RecordingHandle {
    inner: Box<dyn Handle>,
    node: Node,
    log: Arc<Mutex<Log>>,
}

impl Write for RecordingHandle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        lock(&self.log).push(Op::Write(self.node, bytes[..count].to_vec()));
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Handle for RecordingHandle {
    fn sync(&mut self) -> io::Result<()> {
        // The disk under the tests need not be flushed: the model is what is checked.
        lock(&self.log).push(Op::SyncFile(self.node));
        Ok(())
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.rewrite(offset, bytes)?;
        lock(&self.log).push(Op::Rewrite(self.node, offset, bytes.to_vec()));
        Ok(())
    }
}

impl Fs for Recording {
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        let inner = Real.create_new(path, mode)?;
        Ok(Box::new(RecordingHandle {
            inner,
            node: self.created(path, mode, false)?,
            log: Arc::clone(&self.log),
        }))
    }

    fn append(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        let existed = Real.kind(path)?.is_some();
        let inner = Real.append(path, mode)?;
        let node = if existed {
            self.node(&lock(&self.log), path)?
        } else {
            self.created(path, mode, false)?
        };
        Ok(Box::new(RecordingHandle {
            inner,
            node,
            log: Arc::clone(&self.log),
        }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Real.read(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Real.read_dir(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        Real.kind(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Real.rename(from, to)?;
        let mut log = lock(&self.log);
        let node = self.node(&log, from)?;
        let op = Op::Rename {
            from: self.place(&log, from)?,
            to: self.place(&log, to)?,
            node,
        };
        log.push(op);
        Ok(())
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        Real.hard_link(existing, new)?;
        let mut log = lock(&self.log);
        let node = self.node(&log, existing)?;
        let (folder, name) = self.place(&log, new)?;
        log.push(Op::Link { folder, name, node });
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        Real.unlink(path)?;
        let mut log = lock(&self.log);
        let (folder, name) = self.place(&log, path)?;
        log.push(Op::Remove { folder, name });
        Ok(())
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        Real.create_dir(path, mode)?;
        self.created(path, mode, true).map(drop)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Real.remove_dir(path)?;
        let mut log = lock(&self.log);
        let (folder, name) = self.place(&log, path)?;
        log.push(Op::Remove { folder, name });
        Ok(())
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut log = lock(&self.log);
        // Written by something else: take it in as it is.
        let node = match self.node(&log, path) {
            Ok(node) => node,
            Err(_) => {
                let (folder, name) = self.place(&log, path)?;
                let node = log.live.nodes.len();
                log.push(Op::Create {
                    folder,
                    name,
                    node,
                    mode: 0o644,
                    is_folder: false,
                });
                log.push(Op::Write(node, Real.read(path)?));
                node
            }
        };
        log.push(Op::SyncFile(node));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut log = lock(&self.log);
        let node = self.node(&log, path)?;
        log.push(Op::SyncDir(node));
        Ok(())
    }
}
