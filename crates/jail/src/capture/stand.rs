//! A sandbox that stands still for a moment, at the word of the launcher.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::Timespec;

use super::pass::Moment;
use super::process::{Told, tell};
use crate::frames;

/// How often it is looked whether the sandbox stands still.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000,
};
/// How long a sandbox may take to stand still, in nanoseconds.
const FREEZE_NS_MAX: i64 = 2_000_000_000;

/// Since when it does.
#[derive(Debug)]
pub(crate) struct Stand(Moment);

impl Stand {
    /// Has the launcher stop the sandbox, and waits until it stands.
    ///
    /// # Errors
    /// When it does not within 2 s, or the launcher is gone.
    pub(crate) fn order(channel: &OwnedFd, events: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        tell(channel, &Told::Freeze)?;
        let since = Moment::now();
        wait_until_ordered(channel)?;
        if let Some(events) = events {
            wait_until_still(events)?;
        }
        Ok(Self(since))
    }

    /// Has it go on. How long it stood still, in microseconds.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub(crate) fn over(self, channel: &OwnedFd) -> io::Result<u64> {
        tell(channel, &Told::Thaw)?;
        Ok((self.0.elapsed_ns() / 1000).unsigned_abs())
    }
}

/// Waits for the launcher's word that the sandbox is to stand still until it may go on: one that
/// stands still already may do so for somebody else, who can let it go on at any time.
fn wait_until_ordered(channel: &OwnedFd) -> io::Result<()> {
    match frames::receive(channel, true)? {
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Waits until no process of the sandbox runs, because all are stopped or none is left.
fn wait_until_still(events: BorrowedFd<'_>) -> io::Result<()> {
    let began = Moment::now();
    loop {
        let mut text = [0; 256];
        let got = match rustix::io::pread(events, &mut text, 0) {
            Ok(got) => got,
            // The group is gone, and so all that was in it.
            Err(Errno::NODEV) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let text = String::from_utf8_lossy(text.get(..got).unwrap_or_default()).into_owned();
        if text.contains("frozen 1") || text.contains("populated 0") {
            return Ok(());
        }
        if began.elapsed_ns() > FREEZE_NS_MAX {
            return Err(io::Error::other("the sandbox does not stand still"));
        }
        let _ = rustix::thread::nanosleep(&LOOK);
    }
}
