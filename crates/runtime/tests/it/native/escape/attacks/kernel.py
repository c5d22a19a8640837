"""Attacks on the kernel: calls that reach deep into it, and other ways to call it."""

import fcntl
import mmap
import pty
import socket
import time

NAMESPACES = {
    "mount": 0x20000,
    "cgroup": 0x2000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
SIGCHLD = 17


# Number on x86-64 and aarch64, arguments, and errors that only come after the gate: an attack that
# gets one of them got through, and its arguments keep it from doing harm.
CALLS = {
    "io_uring_setup": (425, 425, lambda: (4, bytes(120)), ""),
    "bpf": (321, 280, lambda: (0, struct.pack("IIII", 2, 4, 4, 1) + bytes(112), 128), ""),
    "userfaultfd": (323, 282, lambda: (1,), ""),
    "keyctl": (250, 219, lambda: (0, -3, 1), ""),
    "add_key": (248, 217, lambda: (b"user", b"barchan", b"x", 1, -1), ""),
    "request_key": (249, 218, lambda: (b"user", b"none", None, 0), "ENOKEY"),
    "perf_event_open": (
        298,
        241,
        lambda: (struct.pack("II", 1, 128) + bytes(120), 0, -1, -1, 0),
        "",
    ),
    "init_module": (175, 105, lambda: (None, 0, b""), "ENOEXEC EFAULT"),
    "finit_module": (313, 273, lambda: (-1, b"", 0), "EBADF"),
    "delete_module": (176, 106, lambda: (b"barchan_none", 2048), "ENOENT"),
    "kexec_load": (246, 104, lambda: (0, 17, None, 0), "EINVAL"),
    "reboot": (169, 142, lambda: (0, 0, 0, None), "EINVAL"),
    "swapon": (167, 224, lambda: (None, 0), "EFAULT"),
    "iopl": (172, -1, lambda: (3,), ""),
    "syslog": (103, 116, lambda: (3, bytes(4096), 4096), ""),
    "personality": (135, 92, lambda: (0x0400000,), ""),
    "sethostname": (170, 161, lambda: (b"attacker", 8), ""),
    "kcmp": (312, 272, lambda: (os.getpid(), os.getpid(), 1, 0, 0), ""),
    "mount": (165, 40, lambda: (b"none", b"/mnt", b"tmpfs", 0, None), ""),
    "umount": (166, 39, lambda: (b"/proc/sys", 2), "EINVAL"),
    "pivot_root": (155, 41, lambda: (b"/", b"/"), "EBUSY EINVAL"),
    "fsopen": (430, 430, lambda: (b"tmpfs", 0), ""),
    "open_tree": (428, 428, lambda: (-100, b"/mnt", 0x8001), "EINVAL"),
    "move_mount": (429, 429, lambda: (-1, b"", -1, b"", 0x44), "EBADF"),
    "mount_setattr": (442, 442, lambda: (-1, b"", 0x1000, bytes(32), 32), "EBADF"),
    "fanotify_init": (300, 262, lambda: (0, 0), ""),
}


@attack
def system_call(_facts, which):
    """Makes a call that a sandbox has no use for."""
    x86_64, aarch64, arguments, through = CALLS[which]
    try:
        return call(by_machine(x86_64, aarch64), *arguments())
    except OSError as error:
        if errno.errorcode.get(error.errno) in through.split():
            return errno.errorcode[error.errno]
        raise


@attack
def unshare(_facts, which):
    """Moves into a namespace of its own, where it would hold every capability."""
    call(by_machine(272, 97), NAMESPACES[which])


@attack
def clone(_facts, which):
    """Makes a process in a namespace of its own."""
    if call(by_machine(56, 220), NAMESPACES[which] | SIGCHLD, None, None, None, None) == 0:
        os._exit(0)
    os.wait()


@attack
def clone3(_facts, which):
    """The same by the call whose flags no filter can see."""
    arguments = struct.pack("11Q", NAMESPACES[which], 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, 0)
    if call(435, ctypes.create_string_buffer(arguments), 88) == 0:
        os._exit(0)
    os.wait()


@attack
def set_clock(_facts, which):
    """Sets the clock's frequency to what it is."""
    number = {"adjtimex": by_machine(159, 171), "clock_adjtime": by_machine(305, 266)}[which]
    first = () if which == "adjtimex" else (0,)
    now = ctypes.create_string_buffer(208)
    call(number, *first, now)
    struct.pack_into("I", now, 0, 2)
    call(number, *first, now)


@attack
def call_by_x32(_facts, _):
    """Calls getpid by its x32 number, which a filter of plain numbers overlooks."""
    return call(by_machine(0x40000000 | 39, -1))


@attack
def call_by_int80(_facts, _):
    """Calls getpid by the interrupt of 32-bit programs, which have other numbers."""
    if by_machine(1, -1) < 0:
        raise Absent("only x86-64 has it")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 20; int 0x80; pop rbx; ret
    page.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if result < 0:
        raise OSError(-result, "refused")
    return result


@attack
def inject_input(_facts, request):
    """Puts a command into its terminal, to be read by whoever reads there next."""
    pid, ours = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, int(request, 16), b"x")
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    with contextlib.suppress(OSError):
        os.read(ours, 100)
    refused = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    # Not the gate's answer but the terminal's, which is no console.
    if refused not in (0, errno.ENOTTY, errno.EINVAL):
        raise OSError(refused, "refused")


@attack
def open_socket(_facts, which):
    """Opens a socket of a kind that a sandbox has no use for."""
    family, kind, protocol = (int(word) for word in which.split(","))
    socket.socket(family, kind, protocol).close()


@attack
def change_interface(_facts, _):
    """Sets the loopback interface's flags to what they are."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        interface = fcntl.ioctl(any_socket, 0x8913, b"lo".ljust(40, b"\0"))
        fcntl.ioctl(any_socket, 0x8914, interface)


@attack
def missing_calls(_facts, numbers):
    """Not an attack: makes every call with senseless arguments; which of them are missing."""
    # Without a terminal that one of them could hang up.
    os.setsid()
    missing = []
    # vfork's child would run on the stack of its parent.
    vfork = by_machine(58, -1)
    for number in set(range(int(numbers))) - {vfork}:
        child = os.fork()
        if child == 0:
            try:
                call(number, *[-1] * 6)
            except OSError as error:
                os._exit(error.errno == errno.ENOSYS)
            os._exit(0)
        end = time.monotonic() + 0.3
        while not (status := os.waitpid(child, os.WNOHANG))[0]:
            time.sleep(0.0005)
            # A call that waits is there.
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
        if status[1] == 1 << 8:
            missing.append(number)
    return json.dumps(sorted(missing))
