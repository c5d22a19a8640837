"""Calls that run commands in a sandbox, and what their events add up to."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from barchan._calls.layers import SEAL_S, Seal, Told, wish
from barchan._calls.lifecycle import when
from barchan._events import Event
from barchan._request import SILENCE_S, Answer, Call, Request, json_body
from barchan.errors import ProtocolError
from barchan.models import CommandLogs, CommandResult, CommandStatus

GRACE_S = 15.0
INTERRUPT_S = 3.0
OUTPUT_BYTES_MAX = 16 * 1024 * 1024
EXECD_PORT = 44772

OnText = Callable[[str], object]


def proxy(sandbox_id: str, path: str) -> str:
    """The path of the in-sandbox daemon behind the server."""
    return f"/v1/sandboxes/{quote(sandbox_id, safe='')}/proxy/{EXECD_PORT}{path}"


def run(
    sandbox_id: str,
    command: str | Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout_s: float | None,
    background: bool,
    seal: Seal,
) -> Request:
    """A shell script, or a program with its arguments. The answer is a stream of events."""
    asked = asked_for(command, cwd=cwd, env=env, timeout_s=timeout_s)
    if background:
        asked["background"] = True
    headers, body = json_body(asked)
    return Request(
        "POST",
        proxy(sandbox_id, "/command"),
        {**headers, **wish(seal), "Accept": "text/event-stream"},
        body,
        silence_s=SILENCE_S,
        total_s=total(timeout_s, seal),
    )


def total(timeout_s: float | None, seal: Seal) -> float | None:
    """How long all of a command may take, its layer included."""
    if not timeout_s:
        return None
    return timeout_s + GRACE_S + (0 if seal is False else SEAL_S)


def asked_for(
    command: str | Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout_s: float | None,
) -> dict[str, Any]:
    """What every request to run something says."""
    asked: dict[str, Any] = {"cwd": cwd, "envs": dict(env) if env else None}
    if isinstance(command, str):
        asked["command"] = command
    else:
        asked["argv"] = list(command)
    if timeout_s:
        asked["timeout"] = max(1, round(timeout_s * 1000))
    return asked


def status(sandbox_id: str, command_id: str) -> Call[CommandStatus]:
    """Whether a command still runs, and how it ended."""
    path = proxy(sandbox_id, f"/command/status/{quote(command_id, safe='')}")

    def read(answer: Answer) -> CommandStatus:
        found = answer.json()
        if not isinstance(found, dict) or not isinstance(found.get("running"), bool):
            raise ProtocolError("a command's status without `running`")
        code = found.get("exit_code")
        return CommandStatus(
            id=str(found.get("id", command_id)),
            running=found["running"],
            exit_code=code if isinstance(code, int) else None,
            error=str(found.get("error") or ""),
            content=str(found.get("content") or ""),
            started_at=when(found.get("started_at")),
            finished_at=when(found.get("finished_at")),
        )

    return Call(Request("GET", path), read)


def logs(sandbox_id: str, command_id: str, cursor: int) -> Call[CommandLogs]:
    """Output of a background command from a cursor on."""
    path = proxy(sandbox_id, f"/command/{quote(command_id, safe='')}/logs?cursor={cursor}")

    def read(answer: Answer) -> CommandLogs:
        following = answer.head.headers.get("execd-commands-tail-cursor", "")
        text = answer.content.decode("utf-8", "replace")
        after = int(following) if following.isdecimal() else cursor + len(answer.content)
        return CommandLogs(text, after)

    return Call(Request("GET", path), read)


def interrupt(sandbox_id: str, command_id: str) -> Call[None]:
    """Ends a command with all its children."""
    path = proxy(sandbox_id, f"/command?{urlencode({'id': command_id})}")
    request = Request("DELETE", path, answer_s=INTERRUPT_S, total_s=INTERRUPT_S)
    return Call(request, lambda _: None)


@dataclass
class Transcript:
    """Adds up the events of one command. Keeps the beginning and the end of long output.

    `on_stdout` and `on_stderr` are told each piece as it arrives, also what is not kept.
    """

    output_bytes_max: int = OUTPUT_BYTES_MAX
    timeout_s: float | None = None
    background: bool = False
    on_stdout: OnText | None = None
    on_stderr: OnText | None = None
    layer: Told = field(default_factory=Told)
    id: str = ""
    ended: bool = False
    _pieces: list[tuple[str, str]] = field(default_factory=list)
    _tail: deque[tuple[str, str]] = field(default_factory=deque)
    _head_bytes: int = 0
    _tail_bytes: int = 0
    _dropped_bytes: int = 0
    _end: Event | None = None
    _begun: float = field(default_factory=time.monotonic)

    def add(self, event: Event) -> None:
        """Takes the next event; those after the end and of unknown kinds change nothing."""
        if event.kind == "init":
            self.id = event.text
        elif event.kind in ("stdout", "stderr"):
            self._say(event.kind, event.text)
        elif event.kind in ("error", "execution_complete") and not self.ended:
            self.ended, self._end = True, event
        elif event.kind == "layer":
            self.layer.layer((event.told or {}).get("layer"))
        elif event.kind == "layer_error":
            self.layer.failure(event.told)

    def outlives(self) -> bool:
        """Whether the command had ended when its stream broke: only its layer is unknown then."""
        self.layer.forget()
        return self.ended and self.layer.asked

    def _say(self, stream: str, text: str) -> None:
        tell = self.on_stdout if stream == "stdout" else self.on_stderr
        if tell is not None:
            tell(text)
        half = self.output_bytes_max // 2
        size = len(text.encode("utf-8"))
        if not self._tail and self._head_bytes + size <= half:
            self._pieces.append((stream, text))
            self._head_bytes += size
            return
        self._tail.append((stream, text))
        self._tail_bytes += size
        while self._tail_bytes > self.output_bytes_max - self._head_bytes:
            self._shorten()

    def _shorten(self) -> None:
        """Drops the oldest piece behind the beginning, or the first part of it."""
        stream, text = self._tail.popleft()
        raw = text.encode("utf-8")
        surplus = self._tail_bytes - (self.output_bytes_max - self._head_bytes)
        cut = min(len(raw), surplus)
        if cut < len(raw):
            rest = raw[cut:].decode("utf-8", "ignore")
            cut = len(raw) - len(rest.encode("utf-8"))
            self._tail.appendleft((stream, rest))
        self._tail_bytes -= cut
        self._dropped_bytes += cut

    def _joined(self, stream: str | None) -> str:
        def chosen(pieces: Iterable[tuple[str, str]]) -> str:
            return "".join(text for kind, text in pieces if stream in (None, kind))

        head, tail = chosen(self._pieces), chosen(self._tail)
        if not self._dropped_bytes or stream is not None:
            return head + tail
        return f"{head}\n[… {self._dropped_bytes} bytes of output left out …]\n{tail}"

    def result(self) -> CommandResult:
        """How it ended. Without a last event the stream broke off, which is an error."""
        end = self._end
        if end is None:
            raise ProtocolError("the stream stopped before the command ended; did its sandbox end?")
        code: int | None = None if self.background else 0
        error = ""
        if end.kind == "error":
            code = _exit_code(end.error_value)
            error = "; ".join(end.traceback) or end.error_value or end.error_name
            if code is None and end.error_value and end.error_value not in error:
                error = f"{end.error_value}: {error}"
        took_s = time.monotonic() - self._begun
        # Our daemon says so; the original one only tells that the command was killed.
        told = any(line.startswith("timeout:") for line in end.traceback)
        late = bool(self.timeout_s) and took_s >= (self.timeout_s or 0) * 0.99
        return CommandResult(
            id=self.id,
            exit_code=code,
            output=self._joined(None),
            stdout=self._joined("stdout"),
            stderr=self._joined("stderr"),
            error=error,
            truncated=self._dropped_bytes > 0,
            timed_out=told or (late and code == -1),
            duration_ms=round(took_s * 1000)
            if end.execution_time_ms is None
            else end.execution_time_ms,
            layer=self.layer.sealed,
            layer_error=self.layer.failed,
        )


def _exit_code(value: str) -> int | None:
    """The exit code in an error event; None when the command never ran."""
    text = value.strip()
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None
