"""A sandbox, blocking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from barchan import _config, errors
from barchan._address import Address
from barchan._blocking.commands import Commands
from barchan._blocking.files import Files
from barchan._blocking.fs import Fs
from barchan._blocking.layers import Layers
from barchan._blocking.transport import Transport
from barchan._calls import lifecycle
from barchan._forks import Shared
from barchan.models import SandboxInfo

LIFETIME_S = 1800
PAGE_SIZE = 100

# All sandboxes of a process share the connections to their server.
transport_to: Shared[Address, Transport] = Shared(Transport)


class Sandbox:
    """A machine of one's own on the server.

    Make one with `create`, or come back to one with `attach`. As a context manager it is killed at
    the end. All methods may be called from many threads at once.
    """

    def __init__(self, sandbox_id: str, address: Address) -> None:
        self.id = sandbox_id
        self.address = address
        self._transport = transport_to(address)
        self.commands = Commands(self._transport, sandbox_id)
        self.files = Files(self._transport, sandbox_id)
        self.fs = Fs(self._transport, sandbox_id)
        self.layers = Layers(self._transport, sandbox_id, lambda made: Sandbox(made, address))

    def __repr__(self) -> str:
        return f"Sandbox({self.id!r}, {str(self.address)!r})"

    @classmethod
    def create(
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
    ) -> Sandbox:
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
        address = _config.find(server, api_key)
        try:
            made = transport_to(address).call(call)
        except errors.Unreachable as error:
            # A private server may have left, idle, between being found and being asked.
            if error.sent or _config.configured(server, api_key):
                raise
            address = _config.find(server, api_key)
            made = transport_to(address).call(call)
        return cls(made.id, address)

    @classmethod
    def attach(
        cls, sandbox_id: str, *, server: str | None = None, api_key: str | None = None
    ) -> Sandbox:
        """The sandbox of this id. Nothing is asked of the server yet."""
        return cls(sandbox_id, _config.find(server, api_key))

    @classmethod
    def get(
        cls, sandbox_id: str, *, server: str | None = None, api_key: str | None = None
    ) -> SandboxInfo:
        """What the server knows of a sandbox."""
        return transport_to(_config.find(server, api_key)).call(lifecycle.get(sandbox_id))

    @classmethod
    def list(
        cls,
        *,
        states: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
        server: str | None = None,
        api_key: str | None = None,
    ) -> Iterator[SandboxInfo]:
        """The sandboxes in any of these states and with this metadata, newest first."""
        transport = transport_to(_config.find(server, api_key))
        number, more = 1, True
        while more:
            page = transport.call(lifecycle.sandboxes(states, metadata or {}, number, PAGE_SIZE))
            yield from page.items
            number, more = number + 1, page.has_next

    def info(self) -> SandboxInfo:
        """What the server knows of this sandbox."""
        return self._transport.call(lifecycle.get(self.id))

    def renew(self, lifetime_s: float = LIFETIME_S) -> datetime | None:
        """Lets it live for this long from now on; returns when it will end."""
        lifetime = timedelta(seconds=lifetime_s)
        return self._transport.call(lifecycle.renew(self.id, lifetime, datetime.now(UTC)))

    def pause(self, to_disk: bool = False) -> None:
        """Stops all its processes, which keep their memory. With `to_disk` they end: its files are
        kept as a layer, and its entrypoint begins anew with them when it is resumed."""
        self._transport.call(lifecycle.pause(self.id, to_disk))

    def resume(self) -> None:
        """Lets it run on after a pause, or begin anew after one to disk."""
        self._transport.call(lifecycle.resume(self.id))

    def kill(self) -> None:
        """Ends it and removes what belongs to it. One that is gone already is fine."""
        with suppress(errors.NotFound):
            self._transport.call(lifecycle.kill(self.id))

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
