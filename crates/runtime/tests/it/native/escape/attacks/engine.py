"""Runs attacks, each in a process of its own, and says for each whether it worked.

The same text runs in the sandbox and where the defence is off. An attack returns when it worked,
raises the kernel's error or `Held` when it was refused, and `Absent` where this kernel lacks what
it attacks.
"""

import ctypes
import errno
import json
import os
import platform
import select
import signal
import sys

ATTACKS = {}
PATIENCE_S = 10
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

# What this process was handed, before it opened anything itself.
INHERITED = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
INHERITED = [fd for fd in INHERITED if os.path.exists(f"/proc/self/fd/{fd}")]


class Held(Exception):
    """Refused in a way that is no error of the kernel's."""


class Absent(Exception):
    """There is nothing to attack here."""


def attack(function):
    """Makes a function an attack: called with the facts and the words after its name's colon."""
    ATTACKS[function.__name__] = function
    return function


def by_machine(x86_64, aarch64):
    """The number of a system call on this machine; -1 where it has none."""
    return {"x86_64": x86_64, "aarch64": aarch64}[platform.machine()]


def word(argument):
    """An argument as the kernel takes it: a number, a pointer to a copy of bytes, or nothing."""
    if isinstance(argument, int):
        return ctypes.c_long(argument)
    if isinstance(argument, bytes):
        return ctypes.create_string_buffer(argument, len(argument) + 1)
    return argument


def call(number, *arguments):
    """A raw system call; raises the kernel's error."""
    if number < 0:
        raise Absent("this machine has no such call")
    result = LIBC.syscall(ctypes.c_long(number), *map(word, arguments))
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def in_child(work):
    """Runs `work` in a process of its own; gives back what it returned, raises what it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(PATIENCE_S)
        try:
            result = ("worked", str(work() or "done"))
        except Absent as reason:
            result = ("absent", str(reason))
        except Held as reason:
            result = ("refused", f"held: {reason}")
        except OSError as error:
            result = ("refused", errno.errorcode.get(error.errno, str(error)))
        except BaseException as error:
            result = ("broken", repr(error))
        os.write(writer, json.dumps(result).encode()[:4000])
        os._exit(0)
    os.close(writer)
    heard = b""
    while select.select([reader], [], [], PATIENCE_S + 1)[0]:
        piece = os.read(reader, 4096)
        heard += piece
        if not piece:
            break
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if heard:
        return json.loads(heard)
    return ("broken", f"ended with status {status:#x}")


def run(attacks, facts):
    """Runs attacks and prints one line of JSON for each."""
    for whole in attacks:
        name, _, words = whole.partition(":")
        outcome, detail = in_child(lambda: ATTACKS[name](facts, words))
        print(json.dumps({"attack": whole, "outcome": outcome, "detail": detail}), flush=True)


def main():
    """Does what the order says."""
    order = json.loads(sys.argv[1])
    facts = order["facts"]
    if not facts.get("leave_first"):
        return run(order["attacks"], facts)
    try:
        ATTACKS["leave"](facts, "")
        if facts.get("stay"):
            print("left", flush=True)
            signal.pause()
        return run(order["attacks"], facts)
    finally:
        ATTACKS["take_back"](facts, "")
