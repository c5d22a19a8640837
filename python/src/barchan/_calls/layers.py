"""Calls about sealed layers, and what is told of one behind a command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode

from barchan._calls.lifecycle import info, when
from barchan._request import Answer, Call, Request, json_body
from barchan.errors import ProtocolError, ServerFault
from barchan.models import Layer, LayerChange, LayerDiff, LayerFailure, SandboxInfo, SnapshotInfo

# Files in use are copied, which takes as long as there is to copy.
SEAL_S = 600.0
NOT_TOLD = LayerFailure(
    "LAYER::NOT_TOLD",
    "the connection ended before it was told what became of the layer: look at `layers.list()`, "
    "and seal one if the command's is missing",
)

WhenBusy = Literal["force", "refuse"]
Seal = str | bool


def wish(seal: Seal) -> Mapping[str, str]:
    """The header that has a command's writings sealed; a text is the layer's label."""
    if seal is False:
        return {}
    return {"X-Barchan-Seal": "" if seal is True else quote(seal, safe="")}


def read_layer(found: Any) -> Layer:
    """A layer from its JSON."""
    if not isinstance(found, dict) or not isinstance(found.get("number"), int):
        raise ProtocolError("a layer without a number")
    label = found.get("label")
    return Layer(
        number=found["number"],
        parent=int(found.get("parent") or 0),
        label=label if isinstance(label, str) else None,
        sealed_at=when(found.get("sealedAt")),
        copied=found.get("copied") is True,
        still_ms=float(found.get("stillMs") or 0),
        size_bytes=int(found.get("sizeBytes") or 0),
        entries=int(found.get("entries") or 0),
    )


@dataclass
class Told:
    """What is told of the layer behind a command. The last word counts: it is the server's, and
    before it the sandbox may have said anything."""

    asked: bool = False
    _last: Layer | LayerFailure = NOT_TOLD
    _is_over: bool = False

    def layer(self, found: object) -> None:
        """Takes the layer that was sealed."""
        if self._is_over:
            return
        try:
            self._last = read_layer(found)
        except (ProtocolError, TypeError, ValueError):
            self._last = NOT_TOLD

    def failure(self, found: object) -> None:
        """Takes the reason why there is none."""
        if self._is_over:
            return
        said = found if isinstance(found, dict) else {}
        self._last = LayerFailure(str(said.get("code") or ""), str(said.get("message") or ""))

    def forget(self) -> None:
        """The stream broke, and with it the last word: on another one the server says nothing."""
        self._last, self._is_over = NOT_TOLD, True

    @property
    def sealed(self) -> Layer | None:
        """The layer, if one was asked for and came about."""
        return self._last if self.asked and isinstance(self._last, Layer) else None

    @property
    def failed(self) -> LayerFailure | None:
        """Why there is none, if one was asked for."""
        return self._last if self.asked and isinstance(self._last, LayerFailure) else None


def payload(content: bytes) -> object:
    """What a frame about a layer holds; None when it is no JSON."""
    try:
        return json.loads(content)
    except ValueError:
        return None


def _path(sandbox_id: str, verb: str = "") -> str:
    return f"/x/layers/{quote(sandbox_id, safe='')}{verb}"


def seal(sandbox_id: str, label: str | None, when_busy: WhenBusy) -> Call[Layer]:
    """Seals what a running sandbox has written."""
    headers, body = json_body({"label": label, "whenBusy": when_busy})
    request = Request("POST", _path(sandbox_id), headers, body, answer_s=SEAL_S)
    return Call(request, lambda answer: read_layer(answer.json()))


def layers(sandbox_id: str) -> Call[list[Layer]]:
    """The layers of a sandbox, oldest first."""
    request = Request("GET", _path(sandbox_id))
    return Call(request, lambda answer: [read_layer(found) for found in _items(answer, "layers")])


def diff(sandbox_id: str, start: int | None, end: int | None) -> Call[LayerDiff]:
    """What differs between two layers."""
    given = {"from": start, "to": end}
    query = urlencode({name: number for name, number in given.items() if number is not None})
    path = _path(sandbox_id, f"/diff?{query}" if query else "/diff")
    return Call(Request("GET", path, answer_s=SEAL_S), _read_diff)


def _read_diff(answer: Answer) -> LayerDiff:
    found = [payload(line) for line in answer.content.splitlines() if line]
    lines = [line for line in found if isinstance(line, dict)]
    if lines and isinstance(error := lines[-1].get("error"), dict):
        message = str(error.get("message") or "not all was told")
        raise ServerFault(message, status=answer.head.status, code=str(error.get("code") or ""))
    if not lines or "summary" not in lines[-1] or len(lines) != len(found):
        raise ProtocolError("a diff without its last line")
    cut = lines[-1]["summary"].get("cut")
    return LayerDiff([_change(line) for line in lines[:-1]], cut)


def _change(line: Mapping[str, Any]) -> LayerChange:
    return LayerChange(
        path=str(line.get("path")),
        change=str(line.get("change")),
        differs=tuple(line.get("differs") or ()),
        diff=line.get("diff"),
        diff_cut=line.get("diffCut"),
        binary=line.get("binary") is True,
        old=line.get("old"),
        new=line.get("new"),
    )


def commit(sandbox_id: str, number: int | None, name: str | None) -> Call[SnapshotInfo]:
    """Begins to make a snapshot of a layer."""
    headers, body = json_body({"layer": number, "name": name})
    request = Request("POST", _path(sandbox_id, "/commit"), headers, body, answer_s=SEAL_S)
    return Call(request, lambda answer: _read_snapshot(answer.json()))


def _read_snapshot(found: Any) -> SnapshotInfo:
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        raise ProtocolError("a snapshot without an id")
    status = found.get("status")
    if not isinstance(status, dict):
        status = {}
    name = found.get("name")
    return SnapshotInfo(
        id=found["id"],
        state=str(status.get("state") or "Unknown"),
        sandbox_id=str(found.get("sandboxId") or ""),
        name=name if isinstance(name, str) else None,
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        created_at=when(found.get("createdAt")),
    )


def undo(sandbox_id: str, number: int, when_busy: WhenBusy) -> Call[SandboxInfo]:
    """Starts a running sandbox anew with the files of a layer."""
    headers, body = json_body({"layer": number, "whenBusy": when_busy})
    request = Request("POST", _path(sandbox_id, "/undo"), headers, body, answer_s=SEAL_S)
    return Call(request, lambda answer: info(answer.json()))


def fork(
    sandbox_id: str,
    number: int | None,
    count: int,
    lifetime_s: int | None,
    metadata: Mapping[str, str] | None,
) -> Call[list[SandboxInfo]]:
    """Makes sandboxes of a layer, all or none."""
    headers, body = json_body(
        {
            "layer": number,
            "count": count,
            "timeout": lifetime_s,
            "metadata": dict(metadata) if metadata else None,
        }
    )
    request = Request("POST", _path(sandbox_id, "/fork"), headers, body, answer_s=SEAL_S)
    return Call(request, lambda answer: [info(found) for found in _items(answer, "sandboxes")])


def forget(sandbox_id: str, number: int) -> Call[None]:
    """Forgets a layer."""
    return Call(Request("DELETE", _path(sandbox_id, f"/kept/{number}")), lambda _: None)


def _items(answer: Answer, what: str) -> list[Any]:
    found = answer.json()
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise ProtocolError(f"a list of {what} without items")
    return items
