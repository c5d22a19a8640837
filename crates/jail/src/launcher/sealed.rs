//! Files in memory that nobody can change any more.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::io::Errno;

use crate::faults::at;

/// How often one is made anew when the kernel does not seal it.
const ATTEMPTS_MAX: u32 = 4;

/// Copies a program into memory, so that all sandboxes share its pages and none can write to what
/// runs in the others.
pub(super) fn program(name: &str, path: &Path) -> io::Result<OwnedFd> {
    let words = format!("{name}, {}", path.display());
    let mut source = File::open(path).map_err(at(&words))?;
    let make = || {
        rustix::fs::memfd_create(name, FLAGS | MemfdFlags::EXEC)
            .or_else(|_| rustix::fs::memfd_create(name, FLAGS))
    };
    sealed(make, |file| {
        source.rewind()?;
        io::copy(&mut source, file)?;
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(0o555))?)
    })
}

/// A small file with this content, to be read from its beginning.
pub(super) fn content(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let make = || rustix::fs::memfd_create(name, FLAGS);
    sealed(make, |file| {
        file.write_all(content)?;
        file.seek(SeekFrom::Start(0)).map(drop)
    })
}

const FLAGS: MemfdFlags = MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING);

/// Makes a file, fills it and seals it. The kernel refuses with EBUSY, after it has waited for a
/// while itself, when anything else on the host holds one of the file's pages just then: a fresh
/// file has other pages.
fn sealed(
    mut make: impl FnMut() -> rustix::io::Result<OwnedFd>,
    mut fill: impl FnMut(&mut File) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    unless_busy(|| {
        let mut file = File::from(make()?);
        fill(&mut file)?;
        rustix::fs::fcntl_add_seals(&file, all)?;
        Ok(file.into())
    })
}

fn unless_busy<T>(mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut attempts = 1;
    loop {
        match step() {
            Err(error)
                if Errno::from_io_error(&error) == Some(Errno::BUSY) && attempts < ATTEMPTS_MAX =>
            {
                attempts += 1;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_sealed_has_its_content_and_keeps_it() {
        let mut file = File::from(content("test", b"words").unwrap());
        let mut found = String::new();
        file.read_to_string(&mut found).unwrap();
        assert_eq!(found, "words");
        file.rewind().unwrap();
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap();
        assert!(seals.contains(SealFlags::SEAL));
    }

    #[test]
    fn a_busy_file_is_made_anew_but_not_for_ever_and_nothing_else_is() {
        for (errno, failures, expected) in [
            (Errno::BUSY, 0, (1, true)),
            (Errno::BUSY, ATTEMPTS_MAX - 1, (ATTEMPTS_MAX, true)),
            (Errno::BUSY, u32::MAX, (ATTEMPTS_MAX, false)),
            (Errno::NOSPC, 1, (1, false)),
        ] {
            let mut tried = 0;
            let done = unless_busy(|| {
                tried += 1;
                match tried > failures {
                    true => Ok(()),
                    false => Err(errno.into()),
                }
            });
            assert_eq!((tried, done.is_ok()), expected, "{errno} {failures}");
        }
    }
}
