"""Attacks on processes: the host's, and the daemon that is PID 1 of the sandbox."""

import resource


@attack
def see_host_process(facts, _):
    """Finds the host's process that carries the token in its command line."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if facts["token"].encode() in file.read().split(b"\0")[:1]:
                return pid
    raise Held("none of the host's")


@attack
def signal_host_process(facts, _):
    """Signals the host's process by its number, and by a descriptor of it."""
    first_that_works(
        [
            lambda: os.kill(facts["pid"], 0),
            lambda: signal.pidfd_send_signal(os.pidfd_open(facts["pid"]), 0),
        ]
    )


@attack
def read_host_environ(facts, _):
    """Reads the environment of the host's process."""
    with open(f"/proc/{facts['pid']}/environ", "rb") as file:
        return len(file.read())


@attack
def trace_init(_facts, _):
    """Attaches to PID 1 as a debugger."""
    seize, detach = 0x4206, 17
    call(by_machine(101, 117), seize, 1, 0, 0)
    with contextlib.suppress(OSError):
        call(by_machine(101, 117), detach, 1, 0, 0)


def vectors(length):
    """Two descriptions of the same bytes: here, and at the same address in another process."""
    buffer = ctypes.create_string_buffer(length)
    vector = struct.pack("QQ", ctypes.addressof(buffer), length)
    return buffer, ctypes.create_string_buffer(vector), ctypes.create_string_buffer(vector)


@attack
def read_memory_of_init(_facts, _):
    """Copies memory out of PID 1."""
    _buffer, here, there = vectors(16)
    call(by_machine(310, 270), 1, here, 1, there, 1, 0)


@attack
def write_memory_of_init(_facts, _):
    """Writes zeros into PID 1, where they are zeros already in a copy of this process."""
    _buffer, here, there = vectors(16)
    call(by_machine(311, 271), 1, here, 1, there, 1, 0)


@attack
def steal_descriptor(_facts, _):
    """Takes a descriptor of PID 1."""
    init = os.pidfd_open(1)
    first_that_works([lambda fd=fd: call(438, init, fd, 0) for fd in range(6)])


@attack
def seize_program_of_init(_facts, _):
    """Gets hold of the program that PID 1 runs, to overwrite it once nobody runs it."""
    os.close(os.open("/proc/1/exe", os.O_PATH))
    os.close(os.open("/proc/1/exe", os.O_RDONLY))


@attack
def read_link(_, path):
    """Learns where a link of the kernel's leads."""
    return os.readlink(path)


@attack
def join_namespace(_facts, name):
    """Joins a namespace of PID 1."""
    file = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
    call(by_machine(308, 268), file, 0)


@attack
def join_own_namespace(_facts, name):
    """Joins a namespace that it may name."""
    file = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
    call(by_machine(308, 268), file, 0)


@attack
def hide_from_the_killer(_facts, _):
    """Makes itself the last to be killed when memory runs out."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")


@attack
def run_in_real_time(_facts, _):
    """Runs before everything else."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


@attack
def run_first(_facts, _):
    """Runs before everything else of its class."""
    os.setpriority(os.PRIO_PROCESS, 0, -20)


@attack
def raise_limit(_facts, _):
    """Raises a limit that was set for good."""
    kind = resource.RLIMIT_NOFILE
    resource.setrlimit(kind, (100, 100))
    limits = ctypes.create_string_buffer(struct.pack("QQ", 200, 200))
    call(by_machine(302, 261), 0, kind, limits, None)


@attack
def hold_capability(facts, _):
    """Has a capability beyond those that a sandbox's root may have."""
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        beyond = int(lines[name], 16) & ~facts["capabilities"]
        if beyond:
            return f"{name} {beyond:#x}"
    raise Held("none beyond")


@attack
def inherit_descriptor(_facts, _):
    """Finds a descriptor that somebody left open."""
    if INHERITED:
        return INHERITED
    raise Held("none left open")


@attack
def escape_own_group(facts, _):
    """Moves into the control group that the test names, out of its limits."""
    path = os.path.join(facts["neighbour_group"], "cgroup.procs")
    os.close(os.open(path, os.O_WRONLY))


@attack
def make_group(_facts, kind):
    """Mounts a control group hierarchy and makes a group in it: the way to a release agent."""
    target = tempfile.mkdtemp(dir=".")
    kind, _, options = kind.partition(",")
    call(by_machine(165, 40), b"none", target.encode(), kind.encode(), 0, options.encode() or None)
    try:
        group = os.path.join(target, "attack")
        os.mkdir(group)
        os.rmdir(group)
    finally:
        call(by_machine(166, 39), target.encode(), 2)
        os.rmdir(target)
