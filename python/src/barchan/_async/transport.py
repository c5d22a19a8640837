"""Requests over asyncio, without threads: one pool of connections for each running loop.

Plain non-blocking sockets are used, not asyncio's transports: an idle socket belongs to no loop, so
it can be closed when its loop is gone.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress

from barchan import errors
from barchan._address import Address
from barchan._blocking.transport import (
    IDLE_MAX,
    IDLE_S,
    RECEIVE_BYTES,
    has_news,
    late,
    unreachable,
)
from barchan._forks import remember
from barchan._http1 import AnswerParser, Head, framed, request_head
from barchan._request import (
    ANSWER_BYTES_MAX,
    CONNECT_S,
    ERROR_BYTES_MAX,
    Answer,
    Call,
    Request,
    Result,
    headers_of,
    refusal,
)


class Pool:
    """Idle connections of one loop. Only that loop's thread touches it."""

    def __init__(self) -> None:
        self.idle: list[tuple[socket.socket, float]] = []

    def close(self) -> None:
        """Closes all of them; needs no loop."""
        while self.idle:
            self.idle.pop()[0].close()


class AsyncTransport:
    """Sends requests to one server, from any number of loops and threads."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = (
            weakref.WeakKeyDictionary()
        )
        remember(self)

    def forget(self) -> None:
        """In a forked child: the connections belong to the parent, and the lock may be held."""
        pools, self._pools, self._lock = self._pools, weakref.WeakKeyDictionary(), threading.Lock()
        for pool in list(pools.values()):
            pool.close()

    def pool(self) -> Pool:
        """The pool of the running loop. Pools of loops that are closed are emptied."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for other in [one for one in self._pools if one.is_closed()]:
                self._pools.pop(other).close()
            pool = self._pools.get(loop)
            if pool is None:
                pool = self._pools[loop] = Pool()
                weakref.finalize(loop, pool.close)
            return pool

    async def aclose(self) -> None:
        """Closes the running loop's idle connections; the transport stays usable."""
        self.pool().close()

    async def call(self, call: Call[Result]) -> Result:
        """Sends a request and reads its whole answer."""
        async with await self.open(call.request) as stream:
            content = await stream.read(ANSWER_BYTES_MAX)
            return call.read(Answer(stream.head, content))

    async def open(self, request: Request) -> AsyncStream:
        """Sends a request; returns once the head of a good answer is there."""
        pool = self.pool()
        while True:
            connection, kept = await self._take(pool)
            stream = AsyncStream(self.address, pool, connection, request)
            try:
                await stream.start()
            except errors.Unreachable:
                stream.close()
                # A kept connection may have died while it lay idle: that is no news of the server.
                if kept and request.repeatable and not stream.answered:
                    continue
                raise
            except BaseException:
                stream.close()
                raise
            return stream

    async def _take(self, pool: Pool) -> tuple[socket.socket, bool]:
        """A connection, and whether it was kept from an earlier request."""
        oldest = time.monotonic() - IDLE_S
        while pool.idle:
            connection, since = pool.idle.pop()
            if since >= oldest and not has_news(connection):
                return connection, True
            connection.close()
        return await connect(self.address), False


class AsyncStream:
    """An answer that is being received; a context manager that gives its connection back."""

    def __init__(
        self, address: Address, pool: Pool, connection: socket.socket, request: Request
    ) -> None:
        self._address = address
        self._pool = pool
        self._connection: socket.socket | None = connection
        self._request = request
        self._parser = AnswerParser()
        self._waiting: list[bytes] = []
        self._begun = time.monotonic()
        self.answered = False

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> Head:
        """Status and headers."""
        assert self._parser.head is not None
        return self._parser.head

    async def start(self) -> None:
        """Sends the request and reads up to the head of the answer; a refusal is raised."""
        try:
            await self._send()
        except (BrokenPipeError, ConnectionResetError) as error:
            # The server may have answered before it had read everything: see what it said.
            await self._receive_head(error)
            self._parser.reusable = False
        else:
            await self._receive_head(None)
        if not 200 <= self.head.status < 300:
            raise refusal(self._request, self.head, await self._explanation())

    async def _explanation(self) -> bytes:
        """The body of a refusal, or what can be had of it."""
        with suppress(errors.BarchanError):
            return await self.read(ERROR_BYTES_MAX)
        return b""

    async def _send(self) -> None:
        request = self._request
        headers = headers_of(request, self._address.api_key)
        head = request_head(request.method, request.path, self._address.authority, headers)
        if 0 < (request.body.length or 0) <= 64 * 1024:
            await self._send_piece(head + b"".join(request.body.pieces()))
            return
        await self._send_piece(head)
        pieces = framed(request.body)
        if not request.body.waits:
            for piece in pieces:
                await self._send_piece(piece)
            return
        while (waited := await asyncio.to_thread(next, pieces, None)) is not None:
            await self._send_piece(waited)

    async def _send_piece(self, piece: bytes | memoryview) -> None:
        connection = self._connection
        assert connection is not None
        wait_s = self._left(self._request.answer_s)
        try:
            async with asyncio.timeout(wait_s):
                await asyncio.get_running_loop().sock_sendall(connection, piece)
        except TimeoutError:
            raise self._late("take the request", wait_s) from None

    async def _receive_head(self, earlier: OSError | None) -> None:
        while self._parser.head is None:
            try:
                self._waiting += await self._receive(self._request.answer_s)
            except errors.Unreachable as error:
                raise errors.Unreachable(
                    f"{self._address} gave no answer: {earlier or error.message}.",
                    sent=True,
                    hint="Is the server still running?",
                ) from None

    async def _receive(self, wait_s: float) -> list[bytes]:
        connection = self._connection
        assert connection is not None
        wait_s = self._left(wait_s)
        try:
            async with asyncio.timeout(wait_s):
                data = await asyncio.get_running_loop().sock_recv(connection, RECEIVE_BYTES)
        except TimeoutError:
            raise self._late("send anything", wait_s) from None
        except OSError as error:
            raise errors.Unreachable(
                f"the connection to {self._address} broke: {error}", sent=True
            ) from None
        self.answered = self.answered or bool(data)
        return self._parser.feed(data)

    def _left(self, wait_s: float) -> float:
        """Seconds that the next step may take."""
        total = self._request.total_s
        if total is None:
            return wait_s
        left = self._begun + total - time.monotonic()
        if left <= 0:
            raise self._late("come to an end", total)
        return min(left, wait_s)

    def _late(self, what: str, wait_s: float) -> errors.DeadlineExceeded:
        """The error for a wait that was too long: for this step, or for the whole call."""
        return late(self._address, self._request, self._begun, what, wait_s)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The pieces of the body as they arrive."""
        while True:
            waiting, self._waiting = self._waiting, []
            for piece in waiting:
                yield piece
            if self._parser.done:
                return
            self._waiting = await self._receive(self._request.silence_s)

    async def read(self, bytes_max: int) -> bytes:
        """The whole body, which may not be larger than this."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > bytes_max:
                raise errors.ProtocolError(f"an answer is over {bytes_max} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Gives the connection back if it can be used again, else closes it."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        reusable = self._parser.done and self._parser.reusable
        if reusable and len(self._pool.idle) < IDLE_MAX:
            self._pool.idle.append((connection, time.monotonic()))
        else:
            connection.close()


async def connect(address: Address) -> socket.socket:
    """A new connection. Settings for HTTP proxies in the environment do not apply to it."""
    problem: OSError = OSError(f"no address for {address.host}")
    try:
        places = await _places(address)
    except OSError as error:
        raise unreachable(address, error) from None
    for family, place in places:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            if family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(CONNECT_S):
                await asyncio.get_running_loop().sock_connect(connection, place)
        except OSError as error:  # a TimeoutError is one as well
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise unreachable(address, problem)


async def _places(address: Address) -> list[tuple[int, tuple[str, int] | str]]:
    """Where to try. Names of this host are not looked up: that would take a thread of the loop."""
    if address.socket_path:
        return [(socket.AF_UNIX, address.socket_path)]
    if address.host == "localhost":
        return [
            (socket.AF_INET, ("127.0.0.1", address.port)),
            (socket.AF_INET6, ("::1", address.port)),
        ]
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, address.host)
            return [(family, (address.host, address.port))]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [(family, (str(place[0]), int(place[1]))) for family, _, _, _, place in found]
