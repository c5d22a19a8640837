//! Descriptors that were open when this program started, by their numbers.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// A descriptor of one's own for what a number stands for. The number itself stays open as well.
///
/// A number is no proof that the descriptor belongs to nobody else, so it is asked for as another
/// process would: that needs no trust in the number. The standard ones are known without.
///
/// # Errors
/// When nothing is open at that number.
pub(crate) fn inherited(number: i32) -> io::Result<OwnedFd> {
    match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        _ => {
            let own = pidfd_open(getpid(), PidfdFlags::empty())?;
            Ok(pidfd_getfd(own, number, PidfdGetfdFlags::empty())?)
        }
    }
}
