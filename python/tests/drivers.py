"""The blocking and the async client behind one face, so that one test holds for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from barchan import AsyncSandbox, CommandResult, ExecResult, Sandbox
from barchan._address import Address
from barchan._async.transport import AsyncTransport
from barchan._blocking.transport import Transport
from barchan._request import Call, Result


class Driver(Protocol):
    """Does one thing with a fresh or a kept transport, and waits for it."""

    def call(self, call: Call[Result]) -> Result: ...

    def run(self, sandbox_id: str, command: str, **options: Any) -> CommandResult: ...

    def exec(self, sandbox_id: str, command: str | list[str], **options: Any) -> ExecResult: ...

    def upload(self, sandbox_id: str, path: str, content: bytes) -> None: ...

    def read(self, sandbox_id: str, path: str) -> bytes: ...

    def layers(self, sandbox_id: str, verb: str, *args: Any, **options: Any) -> Any: ...

    def close(self) -> None: ...


class Blocking:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.transport = Transport(address)

    def call(self, call: Call[Result]) -> Result:
        return self.transport.call(call)

    def sandbox(self, sandbox_id: str) -> Sandbox:
        return Sandbox(sandbox_id, self.address)

    def run(self, sandbox_id: str, command: str, **options: Any) -> CommandResult:
        return self.sandbox(sandbox_id).commands.run(command, **options)

    def exec(self, sandbox_id: str, command: str | list[str], **options: Any) -> ExecResult:
        return self.sandbox(sandbox_id).commands.exec(command, **options)

    def upload(self, sandbox_id: str, path: str, content: bytes) -> None:
        self.sandbox(sandbox_id).files.write(path, content)

    def read(self, sandbox_id: str, path: str) -> bytes:
        return self.sandbox(sandbox_id).files.read(path)

    def layers(self, sandbox_id: str, verb: str, *args: Any, **options: Any) -> Any:
        return getattr(self.sandbox(sandbox_id).layers, verb)(*args, **options)

    def close(self) -> None:
        self.transport.close()


class Async:
    """Runs each call on one loop of its own, as a server does that keeps its loop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.transport = AsyncTransport(address)
        self.runner = asyncio.Runner()

    def call(self, call: Call[Result]) -> Result:
        return self.runner.run(self.transport.call(call))

    def sandbox(self, sandbox_id: str) -> AsyncSandbox:
        return AsyncSandbox(sandbox_id, self.address)

    def run(self, sandbox_id: str, command: str, **options: Any) -> CommandResult:
        return self.runner.run(self.sandbox(sandbox_id).commands.run(command, **options))

    def exec(self, sandbox_id: str, command: str | list[str], **options: Any) -> ExecResult:
        return self.runner.run(self.sandbox(sandbox_id).commands.exec(command, **options))

    def upload(self, sandbox_id: str, path: str, content: bytes) -> None:
        self.runner.run(self.sandbox(sandbox_id).files.write(path, content))

    def read(self, sandbox_id: str, path: str) -> bytes:
        return self.runner.run(self.sandbox(sandbox_id).files.read(path))

    def layers(self, sandbox_id: str, verb: str, *args: Any, **options: Any) -> Any:
        return self.runner.run(getattr(self.sandbox(sandbox_id).layers, verb)(*args, **options))

    def close(self) -> None:
        self.runner.run(self.transport.aclose())
        self.runner.close()


DRIVERS: list[Callable[[Address], Driver]] = [Blocking, Async]
