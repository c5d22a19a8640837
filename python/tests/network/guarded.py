"""A server whose whole network is the small internet."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.world import Lifecycle
from live_server import LiveServer
from network import atlas
from network.internet import Internet
from network.places import Cell

# Makes a sandbox with a policy; it ends with the test.
Cells = Callable[..., Cell]
GUARD = b"barchan-egress"


class Guarded(LiveServer):
    """A server inside the small internet, on all addresses of its host."""

    def start(self) -> None:
        super().start()
        # What it says is `every address`; clients name one.
        self.domain = f"127.0.0.1:{self.domain.rpartition(':')[2]}"


@contextmanager
def guarded(net: Internet, *settings: str) -> Iterator[Lifecycle]:
    """A server whose sandboxes reach the small internet, with further settings about that. This
    thread is in the host's network meanwhile, and so are its clients."""
    resolvers = f'resolvers = ["{atlas.RESOLVER}:{atlas.DNS_PORT}"]'
    lines = ["[egress]", resolvers, *settings]
    live = Guarded(
        Path(tempfile.mkdtemp(prefix="barchan-test-")),
        listen='host = "::"\n',
        settings="".join(f"{line}\n" for line in lines),
    )
    with net.host.entered():
        try:
            live.start()
            made = Lifecycle(live)
            try:
                yield made
            finally:
                made.client.close()
        finally:
            live.stop()


def guards(lifecycle: Lifecycle) -> dict[int, int]:
    """The guards of a server, each with its parent."""
    launchers = set(lifecycle.server.launchers())
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            # One that has ended has no words any more.
            if words[0] == GUARD and parent in launchers:
                found[int(entry.name)] = parent
    return found
