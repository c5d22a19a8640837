//! Pure. The system-call filter of everything that runs for a user: an allow list as a binary
//! search.
//!
//! Foreign architectures and the x32 numbers are refused before any number is looked at, because
//! the same number means another call there. What is not listed answers ENOSYS, so that programs
//! fall back to older calls; that includes clone3, whose flags lie in memory where no filter can
//! see them. The search is written by hand (not a chain of comparisons) because the kernel runs the
//! filter once for every existing number when it is installed, and at every call afterwards.

mod syscalls;

use libc::{SYS_clone, SYS_ioctl, SYS_personality, SYS_socket, sock_filter};

/// Offsets into the kernel's `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const THIS_ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const THIS_ARCHITECTURE: u32 = 0xC000_00B7;

/// Numbers from here on belong to the x32 way of calling.
const X32_BIT: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Allow,
    Refuse(i32),
    /// Allowed unless the argument has one of these bits.
    UnlessBits {
        argument: u32,
        bits: u32,
        errno: i32,
    },
    /// Allowed unless the argument is one of these.
    Unless {
        argument: u32,
        values: &'static [u32],
        errno: i32,
    },
    /// Allowed only if the argument is one of these.
    Only {
        argument: u32,
        values: &'static [u32],
        errno: i32,
    },
}

/// Every flag that makes a namespace: a command must not get a user namespace in which it holds all
/// capabilities and reaches parts of the kernel that it otherwise cannot.
const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// TIOCSTI and TIOCLINUX put input into somebody's terminal.
const INJECTING_IOCTLS: &[u32] = &[0x5412, 0x541C];
/// Unix, IPv4, IPv6 and netlink; not vsock, packet or the kernel's crypto.
const SOCKET_FAMILIES: &[u32] = &[1, 2, 10, 16];
/// The execution domains that programs really ask for; the rest are old bugs.
const PERSONALITIES: &[u32] = &[0, 0x8, 0x2_0000, 0x2_0008, 0xFFFF_FFFF];

/// The filter of commands, for this architecture.
#[must_use]
pub fn filter() -> Vec<sock_filter> {
    filter_of_families(SOCKET_FAMILIES)
}

/// The same with sockets of these families alone.
#[must_use]
pub fn filter_of_families(families: &'static [u32]) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE),
        jump(JUMP_EQUAL, THIS_ARCHITECTURE, 1, 0),
        refuse(libc::ENOSYS),
        load(NUMBER),
    ];
    if cfg!(target_arch = "x86_64") {
        program.extend([jump(JUMP_AT_LEAST, X32_BIT, 0, 1), refuse(libc::ENOSYS)]);
    }
    program.extend(search(&segments(&verdicts(families))));
    program
}

/// Number and verdict of every listed call, sorted.
fn verdicts(families: &'static [u32]) -> Vec<(u32, Verdict)> {
    let mut list: Vec<(u32, Verdict)> = syscalls::ALLOWED
        .iter()
        .map(|number| (*number as u32, Verdict::Allow))
        .collect();
    list.extend([
        (
            SYS_clone as u32,
            Verdict::UnlessBits {
                argument: 0,
                bits: NAMESPACE_FLAGS,
                errno: libc::EPERM,
            },
        ),
        (
            SYS_ioctl as u32,
            Verdict::Unless {
                argument: 1,
                values: INJECTING_IOCTLS,
                errno: libc::EPERM,
            },
        ),
        (
            SYS_socket as u32,
            Verdict::Only {
                argument: 0,
                values: families,
                errno: libc::EAFNOSUPPORT,
            },
        ),
        (
            SYS_personality as u32,
            Verdict::Only {
                argument: 0,
                values: PERSONALITIES,
                errno: libc::EPERM,
            },
        ),
    ]);
    list.sort_by_key(|(number, _)| *number);
    list.dedup_by_key(|(number, _)| *number);
    list
}

/// The whole range of numbers cut where the verdict changes: `(first number, verdict)`.
fn segments(verdicts: &[(u32, Verdict)]) -> Vec<(u32, Verdict)> {
    let refused = Verdict::Refuse(libc::ENOSYS);
    let mut cut = vec![(0, refused)];
    let mut next = 0;
    for (number, verdict) in verdicts {
        if *number > next {
            cut.push((next, refused));
        }
        cut.push((*number, *verdict));
        next = number + 1;
    }
    cut.push((next, refused));
    let mut merged: Vec<(u32, Verdict)> = Vec::new();
    for (number, verdict) in cut {
        match merged.last_mut() {
            Some(last) if last.0 == number => last.1 = verdict,
            Some(last) if last.1 == verdict => {}
            _ => merged.push((number, verdict)),
        }
    }
    merged
}

/// A balanced decision tree over sorted segments; the number is in the accumulator.
fn search(segments: &[(u32, Verdict)]) -> Vec<sock_filter> {
    match segments {
        [] => vec![refuse(libc::ENOSYS)],
        [(_, verdict)] => decide(*verdict),
        _ => {
            let (left, right) = segments.split_at(segments.len() / 2);
            let below = search(left);
            let first = right.first().map_or(0, |(number, _)| *number);
            let mut program = vec![jump(JUMP_AT_LEAST, first, below.len() as u8, 0)];
            program.extend(below);
            program.extend(search(right));
            program
        }
    }
}

/// The instructions that end with a verdict.
fn decide(verdict: Verdict) -> Vec<sock_filter> {
    match verdict {
        Verdict::Allow => vec![allow()],
        Verdict::Refuse(errno) => vec![refuse(errno)],
        Verdict::UnlessBits {
            argument,
            bits,
            errno,
        } => vec![
            load(ARGUMENTS + 8 * argument),
            jump(JUMP_ANY_BIT, bits, 0, 1),
            refuse(errno),
            allow(),
        ],
        Verdict::Unless {
            argument,
            values,
            errno,
        } => compare(argument, values, refuse(errno), allow()),
        Verdict::Only {
            argument,
            values,
            errno,
        } => compare(argument, values, allow(), refuse(errno)),
    }
}

/// `equal` if the low half of the argument is one of `values`, else `other`. The calls compared so
/// take 32-bit arguments: the kernel ignores the high half, and so must we.
fn compare(
    argument: u32,
    values: &[u32],
    equal: sock_filter,
    other: sock_filter,
) -> Vec<sock_filter> {
    let mut program = vec![load(ARGUMENTS + 8 * argument)];
    for (at, value) in values.iter().enumerate() {
        program.push(jump(JUMP_EQUAL, *value, (values.len() - at) as u8, 0));
    }
    program.extend([other, equal]);
    program
}

fn load(offset: u32) -> sock_filter {
    sock_filter {
        code: LOAD,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

fn jump(code: u16, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter {
        code,
        jt: if_true,
        jf: if_false,
        k: value,
    }
}

fn allow() -> sock_filter {
    sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    }
}

fn refuse(errno: i32) -> sock_filter {
    sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ERRNO | errno as u32,
    }
}

#[cfg(test)]
mod tests;
