"""Sealed layers of one sandbox, blocking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barchan._blocking.transport import Transport
from barchan._calls import layers as calls
from barchan._calls.layers import WhenBusy
from barchan.models import Layer, LayerDiff, SandboxInfo, SnapshotInfo

if TYPE_CHECKING:
    from barchan._blocking.sandbox import Sandbox


class Layers:
    """Seals what a sandbox writes, goes back to it, and makes others of it."""

    def __init__(
        self, transport: Transport, sandbox_id: str, attach: Callable[[str], Sandbox]
    ) -> None:
        self._transport = transport
        self._id = sandbox_id
        self._attach = attach

    def seal(self, label: str | None = None, *, when_busy: WhenBusy = "force") -> Layer:
        """Seals what the running sandbox has written.

        Files that a process uses are copied; with `when_busy="refuse"` a Conflict says instead
        which process it is.
        """
        return self._transport.call(calls.seal(self._id, label, when_busy))

    def undo(self, number: int, *, when_busy: WhenBusy = "force") -> SandboxInfo:
        """Starts the sandbox anew with the files of a layer; 0 is how it was made.

        What runs in it is killed; with `when_busy="refuse"` a running command is a Conflict.
        """
        return self._transport.call(calls.undo(self._id, number, when_busy))

    def fork(
        self,
        number: int | None = None,
        *,
        count: int = 1,
        lifetime_s: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> list[Sandbox]:
        """Makes sandboxes of a layer, all or none; without a number, of one that is sealed now.

        They live for `lifetime_s`, or as long as this one has left.
        """
        call = calls.fork(self._id, number, count, lifetime_s, metadata)
        return [self._attach(made.id) for made in self._transport.call(call)]

    def diff(self, start: int | None = None, end: int | None = None) -> LayerDiff:
        """What differs between two of its layers; 0 is how it was made.

        Without `end` it is the last layer, without `start` the one that `end` stands on.
        """
        return self._transport.call(calls.diff(self._id, start, end))

    def commit(self, number: int | None = None, *, name: str | None = None) -> SnapshotInfo:
        """Begins to make a snapshot of a layer and all below it, 0 being how the sandbox was made;
        without a number, of a layer that is sealed now.

        The sandbox runs on, and may have ended. Sandboxes can be made of the snapshot once its
        state is Ready.
        """
        return self._transport.call(calls.commit(self._id, number, name))

    def forget(self, number: int) -> None:
        """Forgets a layer; what was made of it stays."""
        self._transport.call(calls.forget(self._id, number))

    def list(self) -> list[Layer]:
        """Its layers, oldest first; also once it has ended."""
        return self._transport.call(calls.layers(self._id))
