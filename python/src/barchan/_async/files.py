"""Files of one sandbox, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from barchan import _trees
from barchan._async.transport import AsyncTransport
from barchan._calls import files as calls
from barchan._multipart import Upload
from barchan._request import ANSWER_BYTES_MAX
from barchan.models import FileInfo, FileInfos


class AsyncFiles:
    """Reads, writes and finds files. Paths are those inside the sandbox."""

    def __init__(self, transport: AsyncTransport, sandbox_id: str) -> None:
        self._transport = transport
        self._id = sandbox_id

    async def write(self, path: str, content: bytes | str, *, mode: int | None = None) -> None:
        """Writes a file, and makes the directories above it. `mode` are permission bits."""
        data = content.encode("utf-8") if isinstance(content, str) else content
        await self.write_many([Upload(path, data, mode)])

    async def write_many(self, uploads: Sequence[Upload]) -> None:
        """Writes many files in one request."""
        await self._transport.call(calls.upload(self._id, uploads))

    async def upload(self, local: str | Path, path: str, *, mode: int | None = None) -> None:
        """Sends a local file without holding it in memory."""
        await self.write_many([Upload(path, Path(local), mode)])

    async def read(self, path: str) -> bytes:
        """The content of a file."""
        request = calls.download(self._id, path, None, None)
        async with await self._transport.open(request) as stream:
            return await stream.read(ANSWER_BYTES_MAX)

    async def read_text(self, path: str) -> str:
        """The content of a UTF-8 file."""
        return (await self.read(path)).decode("utf-8")

    async def stream(
        self, path: str, *, first: int | None = None, last: int | None = None
    ) -> AsyncIterator[bytes]:
        """The content piece by piece; or the bytes from `first` to `last`, both included."""
        request = calls.download(self._id, path, first, last)
        async with await self._transport.open(request) as stream:
            async for piece in stream.pieces():
                yield piece

    async def download(self, path: str, local: str | Path) -> int:
        """Writes a file of the sandbox to a local one; returns its size in bytes."""
        size = 0
        request = calls.download(self._id, path, None, None)
        async with await self._transport.open(request) as stream:
            file = await asyncio.to_thread(Path(local).open, "wb")
            try:
                async for piece in stream.pieces():
                    size += await asyncio.to_thread(file.write, piece)
            finally:
                await asyncio.to_thread(file.close)
        return size

    async def upload_dir(self, local: str | Path, path: str) -> str:
        """Copies what is in a local directory to one of the sandbox, which is made if it is
        missing; modes, times and links are kept. Returns what had to be left out, as text."""
        return await _run(_trees.into(self._transport.address, self._id, local, path))

    async def download_dir(
        self, path: str, local: str | Path, *, max_bytes: int | None = None
    ) -> str:
        """Copies what is in a directory of the sandbox to a local one, which is made if it is
        missing. Nothing is written outside it, whatever the sandbox sends; links that lead out
        are left out. Returns what had to be left out, as text."""
        copy = _trees.out_of(self._transport.address, self._id, path, local, max_bytes)
        return await _run(copy)

    async def info(self, path: str) -> FileInfo:
        """What is known of a path."""
        return next(iter((await self.info_many([path])).values()))

    async def info_many(self, paths: Sequence[str]) -> dict[str, FileInfo]:
        """What is known of paths; one that is missing fails the whole call."""
        return await self._transport.call(calls.info(self._id, paths))

    async def list(self, path: str, *, depth: int = 1) -> FileInfos:
        """What is in a directory, this many levels deep."""
        return await self._transport.call(calls.listing(self._id, path, depth))

    async def search(self, path: str, pattern: str = "**") -> FileInfos:
        """Regular files below a directory whose names match a glob."""
        return await self._transport.call(calls.search(self._id, path, pattern))

    async def delete(self, *paths: str) -> None:
        """Removes files; missing ones are fine."""
        await self._transport.call(calls.delete(self._id, paths, directories=False))

    async def delete_directories(self, *paths: str) -> None:
        """Removes directories with all that is in them; missing ones are fine."""
        await self._transport.call(calls.delete(self._id, paths, directories=True))

    async def move(self, moves: Mapping[str, str]) -> None:
        """Renames paths, from each key to its value."""
        await self._transport.call(calls.move(self._id, moves))

    async def make_directories(self, *paths: str, mode: int = 0o755) -> None:
        """Makes directories and those above them."""
        await self._transport.call(calls.make_directories(self._id, paths, mode))

    async def set_mode(self, path: str, mode: int) -> None:
        """Changes permission bits."""
        await self._transport.call(calls.set_mode(self._id, path, mode))

    async def replace(self, path: str, old: str, new: str) -> int:
        """Replaces a text wherever it occurs in a file; returns how often it did."""
        return await self._transport.call(calls.replace(self._id, path, old, new))


async def _run(copy: _trees.Copy) -> str:
    """Runs a copy to its end; one that is given up is stopped."""
    process = await asyncio.create_subprocess_exec(
        *copy.arguments,
        env=copy.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return copy.check(process.returncode or 0, said)
