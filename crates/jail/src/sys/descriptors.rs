//! Descriptors by number, for processes about to exec and programs just started.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Makes `source` available under the number `target`, kept over exec.
///
/// # Errors
/// The kernel's, unchanged.
pub fn duplicate_to(source: RawFd, target: RawFd) -> io::Result<()> {
    // SAFETY: descriptor numbers only; replacing `target` is the point of the call, and callers
    // are about to exec, so no owner of the old descriptor runs again.
    let done = unsafe {
        if source == target {
            libc::fcntl(source, libc::F_SETFD, 0)
        } else {
            libc::dup2(source, target)
        }
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A copy of `source` numbered `lowest` or above, so that [`duplicate_to`] cannot overwrite it.
///
/// # Errors
/// The kernel's, unchanged.
pub fn duplicate_above(source: RawFd, lowest: RawFd) -> io::Result<RawFd> {
    // SAFETY: descriptor numbers only.
    let copy = unsafe { libc::fcntl(source, libc::F_DUPFD_CLOEXEC, lowest) };
    if copy < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(copy)
    }
}

/// Takes over a descriptor that this process was started with. Only at the start of a program and
/// once for each number, before anything else could own it.
///
/// # Errors
/// EBADF when there is none of this number.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    let copy = duplicate_above(number, 3)?;
    // SAFETY: the copy was made above, for us alone; by the precondition nobody owns the original.
    unsafe {
        libc::close(number);
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// Closes every descriptor from `first` up. Only for a process about to exec or made for it: owners
/// of those descriptors must not run again.
pub fn close_from(first: u32) {
    // SAFETY: numbers only; see the precondition above.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Marks every descriptor from `first` up to be closed by exec.
pub fn close_from_on_exec(first: u32) {
    // SAFETY: changes flags only.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

/// Closes every descriptor but `keep`. Only for a process made for one purpose: owners of the
/// others must not run again.
///
/// # Errors
/// The kernel's, unchanged.
pub fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut kept = keep.to_vec();
    kept.sort_unstable();
    let mut from: u32 = 0;
    for fd in kept {
        let fd = u32::try_from(fd).map_err(|_| io::ErrorKind::InvalidInput)?;
        if fd > from {
            // SAFETY: numbers only; see the precondition above.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd + 1;
    }
    close_from(from);
    Ok(())
}
