//! Processes: making them, becoming another program, changing who this one is.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
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

/// A child that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// What its pid was.
    pub pid: i32,
    /// How it ended, as wait reports it.
    pub status: i32,
    /// What it and its waited-for descendants used.
    pub usage: libc::rusage,
}

/// Takes a child that has ended, if there is one, whichever it is.
///
/// # Errors
/// The kernel's; `ECHILD` when there are no children.
pub fn reap_any() -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both targets live through the call; all-zero bytes are a valid rusage.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(Reaped { pid, status, usage })),
    }
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
    spawn_into(0, child)
}

/// As [`spawn_sharing_memory`], the child in the new namespaces that `namespaces` names.
///
/// # Errors
/// The kernel's when no process or namespace can be made.
pub fn spawn_into<F: FnMut() -> i32>(namespaces: c_int, child: &mut F) -> io::Result<Pid> {
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
            namespaces | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
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

/// Gives the calling process the signal state a program expects at its start: nothing blocked and
/// nothing ignored, whatever this process, or who started it, ignores. Handlers exec resets itself.
pub fn default_signals() {
    // SAFETY: raw system calls on plain data, allowed between vfork and exec; SIGKILL and SIGSTOP
    // are refused, which changes nothing.
    unsafe {
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// From now on the word to end (SIGTERM) does not end this process: the descriptor is readable once
/// it was said. New processes inherit that until they call [`default_signals`].
///
/// # Errors
/// The kernel's, unchanged.
pub fn hear_word_to_end() -> io::Result<OwnedFd> {
    // SAFETY: plain data that sigemptyset fills in and the calls only read; a descriptor that was
    // made is ours alone.
    unsafe {
        let mut word: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut word);
        libc::sigaddset(&raw mut word, libc::SIGTERM);
        let none = std::ptr::null_mut();
        if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const word, none) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &raw const word, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            made => Ok(OwnedFd::from_raw_fd(made)),
        }
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

/// Ends this process at once, without running anything of its parent's (exit handlers, buffers).
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
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
