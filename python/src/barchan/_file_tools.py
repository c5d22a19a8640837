"""The file operations of a Deep Agents backend, each by one call of a sandbox's file tools."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.sandbox import BaseSandbox

from barchan import _tool_rules as tools
from barchan._async.fs import AsyncFs
from barchan._blocking.fs import Fs

# All that one search answers with.
MATCHES_MAX = 10_000

Value = TypeVar("Value")


class FileTools(BaseSandbox):
    """A sandbox whose image needs nothing for file operations: no interpreter, no grep."""

    _workdir: str | None

    @abstractmethod
    def _tool(self, call: Callable[[Fs], Value]) -> Value | tools.Trouble:
        """Makes one call; what goes wrong is a value as well."""

    @abstractmethod
    async def _atool(self, call: Callable[[AsyncFs], Awaitable[Value]]) -> Value | tools.Trouble:
        """Makes one call, for asyncio."""

    def ls(self, path: str) -> LsResult:
        """The entries of a directory; an error is never an empty list."""
        found = self._tool(lambda fs: fs.ls(path, workdir=self._workdir))
        return tools.ls_result(path, found)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """A page of a text file, or a binary file in base64."""
        found = self._tool(
            lambda fs: fs.read(
                file_path,
                offset=offset,
                limit=limit,
                bytes_max=tools.PAGE_BYTES_MAX,
                workdir=self._workdir,
            )
        )
        return tools.read_result(file_path, offset, found)

    def write(self, file_path: str, content: str) -> WriteResult:
        """Writes or overwrites a file, and makes the directories above it."""
        found = self._tool(lambda fs: fs.write(file_path, content, workdir=self._workdir))
        return tools.write_result(file_path, found)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        """Replaces an exact text in a file; line ends stay those of the file."""
        found = self._tool(
            lambda fs: fs.edit(
                file_path,
                old_string,
                new_string,
                replace_all=replace_all,
                workdir=self._workdir,
            )
        )
        return tools.edit_result(file_path, old_string, found)

    def delete(self, file_path: str) -> DeleteResult:
        """Removes a file or a directory with everything in it; never the working directory."""
        found = self._tool(lambda fs: fs.delete(file_path, workdir=self._workdir))
        return tools.delete_result(file_path, found)

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Lines that hold a text; paths are absolute, also where none was given."""
        found = self._tool(
            lambda fs: fs.grep(
                pattern,
                path or None,
                glob=glob or None,
                max_count=MATCHES_MAX if max_count is None else max_count,
                exclude_dirs=self.grep_exclude_dirs,
                workdir=self._workdir,
            )
        )
        return tools.grep_result(path, found)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Regular files whose names match; paths are absolute."""
        root = tools.glob_root(path)
        found = self._tool(lambda fs: fs.glob(pattern, root, workdir=self._workdir))
        return tools.glob_result(root, found)

    async def als(self, path: str) -> LsResult:
        """The entries of a directory, for asyncio; an error is never an empty list."""
        found = await self._atool(lambda fs: fs.ls(path, workdir=self._workdir))
        return tools.ls_result(path, found)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """A page of a text file, or a binary file in base64, for asyncio."""
        found = await self._atool(
            lambda fs: fs.read(
                file_path,
                offset=offset,
                limit=limit,
                bytes_max=tools.PAGE_BYTES_MAX,
                workdir=self._workdir,
            )
        )
        return tools.read_result(file_path, offset, found)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Writes or overwrites a file, for asyncio, and makes the directories above it."""
        found = await self._atool(lambda fs: fs.write(file_path, content, workdir=self._workdir))
        return tools.write_result(file_path, found)

    async def aedit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        """Replaces an exact text in a file, for asyncio; line ends stay those of the file."""
        found = await self._atool(
            lambda fs: fs.edit(
                file_path,
                old_string,
                new_string,
                replace_all=replace_all,
                workdir=self._workdir,
            )
        )
        return tools.edit_result(file_path, old_string, found)

    async def adelete(self, file_path: str) -> DeleteResult:
        """Removes a file or a directory with everything in it, for asyncio."""
        found = await self._atool(lambda fs: fs.delete(file_path, workdir=self._workdir))
        return tools.delete_result(file_path, found)

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Lines that hold a text, for asyncio; paths are absolute, also where none was given."""
        found = await self._atool(
            lambda fs: fs.grep(
                pattern,
                path or None,
                glob=glob or None,
                max_count=MATCHES_MAX if max_count is None else max_count,
                exclude_dirs=self.grep_exclude_dirs,
                workdir=self._workdir,
            )
        )
        return tools.grep_result(path, found)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Regular files whose names match, for asyncio; paths are absolute."""
        root = tools.glob_root(path)
        found = await self._atool(lambda fs: fs.glob(pattern, root, workdir=self._workdir))
        return tools.glob_result(root, found)
