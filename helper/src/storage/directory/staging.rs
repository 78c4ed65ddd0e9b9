//! Bringing immutable things into the folder: written under a temporary name, made durable, then named.

use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use ingot_engine::durable::{self, Fs, Published, StagedFile};
use sha2::{Digest as _, Sha256};

use super::super::StagedObject;
use super::{Directory, Error, FILE_MODE, FOLDER_MODE, Kind, MANIFEST_LIMIT};
use crate::protocol::ContentId;

impl Directory {
    pub(super) fn store_manifest(&self, bytes: &[u8]) -> Result<ContentId, Error> {
        let size = bytes.len() as u64;
        if size > MANIFEST_LIMIT {
            return Err(Error::ManifestTooLarge {
                size,
                limit: MANIFEST_LIMIT,
            });
        }
        let id = ContentId::of(bytes);
        let mut staged = self.stage()?;
        staged
            .write_all(bytes)
            .map_err(|error| self.failed("write", staged.path(), error))?;
        self.publish(staged, Kind::Manifest, &id)?;
        Ok(id)
    }

    fn stage(&self) -> Result<StagedFile, Error> {
        if !self.exists()? {
            return Err(Error::NotInitialized {
                store: self.name.clone(),
            });
        }
        let folder = self.root.join(".staging");
        self.make_folder(&folder)?;
        StagedFile::create(self.fs.clone(), &folder, ".stage-", FILE_MODE)
            .map_err(|error| self.unwritten(error))
    }

    /// Makes a folder of the store unless it is there. What else could be there is refused: writing through a link
    /// would write somewhere else.
    fn make_folder(&self, path: &Path) -> Result<(), Error> {
        if self.is_real_folder(path)? {
            return Ok(());
        }
        durable::create_dirs(&*self.fs, path, FOLDER_MODE).map_err(|error| self.unwritten(error))
    }

    fn publish(&self, staged: StagedFile, kind: Kind, id: &ContentId) -> Result<(), Error> {
        let (folder, path) = self.place_of(kind, id);
        self.is_real_folder(&self.folder_of(kind))?;
        self.make_folder(&folder)?;
        match staged.publish_new(&path).map_err(|error| self.unwritten(error))? {
            Published::New => Ok(()),
            Published::AlreadyThere => self.require_content(&path, id),
        }
    }

    /// Requires that the file which already has the name of `id` has its content.
    fn require_content(&self, path: &Path, id: &ContentId) -> Result<(), Error> {
        let failed = |error| self.failed("read", path, error);
        let Some(mut file) = self.open_regular(path)? else {
            return Err(self.corrupt(path, "vanished while it was stored"));
        };
        let mut hash = Sha256::new();
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block) {
                Ok(0) => break,
                Ok(count) => hash.update(&block[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        if ContentId::from_bytes(hash.finalize().into()) == *id {
            return Ok(());
        }
        Err(self.corrupt(
            path,
            "was there before with other content than its name says (object id collision): the stored copy is \
             damaged; move it away and try again",
        ))
    }
}

/// A pack on its way.
pub(super) struct Object {
    store: Directory,
    staged: StagedFile,
    write_back: Option<WriteBack>,
    asked_at: u64,
}

/// Bytes between two requests to bring what was written to the disk. Without them, everything waits for the end.
const WRITE_BACK_EVERY: u64 = 32 << 20;

impl Object {
    pub(super) fn begin(store: &Directory) -> Result<Object, Error> {
        Ok(Object {
            store: store.clone(),
            staged: store.stage()?,
            write_back: None,
            asked_at: 0,
        })
    }
}

impl Write for Object {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.staged.write(bytes)?;
        if self.staged.written() - self.asked_at >= WRITE_BACK_EVERY {
            self.asked_at = self.staged.written();
            self.write_back
                .get_or_insert_with(|| WriteBack::start(self.store.fs.clone(), self.staged.path()))
                .ask();
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.staged.flush()
    }
}

impl StagedObject for Object {
    fn finish(self: Box<Self>, id: &ContentId) -> Result<(), Error> {
        let Object {
            store,
            staged,
            write_back,
            ..
        } = *self;
        if let Some(write_back) = write_back {
            write_back
                .end()
                .map_err(|error| store.failed("sync", staged.path(), error))?;
        }
        store.publish(staged, Kind::Pack, id)
    }
}

/// A thread that brings a growing file to the disk while it is written, so that the sync at the end finds little to do.
struct WriteBack {
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl WriteBack {
    fn start(fs: Arc<dyn Fs>, path: &Path) -> WriteBack {
        let (requests, asked): (_, Receiver<()>) = sync_channel(1);
        let path = path.to_owned();
        // Where no thread is to be had, the sync at the end does it all.
        let thread = std::thread::Builder::new()
            .name("write-back".to_owned())
            .spawn(move || asked.iter().try_for_each(|()| fs.sync_file(&path)))
            .ok();
        WriteBack {
            requests: Some(requests),
            thread,
        }
    }

    /// Asks for another round; one that is asked for already will do.
    fn ask(&self) {
        if let Some(requests) = &self.requests {
            let _ = requests.try_send(());
        }
    }

    fn end(mut self) -> io::Result<()> {
        self.requests = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the write-back thread panicked")),
        }
    }
}

impl Drop for WriteBack {
    fn drop(&mut self) {
        // An abandoned write: nothing may go on touching the file after it is gone.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
