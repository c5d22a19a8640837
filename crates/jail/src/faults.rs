//! Pure. The kernel's errors in words: what was tried, what came of it, and what can be done.

use std::io;

/// Puts a step's name before an error, and behind it what an operator can do.
pub(crate) fn at(step: &str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{step}: {}", told(&error)))
}

/// An error, and what an operator can do.
pub(crate) fn told(error: &io::Error) -> String {
    format!("{error}{}", remedy(error))
}

/// What an operator can do about an error that comes straight from the kernel.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            "; the launcher may open no more files: delete sandboxes, or start the server with a \
             higher limit of open files"
        }
        Some(libc::ENFILE) => "; this host may open no more files: see /proc/sys/fs/file-max",
        Some(libc::EAGAIN) => {
            "; most likely no more processes may be made: delete sandboxes, or raise the limit of \
             processes that the server was started with"
        }
        Some(libc::ENOMEM) => "; this host has no memory left: delete sandboxes",
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "; there is no room left: remove images and sandboxes, or move the state directory to \
             a larger disk"
        }
        Some(libc::EROFS) => "; the file system is read-only: see the host's log",
        Some(libc::EIO) => {
            "; the disk of the state directory is full or broken: look at `df`, and at the host's \
             log"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_told_once_wherever_an_error_came_through() {
        let inner = at("open the disk")(io::Error::from_raw_os_error(libc::EMFILE));
        let outer = at("make a spare")(inner).to_string();
        assert!(
            outer.starts_with("make a spare: open the disk: "),
            "{outer}"
        );
        assert_eq!(outer.matches("; the launcher may open no more").count(), 1);
        let unknown = at("mount it")(io::Error::from_raw_os_error(libc::EPERM));
        assert!(!unknown.to_string().contains(';'), "{unknown}");
    }
}
