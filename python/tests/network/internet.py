"""A small internet: one namespace for the host under test, one for everybody else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from network import atlas
from network.namespaces import WAIT_S, Namespace
from paths import TESTS

Event = dict[str, Any]


class Servers:
    """A process that serves inside a namespace, and ends with its input."""

    def __init__(self, place: Namespace, module: str, *words: str) -> None:
        with place.entered():
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"network.servers.{module}", *words],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self.process.stdout
        if self.process.stdout.readline() != b"serving\n":
            self.end()
            raise AssertionError(f"{module} of the internet does not serve")

    def end(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class Internet:
    """What is beyond the host, and what it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The server is nobody's root, and reads the authority.
        folder.chmod(0o711)
        self.log = folder / "log"
        self.log.touch()
        self.authority = folder / "ca.pem"
        self.made = ExitStack()
        try:
            self._make()
        except BaseException:
            self.end()
            raise

    def _make(self) -> None:
        self.host, self.world = Namespace(), Namespace()
        self.made.callback(self.host.end)
        self.made.callback(self.world.end)
        self._wire()
        words = (str(self.log), str(self.authority), str(self.folder / "files"))
        self.servers: list[Servers] = []
        for place, module, more in ((self.world, "world", words), (self.host, "host", words[:1])):
            self.servers.append(Servers(place, module, *more))
            self.made.callback(self.servers[-1].end)

    def _wire(self) -> None:
        """Two ends of a cable; everything beyond the host's end is at the other one."""
        self.host.ip(f"link add host0 type veth peer name world0 netns {self.world.pid}")
        self.world.ip(
            f"addr add {atlas.GATEWAY}/30 dev world0",
            f"addr add {atlas.GATEWAY_LAN}/24 dev world0",
            f"addr add {atlas.GATEWAY_V6}/64 dev world0 nodad",
            f"addr add {atlas.GATEWAY_LINK}/64 dev world0 nodad",
            *(f"addr add {it} dev lo" for it in atlas.EVERYWHERE if it not in atlas.ON_LINK),
            "link set world0 up",
        )
        self.host.ip(
            f"addr add {atlas.HOST}/30 dev host0",
            f"addr add {atlas.HOST_LAN}/24 dev host0",
            f"addr add {atlas.HOST_V6}/64 dev host0 nodad",
            f"addr add {atlas.HOST_LINK}/64 dev host0 nodad",
            "link set host0 up",
            f"route add default via {atlas.GATEWAY} src {atlas.HOST}",
            f"route add default via {atlas.GATEWAY_V6} src {atlas.HOST_V6}",
        )

    def end(self) -> None:
        self.made.close()

    def mark(self) -> int:
        """Now; what happens later comes after it, and what has happened is noted before it."""
        self.settle()
        return self.log.stat().st_size

    def events(self, mark: int, kind: str, **wanted: Any) -> list[Event]:
        """What happened since then, of one kind and with these values."""
        lines = self.log.read_bytes()[mark:].splitlines()
        found = [json.loads(line) for line in lines]
        return [
            event
            for event in found
            if event["kind"] == kind and all(event.get(key) == it for key, it in wanted.items())
        ]

    def packets(self, mark: int, *to: str) -> list[Event]:
        """What came over the wire since then, for these addresses or for any: beginnings of
        connections, datagrams and the rest, but for what keeps the wire itself going."""
        self.settle()
        found = self.events(mark, "packet")
        return [event for event in found if not to or event["to"] in to]

    def settle(self) -> None:
        """Waits until everything that was on the wire is noted: a datagram sent behind it is."""
        mark = self.log.stat().st_size
        deadline = time.monotonic() + WAIT_S
        with self.host.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not self.events(mark, "settled"):
                assert time.monotonic() < deadline, "the wire's log does not go on"
                sender.sendto(b"", (atlas.GATEWAY, 9))
                time.sleep(0.01)


@contextmanager
def internet(folder: Path) -> Iterator[Internet]:
    made = Internet(folder)
    try:
        yield made
    finally:
        made.end()
