//! Kernel interfaces by number: filters, mount attributes, ioctls.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Confines this thread by a seccomp program for the rest of its life. Needs no-new-privileges.
///
/// # Errors
/// The kernel's, unchanged.
pub fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let header = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program during the call and does not write to it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const header,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sets and clears attributes of a detached mount tree; with `id_map`, files appear under the ids
/// of that user namespace.
///
/// # Errors
/// The kernel's, unchanged: EINVAL where the file system has no id-mapped mounts.
pub fn set_mount_attributes(
    tree: BorrowedFd<'_>,
    set: u64,
    id_map: Option<BorrowedFd<'_>>,
    recursive: bool,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set
            | if id_map.is_some() {
                libc::MOUNT_ATTR_IDMAP
            } else {
                0
            },
        attr_clr: 0,
        propagation: 0,
        userns_fd: id_map.map_or(0, |map| map.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the kernel reads `attributes` during the call only.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// An ioctl that takes or returns a number.
///
/// # Errors
/// The kernel's, unchanged.
pub fn ioctl_number(file: BorrowedFd<'_>, request: u64, argument: u64) -> io::Result<i32> {
    // SAFETY: callers pass requests whose argument is a number, never a pointer.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request as libc::Ioctl, argument) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(done)
    }
}

/// An ioctl that reads from and writes to `argument`, whose type must be the one of the request.
///
/// # Errors
/// The kernel's, unchanged.
pub fn ioctl_struct<T: Copy>(
    file: BorrowedFd<'_>,
    request: u64,
    argument: &mut T,
) -> io::Result<()> {
    // SAFETY: callers in this crate pair each request with its kernel structure; it is plain data
    // (Copy) and outlives the call.
    let done = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            request as libc::Ioctl,
            std::ptr::from_mut(argument),
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
