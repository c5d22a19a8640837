"""Requests over blocking sockets: a pool of kept connections that threads and forks can share."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from barchan import errors
from barchan._address import Address
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

IDLE_MAX = 64
IDLE_S = 30.0
RECEIVE_BYTES = 256 * 1024


class Transport:
    """Sends requests to one server. Any number of threads may use it at once."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._idle: list[tuple[socket.socket, float]] = []
        remember(self)

    def forget(self) -> None:
        """In a forked child: the connections belong to the parent, and the lock may be held."""
        idle, self._idle, self._lock = self._idle, [], threading.Lock()
        for connection, _ in idle:
            with suppress(OSError):
                connection.close()

    def close(self) -> None:
        """Closes what is idle; the transport stays usable."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def call(self, call: Call[Result]) -> Result:
        """Sends a request and reads its whole answer."""
        with self.open(call.request) as stream:
            content = stream.read(ANSWER_BYTES_MAX)
            return call.read(Answer(stream.head, content))

    def open(self, request: Request) -> Stream:
        """Sends a request; returns once the head of a good answer is there."""
        while True:
            connection, kept = self._take()
            stream = Stream(self, connection, request)
            try:
                stream.start()
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

    def _take(self) -> tuple[socket.socket, bool]:
        """A connection, and whether it was kept from an earlier request."""
        oldest = time.monotonic() - IDLE_S
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, since = self._idle.pop()
            if since >= oldest and not has_news(connection):
                return connection, True
            connection.close()
        return connect(self.address), False

    def keep(self, connection: socket.socket) -> None:
        """Takes back a connection that can serve another request."""
        with self._lock:
            if len(self._idle) < IDLE_MAX:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


class Stream:
    """An answer that is being received; a context manager that gives its connection back."""

    def __init__(self, transport: Transport, connection: socket.socket, request: Request) -> None:
        self._transport = transport
        self._connection: socket.socket | None = connection
        self._request = request
        self._parser = AnswerParser()
        self._waiting: list[bytes] = []
        self._begun = time.monotonic()
        self.answered = False

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> Head:
        """Status and headers."""
        assert self._parser.head is not None
        return self._parser.head

    def start(self) -> None:
        """Sends the request and reads up to the head of the answer; a refusal is raised."""
        try:
            self._send()
        except (BrokenPipeError, ConnectionResetError) as error:
            # The server may have answered before it had read everything: see what it said.
            self._receive_head(error)
            self._parser.reusable = False
        else:
            self._receive_head(None)
        if not 200 <= self.head.status < 300:
            raise refusal(self._request, self.head, self._explanation())

    def _explanation(self) -> bytes:
        """The body of a refusal, or what can be had of it."""
        with suppress(errors.BarchanError):
            return self.read(ERROR_BYTES_MAX)
        return b""

    def _send(self) -> None:
        request, address = self._request, self._transport.address
        headers = headers_of(request, address.api_key)
        head = request_head(request.method, request.path, address.authority, headers)
        connection = self._connection
        assert connection is not None
        connection.settimeout(self._left(request.answer_s))
        try:
            if 0 < (request.body.length or 0) <= 64 * 1024:
                connection.sendall(head + b"".join(request.body.pieces()))
                return
            connection.sendall(head)
            for piece in framed(request.body):
                connection.settimeout(self._left(request.answer_s))
                connection.sendall(piece)
        except TimeoutError:
            raise self._late("take the request", request.answer_s) from None

    def _receive_head(self, earlier: OSError | None) -> None:
        while self._parser.head is None:
            try:
                self._waiting += self._receive(self._request.answer_s)
            except errors.Unreachable as error:
                raise errors.Unreachable(
                    f"{self._transport.address} gave no answer: {earlier or error.message}.",
                    sent=True,
                    hint="Is the server still running?",
                ) from None

    def _receive(self, wait_s: float) -> list[bytes]:
        connection = self._connection
        assert connection is not None
        connection.settimeout(self._left(wait_s))
        try:
            data = connection.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise self._late("send anything", wait_s) from None
        except OSError as error:
            raise errors.Unreachable(
                f"the connection to {self._transport.address} broke: {error}", sent=True
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
        return late(self._transport.address, self._request, self._begun, what, wait_s)

    def __iter__(self) -> Iterator[bytes]:
        """The pieces of the body as they arrive."""
        while True:
            waiting, self._waiting = self._waiting, []
            yield from waiting
            if self._parser.done:
                return
            self._waiting = self._receive(self._request.silence_s)

    def read(self, bytes_max: int) -> bytes:
        """The whole body, which may not be larger than this."""
        pieces: list[bytes] = []
        size = 0
        for piece in self:
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
        if self._parser.done and self._parser.reusable:
            self._transport.keep(connection)
        else:
            connection.close()


def connect(address: Address) -> socket.socket:
    """A new connection. Settings for HTTP proxies in the environment do not apply to it."""
    try:
        if address.socket_path:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(CONNECT_S)
                connection.connect(address.socket_path)
            except BaseException:
                connection.close()
                raise
            return connection
        connection = socket.create_connection((address.host, address.port), CONNECT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise unreachable(address, error) from None
    return connection


def unreachable(address: Address, error: OSError) -> errors.Unreachable:
    """The error for a connection that could not be made."""
    reason = error.strerror or str(error) or type(error).__name__
    return errors.Unreachable(
        f"cannot connect to {address}: {reason}.", hint="Is the server running there?"
    )


def late(
    address: Address, request: Request, begun: float, what: str, wait_s: float
) -> errors.DeadlineExceeded:
    """The error for a wait that was too long: for one step, or for the whole call."""
    path = request.path.partition("?")[0]
    if request.total_s is not None and time.monotonic() - begun >= request.total_s * 0.999:
        what, wait_s = "come to an end", request.total_s
    return errors.DeadlineExceeded(
        f"{address} did not {what} within {wait_s:g} s ({request.method} {path})."
    )


def has_news(connection: socket.socket) -> bool:
    """Whether an idle connection was closed, or holds bytes that nobody asked for."""
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(0))
