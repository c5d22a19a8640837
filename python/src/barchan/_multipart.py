"""Uploads as multipart/form-data: for each file its metadata and then its content."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barchan._http1 import Piece

PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Upload:
    """One file to be written: where, from what, and with which permission bits.

    `source` is the content or a local file, which is read while it is sent. `mode` None leaves the
    bits of an existing file alone.
    """

    path: str
    source: bytes | Path
    mode: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of content."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def pieces(self, size_bytes: int) -> Iterator[Piece]:
        """The content, exactly as many bytes as were announced."""
        if isinstance(self.source, bytes):
            view = memoryview(self.source)
            for at in range(0, len(view), PIECE_BYTES):
                yield view[at : at + PIECE_BYTES]
            return
        left = size_bytes
        with self.source.open("rb") as file:
            while left and (piece := file.read(min(PIECE_BYTES, left))):
                left -= len(piece)
                yield piece
        if left:
            raise OSError(f"{self.source} became shorter while it was sent")


def octal_digits(mode: int) -> int:
    """Permission bits as the wire writes them: octal digits read as a decimal number."""
    return int(f"{mode & 0o7777:o}")


def mode_bits(digits: object) -> int:
    """Permission bits from the wire's octal digits; 0 when they are none."""
    text = str(digits)
    return int(text, 8) if text.isascii() and text.isdecimal() and not set(text) & {"8", "9"} else 0


class Multipart:
    """The body of an upload. Its length is known, so servers and proxies can check it."""

    def __init__(self, uploads: Sequence[Upload]) -> None:
        self.boundary = f"barchan_{secrets.token_hex(16)}"
        self._parts = [(self._opening(upload), upload, upload.size_bytes) for upload in uploads]
        self._closing = f"--{self.boundary}--\r\n".encode("ascii")

    @property
    def content_type(self) -> str:
        """The value of the Content-Type header."""
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def length(self) -> int:
        """Bytes in all."""
        parts = sum(len(opening) + size + 2 for opening, _, size in self._parts)
        return parts + len(self._closing)

    @property
    def waits(self) -> bool:
        """Whether local files are read on the way."""
        return any(isinstance(upload.source, Path) for _, upload, _ in self._parts)

    def pieces(self) -> Iterator[Piece]:
        """The whole body; local files are read as it goes."""
        for opening, upload, size in self._parts:
            yield opening
            yield from upload.pieces(size)
            yield b"\r\n"
        yield self._closing

    def _opening(self, upload: Upload) -> bytes:
        """Everything before the content. The path stands in the metadata alone, as JSON."""
        about: dict[str, object] = {"path": upload.path}
        if upload.mode is not None:
            about["mode"] = octal_digits(upload.mode)
        return (
            f"--{self.boundary}\r\n"
            'Content-Disposition: form-data; name="metadata"; filename="metadata"\r\n'
            "Content-Type: application/json\r\n\r\n"
            f"{json.dumps(about)}\r\n"
            f"--{self.boundary}\r\n"
            'Content-Disposition: form-data; name="file"; filename="file"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode("ascii")
