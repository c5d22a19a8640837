"""Calls on the file tools of a sandbox."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from barchan._calls.commands import proxy
from barchan._calls.lifecycle import when
from barchan._http1 import Bytes
from barchan._request import Answer, Call, Request
from barchan.errors import ProtocolError
from barchan.models import Content, Entry, Found, Match, Paths

Result = TypeVar("Result")
Mode = Literal["matches", "files", "counts"]

WRITE_ANSWER_S = 120.0
# The daemon takes numbers of 64 bits.
NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True)
class Grep:
    """A search for text; see `Fs.grep`."""

    pattern: str
    path: str | None = None
    glob: str | None = None
    regex: bool = False
    ignore_case: bool = False
    mode: Mode = "matches"
    max_count: int | None = None
    exclude_dirs: Sequence[str] | None = None
    time_limit_s: float | None = None


def _call(
    sandbox_id: str,
    tool: str,
    asked: Mapping[str, object],
    read: Callable[[dict[str, Any]], Result],
    *,
    only_reads: bool = False,
) -> Call[Result]:
    given = {name: value for name, value in asked.items() if value is not None}
    # What is no text is for the daemon to refuse: a model's surrogates are no exception here.
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    request = Request(
        "POST",
        proxy(sandbox_id, f"/x/fs/{tool}"),
        {"Content-Type": "application/json"},
        Bytes(text.encode("utf-8", "surrogatepass")),
        answer_s=WRITE_ANSWER_S,
        only_reads=only_reads,
    )

    def take(answer: Answer) -> Result:
        found = answer.json()
        try:
            return read(found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ProtocolError(f"an answer of {tool} that makes no sense: {error!r}") from None

    return Call(request, take)


def _bounded(number: int | None) -> int | None:
    return None if number is None else max(-NUMBER_MAX, min(int(number), NUMBER_MAX))


def _ms(limit_s: float | None) -> int | None:
    return None if limit_s is None else max(0, round(limit_s * 1000))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"no list but a {type(value).__name__}")
    return value


def _skipped(found: Mapping[str, Any]) -> dict[str, str]:
    return {str(one["path"]): str(one["reason"]) for one in _list(found.get("skipped", []))}


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def ls(sandbox_id: str, path: str, details: bool, workdir: str | None) -> Call[list[Entry]]:
    """What is in a directory."""

    def read(found: dict[str, Any]) -> list[Entry]:
        return [
            Entry(
                str(one["path"]),
                str(one["type"]),
                _number(one.get("size")),
                when(one.get("modified_at")),
            )
            for one in _list(found["entries"])
        ]

    asked = {"path": path, "details": details, "workdir": workdir}
    return _call(sandbox_id, "ls", asked, read, only_reads=True)


def read(
    sandbox_id: str,
    path: str,
    offset: int,
    limit: int,
    bytes_max: int | None,
    workdir: str | None,
) -> Call[Content]:
    """A page of a file."""

    def take(found: dict[str, Any]) -> Content:
        final = found.get("final_newline")
        return Content(
            content=str(found["content"]),
            encoding=str(found["encoding"]),
            start_line=_number(found.get("start_line")),
            end_line=_number(found.get("end_line")),
            total_lines=_number(found.get("total_lines")),
            next_offset=_number(found.get("next_offset")),
            truncated=bool(found.get("truncated")),
            final_newline=None if final is None else bool(final),
        )

    asked = {
        "path": path,
        "offset": _bounded(offset),
        "limit": _bounded(limit),
        "bytes_max": bytes_max,
        "workdir": workdir,
    }
    return _call(sandbox_id, "read", asked, take, only_reads=True)


def write(
    sandbox_id: str, path: str, content: str | bytes, create: bool, workdir: str | None
) -> Call[int]:
    """Writes a file."""
    asked: dict[str, object] = {"path": path, "create": create, "workdir": workdir}
    if isinstance(content, str):
        asked["content"] = content
    else:
        asked |= {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
    return _call(sandbox_id, "write", asked, lambda found: int(found["size"]))


def edit(
    sandbox_id: str, path: str, old: str, new: str, replace_all: bool, workdir: str | None
) -> Call[int]:
    """Replaces a text in a file."""
    asked = {"path": path, "old": old, "new": new, "replace_all": replace_all, "workdir": workdir}
    return _call(sandbox_id, "edit", asked, lambda found: int(found["occurrences"]))


def delete(sandbox_id: str, path: str, workdir: str | None) -> Call[str]:
    """Removes a file or a tree."""
    asked = {"path": path, "workdir": workdir}
    return _call(sandbox_id, "delete", asked, lambda found: str(found["path"]))


def grep(sandbox_id: str, asked: Grep, workdir: str | None) -> Call[Found]:
    """Looks for text."""

    def read(found: dict[str, Any]) -> Found:
        return Found(
            matches=tuple(
                Match(str(one["path"]), int(one["line"]), str(one["text"]), bool(one.get("cut")))
                for one in _list(found.get("matches", []))
            ),
            files=tuple(str(path) for path in _list(found.get("files", []))),
            counts={str(one["path"]): int(one["count"]) for one in _list(found.get("counts", []))},
            truncated=found.get("truncated"),
            skipped=_skipped(found),
        )

    fields = {
        "pattern": asked.pattern,
        "path": asked.path,
        "glob": asked.glob,
        "regex": asked.regex,
        "ignore_case": asked.ignore_case,
        "mode": asked.mode,
        "max_count": _bounded(asked.max_count),
        "exclude_dirs": None if asked.exclude_dirs is None else list(asked.exclude_dirs),
        "time_limit_ms": _ms(asked.time_limit_s),
        "workdir": workdir,
    }
    return _call(sandbox_id, "grep", fields, read, only_reads=True)


def glob(
    sandbox_id: str,
    pattern: str,
    path: str | None,
    max_count: int | None,
    time_limit_s: float | None,
    workdir: str | None,
) -> Call[Paths]:
    """Looks for names."""

    def read(found: dict[str, Any]) -> Paths:
        paths = tuple(str(one) for one in _list(found["paths"]))
        return Paths(paths, found.get("truncated"), _skipped(found))

    fields = {
        "pattern": pattern,
        "path": path,
        "max_count": _bounded(max_count),
        "time_limit_ms": _ms(time_limit_s),
        "workdir": workdir,
    }
    return _call(sandbox_id, "glob", fields, read, only_reads=True)
