"""Makes single calls through a Python client when told to, and says how long each took.

`clients.py KIND IMAGE ADDRESS`, the key in BENCH_KEY. A line on standard input is a call: `create`
(a sandbox to the end of its first command), `command` (one in a sandbox that runs), `end`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

COMMAND = "echo hi"


class Client(Protocol):
    """A way to a sandbox."""

    def create(self) -> None:
        """Makes a sandbox and runs a command in it."""

    def clean_up(self) -> None:
        """Takes away what `create` made."""

    def prepare(self) -> None:
        """Makes the sandbox that stays, if there is none yet."""

    def command(self) -> None:
        """Runs a command in it."""

    def end(self) -> None:
        """Takes away what stayed."""


def check(text: str) -> None:
    """Refuses a figure of something else than the command's output."""
    if text.strip() != "hi":
        message = f"the command printed {text!r}"
        raise RuntimeError(message)


class Own:
    """Our own blocking client."""

    def __init__(self, image: str, address: str, key: str) -> None:
        from barchan import Sandbox

        def make() -> Sandbox:
            return Sandbox.create(image, server=f"http://{address}", api_key=key)

        self._make = make
        self._fresh: list[Sandbox] = []
        self._kept: list[Sandbox] = []

    def create(self) -> None:
        sandbox = self._make()
        self._fresh.append(sandbox)
        check(sandbox.commands.run(COMMAND).output)

    def clean_up(self) -> None:
        while self._fresh:
            self._fresh.pop().kill()

    def command(self) -> None:
        check(self._kept[0].commands.run(COMMAND).output)

    def prepare(self) -> None:
        if not self._kept:
            self._kept.append(self._make())

    def end(self) -> None:
        for sandbox in self._kept:
            sandbox.kill()


class Sdk:
    """The blocking client of the OpenSandbox SDK, as its documentation uses it."""

    def __init__(self, image: str, address: str, key: str) -> None:
        from opensandbox import SandboxSync
        from opensandbox.config import ConnectionConfigSync

        def make() -> SandboxSync:
            config = ConnectionConfigSync(domain=address, api_key=key)
            return SandboxSync.create(image, connection_config=config)

        self._make = make
        self._fresh: list[SandboxSync] = []
        self._kept: list[SandboxSync] = []

    def create(self) -> None:
        sandbox = self._make()
        self._fresh.append(sandbox)
        check(sandbox.commands.run(COMMAND).logs.stdout[0].text)

    def clean_up(self) -> None:
        while self._fresh:
            sandbox = self._fresh.pop()
            sandbox.kill()
            sandbox.close()

    def command(self) -> None:
        check(self._kept[0].commands.run(COMMAND).logs.stdout[0].text)

    def prepare(self) -> None:
        if not self._kept:
            self._kept.append(self._make())

    def end(self) -> None:
        for sandbox in self._kept:
            sandbox.kill()
            sandbox.close()


class SdkAsync:
    """The asyncio client of the OpenSandbox SDK."""

    def __init__(self, image: str, address: str, key: str) -> None:
        from opensandbox import Sandbox
        from opensandbox.config import ConnectionConfig

        async def make() -> Sandbox:
            config = ConnectionConfig(domain=address, api_key=key)
            return await Sandbox.create(image, connection_config=config)

        self._make = make
        self._loop = asyncio.new_event_loop()
        self._fresh: list[Sandbox] = []
        self._kept: list[Sandbox] = []

    def create(self) -> None:
        self._loop.run_until_complete(self._create())

    async def _create(self) -> None:
        sandbox = await self._make()
        self._fresh.append(sandbox)
        check((await sandbox.commands.run(COMMAND)).logs.stdout[0].text)

    def clean_up(self) -> None:
        while self._fresh:
            sandbox = self._fresh.pop()
            self._loop.run_until_complete(sandbox.kill())
            self._loop.run_until_complete(sandbox.close())

    def command(self) -> None:
        done = self._loop.run_until_complete(self._kept[0].commands.run(COMMAND))
        check(done.logs.stdout[0].text)

    def prepare(self) -> None:
        if not self._kept:
            self._kept.append(self._loop.run_until_complete(self._make()))

    def end(self) -> None:
        for sandbox in self._kept:
            self._loop.run_until_complete(sandbox.kill())
            self._loop.run_until_complete(sandbox.close())
        self._loop.close()


class Sleeps:
    """Counts how often anything in this process sleeps instead of waiting for something."""

    def __init__(self) -> None:
        self.count = 0
        sleep, pause = time.sleep, asyncio.sleep

        def counted(seconds: float) -> None:
            self.count += 1
            sleep(seconds)

        async def paused(delay: float, result: object = None) -> object:
            # asyncio's own way to let others run is a sleep of 0.
            self.count += delay > 0
            return await pause(delay, result)

        time.sleep = counted  # type: ignore[assignment]
        asyncio.sleep = paused  # type: ignore[assignment]


def timed(call: Callable[[], None], sleeps: Sleeps) -> dict[str, object]:
    """Makes a call; how long it took, or why it failed."""
    before, start = sleeps.count, time.perf_counter()
    try:
        call()
    except Exception as error:  # noqa: BLE001 - every failure is counted by whoever asked
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"ms": (time.perf_counter() - start) * 1e3, "sleeps": sleeps.count - before}


def main(kind: str, image: str, address: str) -> None:
    """Follows orders until the last."""
    sleeps = Sleeps()
    kinds: dict[str, Callable[[str, str, str], Client]] = {
        "barchan": Own,
        "sdk": Sdk,
        "sdk-async": SdkAsync,
    }
    client = kinds[kind](image, address, os.environ["BENCH_KEY"])
    for line in sys.stdin:
        match line.strip():
            case "create":
                told = timed(client.create, sleeps)
                told |= {k: v for k, v in timed(client.clean_up, sleeps).items() if k == "error"}
            case "command":
                told = timed(client.prepare, sleeps)
                told = told if "error" in told else timed(client.command, sleeps)
            case _:
                break
        print(json.dumps(told), flush=True)
    client.end()


if __name__ == "__main__":
    main(*sys.argv[1:4])
