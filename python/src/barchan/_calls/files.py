"""Calls on the files of a sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from barchan._calls.commands import proxy
from barchan._calls.lifecycle import when
from barchan._multipart import Multipart, Upload, mode_bits, octal_digits
from barchan._request import Answer, Call, Request, json_body
from barchan.errors import ProtocolError
from barchan.models import FileInfo, Kind

UPLOAD_ANSWER_S = 120.0
_KINDS: dict[str, Kind] = {"directory": "directory", "symlink": "symlink", "other": "other"}


def _none(_: Answer) -> None:
    return None


def _query(sandbox_id: str, route: str, pairs: Sequence[tuple[str, str]]) -> str:
    return proxy(sandbox_id, f"{route}?{urlencode(pairs)}")


def _file_info(found: Any, path: str) -> FileInfo:
    if not isinstance(found, dict):
        raise ProtocolError(f"no file information about {path!r}")
    return FileInfo(
        path=str(found.get("path", path)),
        kind=_KINDS.get(str(found.get("type")), "file"),
        size_bytes=int(found.get("size") or 0),
        mode=mode_bits(found.get("mode")),
        owner=str(found.get("owner") or ""),
        group=str(found.get("group") or ""),
        modified_at=when(found.get("modified_at")),
        created_at=when(found.get("created_at")),
    )


def _file_infos(answer: Answer) -> list[FileInfo]:
    found = answer.json()
    if not isinstance(found, list):
        raise ProtocolError("a list of files that is no list")
    return [_file_info(one, "") for one in found]


def upload(sandbox_id: str, uploads: Sequence[Upload]) -> Call[None]:
    """Writes files, and makes the directories above them; all in one request."""
    body = Multipart(uploads)
    headers = {"Content-Type": body.content_type}
    path = proxy(sandbox_id, "/files/upload")
    return Call(Request("POST", path, headers, body, answer_s=UPLOAD_ANSWER_S), _none)


def download(sandbox_id: str, path: str, first: int | None, last: int | None) -> Request:
    """The content of a file, or the bytes from `first` to `last`, both included."""
    headers: dict[str, str] = {}
    if first is not None or last is not None:
        headers["Range"] = f"bytes={first or 0}-{'' if last is None else last}"
    return Request("GET", _query(sandbox_id, "/files/download", [("path", path)]), headers)


def info(sandbox_id: str, paths: Sequence[str]) -> Call[dict[str, FileInfo]]:
    """What is known of paths; one that is missing fails the whole call."""
    request = Request("GET", _query(sandbox_id, "/files/info", [("path", path) for path in paths]))

    def read(answer: Answer) -> dict[str, FileInfo]:
        found = answer.json()
        if not isinstance(found, dict):
            raise ProtocolError("file information that is no object")
        return {path: _file_info(one, path) for path, one in found.items()}

    return Call(request, read)


def listing(sandbox_id: str, path: str, depth: int) -> Call[list[FileInfo]]:
    """What is in a directory, this many levels deep."""
    pairs = [("path", path), ("depth", str(depth))]
    return Call(Request("GET", _query(sandbox_id, "/directories/list", pairs)), _file_infos)


def search(sandbox_id: str, path: str, pattern: str) -> Call[list[FileInfo]]:
    """Regular files below a directory whose names match a glob."""
    pairs = [("path", path), ("pattern", pattern)]
    return Call(Request("GET", _query(sandbox_id, "/files/search", pairs)), _file_infos)


def delete(sandbox_id: str, paths: Sequence[str], *, directories: bool) -> Call[None]:
    """Removes files, or directories with all that is in them."""
    route = "/directories" if directories else "/files"
    pairs = [("path", path) for path in paths]
    return Call(Request("DELETE", _query(sandbox_id, route, pairs)), _none)


def move(sandbox_id: str, moves: Mapping[str, str]) -> Call[None]:
    """Renames paths."""
    pairs = [{"src": src, "dest": dest} for src, dest in moves.items()]
    headers, body = json_body(pairs)
    return Call(Request("POST", proxy(sandbox_id, "/files/mv"), headers, body), _none)


def make_directories(sandbox_id: str, paths: Sequence[str], mode: int) -> Call[None]:
    """Makes directories and those above them; existing ones get the mode as well."""
    headers, body = json_body({path: {"mode": octal_digits(mode)} for path in paths})
    return Call(Request("POST", proxy(sandbox_id, "/directories"), headers, body), _none)


def set_mode(sandbox_id: str, path: str, mode: int) -> Call[None]:
    """Changes permission bits."""
    headers, body = json_body({path: {"mode": octal_digits(mode)}})
    return Call(Request("POST", proxy(sandbox_id, "/files/permissions"), headers, body), _none)


def replace(sandbox_id: str, path: str, old: str, new: str) -> Call[int]:
    """Replaces a text wherever it occurs in a file; answers how often it did."""
    headers, body = json_body({path: {"old": old, "new": new}})
    request = Request("POST", proxy(sandbox_id, "/files/replace?verbose=true"), headers, body)

    def read(answer: Answer) -> int:
        found = answer.json() if answer.content else {}
        entry = found.get(path) if isinstance(found, dict) else None
        return int(entry.get("replacedCount", 0)) if isinstance(entry, dict) else 0

    return Call(request, read)
