"""Does what it is told to files of its sandbox, and tells what lies in them.

Each line on the connection is an order, its words hexadecimal where they are bytes; each is
answered by a line. It has nothing of the root open between two orders, and stands in the root.
"""

import os
import socket
import stat
import sys

ROOT, BLOCK, PLACE = b"/", 4096, b"/v/agents"


def word(text):
    """Bytes from their hexadecimal digits; a dash for none."""
    return b"" if text == "-" else bytes.fromhex(text)


def spelled(value):
    """The reverse."""
    return value.hex() or "-"


def stamp(path, time):
    """Sets the time of change."""
    os.utime(path, ns=(time, time), follow_symlinks=False)


def stamp_above(path, time):
    """Sets that of the folder that something is in."""
    stamp(os.path.dirname(path), time)


def write(path, flags, offset, data):
    """Writes to a file, and leaves it closed."""
    fd = os.open(path, flags | os.O_WRONLY | os.O_NOFOLLOW)
    try:
        if offset < 0:
            os.write(fd, data)
        else:
            os.pwrite(fd, data, offset)
    finally:
        os.close(fd)


def clear(path):
    """Removes a folder and all that is in it."""
    for name in os.listdir(path):
        inner = os.path.join(path, name)
        if stat.S_ISDIR(os.lstat(inner).st_mode):
            clear(inner)
        else:
            os.unlink(inner)
    os.rmdir(path)


def cross(old, new):
    """Moves a folder of which the kernel says that it lies in another place, as `mv` does."""
    found = os.lstat(old)
    os.mkdir(new)
    for name in os.listdir(old):
        here, there = os.path.join(old, name), os.path.join(new, name)
        if stat.S_ISDIR(os.lstat(here).st_mode):
            cross(here, there)
        else:
            os.rename(here, there)
    for name in os.listxattr(old):
        os.setxattr(new, name, os.getxattr(old, name))
    os.chown(new, found.st_uid, found.st_gid)
    os.chmod(new, stat.S_IMODE(found.st_mode))
    stamp(new, found.st_mtime_ns)
    os.rmdir(old)


def move(old, new):
    """Renames; says whether a folder had to be made anew."""
    try:
        os.rename(old, new)
        return "ok"
    except OSError as error:
        if error.errno != 18:
            raise
    if os.path.lexists(new):
        os.rmdir(new)
    cross(old, new)
    return "crossed"


HELD = []


def act(verb, path, rest):
    """Does one thing; the answer."""
    numbers = [int(it) for it in rest if it.lstrip("-").isdigit()]
    match verb:
        case "mkdir":
            os.mkdir(path)
            os.chmod(path, numbers[0])
            stamp(path, numbers[1])
            stamp_above(path, numbers[1])
        case "create":
            write(path, os.O_CREAT | os.O_EXCL, 0, word(rest[2][1:]))
            os.chmod(path, numbers[0])
            stamp(path, numbers[1])
            stamp_above(path, numbers[1])
        case "write":
            flags = os.O_APPEND if numbers[2] < 0 else 0
            write(path, flags, numbers[2], word(rest[3][1:]))
            os.chmod(path, numbers[0])
            stamp(path, numbers[1])
        case "truncate":
            os.truncate(path, numbers[2])
            os.chmod(path, numbers[0])
            stamp(path, numbers[1])
        case "link":
            new = word(rest[1][1:])
            os.link(path, new, follow_symlinks=False)
            stamp_above(new, numbers[0])
        case "symlink":
            os.symlink(word(rest[1][1:]), path)
            stamp(path, numbers[0])
            stamp_above(path, numbers[0])
        case "fifo":
            os.mkfifo(path)
            os.chmod(path, numbers[0])
            stamp(path, numbers[1])
            stamp_above(path, numbers[1])
        case "chmod":
            os.chmod(path, numbers[0])
        case "chown":
            os.lchown(path, numbers[1], numbers[2])
            if numbers[0] >= 0:
                os.chmod(path, numbers[0])
        case "set":
            os.setxattr(path, word(rest[0][1:]), word(rest[1][1:]))
        case "unset":
            os.removexattr(path, word(rest[0][1:]))
        case "touch":
            stamp(path, numbers[0])
        case "unlink":
            os.unlink(path)
            stamp_above(path, numbers[0])
        case "rmdir":
            os.rmdir(path)
            stamp_above(path, numbers[0])
        case "clear":
            clear(path)
            stamp_above(path, numbers[0])
        case "move":
            new = word(rest[1][1:])
            done = move(path, new)
            stamp_above(path, numbers[0])
            stamp_above(new, numbers[0])
            return done
        case "hold":
            HELD.append(os.open(path, os.O_WRONLY | os.O_CREAT))
            os.unlink(path)
        case "release":
            os.close(HELD.pop())
        case _:
            raise ValueError(verb)
    return "ok"


def content(path, found):
    """What is in it: of a file the pieces that are not empty, each with its number."""
    if stat.S_ISLNK(found.st_mode):
        return spelled(os.readlink(path))
    if not stat.S_ISREG(found.st_mode):
        return "-"
    pieces = []
    with open(path, "rb", buffering=0) as file:
        data = file.readall()
    if len(data) != found.st_size:
        return f"read-{len(data)}-of-{found.st_size}"
    for at in range(0, len(data), BLOCK):
        piece = data[at : at + BLOCK]
        if piece.strip(b"\0"):
            pieces.append(f"{at // BLOCK}:{piece.hex()}")
    return ",".join(pieces) or "-"


def attributes(path):
    """Its attributes of users, in order."""
    names = os.listxattr(path, follow_symlinks=False)
    names = sorted(os.fsencode(name) for name in names)
    pairs = ((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
    return ",".join(f"{name.hex()}={value.hex()}" for name, value in pairs) or "-"


def tell(path, out, is_root=False):
    """Adds a line for a path, and lines for all that is in it."""
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    size = 0 if kind == stat.S_IFDIR else found.st_size
    time = 0 if is_root else found.st_mtime_ns
    words = [path.hex(), kind, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, time]
    file = f"{found.st_dev}:{found.st_ino}"
    words += [file, size, content(path, found), attributes(path)]
    out.append(" ".join(map(str, words)))
    if kind == stat.S_IFDIR and not is_root:
        for name in os.listdir(path):
            tell(os.path.join(path, name), out)


def listing(tops):
    """What lies in these folders, line by line."""
    out = []
    tell(ROOT, out, is_root=True)
    for top in tops:
        tell(top, out)
    return "\n".join([*out, "end", ""])


def main(name, *tops):
    """Answers until nobody asks."""
    os.chdir("/")
    os.umask(0)
    tops = [word(top) for top in tops]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(PLACE)
    stream = connection.makefile("rwb")

    def answer(text):
        stream.write(text.encode())

    for top in tops:
        if not os.path.lexists(top):
            os.mkdir(top)
            stamp(top, 0)
    answer(f"{name}\n{listing(tops)}")
    stream.flush()
    for line in stream:
        verb, *rest = line.decode().split()
        if verb == "list":
            answer(listing(tops))
            stream.flush()
            continue
        if verb == "flush":
            stream.flush()
            continue
        try:
            told = act(verb, word(rest[0]), rest[1:])
        except OSError as error:
            told = f"{type(error).__name__} {error.errno} {error.strerror}"
        answer(f"{told}\n")


main(*sys.argv[1:])
