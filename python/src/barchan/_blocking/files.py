"""Files of one sandbox, blocking."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from barchan import _trees
from barchan._blocking.transport import Transport
from barchan._calls import files as calls
from barchan._multipart import Upload
from barchan._request import ANSWER_BYTES_MAX
from barchan.models import FileInfo, FileInfos


class Files:
    """Reads, writes and finds files. Paths are those inside the sandbox."""

    def __init__(self, transport: Transport, sandbox_id: str) -> None:
        self._transport = transport
        self._id = sandbox_id

    def write(self, path: str, content: bytes | str, *, mode: int | None = None) -> None:
        """Writes a file, and makes the directories above it. `mode` are permission bits."""
        data = content.encode("utf-8") if isinstance(content, str) else content
        self.write_many([Upload(path, data, mode)])

    def write_many(self, uploads: Sequence[Upload]) -> None:
        """Writes many files in one request."""
        self._transport.call(calls.upload(self._id, uploads))

    def upload(self, local: str | Path, path: str, *, mode: int | None = None) -> None:
        """Sends a local file without holding it in memory."""
        self.write_many([Upload(path, Path(local), mode)])

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with self._transport.open(calls.download(self._id, path, None, None)) as stream:
            return stream.read(ANSWER_BYTES_MAX)

    def read_text(self, path: str) -> str:
        """The content of a UTF-8 file."""
        return self.read(path).decode("utf-8")

    def stream(
        self, path: str, *, first: int | None = None, last: int | None = None
    ) -> Iterator[bytes]:
        """The content piece by piece; or the bytes from `first` to `last`, both included."""
        with self._transport.open(calls.download(self._id, path, first, last)) as stream:
            yield from stream

    def download(self, path: str, local: str | Path) -> int:
        """Writes a file of the sandbox to a local one; returns its size in bytes."""
        size = 0
        with (
            self._transport.open(calls.download(self._id, path, None, None)) as stream,
            Path(local).open("wb") as file,
        ):
            for piece in stream:
                size += file.write(piece)
        return size

    def upload_dir(self, local: str | Path, path: str) -> str:
        """Copies what is in a local directory to one of the sandbox, which is made if it is
        missing; modes, times and links are kept. Returns what had to be left out, as text."""
        return _run(_trees.into(self._transport.address, self._id, local, path))

    def download_dir(self, path: str, local: str | Path, *, max_bytes: int | None = None) -> str:
        """Copies what is in a directory of the sandbox to a local one, which is made if it is
        missing. Nothing is written outside it, whatever the sandbox sends; links that lead out
        are left out. Returns what had to be left out, as text."""
        copy = _trees.out_of(self._transport.address, self._id, path, local, max_bytes)
        return _run(copy)

    def info(self, path: str) -> FileInfo:
        """What is known of a path."""
        return next(iter(self.info_many([path]).values()))

    def info_many(self, paths: Sequence[str]) -> dict[str, FileInfo]:
        """What is known of paths; one that is missing fails the whole call."""
        return self._transport.call(calls.info(self._id, paths))

    def list(self, path: str, *, depth: int = 1) -> FileInfos:
        """What is in a directory, this many levels deep."""
        return self._transport.call(calls.listing(self._id, path, depth))

    def search(self, path: str, pattern: str = "**") -> FileInfos:
        """Regular files below a directory whose names match a glob."""
        return self._transport.call(calls.search(self._id, path, pattern))

    def delete(self, *paths: str) -> None:
        """Removes files; missing ones are fine."""
        self._transport.call(calls.delete(self._id, paths, directories=False))

    def delete_directories(self, *paths: str) -> None:
        """Removes directories with all that is in them; missing ones are fine."""
        self._transport.call(calls.delete(self._id, paths, directories=True))

    def move(self, moves: Mapping[str, str]) -> None:
        """Renames paths, from each key to its value."""
        self._transport.call(calls.move(self._id, moves))

    def make_directories(self, *paths: str, mode: int = 0o755) -> None:
        """Makes directories and those above them."""
        self._transport.call(calls.make_directories(self._id, paths, mode))

    def set_mode(self, path: str, mode: int) -> None:
        """Changes permission bits."""
        self._transport.call(calls.set_mode(self._id, path, mode))

    def replace(self, path: str, old: str, new: str) -> int:
        """Replaces a text wherever it occurs in a file; returns how often it did."""
        return self._transport.call(calls.replace(self._id, path, old, new))


def _run(copy: _trees.Copy) -> str:
    """Runs a copy to its end."""
    ended = subprocess.run(  # noqa: S603
        copy.arguments,
        env=copy.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    return copy.check(ended.returncode, ended.stderr)
