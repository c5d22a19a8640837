"""The event stream of a command: bytes in any pieces to events.

Each event is one JSON object on a line of its own, bare or after `data:`, and a blank line follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barchan.errors import ProtocolError

EVENT_BYTES_MAX = 64 * 1024 * 1024
_SKIPPED = (b":", b"event:", b"id:", b"retry:")


@dataclass(frozen=True)
class Event:
    """One event; what does not apply is empty. `told` is all of one about a layer."""

    kind: str
    text: str = ""
    execution_time_ms: int | None = None
    error_name: str = ""
    error_value: str = ""
    traceback: tuple[str, ...] = ()
    told: Mapping[str, Any] | None = None


@dataclass
class EventDecoder:
    """Takes bytes as they arrive and gives the events that are whole."""

    _line: bytearray = field(default_factory=bytearray)
    _data: list[bytes] = field(default_factory=list)

    # BOUNDARY: sandbox → host. Test: test_any_cut_gives_the_same_events
    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        events: list[Event] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._line += part
            events += self._take_line(bytes(self._line))
            self._line.clear()
        self._line += rest
        if len(self._line) > EVENT_BYTES_MAX:
            raise ProtocolError(f"an event is over {EVENT_BYTES_MAX} bytes")
        return events

    def finish(self) -> list[Event]:
        """What the end of the stream completes: a last event may lack its blank line."""
        events = self._take_line(bytes(self._line))
        self._line.clear()
        return events + self._flush()

    def _take_line(self, line: bytes) -> list[Event]:
        line = line.strip(b"\r")
        if not line.strip():
            return self._flush()
        if line.startswith(b"data:"):
            self._data.append(line[5:].lstrip(b" "))
            return []
        if line.startswith(_SKIPPED):
            return []
        return [*self._flush(), parse(line)]

    def _flush(self) -> list[Event]:
        if not self._data:
            return []
        whole = b"\n".join(self._data)
        self._data.clear()
        return [parse(whole)]


def parse(frame: bytes) -> Event:
    """One event from its JSON."""
    try:
        found: Any = json.loads(frame)
    except ValueError as error:
        raise ProtocolError(f"an event that is no JSON: {frame[:80]!r} ({error})") from None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise ProtocolError(f"an event without a type: {frame[:80]!r}")
    about = found.get("error")
    detail: dict[str, Any] = about if isinstance(about, dict) else {}
    lines = detail.get("traceback")
    took = found.get("execution_time")
    return Event(
        kind=found["type"],
        text=_text(found.get("text")),
        execution_time_ms=took if isinstance(took, int) else None,
        error_name=_text(detail.get("ename")),
        error_value=_text(detail.get("evalue")),
        traceback=tuple(map(_text, lines)) if isinstance(lines, list) else (),
        told=found if found["type"] in ("layer", "layer_error") else None,
    )


def _text(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # JSON can spell half a character, which no file, terminal or model takes.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
