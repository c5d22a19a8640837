"""Calls that run a command as bytes, and what its frames add up to."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from barchan import _frames as frames
from barchan._calls import layers
from barchan._calls.commands import OUTPUT_BYTES_MAX, asked_for, proxy, total
from barchan._calls.layers import Seal, Told, wish
from barchan._frames import Frame, FrameDecoder
from barchan._http1 import Bytes
from barchan._request import SILENCE_S, Answer, Call, Request, json_body
from barchan.errors import BarchanError, ProtocolError, Unreachable
from barchan.models import ExecResult, Usage

PIECE_BYTES = 256 * 1024
PAUSES_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)

OnBytes = Callable[[bytes], object]
Stdin = bytes | Iterable[bytes]


def start(
    sandbox_id: str,
    command: str | Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout_s: float | None,
    stdin: bool,
    key: str | None,
    seal: Seal,
) -> Request:
    """Starts a command. The answer is a stream of frames."""
    asked = asked_for(command, cwd=cwd, env=env, timeout_s=timeout_s)
    if stdin:
        asked["stdin"] = True
    headers, body = json_body(asked)
    if key is not None:
        headers = {**headers, "Idempotency-Key": key}
    headers = {**headers, **wish(seal)}
    total_s = total(timeout_s, seal)
    path = proxy(sandbox_id, "/x/exec")
    return Request("POST", path, headers, body, silence_s=SILENCE_S, total_s=total_s)


def again(sandbox_id: str, command_id: str, since: int) -> Request:
    """The rest of a command's stream, held until it is read."""
    path = f"/x/exec/{quote(command_id, safe='')}?since={since}&hold=true"
    return Request("GET", proxy(sandbox_id, path), silence_s=SILENCE_S)


def feed(sandbox_id: str, command_id: str, offset: int, piece: bytes) -> Call[bool]:
    """Sends a piece of input, an empty one to end it; whether more is taken."""
    close = "false" if piece else "true"
    path = f"/x/exec/{quote(command_id, safe='')}/stdin?offset={offset}&close={close}"

    def read(answer: Answer) -> bool:
        state = answer.json()
        return isinstance(state, dict) and state.get("open") is True

    return Call(Request("POST", proxy(sandbox_id, path), body=Bytes(piece)), read)


def pieces(stdin: Stdin) -> Iterator[bytes]:
    """Input in pieces of a size that one request may have."""
    for part in [stdin] if isinstance(stdin, bytes) else stdin:
        for at in range(0, len(part), PIECE_BYTES):
            yield bytes(part[at : at + PIECE_BYTES])


def may_pass(error: BarchanError) -> bool:
    """Whether the same may work a little later."""
    return isinstance(error, Unreachable | ProtocolError) or (
        getattr(error, "status", 0) in (502, 503, 504)
    )


@dataclass
class ExecTranscript:
    """Adds up the frames of one command. Keeps the beginning and the end of long output.

    `on_stdout` and `on_stderr` are told each piece as it arrives, also what is not kept.
    """

    output_bytes_max: int = OUTPUT_BYTES_MAX
    on_stdout: OnBytes | None = None
    on_stderr: OnBytes | None = None
    layer: Told = field(default_factory=Told)
    id: str = ""
    offset: int = 0
    ended: bool = False
    _decoder: FrameDecoder = field(default_factory=FrameDecoder)
    _head: list[tuple[int, bytes]] = field(default_factory=list)
    _tail: deque[tuple[int, bytes]] = field(default_factory=deque)
    _head_bytes: int = 0
    _tail_bytes: int = 0
    _dropped_bytes: int = 0
    _end: Mapping[str, Any] = field(default_factory=dict)
    _usage: Usage | None = None
    _begun: float = field(default_factory=time.monotonic)

    def reconnect(self) -> None:
        """What comes next is another stream; half a frame of the last one is forgotten."""
        self._decoder = FrameDecoder()
        self.layer.forget()

    def outlives(self) -> bool:
        """Whether the command had ended when its stream broke: only its layer is unknown then."""
        self.layer.forget()
        return self.ended and self.layer.asked

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        for frame in self._decoder.feed(data):
            self._add(frame)

    def _add(self, frame: Frame) -> None:
        if frame.kind == frames.LAYER:
            self.layer.layer(layers.payload(frame.payload))
        elif frame.kind == frames.LAYER_ERROR:
            self.layer.failure(layers.payload(frame.payload))
        if self.ended:
            return
        if frame.kind in (frames.STDOUT, frames.STDERR):
            self.offset = frame.offset + len(frame.payload)
            self._say(frame.kind, frame.payload)
        elif frame.kind == frames.GAP:
            self._dropped_bytes += max(0, frame.offset - self.offset)
            self.offset = frame.offset
        elif frame.kind == frames.STARTED:
            self.id = self.id or str(_object(frame.payload).get("id") or "")
        elif frame.kind == frames.USAGE:
            self._usage = _usage(_object(frame.payload))
        elif frame.kind == frames.ENDED:
            self._end, self.ended = _object(frame.payload), True

    def _say(self, kind: int, data: bytes) -> None:
        tell = self.on_stdout if kind == frames.STDOUT else self.on_stderr
        if tell is not None:
            tell(data)
        if not self._tail and self._head_bytes + len(data) <= self.output_bytes_max // 2:
            self._head.append((kind, data))
            self._head_bytes += len(data)
            return
        self._tail.append((kind, data))
        self._tail_bytes += len(data)
        while (surplus := self._tail_bytes + self._head_bytes - self.output_bytes_max) > 0:
            oldest_kind, oldest = self._tail.popleft()
            if len(oldest) > surplus:
                self._tail.appendleft((oldest_kind, oldest[surplus:]))
            dropped = min(len(oldest), surplus)
            self._tail_bytes -= dropped
            self._dropped_bytes += dropped

    def _joined(self, *kinds: int) -> bytes:
        said = [*self._head, *self._tail]
        return b"".join(data for kind, data in said if kind in kinds)

    def result(self) -> ExecResult:
        """How it ended. Without a last frame the stream broke off, which is an error."""
        code = self._end.get("exit_code")
        if not self.ended or not isinstance(code, int):
            raise ProtocolError("the stream stopped before the command ended; did its sandbox end?")
        error = str(self._end.get("error") or "")
        if not self._decoder.is_whole:
            # Half a frame may hold what the server said.
            self.layer.forget()
        return ExecResult(
            id=self.id,
            exit_code=code,
            output=self._joined(frames.STDOUT, frames.STDERR),
            stdout=self._joined(frames.STDOUT),
            stderr=self._joined(frames.STDERR),
            error=error,
            truncated=self._dropped_bytes > 0,
            timed_out=error.startswith("timeout:"),
            out_of_memory=self._end.get("out_of_memory") is True,
            usage=self._usage,
            duration_ms=round((time.monotonic() - self._begun) * 1000),
            layer=self.layer.sealed,
            layer_error=self.layer.failed,
        )


def _object(payload: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(payload)
    except ValueError as error:
        raise ProtocolError(f"a frame that is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ProtocolError(f"a frame that is no object: {payload[:80]!r}")
    return found


def _usage(found: Mapping[str, Any]) -> Usage:
    def number(name: str) -> int:
        value = found.get(name)
        return value if isinstance(value, int) else 0

    return Usage(
        user_us=number("user_us"),
        system_us=number("system_us"),
        max_rss_bytes=number("max_rss_bytes"),
        wall_us=number("wall_us"),
    )
