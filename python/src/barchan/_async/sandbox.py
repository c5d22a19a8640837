"""A sandbox, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from barchan import _config, errors
from barchan._address import Address
from barchan._async.commands import AsyncCommands
from barchan._async.files import AsyncFiles
from barchan._async.fs import AsyncFs
from barchan._async.layers import AsyncLayers
from barchan._async.transport import AsyncTransport
from barchan._calls import lifecycle
from barchan._forks import Shared
from barchan.models import SandboxInfo

LIFETIME_S = 1800
PAGE_SIZE = 100

# All sandboxes of a process share the connections to their server.
transport_to: Shared[Address, AsyncTransport] = Shared(AsyncTransport)


async def _find(server: str | None, api_key: str | None) -> Address:
    """The server to use; only the start of a private one is left to a thread."""
    address = _config.configured(server, api_key)
    return address if address is not None else await asyncio.to_thread(_config.find)


class AsyncSandbox:
    """A machine of one's own on the server.

    Make one with `create`, or come back to one with `attach`. As a context manager it is killed at
    the end. It may be used from any number of loops and threads.
    """

    def __init__(self, sandbox_id: str, address: Address) -> None:
        self.id = sandbox_id
        self.address = address
        self._transport = transport_to(address)
        self.commands = AsyncCommands(self._transport, sandbox_id)
        self.files = AsyncFiles(self._transport, sandbox_id)
        self.fs = AsyncFs(self._transport, sandbox_id)
        self.layers = AsyncLayers(
            self._transport, sandbox_id, lambda made: AsyncSandbox(made, address)
        )

    def __repr__(self) -> str:
        return f"AsyncSandbox({self.id!r}, {str(self.address)!r})"

    @classmethod
    async def create(
        cls,
        image: str = "host",
        *,
        lifetime_s: int | None = LIFETIME_S,
        entrypoint: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
        resources: Mapping[str, str] | None = None,
        extensions: Mapping[str, str] | None = None,
        server: str | None = None,
        api_key: str | None = None,
    ) -> AsyncSandbox:
        """Makes a sandbox from an image; it is ready when this returns.

        It ends by itself after `lifetime_s` (at least 60; None: never) unless it is renewed.
        `resources` are limits such as `{"cpu": "2", "memory": "4Gi"}`. Without `server` and
        BARCHAN_SERVER it is made on the user's private server, which is started if need be.
        """
        call = lifecycle.create(
            image,
            timeout_s=lifetime_s,
            entrypoint=entrypoint,
            env=env,
            metadata=metadata,
            resources=resources,
            extensions=extensions,
        )
        address = await _find(server, api_key)
        try:
            made = await transport_to(address).call(call)
        except errors.Unreachable as error:
            # A private server may have left, idle, between being found and being asked.
            if error.sent or _config.configured(server, api_key):
                raise
            address = await _find(server, api_key)
            made = await transport_to(address).call(call)
        return cls(made.id, address)

    @classmethod
    async def attach(
        cls, sandbox_id: str, *, server: str | None = None, api_key: str | None = None
    ) -> AsyncSandbox:
        """The sandbox of this id. Nothing is asked of the server yet."""
        return cls(sandbox_id, await _find(server, api_key))

    @classmethod
    async def get(
        cls, sandbox_id: str, *, server: str | None = None, api_key: str | None = None
    ) -> SandboxInfo:
        """What the server knows of a sandbox."""
        address = await _find(server, api_key)
        return await transport_to(address).call(lifecycle.get(sandbox_id))

    @classmethod
    async def list(
        cls,
        *,
        states: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
        server: str | None = None,
        api_key: str | None = None,
    ) -> AsyncIterator[SandboxInfo]:
        """The sandboxes in any of these states and with this metadata, newest first."""
        transport = transport_to(await _find(server, api_key))
        number, more = 1, True
        while more:
            page = await transport.call(
                lifecycle.sandboxes(states, metadata or {}, number, PAGE_SIZE)
            )
            for one in page.items:
                yield one
            number, more = number + 1, page.has_next

    async def info(self) -> SandboxInfo:
        """What the server knows of this sandbox."""
        return await self._transport.call(lifecycle.get(self.id))

    async def renew(self, lifetime_s: float = LIFETIME_S) -> datetime | None:
        """Lets it live for this long from now on; returns when it will end."""
        lifetime = timedelta(seconds=lifetime_s)
        return await self._transport.call(lifecycle.renew(self.id, lifetime, datetime.now(UTC)))

    async def pause(self, to_disk: bool = False) -> None:
        """Stops all its processes, which keep their memory. With `to_disk` they end: its files are
        kept as a layer, and its entrypoint begins anew with them when it is resumed."""
        await self._transport.call(lifecycle.pause(self.id, to_disk))

    async def resume(self) -> None:
        """Lets it run on after a pause, or begin anew after one to disk."""
        await self._transport.call(lifecycle.resume(self.id))

    async def kill(self) -> None:
        """Ends it and removes what belongs to it. One that is gone already is fine."""
        with suppress(errors.NotFound):
            await self._transport.call(lifecycle.kill(self.id))

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
