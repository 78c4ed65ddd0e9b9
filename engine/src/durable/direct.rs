//! Large files past the page cache.
//!
//! What is written once and read much later only pushes out of the cache what is needed sooner, and filling the cache
//! costs more than writing to the disk where memory has to be found first. So blocks of a few mebibytes go to the disk as
//! they are (`O_DIRECT`), on a thread of their own. File systems that cannot do that get ordinary writes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::Handle;

/// Bytes that go to the disk at once.
const BLOCK: usize = 4 << 20;
/// Blocks that are on their way at most.
const BLOCKS: usize = 3;
/// Disks and file systems want no finer places and lengths.
const ALIGN: usize = 4096;

/// Memory that begins at a multiple of [`ALIGN`].
struct Block {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Block {
    fn new() -> Block {
        let bytes = vec![0; BLOCK + ALIGN];
        // Where that cannot be told, writes are refused and become ordinary ones.
        let start = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
        Block {
            bytes,
            start,
            length: 0,
        }
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    fn whole(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + BLOCK]
    }

    /// Takes as many of the bytes as there is room for.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(BLOCK - self.length);
        let at = self.length;
        self.whole()[at..at + count].copy_from_slice(&bytes[..count]);
        self.length += count;
        count
    }
}

/// A file that is written front to back. Becomes an ordinary one when it is synced or something in it is replaced.
pub(super) struct Direct {
    file: Arc<File>,
    filling: Block,
    /// Where the block that is being filled begins.
    at: u64,
    worker: Option<Worker>,
    ordinary: bool,
    /// A block was not written. Nothing that comes later makes the file whole.
    failed: bool,
}

impl Direct {
    /// Takes over a new file.
    pub(super) fn new(file: File) -> Direct {
        let ordinary = switch(&file, true).is_err();
        Direct {
            file: Arc::new(file),
            filling: Block::new(),
            at: 0,
            worker: None,
            ordinary,
            failed: false,
        }
    }

    /// Notes a failure for all that comes later.
    fn noted(&mut self, result: io::Result<()>) -> io::Result<()> {
        self.failed |= result.is_err();
        result
    }

    fn usable(&self) -> io::Result<()> {
        match self.failed {
            true => Err(io::Error::other("an earlier write of the file has failed")),
            false => Ok(()),
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let worker = match &mut self.worker {
            Some(worker) => worker,
            none => none.insert(Worker::start(Arc::clone(&self.file))?),
        };
        let next = worker.empty()?;
        let full = std::mem::replace(&mut self.filling, next);
        let at = self.at;
        self.at += full.length as u64;
        worker.write(at, full)
    }

    /// Everything is in the file, and what follows is written in the ordinary way.
    fn settle(&mut self) -> io::Result<()> {
        if let Some(worker) = &mut self.worker {
            worker.wait()?;
        }
        self.worker = None;
        if !self.ordinary {
            switch(&self.file, false)?;
            self.ordinary = true;
        }
        let rest = self.filling.filled();
        write_at(&self.file, rest, self.at)?;
        self.at += rest.len() as u64;
        self.filling.length = 0;
        Ok(())
    }
}

impl Write for Direct {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.usable()?;
        if self.ordinary {
            let written = write_at(&self.file, bytes, self.at);
            self.noted(written)?;
            self.at += bytes.len() as u64;
            return Ok(bytes.len());
        }
        if self.filling.length == BLOCK {
            let passed = self.pass_on();
            self.noted(passed)?;
        }
        Ok(self.filling.take(bytes))
    }

    /// What was written is in the file afterwards, and can be read by others.
    fn flush(&mut self) -> io::Result<()> {
        self.usable()?;
        let settled = self.settle();
        self.noted(settled)
    }
}

impl Handle for Direct {
    fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        let synced = self.file.sync_data();
        self.noted(synced)
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        let written = write_at(&self.file, bytes, offset);
        self.noted(written)
    }
}

/// The thread that waits for the disk.
struct Worker {
    full: Option<SyncSender<(u64, Block)>>,
    empty: Receiver<io::Result<Block>>,
    thread: Option<JoinHandle<()>>,
    /// Blocks that are with the thread.
    away: usize,
}

impl Worker {
    fn start(file: Arc<File>) -> io::Result<Worker> {
        let (full, blocks) = sync_channel::<(u64, Block)>(BLOCKS);
        let (done, empty) = channel();
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || write_all(&file, &blocks, &done))?;
        Ok(Worker {
            full: Some(full),
            empty,
            thread: Some(thread),
            away: 0,
        })
    }

    fn empty(&mut self) -> io::Result<Block> {
        if self.away < BLOCKS - 1 {
            return Ok(self
                .empty
                .try_recv()
                .ok()
                .transpose()?
                .map_or_else(Block::new, |block| {
                    self.away -= 1;
                    block
                }));
        }
        self.back()
    }

    fn back(&mut self) -> io::Result<Block> {
        let block = self.empty.recv().map_err(|_| gone())?;
        self.away -= 1;
        block
    }

    fn write(&mut self, at: u64, block: Block) -> io::Result<()> {
        let full = self.full.as_ref().ok_or_else(gone)?;
        full.send((at, block)).map_err(|_| gone())?;
        self.away += 1;
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        while self.away > 0 {
            self.back()?;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            // It has told of its failures already.
            let _ = thread.join();
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes has ended")
}

fn write_all(file: &File, blocks: &Receiver<(u64, Block)>, done: &Sender<io::Result<Block>>) {
    for (at, mut block) in blocks {
        let written = match write_at(file, block.filled(), at) {
            // The file system took the wish and does not grant it.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                switch(file, false).and_then(|()| write_at(file, block.filled(), at))
            }
            written => written,
        };
        block.length = 0;
        let failed = written.is_err();
        if done.send(written.map(|()| block)).is_err() || failed {
            return;
        }
    }
}

/// Hands a file to `sink`, front to back and past the page cache where that can be done; reads ahead meanwhile.
pub(crate) fn read_through(path: &Path, sink: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut file = File::open(path)?;
    // Where this fails, the file is read in the ordinary way.
    let _ = switch(&file, true);
    let (full, blocks) = sync_channel::<io::Result<Block>>(1);
    let (used, empty) = channel::<Block>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let mut block = empty.try_recv().unwrap_or_else(|_| Block::new());
                let read = fill(&mut file, &mut block);
                let ended = !matches!(read, Ok(BLOCK));
                if full.send(read.map(|_| block)).is_err() || ended {
                    return;
                }
            }
        });
        for block in blocks {
            let block = block?;
            sink(block.filled());
            // At the end of the file nobody wants it any more.
            let _ = used.send(block);
        }
        Ok(())
    })
}

/// Reads a block, less only at the end of the file.
fn fill(file: &mut File, block: &mut Block) -> io::Result<usize> {
    let mut filled = 0;
    while filled < BLOCK {
        match file.read(&mut block.whole()[filled..]) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                if count % ALIGN != 0 {
                    // Such a place can be the end only; if it is not, what follows is read in the ordinary way.
                    switch(file, false)?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => switch(file, false)?,
            Err(error) => return Err(error),
        }
    }
    block.length = filled;
    Ok(filled)
}

fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Turns the way past the cache on or off.
fn switch(file: &File, on: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let mut flags = fcntl_getfl(file)?;
    if flags.contains(OFlags::DIRECT) != on {
        flags.set(OFlags::DIRECT, on);
        fcntl_setfl(file, flags)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at ^ at >> 9) as u8).collect()
    }

    #[test]
    fn what_is_written_is_read_whatever_the_lengths() {
        let dir = tempfile::tempdir().unwrap();
        for (number, length) in [0, 1, 4096, BLOCK, BLOCK + 1, 5 * BLOCK, 7 * BLOCK + 12_345]
            .into_iter()
            .enumerate()
        {
            let path = dir.path().join(number.to_string());
            let mut direct = Direct::new(File::create_new(&path).unwrap());
            let mut expected = pattern(length);
            for piece in expected.chunks(1_000_003) {
                direct.write_all(piece).unwrap();
            }
            if length > 100 {
                direct.rewrite(50, b"replaced").unwrap();
                expected[50..58].copy_from_slice(b"replaced");
            }
            direct.flush().unwrap();
            assert!(std::fs::read(&path).unwrap() == expected);
            direct.sync().unwrap();
            direct.write_all(b"behind it").unwrap();
            expected.extend_from_slice(b"behind it");
            direct.sync().unwrap();
            assert!(std::fs::read(&path).unwrap() == expected);
            let mut read = Vec::new();
            read_through(&path, &mut |bytes| read.extend_from_slice(bytes)).unwrap();
            assert!(read == expected, "{length}");
        }
        assert!(read_through(&dir.path().join("none"), &mut |_| ()).is_err());
    }

    #[test]
    fn a_failing_write_is_told() {
        // A file that is open for reading only refuses every write.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"x").unwrap();
        let mut direct = Direct::new(File::open(&path).unwrap());
        let result = direct.write_all(&pattern(6 * BLOCK)).and_then(|()| direct.sync());
        assert!(result.is_err());
        // Asked again, it does not claim otherwise.
        assert!(direct.sync().is_err() && direct.flush().is_err() && direct.write_all(b"x").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }
}
