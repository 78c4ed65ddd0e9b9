//! Writes `.idx` (version 2) and `.rev` files, byte for byte as Git does (gitformat-pack(5)).

use std::io::{self, Write};

use gix_hash::{ObjectId, oid};

/// Offsets from here on go into the table of 64-bit offsets.
const FIRST_LARGE_OFFSET: u64 = 0x8000_0000;

/// An index in the making.
pub(in crate::pack) struct Index<'a> {
    /// The format of ids and checksums.
    pub(in crate::pack) format: gix_hash::Kind,
    /// Entry numbers in the order of their ids.
    pub(in crate::pack) order: &'a [u32],
    /// The offsets by entry number, ascending.
    pub(in crate::pack) offsets: &'a [u64],
    /// The CRC-32s by entry number.
    pub(in crate::pack) crcs: &'a [u32],
    /// The checksum of the pack.
    pub(in crate::pack) pack: ObjectId,
}

impl Index<'_> {
    /// Writes the `.idx` file.
    pub(in crate::pack) fn write<'i>(
        &self,
        ids: impl Fn(u32) -> &'i oid,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut out = Hashing::new(self.format, out);
        out.put(b"\xfftOc")?;
        out.put(&2u32.to_be_bytes())?;
        let mut counts = [0u32; 256];
        for &entry in self.order {
            counts[usize::from(ids(entry).first_byte())] += 1;
        }
        let mut total = 0u32;
        for count in counts {
            total += count;
            out.put(&total.to_be_bytes())?;
        }
        for &entry in self.order {
            out.put(ids(entry).as_bytes())?;
        }
        for &entry in self.order {
            out.put(&self.crcs[entry as usize].to_be_bytes())?;
        }
        let mut large = Vec::new();
        for &entry in self.order {
            let offset = self.offsets[entry as usize];
            let short = match u32::try_from(offset) {
                Ok(short) if offset < FIRST_LARGE_OFFSET => short,
                _ => {
                    large.push(offset);
                    // The table has no more rows than the pack has entries, which are numbered by 31 bits here: more
                    // would need a pack of 2^31 entries beyond 2 GiB.
                    let row = u32::try_from(large.len() - 1)
                        .ok()
                        .filter(|row| *row < 0x8000_0000);
                    row.ok_or_else(|| io::Error::other("too many large offsets"))? | 0x8000_0000
                }
            };
            out.put(&short.to_be_bytes())?;
        }
        for offset in large {
            out.put(&offset.to_be_bytes())?;
        }
        out.put(self.pack.as_bytes())?;
        out.finish()
    }

    /// Writes the `.rev` file: the place in the index of each entry, in pack order.
    pub(in crate::pack) fn write_reverse(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Hashing::new(self.format, out);
        out.put(b"RIDX")?;
        out.put(&1u32.to_be_bytes())?;
        let hash: u32 = match self.format {
            gix_hash::Kind::Sha1 => 1,
            _ => 2,
        };
        out.put(&hash.to_be_bytes())?;
        let mut places = vec![0u32; self.order.len()];
        for (place, &entry) in self.order.iter().enumerate() {
            places[entry as usize] = place as u32;
        }
        for place in places {
            out.put(&place.to_be_bytes())?;
        }
        out.put(self.pack.as_bytes())?;
        out.finish()
    }
}

/// Buffers, and ends with the checksum of everything before.
struct Hashing<'a> {
    format: gix_hash::Kind,
    out: &'a mut dyn Write,
    hasher: gix_hash::Hasher,
    buffer: Vec<u8>,
}

const BUFFER: usize = 64 * 1024;

impl<'a> Hashing<'a> {
    fn new(format: gix_hash::Kind, out: &'a mut dyn Write) -> Hashing<'a> {
        Hashing {
            format,
            out,
            hasher: gix_hash::hasher(format),
            buffer: Vec::with_capacity(BUFFER),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.pass_on()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.pass_on()?;
        let hasher = std::mem::replace(&mut self.hasher, gix_hash::hasher(self.format));
        let checksum = hasher.try_finalize().map_err(io::Error::other)?;
        self.out.write_all(checksum.as_bytes())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    /// Offsets on both sides of 2 GiB, read by another implementation.
    #[test]
    fn large_offsets() {
        for format in [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256] {
            let offsets = [
                12,
                0x7fff_ffff,
                0x8000_0000,
                0xffff_ffff,
                0x1_0000_0000,
                0x12_3456_789a,
            ];
            let ids: Vec<ObjectId> = (0..6u8)
                .map(|number| {
                    let mut id = ObjectId::null(format);
                    id.as_mut_slice().fill((u32::from(number) * 77 % 251) as u8);
                    id
                })
                .collect();
            let mut order: Vec<u32> = (0..6).collect();
            order.sort_by_key(|entry| ids[*entry as usize]);
            let index = Index {
                format,
                order: &order,
                offsets: &offsets,
                crcs: &[1, 2, 3, 4, 5, 6],
                pack: ids[3],
            };
            let mut bytes = Vec::new();
            index.write(|entry| &ids[entry as usize], &mut bytes).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("pack-0.idx");
            std::fs::write(&path, bytes).unwrap();
            let read = gix_pack::index::File::at(&path, format).unwrap();
            assert_eq!(read.num_objects(), 6);
            assert_eq!(read.pack_checksum(), ids[3]);
            for (entry, id) in ids.iter().enumerate() {
                let place = read.lookup(id).unwrap();
                assert_eq!(read.pack_offset_at_index(place), offsets[entry]);
                assert_eq!(read.crc32_at_index(place), Some(entry as u32 + 1));
            }
        }
    }
}
