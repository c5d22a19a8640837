//! Reads small text files of the sandbox without trusting them: they belong to its user, who may
//! have put anything in their place.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use crate::limits::TEXT_FILE_BYTES_MAX;
use crate::users::Users;

/// The text of a regular file; `None` where there is none. Bytes that are no UTF-8 are replaced.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    // Non-blocking, so that a pipe in the file's place cannot stop the daemon.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = open(path.as_ref(), flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0).min(4096) + 1);
    File::from(file)
        .take(TEXT_FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The sandbox's users and groups as they are now.
pub(crate) fn users() -> Users {
    Users {
        passwd: read("/etc/passwd").unwrap_or_default(),
        group: read("/etc/group").unwrap_or_default(),
    }
}
