//! A log of fixed size in a shared file that its writer cannot make larger.
//!
//! The writer may be hostile; the reader therefore trusts nothing but the file's size. Layout: a
//! little-endian u64 with the total of bytes ever written, 8 bytes of zero, then the ring.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes before the ring.
const HEADER_BYTES: u64 = 16;
/// Bytes of the ring: the tail of the output that survives.
pub const RING_BYTES: u64 = 64 * 1024;
/// Bytes of the whole file.
pub const FILE_BYTES: u64 = HEADER_BYTES + RING_BYTES;

/// The writing end.
#[derive(Debug)]
pub struct Writer {
    file: File,
    total: u64,
}

impl Writer {
    /// Goes on behind what the file already holds.
    ///
    /// # Errors
    /// When the header cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        let total = read_total(&file)?;
        Ok(Self { file, total })
    }

    /// Appends `bytes`, overwriting the oldest.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let skipped = bytes.len().saturating_sub(RING_BYTES as usize);
        self.total = self.total.wrapping_add(skipped as u64);
        let mut rest = bytes.get(skipped..).unwrap_or_default();
        while !rest.is_empty() {
            let at = self.total % RING_BYTES;
            let (now, later) = rest.split_at(rest.len().min((RING_BYTES - at) as usize));
            self.file.write_all_at(now, HEADER_BYTES + at)?;
            self.total = self.total.wrapping_add(now.len() as u64);
            rest = later;
        }
        self.file.write_all_at(&self.total.to_le_bytes(), 0)
    }
}

/// The tail of the log, at most [`RING_BYTES`].
///
/// # Errors
/// When the file cannot be read.
// BOUNDARY: sandbox → host. Test: a_lying_total_reads_no_more_than_the_ring
pub fn read_tail(file: &File) -> io::Result<Vec<u8>> {
    let total = read_total(file)?;
    let mut ring = vec![0; RING_BYTES as usize];
    if total <= RING_BYTES {
        ring.truncate(total as usize);
        file.read_exact_at(&mut ring, HEADER_BYTES)?;
        return Ok(ring);
    }
    file.read_exact_at(&mut ring, HEADER_BYTES)?;
    ring.rotate_left((total % RING_BYTES) as usize);
    Ok(ring)
}

fn read_total(file: &File) -> io::Result<u64> {
    let mut total = [0; 8];
    file.read_exact_at(&mut total, 0)?;
    Ok(u64::from_le_bytes(total))
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn ring() -> File {
        let memory = rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(memory);
        file.set_len(FILE_BYTES).unwrap();
        file
    }

    #[test]
    fn the_tail_is_what_was_written_last() {
        for (pieces, wanted) in [
            (
                vec![b"one\n".to_vec(), b"two\n".to_vec()],
                b"one\ntwo\n".to_vec(),
            ),
            (
                vec![vec![b'a'; 65_536], b"z".to_vec()],
                [vec![b'a'; 65_535], b"z".to_vec()].concat(),
            ),
            (
                vec![[vec![b'a'; 100_000], b"end".to_vec()].concat()],
                [vec![b'a'; 65_533], b"end".to_vec()].concat(),
            ),
        ] {
            let file = ring();
            let mut writer = Writer::new(file.try_clone().unwrap()).unwrap();
            for piece in pieces {
                writer.append(&piece).unwrap();
            }
            assert!(read_tail(&file).unwrap() == wanted);
        }
    }

    #[test]
    fn a_lying_total_reads_no_more_than_the_ring() {
        let file = ring();
        file.write_all_at(&u64::MAX.to_le_bytes(), 0).unwrap();
        assert_eq!(read_tail(&file).unwrap().len() as u64, RING_BYTES);
    }
}
