"""Takes as much as it can get of one thing, up to a ceiling, and says how much that was.

Started with the name of a bomb and a ceiling. The last line "got N" counts, whatever ends it.
"""

import contextlib
import ctypes
import mmap
import os
import signal
import sys
import time

PIECE_MB = 8
PIECE = bytes(range(256)) * 4096 * PIECE_MB
HELD = []


def memory():
    """Memory of one process."""
    HELD.append(bytearray(PIECE))


def memory_of_children():
    """Memory of many processes, a little each; those that were killed hold nothing any more."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        HELD[:] = [bytearray(PIECE)]
        os.write(writer, b"x")
        signal.pause()
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    HELD.append(child)
    for child in list(HELD):
        if os.waitpid(child, os.WNOHANG)[0]:
            HELD.remove(child)
    return PIECE_MB * len(HELD)


def shared_memory():
    """Memory that belongs to no process alone."""
    block = mmap.mmap(-1, len(PIECE))
    block.write(PIECE)
    HELD.append(block)


def memory_file():
    """A file in memory that nobody maps."""
    file = os.memfd_create("bomb")
    os.write(file, PIECE)
    HELD.append(file)


def segment():
    """A System V segment that nobody is attached to any more."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, ctypes.c_size_t(len(PIECE)), 0o600 | 0o1000)
    if number < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    place = libc.shmat(number, None, 0)
    ctypes.memmove(place, PIECE, len(PIECE))
    libc.shmdt(ctypes.c_void_p(place))


def fill(path):
    """A file that grows, and keeps its place on the disk although its name is gone."""
    if not HELD:
        HELD.append(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.unlink(path)
    left = memoryview(PIECE)
    while left:
        left = left[os.write(HELD[0], left) :]
    if path.startswith("/workspace"):
        os.fsync(HELD[0])


def processes():
    """Processes that do nothing."""
    if os.fork() == 0:
        signal.pause()


def threads():
    """Threads that do nothing, each started by hand, as libraries refuse long before the kernel."""
    import threading

    threading.stack_size(65536)
    threading.Thread(target=signal.pause, daemon=True).start()


def files():
    """Empty files, a thousand at a time."""
    for _ in range(1000):
        HELD.append(None)
        os.close(os.open(f"/workspace/{len(HELD)}", os.O_CREAT | os.O_WRONLY))


BOMBS = {
    "memory": (memory, PIECE_MB),
    "memory of children": (memory_of_children, PIECE_MB),
    "shared memory": (shared_memory, PIECE_MB),
    "memory file": (memory_file, PIECE_MB),
    "segment": (segment, PIECE_MB),
    "/tmp": (lambda: fill("/tmp/bomb"), PIECE_MB),
    "/dev/shm": (lambda: fill("/dev/shm/bomb"), PIECE_MB),
    "disk": (lambda: fill("/workspace/bomb"), PIECE_MB),
    "files": (files, 1000),
    "processes": (processes, 1),
    "threads": (threads, 1),
}


def main():
    """Goes on until refused, killed or at the ceiling."""
    bomb, amount = BOMBS[sys.argv[1]]
    got, ceiling = 0, int(sys.argv[2])
    with contextlib.suppress(OSError, MemoryError, RuntimeError):
        for step in range(1, ceiling // amount + 1):
            held = bomb()
            got = max(got, step * amount if held is None else held)
            print("got", got, flush=True)
            if amount == PIECE_MB:
                # As fast as a program that also computes something.
                time.sleep(0.01)
    # What was taken stays taken for a while: this is when a neighbour would feel it.
    time.sleep(0.3)


main()
os._exit(0)
