//! A stream that tells how many bytes went through it.

use std::io::{self, Read, Write};

/// A reader or a writer, and who is told of its bytes.
pub(crate) struct Counted<S, F> {
    inner: S,
    told: F,
}

impl<S, F: FnMut(u64)> Counted<S, F> {
    /// Counts what goes through `inner`.
    pub fn new(inner: S, told: F) -> Counted<S, F> {
        Counted { inner, told }
    }
}

impl<S: Read, F: FnMut(u64)> Read for Counted<S, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        (self.told)(count as u64);
        Ok(count)
    }
}

impl<S: Write, F: FnMut(u64)> Write for Counted<S, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        (self.told)(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
