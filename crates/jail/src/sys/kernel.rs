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
    change_mount(
        tree,
        &attributes,
        if recursive { libc::AT_RECURSIVE } else { 0 },
    )
}

/// Lets nobody write through a mount any more, or everybody again.
///
/// # Errors
/// EBUSY while somebody writes, otherwise the kernel's.
pub fn set_mount_read_only(mount: BorrowedFd<'_>, is_read_only: bool) -> io::Result<()> {
    let (attr_set, attr_clr) = match is_read_only {
        true => (libc::MOUNT_ATTR_RDONLY, 0),
        false => (0, libc::MOUNT_ATTR_RDONLY),
    };
    let attributes = libc::mount_attr {
        attr_set,
        attr_clr,
        propagation: 0,
        userns_fd: 0,
    };
    change_mount(mount, &attributes, 0)
}

fn change_mount(
    mount: BorrowedFd<'_>,
    attributes: &libc::mount_attr,
    flags: i32,
) -> io::Result<()> {
    // SAFETY: the kernel reads `attributes` during the call only.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            std::ptr::from_ref(attributes),
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

/// Lets a socket take connections and packets for any address, and answer from it, where packets
/// are redirected to it (`IP_TRANSPARENT`). Needs NET_ADMIN in its network namespace.
///
/// # Errors
/// The kernel's, unchanged.
pub fn answer_for_any_address(socket: BorrowedFd<'_>, is_v6: bool) -> io::Result<()> {
    let (level, option) = match is_v6 {
        true => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
        false => (libc::SOL_IP, libc::IP_TRANSPARENT),
    };
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads one int during the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
