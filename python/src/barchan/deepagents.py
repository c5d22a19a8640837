"""A Deep Agents backend whose tools run in a Barchan sandbox.

    from barchan.deepagents import BarchanBackend
    from deepagents import create_deep_agent

    with BarchanBackend.create(image="data-science") as backend:
        agent = create_deep_agent(model=model, backend=backend)

Methods that an agent calls never raise for what happens in normal life: a command that fails, a
sandbox that is gone and a server that is down are results which say so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)

from barchan import _backend_rules as rules
from barchan import _tool_rules as tools
from barchan import errors, models
from barchan._async.fs import AsyncFs
from barchan._async.sandbox import AsyncSandbox
from barchan._blocking.fs import Fs
from barchan._blocking.sandbox import LIFETIME_S, Sandbox
from barchan._file_tools import FileTools

__all__ = ["BarchanBackend"]

WORKDIR = "/workspace"
# The middleware keeps long results and conversations in these; without them they would be lost.
KEPT = ("/large_tool_results", "/conversation_history", "/blobs")
COMMAND_S = 1800
OUTPUT_BYTES_MAX = 2 * 1024 * 1024
MARGIN_S = 60.0

Value = TypeVar("Value")


class BarchanBackend(FileTools):
    """One sandbox as the file system and shell of an agent.

    The object holds no connection and no loop of its own: threads, loops and forked processes may
    share it. Making it does no I/O; use `create` or `attach`.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        workdir: str | None = None,
        lifetime_s: int | None = None,
        command_timeout_s: float | None = COMMAND_S,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> None:
        self.sandbox = sandbox
        self.asandbox = AsyncSandbox(sandbox.id, sandbox.address)
        self._workdir = workdir
        self._lifetime_s = lifetime_s
        self._command_timeout_s = command_timeout_s
        self._output_bytes_max = output_bytes_max
        self._ends_at = time.monotonic() + (lifetime_s or 0)
        self._renewing = threading.Lock()

    @classmethod
    def create(
        cls,
        image: str = "data-science",
        *,
        workdir: str = WORKDIR,
        lifetime_s: int | None = LIFETIME_S,
        command_timeout_s: float | None = COMMAND_S,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
        entrypoint: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
        resources: Mapping[str, str] | None = None,
        server: str | None = None,
        api_key: str | None = None,
    ) -> BarchanBackend:
        """Makes a sandbox for an agent; raises a BarchanError when that fails.

        `workdir` is made, and is where commands start. The sandbox lives for `lifetime_s` after its
        last use (None: for ever); a command may take `command_timeout_s` unless the agent says
        otherwise (None: no limit). For the rest see `barchan.Sandbox.create`.
        """
        sandbox = Sandbox.create(
            image,
            lifetime_s=lifetime_s,
            entrypoint=entrypoint,
            env=env,
            metadata=metadata,
            resources=resources,
            server=server,
            api_key=api_key,
        )
        try:
            sandbox.files.make_directories(workdir, *KEPT, mode=0o777)
        except BaseException:
            with suppress(errors.BarchanError):
                sandbox.kill()
            raise
        return cls(
            sandbox,
            workdir=workdir,
            lifetime_s=lifetime_s,
            command_timeout_s=command_timeout_s,
            output_bytes_max=output_bytes_max,
        )

    @classmethod
    def attach(
        cls,
        sandbox_id: str,
        *,
        workdir: str | None = None,
        lifetime_s: int | None = None,
        command_timeout_s: float | None = COMMAND_S,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
        server: str | None = None,
        api_key: str | None = None,
    ) -> BarchanBackend:
        """The sandbox of this id. With `lifetime_s` it is renewed while it is in use."""
        return cls(
            Sandbox.attach(sandbox_id, server=server, api_key=api_key),
            workdir=workdir,
            lifetime_s=lifetime_s,
            command_timeout_s=command_timeout_s,
            output_bytes_max=output_bytes_max,
        )

    @property
    def id(self) -> str:
        """The sandbox's id; does no I/O."""
        return self.sandbox.id

    def kill(self) -> None:
        """Ends the sandbox. Never raises: one that cannot be reached ends with its lifetime."""
        with suppress(errors.BarchanError):
            self.sandbox.kill()

    async def akill(self) -> None:
        """Ends the sandbox, for asyncio."""
        with suppress(errors.BarchanError):
            await self.asandbox.kill()

    def __enter__(self) -> BarchanBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    async def __aenter__(self) -> BarchanBackend:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.akill()

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a shell command; both streams in the order of arrival, and the exit code.

        Exit code 124: it ran into its time limit; 126: it could not be started; None: unknown, and
        the output says what happened. A `timeout` of 0 means no limit.
        """
        limit_s = self._limit_s(timeout)
        try:
            if lifetime_s := self._due(limit_s):
                self.sandbox.renew(lifetime_s)
            result = self.sandbox.commands.run(
                command,
                cwd=self._workdir,
                timeout_s=limit_s,
                output_bytes_max=self._output_bytes_max,
            )
        except errors.BarchanError as error:
            return ExecuteResponse(output=rules.trouble(error, self._state()), exit_code=None)
        return rules.response(result, limit_s)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - the protocol's name for the command's limit
    ) -> ExecuteResponse:
        """Runs a shell command without a thread; cancelling it ends the command."""
        limit_s = self._limit_s(timeout)
        try:
            if lifetime_s := self._due(limit_s):
                await self.asandbox.renew(lifetime_s)
            result = await self.asandbox.commands.run(
                command,
                cwd=self._workdir,
                timeout_s=limit_s,
                output_bytes_max=self._output_bytes_max,
            )
        except errors.BarchanError as error:
            state = await self._astate()
            return ExecuteResponse(output=rules.trouble(error, state), exit_code=None)
        return rules.response(result, limit_s)

    def _limit_s(self, timeout: int | None) -> float | None:
        if timeout is None:
            return self._command_timeout_s
        return float(timeout) if timeout > 0 else None

    def _due(self, limit_s: float | None) -> float | None:
        """For how long to renew before a command of this length, or None when it is too early."""
        if self._lifetime_s is None:
            return None
        needed_s = (limit_s or 0.0) + MARGIN_S
        now = time.monotonic()
        with self._renewing:
            if self._ends_at - now > max(self._lifetime_s / 2, needed_s):
                return None
            lifetime_s = max(float(self._lifetime_s), needed_s)
            self._ends_at = now + lifetime_s
        return lifetime_s

    def _state(self) -> models.SandboxInfo | None:
        with suppress(errors.BarchanError):
            return self.sandbox.info()
        return None

    async def _astate(self) -> models.SandboxInfo | None:
        with suppress(errors.BarchanError):
            return await self.asandbox.info()
        return None

    def _tool(self, call: Callable[[Fs], Value]) -> Value | tools.Trouble:
        """One call of a file tool; what goes wrong is a value as well."""
        try:
            if lifetime_s := self._due(0.0):
                self.sandbox.renew(lifetime_s)
            return call(self.sandbox.fs)
        except errors.BarchanError as error:
            return tools.Trouble(error, None if tools.is_refusal(error) else self._state())

    async def _atool(self, call: Callable[[AsyncFs], Awaitable[Value]]) -> Value | tools.Trouble:
        """One call of a file tool, for asyncio."""
        try:
            if lifetime_s := self._due(0.0):
                await self.asandbox.renew(lifetime_s)
            return await call(self.asandbox.fs)
        except errors.BarchanError as error:
            state = None if tools.is_refusal(error) else await self._astate()
            return tools.Trouble(error, state)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files: one request for all, an answer for each, in order."""
        good, uploads = rules.sort_uploads(files)
        try:
            if uploads:
                self.sandbox.files.write_many(uploads)
        except errors.BarchanError as error:
            if len(uploads) == 1 or not isinstance(error, errors.ApiError):
                return rules.uploaded(
                    files, good, dict.fromkeys(good, rules.file_error(error, writing=True))
                )
            return rules.uploaded(files, good, {at: self._upload_one(files[at]) for at in good})
        return rules.uploaded(files, good, {})

    def _upload_one(self, file: tuple[str, bytes]) -> str | None:
        try:
            self.sandbox.files.write(*file)
        except errors.BarchanError as error:
            return rules.file_error(error, writing=True)
        return None

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, for asyncio."""
        good, uploads = rules.sort_uploads(files)
        try:
            if uploads:
                await self.asandbox.files.write_many(uploads)
        except errors.BarchanError as error:
            if len(uploads) == 1 or not isinstance(error, errors.ApiError):
                return rules.uploaded(
                    files, good, dict.fromkeys(good, rules.file_error(error, writing=True))
                )
            faults = {at: await self._aupload_one(files[at]) for at in good}
            return rules.uploaded(files, good, faults)
        return rules.uploaded(files, good, {})

    async def _aupload_one(self, file: tuple[str, bytes]) -> str | None:
        try:
            await self.asandbox.files.write(*file)
        except errors.BarchanError as error:
            return rules.file_error(error, writing=True)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files: an answer for each, in order."""
        return [self._download_one(path) for path in paths]

    def _download_one(self, path: str) -> FileDownloadResponse:
        fault = rules.path_problem(path)
        content: bytes | None = None
        try:
            fault = fault or rules.refused_read(self.sandbox.files.info(path))
            if fault is None:
                content = self.sandbox.files.read(path)
        except errors.BarchanError as error:
            fault = rules.file_error(error)
        return FileDownloadResponse(path=path, content=content, error=fault)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files, for asyncio."""
        return [await self._adownload_one(path) for path in paths]

    async def _adownload_one(self, path: str) -> FileDownloadResponse:
        fault = rules.path_problem(path)
        content: bytes | None = None
        try:
            fault = fault or rules.refused_read(await self.asandbox.files.info(path))
            if fault is None:
                content = await self.asandbox.files.read(path)
        except errors.BarchanError as error:
            fault = rules.file_error(error)
        return FileDownloadResponse(path=path, content=content, error=fault)
