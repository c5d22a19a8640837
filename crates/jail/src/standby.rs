//! What a spare does as the daemon's program: wait for orders, enter its sandbox.
//!
//! The program runs already when a sandbox is asked for, so its start costs the caller nothing. It
//! has no secret of the host, and nothing of a sandbox has run beside it yet; what it could do
//! until now it needs for its root, and it keeps only what any daemon keeps (see
//! [`crate::privileges`]).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::blank::{READY, report};
use crate::enter::{self, Kit, Orders, Prepared, StepError, Store};
use crate::guest::{CONTROL_FD, PID_MAX_FD, SHM_ALL_FD};
use crate::{frames, sys};

/// Says that this spare stands, waits for its orders and follows them. When it returns, the process
/// is in its sandbox and the launcher knows. `None`: it is to end, because the launcher let it go
/// or a step failed, which the launcher has been told.
///
/// # Errors
/// When this process was not started by a launcher.
pub fn enter() -> io::Result<Option<(Kit, Store)>> {
    // For whoever lists processes: the file in memory that it runs from has no telling name.
    let _ = rustix::thread::set_name(c"barchan-spare");
    let control = sys::adopt(CONTROL_FD)?;
    let prepared = Prepared {
        pid_max: sys::adopt(PID_MAX_FD).ok(),
        shm_all: sys::adopt(SHM_ALL_FD).ok(),
    };
    frames::send(control.as_fd(), READY, &[])?;
    match obey(&control, &prepared) {
        Ok(entered) => {
            let _ = rustix::thread::set_name(c"barchan-execd");
            Ok(entered)
        }
        Err(failed) => {
            report(&control, &failed);
            Ok(None)
        }
    }
}

fn obey(control: &OwnedFd, prepared: &Prepared) -> Result<Option<(Kit, Store)>, StepError> {
    let received = frames::receive(control, true);
    let received = received.map_err(|error| StepError::new("receive orders", &error))?;
    let Some((bytes, fds)) = received else {
        return Ok(None);
    };
    let orders: Orders = serde_json::from_slice(&bytes)
        .map_err(|error| StepError::new("read orders", &error.into()))?;
    let kit = kit(fds).map_err(|error| StepError::new("receive descriptors", &error))?;
    let store = enter::enter(&orders, &kit, prepared, control.as_fd())?;
    let kit = Kit {
        mounts: Vec::new(),
        ..kit
    };
    Ok(Some((kit, store)))
}

fn kit(fds: Vec<OwnedFd>) -> io::Result<Kit> {
    let mut fds = fds.into_iter();
    let mut next = || fds.next().ok_or(io::ErrorKind::UnexpectedEof);
    Ok(Kit {
        listener: next()?,
        boot: next()?,
        log: next()?,
        mounts: fds.collect(),
    })
}
