"""Sealed layers of one sandbox, for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barchan._async.transport import AsyncTransport
from barchan._calls import layers as calls
from barchan._calls.layers import WhenBusy
from barchan.models import Layer, LayerDiff, SandboxInfo, SnapshotInfo

if TYPE_CHECKING:
    from barchan._async.sandbox import AsyncSandbox


class AsyncLayers:
    """Seals what a sandbox writes, goes back to it, and makes others of it."""

    def __init__(
        self, transport: AsyncTransport, sandbox_id: str, attach: Callable[[str], AsyncSandbox]
    ) -> None:
        self._transport = transport
        self._id = sandbox_id
        self._attach = attach

    async def seal(self, label: str | None = None, *, when_busy: WhenBusy = "force") -> Layer:
        """Seals what the running sandbox has written.

        Files that a process uses are copied; with `when_busy="refuse"` a Conflict says instead
        which process it is.
        """
        return await self._transport.call(calls.seal(self._id, label, when_busy))

    async def undo(self, number: int, *, when_busy: WhenBusy = "force") -> SandboxInfo:
        """Starts the sandbox anew with the files of a layer; 0 is how it was made.

        What runs in it is killed; with `when_busy="refuse"` a running command is a Conflict.
        """
        return await self._transport.call(calls.undo(self._id, number, when_busy))

    async def fork(
        self,
        number: int | None = None,
        *,
        count: int = 1,
        lifetime_s: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> list[AsyncSandbox]:
        """Makes sandboxes of a layer, all or none; without a number, of one that is sealed now.

        They live for `lifetime_s`, or as long as this one has left.
        """
        call = calls.fork(self._id, number, count, lifetime_s, metadata)
        return [self._attach(made.id) for made in await self._transport.call(call)]

    async def diff(self, start: int | None = None, end: int | None = None) -> LayerDiff:
        """What differs between two of its layers; 0 is how it was made.

        Without `end` it is the last layer, without `start` the one that `end` stands on.
        """
        return await self._transport.call(calls.diff(self._id, start, end))

    async def commit(self, number: int | None = None, *, name: str | None = None) -> SnapshotInfo:
        """Begins to make a snapshot of a layer and all below it, 0 being how the sandbox was made;
        without a number, of a layer that is sealed now.

        The sandbox runs on, and may have ended. Sandboxes can be made of the snapshot once its
        state is Ready.
        """
        return await self._transport.call(calls.commit(self._id, number, name))

    async def forget(self, number: int) -> None:
        """Forgets a layer; what was made of it stays."""
        await self._transport.call(calls.forget(self._id, number))

    async def list(self) -> list[Layer]:
        """Its layers, oldest first; also once it has ended."""
        return await self._transport.call(calls.layers(self._id))
