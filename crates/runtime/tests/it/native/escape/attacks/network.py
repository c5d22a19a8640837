"""Attacks on the host's sockets, and on what a neighbour leaves lying about."""

import glob

KEPT = []


def hear(listener, address, token):
    """Connects and reads the token that the host's listener gives everybody."""
    with listener:
        listener.settimeout(2)
        listener.connect(address)
        if listener.recv(100).decode() == token:
            return address
    raise Held("another listener")


@attack
def reach_host(facts, family):
    """Reaches the host's listener by every address of the host's."""
    version = {"4": socket.AF_INET, "6": socket.AF_INET6}[family]
    port, token = facts["port" + family], facts["token"]
    return first_that_works(
        [
            lambda address=address: hear(socket.socket(version), (address, port), token)
            for address in facts["addresses" + family]
        ]
    )


@attack
def reach_abstract_socket(facts, _):
    """Reaches the host's listener by a name that is in no file system."""
    return hear(socket.socket(socket.AF_UNIX), "\0" + facts["token"], facts["token"])


@attack
def reach_socket_file(facts, _):
    """Reaches the host's listener by its file."""
    return hear(socket.socket(socket.AF_UNIX), facts["socket"], facts["token"])


@attack
def see_interface(_facts, _):
    """Sees a network interface beside loopback."""
    found = [interface for _, interface in socket.if_nameindex() if interface != "lo"]
    if not found:
        raise Held("loopback only")
    return found


def places(token):
    """Files in folders that everybody may write to."""
    return {folder: f"/{folder}/{token}" for folder in ("tmp", "dev/shm", "var/tmp")}


def key(token):
    """A number for what System V calls a key."""
    return int.from_bytes(hashlib.sha256(token.encode()).digest()[:3], "big") + 1


def queue(flags, token):
    """Opens a POSIX message queue, for one short message."""
    return call(
        by_machine(240, 180), token.encode(), flags, 0o600, struct.pack("8q", 0, 1, 8, *[0] * 5)
    )


def system_v(flags, token):
    """Opens a segment, a queue and a semaphore by key; by name."""
    number = key(token)
    return {
        "segment": lambda: call(by_machine(29, 194), number, 4096, flags | 0o600),
        "queue": lambda: call(by_machine(68, 186), number, flags | 0o600),
        "semaphore": lambda: call(by_machine(64, 190), number, 1, flags | 0o600),
    }


@attack
def leave(facts, _):
    """Not an attack: leaves something at every place that could be shared."""
    token = facts["token"]
    for path in places(token).values():
        with open(path, "w") as file:
            file.write(token)
    for make in system_v(0o1000, token).values():
        make()
    queue(os.O_CREAT | os.O_RDWR, token)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0neighbour-" + token)
    listener.listen()
    KEPT.append(listener)


@attack
def take_back(facts, _):
    """Not an attack: the files of `leave`; the rest goes with its namespace."""
    for path in places(facts["token"]).values():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@attack
def find_file(facts, folder):
    """Finds what a neighbour left in a folder."""
    return os.stat(places(facts["token"])[folder]).st_size


@attack
def find_object(facts, which):
    """Finds what a neighbour left in the kernel."""
    if which == "posix queue":
        return queue(os.O_RDWR, facts["token"])
    return system_v(0, facts["token"])[which]()


@attack
def find_listener(facts, _):
    """Finds a neighbour's abstract socket."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("\0neighbour-" + facts["token"])


@attack
def find_neighbour(facts, _):
    """Finds a neighbour's process by its mark, the token backwards."""
    mark = facts["token"][::-1].encode()
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if mark in file.read():
                return path
    raise Held("nobody")
