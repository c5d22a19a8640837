"""Stands before a server and notes what its clients ask, which pass on untouched."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PIECE_BYTES = 64 * 1024
HEAD_BYTES_MAX = 1024 * 1024
WAIT_S = 30.0
PROXY = "ANY /v1/sandboxes/{sandboxId}/proxy/{port}"


class Recorder:
    """Passes connections on to the server of this domain."""

    def __init__(self, domain: str) -> None:
        self.upstream = domain.rsplit(":", 1)
        self.asked: list[tuple[str, str]] = []
        self.domain = ""
        self.open: set[asyncio.StreamWriter] = set()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        host, port = self.upstream
        inner, outer = await asyncio.open_connection(host, int(port))
        answers = asyncio.create_task(copy(inner, writer))
        try:
            while await self.request(reader, outer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            outer.close()
            writer.close()
            await asyncio.gather(answers, return_exceptions=True)
            self.open.discard(writer)

    async def request(self, reader: asyncio.StreamReader, outer: asyncio.StreamWriter) -> bool:
        """Passes one request on; whether another one may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        self.asked.append((method, target))
        outer.write(head)
        headers = head.lower()
        if b"\r\nupgrade:" in headers:
            await copy(reader, outer)
            return False
        if b"\r\ntransfer-encoding: chunked" in headers:
            while size := int((line := await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                outer.write(line + await reader.readexactly(size + 2))
                await outer.drain()
            outer.write(line + await reader.readuntil(b"\r\n"))
        elif found := re.search(rb"\r\ncontent-length: *(\d+)", headers):
            rest = int(found[1])
            while rest:
                outer.write(piece := await reader.readexactly(min(rest, PIECE_BYTES)))
                await outer.drain()
                rest -= len(piece)
        await outer.drain()
        return True

    def routes(self, described: dict[str, Any]) -> dict[str, set[str]]:
        """What was asked, in the words of the description of the API: each operation with the names
        of the parameters that came along. What is none of its operations stands as it was asked."""
        found: dict[str, set[str]] = defaultdict(set)
        for method, target in self.asked:
            split = urlsplit(target)
            names = {name for name, _ in parse_qsl(split.query, keep_blank_values=True)}
            place = operation(method, split.path, described)
            found[place] |= set() if place == PROXY else names
        return found


def operation(method: str, path: str, described: dict[str, Any]) -> str:
    """The operation of a request; everything that goes to a program inside is one."""
    if re.match(r"(/v1)?/sandboxes/[^/]+/proxy/", path):
        return PROXY
    for template, operations in described["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, path) and method.lower() in operations:
            return f"{method} {template}"
    return f"{method} {path}"


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    writer.close()


@contextmanager
def recorded(domain: str) -> Iterator[Recorder]:
    """A recorder before a server, with a thread and a port of its own."""
    made = Recorder(domain)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> asyncio.Server:
        return await asyncio.start_server(made.converse, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)

    async def end() -> None:
        server.close()
        for writer in made.open:
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result(WAIT_S)
    made.domain = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()
