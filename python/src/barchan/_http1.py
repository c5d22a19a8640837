"""HTTP/1.1 without input or output: requests to bytes, bytes to answers, however they are cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from barchan.errors import ProtocolError, Unreachable

HEAD_BYTES_MAX = 64 * 1024
LINE_BYTES_MAX = 8 * 1024

Piece = bytes | memoryview


class Body(Protocol):
    """What a request carries, piece by piece; `length` is None when it is not known beforehand."""

    @property
    def length(self) -> int | None:
        """Bytes in all, or None."""

    @property
    def waits(self) -> bool:
        """Whether getting a piece may wait for a disk."""

    def pieces(self) -> Iterator[Piece]:
        """The content from its beginning; asking again starts again."""


@dataclass(frozen=True)
class Bytes:
    """A body that is at hand."""

    content: bytes

    @property
    def length(self) -> int:
        """Bytes in all."""
        return len(self.content)

    @property
    def waits(self) -> bool:
        """It is all in memory."""
        return False

    def pieces(self) -> Iterator[Piece]:
        """The content in one piece."""
        if self.content:
            yield self.content


@dataclass(frozen=True)
class Head:
    """Status and headers of an answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]


def request_head(method: str, path: str, host: str, headers: Mapping[str, str]) -> bytes:
    """The head of a request. Refuses what would break out of its line."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    for line in lines:
        if not line.isascii() or not line.isprintable():
            raise ValueError(f"not fit for an HTTP head: {line.split(':')[0]!r}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def framed(body: Body) -> Iterator[Piece]:
    """The pieces of a body as they go on the wire: chunked when the length is unknown."""
    if body.length is not None:
        yield from body.pieces()
        return
    for piece in body.pieces():
        if len(piece):
            yield b"%x\r\n" % len(piece)
            yield piece
            yield b"\r\n"
    yield b"0\r\n\r\n"


@dataclass
class AnswerParser:
    """Takes the bytes of one answer in any pieces, gives its head and the pieces of its body.

    After `done` the connection may serve another request if `reusable` is true.
    """

    head: Head | None = None
    done: bool = False
    reusable: bool = False
    _buffer: bytearray = field(default_factory=bytearray)
    _left: int | None = None
    _chunked: bool = False
    _in_trailer: bool = False

    # BOUNDARY: sandbox → host. Test: test_any_cut_gives_the_same_answer
    def feed(self, data: bytes) -> list[bytes]:
        """Takes what arrived and returns the body pieces in it; b"" means the end of the stream."""
        if not data:
            return self._end_of_stream()
        if self._fits(data):
            return self._pass_on(data)
        self._buffer += data
        if self.head is None and not self._read_head():
            return []
        return self._read_body()

    def _fits(self, data: bytes) -> bool:
        """Whether all of this is content, so that a large download need not be copied again."""
        inside = self.head is not None and not (self.done or self._chunked or self._buffer)
        return inside and (self._left is None or len(data) <= self._left)

    def _pass_on(self, data: bytes) -> list[bytes]:
        if self._left is not None:
            self._left -= len(data)
            if not self._left:
                self._finish()
        return [data]

    def _read_head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if (end if end >= 0 else len(self._buffer)) > HEAD_BYTES_MAX:
                raise ProtocolError(f"the head of an answer is over {HEAD_BYTES_MAX} bytes")
            if end < 0:
                return False
            text = bytes(self._buffer[:end]).decode("latin-1")
            del self._buffer[: end + 4]
            head = _parse_head(text)
            if head.status >= 200:
                self.head = head
                self._choose_framing(text.startswith("HTTP/1.1"))
                return True

    def _choose_framing(self, keeps_alive: bool) -> None:
        assert self.head is not None
        headers = self.head.headers
        self.reusable = keeps_alive and headers.get("connection", "").lower() != "close"
        if self.head.status in (204, 304):
            self._left = 0
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            self._chunked = True
        elif "content-length" in headers:
            self._left = _number(headers["content-length"], 10)
        else:
            self.reusable = False
        if not self._chunked and self._left == 0:
            self._finish()

    def _read_body(self) -> list[bytes]:
        pieces: list[bytes] = []
        while not self.done:
            if self._chunked and not self._left:
                if not self._next_chunk():
                    break
                continue
            if not self._buffer:
                break
            take = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
            pieces.append(bytes(self._buffer[:take]))
            del self._buffer[:take]
            if self._left is not None:
                self._left -= take
                if not self._left and not self._chunked:
                    self._finish()
        return pieces

    def _next_chunk(self) -> bool:
        """Reads one line of the chunked framing; False when it has not arrived whole."""
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > LINE_BYTES_MAX:
                raise ProtocolError("a line of the chunked framing does not end")
            return False
        line = bytes(self._buffer[:end]).strip()
        del self._buffer[: end + 1]
        if self._in_trailer:
            if not line:
                self._finish()
        elif line or self._left is None:
            size = _number(line.split(b";")[0].decode("latin-1"), 16)
            self._left, self._in_trailer = size, size == 0
        return True

    def _finish(self) -> None:
        self.done = True
        self.reusable = self.reusable and not self._buffer

    def _end_of_stream(self) -> list[bytes]:
        endless = self.head is not None and self._left is None and not self._chunked
        if not self.done and not endless:
            raise Unreachable("the connection was closed in the middle of an answer", sent=True)
        self.done, self.reusable = True, False
        return []


def _parse_head(text: str) -> Head:
    first, *lines = text.split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest.partition(" ")[0]
    if not version.startswith("HTTP/1.") or not status.isdecimal() or len(status) != 3:
        raise ProtocolError(f"no HTTP answer but {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ProtocolError(f"a header line without a colon: {line[:80]!r}")
        headers[name.strip().lower()] = value.strip()
    return Head(int(status), headers)


def _number(text: str, base: int) -> int:
    digits = text.strip().lower()
    allowed = "0123456789abcdef"[:base]
    if not digits or len(digits) > 16 or any(digit not in allowed for digit in digits):
        raise ProtocolError(f"not a length: {text[:40]!r}")
    return int(digits, base)
