"""Network namespaces that exist as long as a process holds them, and have no name anywhere."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
WAIT_S = 30.0

_libc = ctypes.CDLL(None, use_errno=True)


def _join(namespace: int) -> None:
    """Takes this thread, and whatever it starts from now on, into a network namespace."""
    if _libc.setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"joining a network namespace: {os.strerror(number)}")


class Namespace:
    """A network with nothing but a loopback in it."""

    def __init__(self) -> None:
        assert os.geteuid() == 0, "making networks takes root: run the tests of networks as root"
        # The holder ends with its input, and so with this process, however that ends.
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo made; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.holder.stdout
        if self.holder.stdout.readline() != b"made\n":
            self.end()
            raise AssertionError("no network namespace was made")
        self.ip("link set lo up")

    @property
    def pid(self) -> int:
        return self.holder.pid

    @property
    def path(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/net")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is inside meanwhile, with all processes and threads that it starts."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _join(there)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _join(home)
        finally:
            os.close(home)

    def ip(self, *lines: str) -> None:
        """Runs lines of `ip`, each without that word."""
        text = "".join(f"{line}\n" for line in lines)
        with self.entered():
            done = subprocess.run(
                ["ip", "-batch", "-"],
                input=text,
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                check=False,
            )
        assert done.returncode == 0, f"{text}{done.stderr}"

    def end(self) -> None:
        assert self.holder.stdin
        assert self.holder.stdout
        self.holder.stdin.close()
        self.holder.wait(WAIT_S)
        self.holder.stdout.close()
