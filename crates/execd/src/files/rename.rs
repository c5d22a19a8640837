//! Moves files and directories.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, rename, renameat_with};
use rustix::io::Errno;

use super::expand::escape;
use super::permission::Rights;
use super::{info, make, transplant};
use crate::fault::{Fault, Kind};

/// Moves `from` to `to`, which must not exist; what is missing above it is made.
///
/// # Errors
/// When there is nothing to move, something is in the way, or the kernel refuses.
pub(crate) fn entry(from: &Path, to: &Path) -> Result<(), Fault> {
    info::look(from)?;
    if let Some(above) = to.parent() {
        make::directories(above, Rights::default())?;
    }
    let shown = || escape(from.as_os_str().as_bytes());
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(in_the_way(to)),
        // A file system without that flag.
        Err(Errno::INVAL) if !to.starts_with(from) => match info::look(to) {
            Ok(_) => Err(in_the_way(to)),
            Err(_) => rename(from, to).map_err(|errno| Fault::of_path(errno, "move", shown())),
        },
        Err(Errno::XDEV) => transplant::entry(from, to),
        Err(errno) => Err(Fault::of_path(errno, "move", shown())),
    }
}

fn in_the_way(to: &Path) -> Fault {
    let shown = escape(to.as_os_str().as_bytes());
    Fault::new(
        Kind::Conflict,
        format!("cannot move to {shown}: it exists; remove it first"),
    )
}
