//! Pure. Whose fault it is when the kernel refuses what an archive holds.

use rustix::io::Errno;

use crate::shown;
use crate::unpack::UnpackError;

/// Longest target of a link, in bytes: the kernel's limit of a path.
const TARGET_BYTES_MAX: usize = 4095;
/// Bytes of a name that are told: an error goes from process to process in one message.
const SHOWN_BYTES_MAX: usize = 512;

pub(super) fn refused(name: &[u8], why: &'static str) -> UnpackError {
    UnpackError::Refused(brief(name), why)
}

/// What it means that an entry could not be written.
pub(super) fn written(name: &[u8]) -> impl FnOnce(Errno) -> UnpackError {
    let name = brief(name);
    move |errno| match errno {
        Errno::NAMETOOLONG => UnpackError::Refused(name, "a name in it is too long"),
        Errno::FBIG => UnpackError::Refused(name, "it is larger than a file can be"),
        Errno::MLINK => UnpackError::Refused(name, "there are too many names of one thing"),
        errno => UnpackError::Write(name, errno),
    }
}

/// What it means that an entry was not given its attributes: the archive chose name and value, so
/// that only a host which can write nothing at all is at fault.
pub(super) fn unsuited(name: &[u8]) -> impl FnOnce(Errno) -> UnpackError {
    let name = brief(name);
    move |errno| match errno {
        Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::ROFS | Errno::NOMEM => {
            UnpackError::Write(name, errno)
        }
        _ => UnpackError::Refused(name, "it has an extended attribute that nothing can have"),
    }
}

/// Why a link cannot lead there, if it cannot.
pub(super) fn check_target(target: &[u8]) -> Result<(), &'static str> {
    match target {
        [] => Err("it is a link that leads nowhere"),
        long if long.len() > TARGET_BYTES_MAX => Err("the target of the link is too long"),
        target if target.contains(&0) => Err("the target of the link holds a NUL byte"),
        _ => Ok(()),
    }
}

/// The beginning of a name, for people.
fn brief(name: &[u8]) -> String {
    match name.get(..SHOWN_BYTES_MAX) {
        Some(beginning) => shown(beginning) + "…",
        None => shown(name),
    }
}
