"""The file tools of one sandbox, for asyncio: each method is one call."""

from __future__ import annotations

from collections.abc import Sequence

from barchan._async.transport import AsyncTransport
from barchan._calls import fs as calls
from barchan.models import Content, Entry, Found, Paths


class AsyncFs:
    """Lists, reads, writes, edits, finds and deletes, as agents do.

    Paths are absolute, start with `~`, or are relative to `workdir`; without it to where the
    sandbox started. A refusal is an ApiError whose `code` is one of docs/reference/fs.md.
    """

    def __init__(self, transport: AsyncTransport, sandbox_id: str) -> None:
        self._transport = transport
        self._id = sandbox_id

    async def ls(
        self, path: str = ".", *, details: bool = False, workdir: str | None = None
    ) -> list[Entry]:
        """What is in a directory, by name; with `details` sizes and times too."""
        return await self._transport.call(calls.ls(self._id, path, details, workdir))

    async def read(
        self,
        path: str,
        *,
        offset: int = 0,
        limit: int = 2000,
        bytes_max: int | None = None,
        workdir: str | None = None,
    ) -> Content:
        """So many lines of a text file behind `offset` others, or a whole binary file."""
        call = calls.read(self._id, path, offset, limit, bytes_max, workdir)
        return await self._transport.call(call)

    async def write(
        self, path: str, content: str | bytes, *, create: bool = False, workdir: str | None = None
    ) -> int:
        """Writes a file whole, and makes what is missing above it; returns its size in bytes.

        With `create` a file that exists is refused instead of overwritten.
        """
        return await self._transport.call(calls.write(self._id, path, content, create, workdir))

    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        workdir: str | None = None,
    ) -> int:
        """Replaces an exact text, which must be the only one of its kind unless `replace_all`.

        Line ends are those of the file, whichever `old` and `new` have. Returns how often.
        """
        call = calls.edit(self._id, path, old, new, replace_all, workdir)
        return await self._transport.call(call)

    async def delete(self, path: str, *, workdir: str | None = None) -> str:
        """Removes a file, or a directory with everything in it; returns its absolute path."""
        return await self._transport.call(calls.delete(self._id, path, workdir))

    async def grep(
        self,
        pattern: str,
        path: str | None = None,
        *,
        glob: str | None = None,
        regex: bool = False,
        ignore_case: bool = False,
        mode: calls.Mode = "matches",
        max_count: int | None = None,
        exclude_dirs: Sequence[str] | None = None,
        time_limit_s: float | None = None,
        workdir: str | None = None,
    ) -> Found:
        """Lines that hold a text, in files whose names match `glob`; or files; or counts."""
        asked = calls.Grep(
            pattern, path, glob, regex, ignore_case, mode, max_count, exclude_dirs, time_limit_s
        )
        return await self._transport.call(calls.grep(self._id, asked, workdir))

    async def glob(
        self,
        pattern: str,
        path: str | None = None,
        *,
        max_count: int | None = None,
        time_limit_s: float | None = None,
        workdir: str | None = None,
    ) -> Paths:
        """Regular files below a directory whose names match."""
        call = calls.glob(self._id, pattern, path, max_count, time_limit_s, workdir)
        return await self._transport.call(call)
