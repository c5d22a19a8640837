//! What safe libraries do not offer: raw calls with process-wide effects.
//!
//! The only file of the project with `unsafe`. Each function is as small as it can be and says what
//! its caller must keep in mind.
#![expect(
    unsafe_code,
    reason = "clone3, vfork-style spawn, seccomp and mount attributes have no safe wrapper"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

/// One half of a process that was split in two by [`clone_process`].
#[derive(Debug)]
pub enum Cloned {
    /// This is the new process.
    Child,
    /// This is the old one; the new one's pid and a descriptor that names it for good.
    Parent {
        /// Pid in the caller's namespace.
        pid: Pid,
        /// Readable once the process has ended.
        pidfd: OwnedFd,
    },
}

/// Splits this process in two as fork does, the child in the new namespaces that `flags` name and
/// born in the v2 cgroup of `cgroup`. The caller must be single-threaded: only its thread exists in
/// the child, and a lock held by another would stay locked there.
///
/// # Errors
/// The kernel's, unchanged.
pub fn clone_process(flags: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` is plain data for which all-zero is the documented default.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | libc::CLONE_PIDFD as u64;
    args.pidfd = &raw mut pidfd as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: no CLONE_VM, so the child has its own copy of this memory, the stack included; the
    // kernel writes one descriptor number to `pidfd`, which outlives the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the call succeeded in the parent, so the kernel made this descriptor for us.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = Pid::from_raw(pid as i32).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Cloned::Parent { pid, pidfd })
        }
    }
}

/// `CLONE_INTO_CGROUP` of linux/sched.h; the libc crate's constant overflows its own type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Bytes of stack for a child that only makes system calls before it execs.
const CHILD_STACK_BYTES: usize = 64 * 1024;

/// Runs `child` in a new process that shares this memory until it execs or ends, while the calling
/// thread stands still: as cheap as vfork, whatever the size of the caller. `child` must only make
/// raw system calls: no allocation, no lock, no unwinding. Its return value is the exit code.
///
/// # Errors
/// The kernel's when no process can be made.
pub fn spawn_sharing_memory<F: FnMut() -> i32>(child: &mut F) -> io::Result<Pid> {
    extern "C" fn enter<F: FnMut() -> i32>(argument: *mut c_void) -> c_int {
        // SAFETY: `argument` is the `&mut F` below; the parent's thread stands still meanwhile, so
        // it is the only user, and F lives on that thread's stack until we exec or end.
        let child = unsafe { &mut *argument.cast::<F>() };
        child()
    }
    let mut stack = Vec::<u128>::with_capacity(CHILD_STACK_BYTES / size_of::<u128>());
    let blocked = block_signals();
    // SAFETY: the stack is ours, aligned to 16 bytes, unused by anyone else, and lives until the
    // call returns, which with CLONE_VFORK is after the child left this memory.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(
            enter::<F>,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            std::ptr::from_mut(child).cast(),
        )
    };
    let error = io::Error::last_os_error();
    restore_signals(&blocked);
    if pid < 0 {
        return Err(error);
    }
    Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Blocks every signal for this thread, so that none of the caller's handlers runs in a child that
/// shares its memory.
fn block_signals() -> libc::sigset_t {
    // SAFETY: plain data that sigfillset and pthread_sigmask fill in.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` came from `block_signals`.
    unsafe {
        libc::pthread_sigmask(
            libc::SIG_SETMASK,
            std::ptr::from_ref(mask),
            std::ptr::null_mut(),
        );
    }
}

/// Gives the calling process the signal state a program expects at its start: nothing blocked, and
/// SIGPIPE (which Rust programs ignore) and SIGCHLD at their defaults. The rest exec resets.
pub fn default_signals() {
    // SAFETY: raw system calls on plain data, allowed between vfork and exec.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// A NULL-terminated array of C strings for exec. The strings must outlive it.
#[derive(Debug)]
pub struct Strings<'a> {
    pointers: Vec<*const c_char>,
    _owner: std::marker::PhantomData<&'a CStr>,
}

impl<'a> Strings<'a> {
    /// Borrows `texts`.
    #[must_use]
    pub fn new(texts: &'a [CString]) -> Self {
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self {
            pointers,
            _owner: std::marker::PhantomData,
        }
    }
}

/// Becomes another program. Returns only on failure, with the errno.
#[must_use]
pub fn exec(path: &CStr, argv: &Strings<'_>, env: &Strings<'_>) -> io::Error {
    // SAFETY: all three are NUL- and NULL-terminated and live for the call.
    unsafe { libc::execve(path.as_ptr(), argv.pointers.as_ptr(), env.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Becomes the program that `file` holds. Returns only on failure.
#[must_use]
pub fn exec_file(file: BorrowedFd<'_>, argv: &Strings<'_>, env: &Strings<'_>) -> io::Error {
    // SAFETY: as in `exec`; the empty path with AT_EMPTY_PATH names the descriptor itself.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file.as_raw_fd(),
            c"".as_ptr(),
            argv.pointers.as_ptr(),
            env.pointers.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

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

/// Ends this process at once, without running anything of its parent's (exit handlers, buffers).
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

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

/// Sets this thread's supplementary groups, group and user, in the order that keeps the right to do
/// so until the last.
///
/// # Errors
/// The kernel's, with the step that failed.
pub fn become_ids(uid: u32, gid: u32, groups: Option<&[u32]>) -> Result<(), (Step, io::Error)> {
    // SAFETY: raw system calls, so that only this thread changes and nothing of libc's
    // thread-synchronising wrappers runs; `groups` outlives the call.
    unsafe {
        if let Some(groups) = groups
            && libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) < 0
        {
            return Err(("setgroups", io::Error::last_os_error()));
        }
        if libc::syscall(libc::SYS_setresgid, gid, gid, gid) < 0 {
            return Err(("setgid", io::Error::last_os_error()));
        }
        if libc::syscall(libc::SYS_setresuid, uid, uid, uid) < 0 {
            return Err(("setuid", io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// The name of a step, for error reports.
pub type Step = &'static str;

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

/// Moves this thread into new namespaces. The caller must be single-threaded, since the rest of the
/// process would stay behind.
///
/// # Errors
/// The kernel's, unchanged.
pub fn enter_new(namespaces: i32) -> io::Result<()> {
    // SAFETY: changes only what the thread belongs to; descriptors and memory stay as they are.
    let done = unsafe { libc::unshare(namespaces) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
