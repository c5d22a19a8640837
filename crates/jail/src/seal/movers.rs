//! Processes that stand in a folder of the root: while they are stopped, they are made to enter the
//! folder of the same name in the new root, so that they notice nothing.
//!
//! Each makes one system call that it did not ask for, by ptrace(2): it is prepared before anything
//! is exchanged, as whoever cannot be prepared keeps the files from being exchanged. Other threads
//! of a process stand still for as long.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::Mode;
use rustix::time::Timespec;

use super::holders;
use crate::capture::Moment;
use crate::disk::FOLDER;
use crate::log;
use crate::sys::trace::{self, Registers, Traced};

/// Most threads that are stopped at once.
const THREADS_MAX: usize = 512;
/// How long a thread may take to stop, in nanoseconds: until then nothing has changed.
const STOP_NS_MAX: i64 = 200_000_000;
/// How long it may take to make its call, on a host that is busy: there is no way back from there.
const CALL_NS_MAX: i64 = 10_000_000_000;
/// How often it is looked what threads did.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000,
};
/// What lies below the stack's end belongs to nobody, but for these bytes.
const RED_ZONE: u64 = 128;
/// The code segment of a 64-bit program, as the kernel has it.
const CODE_64: u64 = 0x33;
/// Most that is looked through for it, in bytes.
const CODE_BYTES_MAX: u64 = 64 << 10;
/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A thread that stands in a folder of the old root, and the other threads of its process.
#[derive(Debug)]
pub(super) struct Mover {
    pub(super) process: i32,
    pub(super) thread: i32,
    /// The folder, as the sandbox names it.
    pub(super) folder: CString,
    /// Where the process has the instruction `syscall`.
    pub(super) instruction: u64,
    /// All threads of its process.
    pub(super) threads: Vec<i32>,
}

/// How those that stand in folders of the root are moved, of one process; `None`: they cannot be.
pub(super) fn of(
    process: i32,
    folder: &OwnedFd,
    filters_max: u32,
    stands: &[(i32, CString)],
) -> io::Result<Option<Vec<Mover>>> {
    let is_there = |path: &CString| !path.to_bytes().ends_with(b" (deleted)");
    let is_free = filters(folder)? <= filters_max && tracer(folder)? == 0;
    if !is_free || !stands.iter().all(|(_, path)| is_there(path)) {
        return Ok(None);
    }
    let Some(instruction) = instruction(process, folder)? else {
        return Ok(None);
    };
    let tasks = rustix::fs::openat(folder, "task", FOLDER, Mode::empty())?;
    let threads: Vec<i32> = holders::numbers(&tasks)?
        .iter()
        .filter_map(|name| name.to_str().ok()?.parse().ok())
        .collect();
    let movers = stands.iter().map(|(thread, path)| Mover {
        process,
        thread: *thread,
        folder: path.clone(),
        instruction,
        threads: threads.clone(),
    });
    Ok(Some(movers.collect()))
}

/// How many filters judge the system calls of a process: one of its own might end it for a call
/// that it did not mean to make.
pub(super) fn filters(process: &OwnedFd) -> io::Result<u32> {
    number(process, "Seccomp_filters:")
}

fn tracer(process: &OwnedFd) -> io::Result<u32> {
    number(process, "TracerPid:")
}

fn number(process: &OwnedFd, field: &str) -> io::Result<u32> {
    let status = holders::read(process, "status")?;
    let status = String::from_utf8_lossy(&status);
    let found = status.lines().find_map(|line| line.strip_prefix(field));
    Ok(found.and_then(|it| it.trim().parse().ok()).unwrap_or(0))
}

/// Where a process has the instruction `syscall`: the kernel maps code of its own into each.
fn instruction(process: i32, folder: &OwnedFd) -> io::Result<Option<u64>> {
    let maps = holders::read(folder, "maps")?;
    let maps = String::from_utf8_lossy(&maps);
    let range = maps
        .lines()
        .find(|line| line.ends_with("[vdso]"))
        .and_then(|line| line.split_whitespace().next()?.split_once('-'));
    let at = |text| u64::from_str_radix(text, 16).ok();
    let Some((begin, end)) = range.and_then(|(begin, end)| at(begin).zip(at(end))) else {
        return Ok(None);
    };
    let mut code = vec![0; end.saturating_sub(begin).min(CODE_BYTES_MAX) as usize];
    trace::read_memory(process, begin, &mut code)?;
    let place = code.windows(SYSCALL.len()).position(|it| it == SYSCALL);
    Ok(place.map(|place| begin + place as u64))
}

/// Threads that are stopped. When this is dropped, they go on.
#[derive(Debug, Default)]
pub(super) struct Movers {
    seized: Vec<Seized>,
    ready: Vec<Ready>,
}

#[derive(Debug, Clone, Copy)]
struct Seized {
    thread: i32,
    /// Signals that it was kept from.
    signal: i32,
}

/// A thread that is ready for its call.
#[derive(Debug)]
struct Ready {
    thread: i32,
    before: Registers,
    call: Registers,
    blocked: u64,
}

impl Movers {
    /// Says in the list of processes what this one is about to do: it must not be killed now, as
    /// whoever it leads would go on where they do not belong.
    pub(super) fn announce() {
        let _ = rustix::thread::set_name(c"barchan-move");
    }

    /// Stops them all and prepares them. Whoever cannot be prepared is an error.
    pub(super) fn prepare(all: &[Mover]) -> io::Result<Self> {
        let mut movers = Self::default();
        for mover in all {
            for thread in &mover.threads {
                movers.seize(*thread)?;
            }
        }
        for mover in all {
            let ready = prepare(mover)?;
            movers.ready.push(ready);
        }
        Ok(movers)
    }

    fn seize(&mut self, thread: i32) -> io::Result<()> {
        if self.seized.iter().any(|it| it.thread == thread) {
            return Ok(());
        }
        if self.seized.len() >= THREADS_MAX {
            return Err(io::ErrorKind::Unsupported.into());
        }
        trace::seize(thread)?;
        self.seized.push(Seized { thread, signal: 0 });
        trace::interrupt(thread)?;
        match until_heard(thread, STOP_NS_MAX)? {
            Traced::Stopped => Ok(()),
            // It was stopped by somebody else, or is about to handle a signal.
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Has them enter their folders: the sandbox is not stopped any more, only they are. One that
    /// cannot, or is gone, stays where it is.
    pub(super) fn move_all(mut self) {
        for ready in std::mem::take(&mut self.ready) {
            if let Err(error) = self.call(&ready) {
                log::say(&format!(
                    "a process could not be led to its folder: {error}"
                ));
            }
        }
    }

    /// Has one make its call, and puts it back to where it was.
    fn call(&mut self, ready: &Ready) -> io::Result<()> {
        let thread = ready.thread;
        // With the wrong registers it must not run on if this process dies.
        trace::bind(thread, true)?;
        let called = self.make(ready);
        if called.is_err() {
            // It may be anywhere on its way, and must stop to be put back.
            trace::interrupt(thread)?;
            until_heard(thread, CALL_NS_MAX)?;
        }
        trace::set_registers(thread, &restarted(ready.before))?;
        trace::block(thread, ready.blocked)?;
        trace::bind(thread, false)?;
        match called? {
            0 => Ok(()),
            refused => Err(io::Error::from_raw_os_error(-(refused as i32))),
        }
    }

    /// What the kernel answers to the call.
    fn make(&mut self, ready: &Ready) -> io::Result<i64> {
        trace::block(ready.thread, u64::MAX)?;
        trace::set_registers(ready.thread, &ready.call)?;
        // At the begin of the call, and at its end.
        for _ in 0..2 {
            self.until_call(ready.thread)?;
        }
        Ok(trace::registers(ready.thread)?.rax as i64)
    }

    fn until_call(&mut self, thread: i32) -> io::Result<()> {
        loop {
            trace::go_on(thread)?;
            match until_heard(thread, CALL_NS_MAX)? {
                Traced::AtCall => return Ok(()),
                Traced::Signalled(signal) => {
                    let mut seized = self.seized.iter_mut();
                    if let Some(seized) = seized.find(|it| it.thread == thread) {
                        seized.signal = signal;
                    }
                }
                Traced::Stopped => {}
                Traced::Gone | Traced::Runs => return Err(io::ErrorKind::NotFound.into()),
            }
        }
    }
}

impl Drop for Movers {
    fn drop(&mut self) {
        for seized in &self.seized {
            // One that is gone needs nothing.
            let _ = trace::let_go(seized.thread, 0);
            if seized.signal != 0 {
                let _ = rustix::process::Pid::from_raw(seized.thread)
                    .zip(rustix::process::Signal::from_named_raw(seized.signal))
                    .map(|(thread, signal)| rustix::process::kill_process(thread, signal));
            }
        }
    }
}

fn prepare(mover: &Mover) -> io::Result<Ready> {
    let before = trace::registers(mover.thread)?;
    if before.cs != CODE_64 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut found = [0; 2];
    trace::read_memory(mover.process, mover.instruction, &mut found)?;
    if found != SYSCALL {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let name = mover.folder.as_bytes_with_nul();
    let at = (before.rsp - RED_ZONE - name.len() as u64) & !15;
    trace::write_memory(mover.process, at, name)?;
    let call = Registers {
        rax: libc::SYS_chdir as u64,
        orig_rax: u64::MAX,
        rdi: at,
        rip: mover.instruction,
        ..before
    };
    let blocked = trace::blocked(mover.thread)?;
    Ok(Ready {
        thread: mover.thread,
        before,
        call,
        blocked,
    })
}

/// The registers of a thread that goes on where it was. A system call that it was interrupted in is
/// begun anew, as the kernel itself would have it: see `arch_do_signal_or_restart` of Linux.
fn restarted(before: Registers) -> Registers {
    let is_call = before.orig_rax as i64 >= 0;
    let call = match before.rax as i64 {
        // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND: kernel-internal, see linux/errno.h.
        -514..=-512 if is_call => before.orig_rax,
        // ERESTART_RESTARTBLOCK.
        -516 if is_call => libc::SYS_restart_syscall as u64,
        _ => return before,
    };
    Registers {
        rax: call,
        rip: before.rip - SYSCALL.len() as u64,
        ..before
    }
}

fn until_heard(thread: i32, most_ns: i64) -> io::Result<Traced> {
    let began = Moment::now();
    loop {
        match trace::heard(thread)? {
            Traced::Runs if began.elapsed_ns() < most_ns => {
                let _ = rustix::thread::nanosleep(&LOOK);
            }
            Traced::Runs => return Err(io::ErrorKind::TimedOut.into()),
            heard => return Ok(heard),
        }
    }
}
