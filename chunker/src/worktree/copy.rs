//! One file with the content of another, without its bytes passing through memory where the system can do that.

use std::fs::File;
use std::io;

/// Gives the second file, which is empty, the bytes of the first, of which there are so many.
pub(super) type Way = fn(&File, &File, u64) -> io::Result<()>;

/// Shares the blocks of `from` with `to`, which costs nothing however large they are. An error where the file system
/// cannot do that; `to` is as it was then.
pub(super) fn share(from: &File, to: &File, _size: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_ficlone(to, from).map_err(io::Error::from)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Copies `size` bytes of `from` into `to`, which is empty.
pub(super) fn copy(from: &File, to: &File, size: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let mut at = 0;
        while at < size {
            let (mut there, mut here) = (at, at);
            let step = usize::try_from(size - at).unwrap_or(usize::MAX).min(1 << 30);
            match rustix::fs::copy_file_range(from, Some(&mut there), to, Some(&mut here), step) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => at += count as u64,
                Err(rustix::io::Errno::INTR) => {}
                // Not on every file system, and not from every one to every other.
                Err(_) if at == 0 => return through_memory(from, to),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = size;
        through_memory(from, to)
    }
}

fn through_memory(mut from: &File, mut to: &File) -> io::Result<()> {
    io::copy(&mut from, &mut to).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn copies_are_equal_and_sharing_is_all_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number >> 7) as u8).collect();
        std::fs::write(dir.path().join("from"), &bytes).unwrap();
        let from = File::open(dir.path().join("from")).unwrap();
        let ways: [Way; 3] = [copy, share, |from, to, _| through_memory(from, to)];
        for (number, way) in ways.into_iter().enumerate() {
            let path = dir.path().join(number.to_string());
            let to = File::create(&path).unwrap();
            match way(&from, &to, bytes.len() as u64) {
                Ok(()) => assert!(std::fs::read(&path).unwrap() == bytes),
                Err(error) => {
                    assert_eq!(number, 1, "{error}");
                    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
                }
            }
        }
        let short = File::create(dir.path().join("short")).unwrap();
        assert!(copy(&from, &short, bytes.len() as u64 + 1).is_err());
    }
}
