use super::*;

/// What the kernel would answer: runs the program over one call.
fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = [0u8; 64];
    data[0..4].copy_from_slice(&number.to_le_bytes());
    data[4..8].copy_from_slice(&architecture.to_le_bytes());
    for (at, argument) in arguments.iter().enumerate() {
        data[16 + 8 * at..24 + 8 * at].copy_from_slice(&argument.to_le_bytes());
    }
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let step = program[at];
        let taken = match step.code {
            LOAD => {
                let from = step.k as usize;
                accumulator = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                0
            }
            JUMP_EQUAL => {
                if accumulator == step.k {
                    step.jt
                } else {
                    step.jf
                }
            }
            JUMP_AT_LEAST => {
                if accumulator >= step.k {
                    step.jt
                } else {
                    step.jf
                }
            }
            JUMP_ANY_BIT => {
                if accumulator & step.k != 0 {
                    step.jt
                } else {
                    step.jf
                }
            }
            RETURN => return step.k,
            code => panic!("instruction {code:#x}"),
        };
        at += 1 + usize::from(taken);
    }
}

fn answer(number: i64, arguments: [u64; 6]) -> u32 {
    run(&filter(), THIS_ARCHITECTURE, number as u32, arguments)
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

fn errno(code: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | code as u32
}

#[test]
fn every_number_gets_the_verdict_of_the_list() {
    let program = filter();
    let listed = verdicts(SOCKET_FAMILIES);
    for number in 0..1024 {
        let wanted = match listed.iter().find(|(listed, _)| *listed == number) {
            Some((_, Verdict::Allow)) => ALLOW,
            Some(_) => continue,
            None => errno(libc::ENOSYS),
        };
        assert_eq!(
            run(&program, THIS_ARCHITECTURE, number, [0; 6]),
            wanted,
            "call {number}"
        );
    }
}

#[test]
fn arguments_decide_where_they_must() {
    let user = libc::CLONE_NEWUSER as u64;
    for (number, arguments, wanted) in [
        (
            libc::SYS_clone,
            [libc::SIGCHLD as u64, 0, 0, 0, 0, 0],
            ALLOW,
        ),
        (libc::SYS_clone, [user, 0, 0, 0, 0, 0], errno(libc::EPERM)),
        (
            libc::SYS_clone,
            [libc::CLONE_NEWNET as u64 | 17, 0, 0, 0, 0, 0],
            errno(libc::EPERM),
        ),
        (libc::SYS_ioctl, [0, 0x5401, 0, 0, 0, 0], ALLOW),
        (libc::SYS_ioctl, [0, 0x5412, 0, 0, 0, 0], errno(libc::EPERM)),
        (
            libc::SYS_ioctl,
            [0, 0xFFFF_FFFF_0000_5412, 0, 0, 0, 0],
            errno(libc::EPERM),
        ),
        (libc::SYS_ioctl, [0, 0x541C, 0, 0, 0, 0], errno(libc::EPERM)),
        (libc::SYS_socket, [1, 0, 0, 0, 0, 0], ALLOW),
        (libc::SYS_socket, [10, 0, 0, 0, 0, 0], ALLOW),
        (
            libc::SYS_socket,
            [40, 0, 0, 0, 0, 0],
            errno(libc::EAFNOSUPPORT),
        ),
        (
            libc::SYS_socket,
            [38, 0, 0, 0, 0, 0],
            errno(libc::EAFNOSUPPORT),
        ),
        (libc::SYS_personality, [0xFFFF_FFFF, 0, 0, 0, 0, 0], ALLOW),
        (
            libc::SYS_personality,
            [0x0800_0000, 0, 0, 0, 0, 0],
            errno(libc::EPERM),
        ),
        (libc::SYS_clone3, [0; 6], errno(libc::ENOSYS)),
    ] {
        assert_eq!(
            answer(number, arguments),
            wanted,
            "call {number} {arguments:x?}"
        );
    }
}

#[test]
fn other_ways_into_the_kernel_are_closed() {
    let program = filter();
    let read = libc::SYS_read as u32;
    assert_eq!(
        run(&program, 0x4000_0003, read, [0; 6]),
        errno(libc::ENOSYS),
        "i386"
    );
    if cfg!(target_arch = "x86_64") {
        assert_eq!(
            run(&program, THIS_ARCHITECTURE, X32_BIT | read, [0; 6]),
            errno(libc::ENOSYS)
        );
    }
}

#[test]
fn what_reaches_deep_into_the_kernel_is_not_listed() {
    for number in [
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_mount,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_pivot_root,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_open_by_handle_at,
        libc::SYS_init_module,
        libc::SYS_kexec_load,
        libc::SYS_vmsplice,
    ] {
        assert_eq!(answer(number, [0; 6]), errno(libc::ENOSYS), "call {number}");
    }
}

#[test]
fn jumps_fit_their_eight_bits() {
    let listed = segments(&verdicts(SOCKET_FAMILIES));
    let (left, _) = listed.split_at(listed.len() / 2);
    assert!(
        search(left).len() < 256,
        "the left half is too far to jump over"
    );
}
