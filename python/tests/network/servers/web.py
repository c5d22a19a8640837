"""Web servers: HTTP/1.1 in the clear and in TLS, and HTTP/2 where a client wants it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from network.servers import http2
from network.servers.log import Log
from network.servers.secure import asked_for

HEAD_BYTES_MAX = 64 * 1024
PIECE = hashlib.sha256(b"large").digest() * 2048
PREFACE_LINE = b"PRI * HTTP/2.0\r\n"


@dataclass(frozen=True)
class Asked:
    """A request, whichever version of HTTP it came by."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    host: str
    local: str
    port: int
    sni: str | None
    version: str

    def told(self) -> dict[str, object]:
        return {
            "method": self.method,
            "path": self.path,
            "host": self.host,
            "local": self.local,
            "port": self.port,
            "sni": self.sni,
            "version": self.version,
            "headers": self.headers,
        }


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)


class Web:
    """What all web servers of the internet answer."""

    def __init__(self, log: Log, files: Path) -> None:
        self.log, self.files = log, files
        self.awaited: dict[str, asyncio.Event] = {}

    def answer(self, asked: Asked) -> Answer:
        self.log("http", **asked.told())
        if asked.sni is not None and asked.sni.lower() != asked.host.partition(":")[0].lower():
            return Answer(421, b"another server's name\n")
        place, _, rest = asked.path.lstrip("/").partition("/")
        match place:
            case "hello" | "latest":
                return Answer(200, json.dumps(asked.told()).encode())
            case "to":
                return Answer(302, headers=[("Location", unquote(rest))])
            case "large":
                return Answer(200, (PIECE * (int(rest) // len(PIECE) + 1))[: int(rest)])
            case "seen":
                self.event(rest).set()
                return Answer(200, b"noted\n")
        return self.file(asked)

    def file(self, asked: Asked) -> Answer:
        """A file below the folder of the host that was asked."""
        top = (self.files / asked.host.partition(":")[0]).resolve()
        path = (top / asked.path.partition("?")[0].lstrip("/")).resolve()
        if path.is_dir():
            path /= "index.html"
        if top in path.parents and path.is_file():
            kind = "text/html" if path.suffix == ".html" else "application/octet-stream"
            return Answer(200, path.read_bytes(), [("Content-Type", kind)])
        return Answer(404, b"no such file\n")

    def event(self, word: str) -> asyncio.Event:
        return self.awaited.setdefault(word, asyncio.Event())


class Connection:
    """One connection of HTTP/1.1, which may become one of HTTP/2."""

    def __init__(
        self, web: Web, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.web, self.reader, self.writer = web, reader, writer
        self.local, self.port = writer.get_extra_info("sockname")[:2]
        self.tls: ssl.SSLObject | None = writer.get_extra_info("ssl_object")

    def asked(
        self, method: str, path: str, headers: list[tuple[str, str]], version: str, host: str
    ) -> Asked:
        sni = asked_for(self.tls)
        return Asked(method, path, headers, host, self.local, self.port, sni, version)

    async def serve(self) -> None:
        self.web.log("connection", local=self.local, port=self.port, tls=self.tls is not None)
        try:
            if self.tls and self.tls.selected_alpn_protocol() == "h2":
                await http2.serve(self, b"")
                return
            while await self.one():
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self.writer.close()

    async def one(self) -> bool:
        """Serves one request; whether another one may follow."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        if head.startswith(PREFACE_LINE):
            await http2.serve(self, head)
            return False
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = [line.partition(":") for line in lines]
        headers = [(name.lower(), value.strip()) for name, _, value in pairs]
        known = dict(headers)
        if length := int(known.get("content-length", "0")):
            await self.reader.readexactly(length)
        asked = self.asked(method, path, headers, "1.1", known.get("host", ""))
        if known.get("upgrade", "").lower() == "h2c":
            self.web.log("upgrade", host=asked.host, path=path)
            await http2.upgraded(self, known.get("http2-settings", ""), asked)
            return False
        if path.startswith("/events/"):
            await self.events(asked, path.rpartition("/")[2])
            return False
        answer = self.web.answer(asked)
        lines = [f"HTTP/1.1 {answer.status} That", f"Content-Length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        self.writer.write(answer.body if method != "HEAD" else b"")
        await self.writer.drain()
        return known.get("connection", "").lower() != "close"

    async def events(self, asked: Asked, word: str) -> None:
        """Two events, the second of which waits until somebody has seen the first."""
        self.web.log("http", **asked.told())
        head = "HTTP/1.1 200 That\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        self.writer.write(head.encode() + b"data: first\n\n")
        await self.writer.drain()
        await self.web.event(word).wait()
        self.writer.write(b"data: second\n\n")
        await self.writer.drain()


async def serve(web: Web, address: str, port: int, secure: ssl.SSLContext | None = None) -> None:
    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(web, reader, writer).serve()

    await asyncio.start_server(one, address, port, ssl=secure, limit=HEAD_BYTES_MAX)
