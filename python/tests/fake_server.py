"""A scripted HTTP server: tests say which bytes it sends, and see what it was sent."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from barchan._address import Address


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; `connection` counts from 1."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


# What a handler answers: pieces of bytes, sent one by one; HANG_UP closes the connection there.
HANG_UP = b""
Handler = Callable[[Seen], Iterable[bytes]]


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """An answer with a length. Underscores in header names stand for hyphens."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def json_answer(value: object, status: int = 200, **headers: str) -> bytes:
    return answer(status, json.dumps(value).encode(), **headers)


def event(kind: str, text: str = "", **more: object) -> bytes:
    """One event of a command's stream."""
    fields = {"type": kind, "text": text, "timestamp": 1} | more
    return json.dumps(fields).encode() + b"\n\n"


def failure(code: str, *traceback: str) -> bytes:
    about = {"ename": "CommandExecError", "evalue": code, "traceback": list(traceback)}
    return event("error", error=about)


def stream_head() -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def stream(*events: bytes) -> bytes:
    """A whole stream of events."""
    return stream_head() + b"".join(map(chunk, events)) + b"0\r\n\r\n"


@dataclass
class FakeServer:
    """Serves until the `with` block ends; each connection in a thread of its own."""

    handler: Handler
    unix: Path | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    reads_bodies: bool = True

    def __enter__(self) -> FakeServer:
        self._stop = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        if self.unix is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.address = Address(host="127.0.0.1", port=self._listener.getsockname()[1])
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(self.unix))
            self._listener.listen()
            self.address = Address(socket_path=str(self.unix))
        self._spawn(self._accept)
        return self

    def _spawn(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args)
        self._threads.append(thread)
        thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def drop_connections(self) -> None:
        """Closes every connection, as a server does that is restarted."""
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._stop:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            self._spawn(self._serve, connection, self.connections)

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError), connection.makefile("rb") as reader:
            while first := reader.readline():
                method, path, _ = first.decode().split(" ", 2)
                headers: dict[str, str] = {}
                while (line := reader.readline()).strip():
                    name, _, value = line.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = b""
                if self.reads_bodies:
                    if "content-length" in headers:
                        body = reader.read(int(headers["content-length"]))
                    elif headers.get("transfer-encoding") == "chunked":
                        while size := int(reader.readline(), 16):
                            body += reader.read(size)
                            reader.readline()
                        reader.readline()
                request = Seen(method, path, headers, body, number)
                self.seen.append(request)
                for piece in self.handler(request):
                    if piece == HANG_UP:
                        return
                    connection.sendall(piece)
