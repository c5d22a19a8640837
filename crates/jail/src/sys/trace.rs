//! Stopping other threads and having them make one system call.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;

/// A thread's registers.
pub type Registers = libc::user_regs_struct;

/// What a traced thread did last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traced {
    /// Nothing yet.
    Runs,
    /// It stands still because it was told to.
    Stopped,
    /// It stands at the begin or the end of a system call.
    AtCall,
    /// It stands because of this signal, which it has not got yet.
    Signalled(i32),
    /// It is gone.
    Gone,
}

/// The stop of PTRACE_INTERRUPT of ptrace(2).
const EVENT_STOP: i32 = 128;

/// Begins to trace a thread, which goes on when this one dies.
///
/// # Errors
/// EPERM when somebody else traces it, otherwise the kernel's.
pub fn seize(thread: i32) -> io::Result<()> {
    request(
        libc::PTRACE_SEIZE,
        thread,
        libc::PTRACE_O_TRACESYSGOOD as usize,
    )
}

/// Whether a traced thread is killed when this one dies.
///
/// # Errors
/// The kernel's, unchanged.
pub fn bind(thread: i32, is_bound: bool) -> io::Result<()> {
    let killed = if is_bound { libc::PTRACE_O_EXITKILL } else { 0 };
    let options = libc::PTRACE_O_TRACESYSGOOD | killed;
    request(libc::PTRACE_SETOPTIONS, thread, options as usize)
}

/// Has a traced thread stop.
///
/// # Errors
/// The kernel's, unchanged.
pub fn interrupt(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0)
}

/// Lets a stopped thread go on until the begin or the end of a system call.
///
/// # Errors
/// The kernel's, unchanged.
pub fn go_on(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, thread, 0)
}

/// Lets go of a stopped thread, which gets a signal that it was kept from, if it was.
///
/// # Errors
/// The kernel's, unchanged.
pub fn let_go(thread: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, signal as usize)
}

/// The signals that a stopped thread blocks, as a set of bits.
///
/// # Errors
/// The kernel's, unchanged.
pub fn blocked(thread: i32) -> io::Result<u64> {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes 8 bytes, the size that is passed, to `mask`.
    let done = unsafe {
        libc::ptrace(
            libc::PTRACE_GETSIGMASK,
            thread,
            size_of::<u64>(),
            &raw mut mask,
        )
    };
    checked(done).map(|()| mask)
}

/// Has a stopped thread block these signals.
///
/// # Errors
/// The kernel's, unchanged.
pub fn block(thread: i32, mask: u64) -> io::Result<()> {
    // SAFETY: the kernel reads 8 bytes, the size that is passed, from `mask`.
    let done = unsafe {
        libc::ptrace(
            libc::PTRACE_SETSIGMASK,
            thread,
            size_of::<u64>(),
            &raw const mask,
        )
    };
    checked(done)
}

/// The registers of a stopped thread.
///
/// # Errors
/// The kernel's, unchanged.
pub fn registers(thread: i32) -> io::Result<Registers> {
    let mut found = MaybeUninit::<Registers>::zeroed();
    // SAFETY: the kernel writes one such structure; all-zero bytes are a valid one.
    unsafe {
        let none = std::ptr::null_mut::<c_void>();
        checked(libc::ptrace(
            libc::PTRACE_GETREGS,
            thread,
            none,
            found.as_mut_ptr(),
        ))?;
        Ok(found.assume_init())
    }
}

/// Gives a stopped thread other registers.
///
/// # Errors
/// The kernel's, unchanged.
pub fn set_registers(thread: i32, registers: &Registers) -> io::Result<()> {
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: the kernel reads one such structure.
    let done = unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, none, registers) };
    checked(done)
}

/// What a traced thread did, without waiting for it.
///
/// # Errors
/// The kernel's, unchanged.
pub fn heard(thread: i32) -> io::Result<Traced> {
    let mut status = 0;
    // SAFETY: the kernel writes one number to `status`.
    let done = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Traced::Runs),
        _ if !libc::WIFSTOPPED(status) => Ok(Traced::Gone),
        _ if status >> 16 == EVENT_STOP => Ok(Traced::Stopped),
        _ => Ok(match libc::WSTOPSIG(status) {
            signal if signal == libc::SIGTRAP | 0x80 => Traced::AtCall,
            signal => Traced::Signalled(signal),
        }),
    }
}

/// Writes to the memory of another process.
///
/// # Errors
/// EFAULT where it has none, otherwise the kernel's.
pub fn write_memory(process: i32, at: u64, bytes: &[u8]) -> io::Result<()> {
    let local = piece(bytes.as_ptr() as u64, bytes.len());
    let remote = piece(at, bytes.len());
    // SAFETY: the kernel reads `bytes`, which outlive the call; `at` counts in the other process.
    let done =
        unsafe { libc::process_vm_writev(process, &raw const local, 1, &raw const remote, 1, 0) };
    whole(done, bytes.len())
}

/// Reads from the memory of another process.
///
/// # Errors
/// EFAULT where it has none, otherwise the kernel's.
pub fn read_memory(process: i32, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    let local = piece(bytes.as_mut_ptr() as u64, bytes.len());
    let remote = piece(at, bytes.len());
    // SAFETY: the kernel writes to `bytes` and nowhere else of this process.
    let done =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    whole(done, bytes.len())
}

fn piece(at: u64, bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: bytes,
    }
}

/// Less than all of it is a part that the other process does not have.
fn whole(done: isize, bytes: usize) -> io::Result<()> {
    match usize::try_from(done) {
        Ok(moved) if moved == bytes => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

fn request(request: libc::c_uint, thread: i32, data: usize) -> io::Result<()> {
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: the requests that come here take a number and no pointer.
    checked(unsafe { libc::ptrace(request, thread, none, data) })
}

fn checked(done: libc::c_long) -> io::Result<()> {
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
