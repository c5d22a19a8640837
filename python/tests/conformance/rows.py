"""A request with what must come back: one row of the tables of routes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

# What a field must be: a type, an exact value, a predicate, or the same for each of its fields.
Shape = Any


@dataclass(frozen=True)
class Row:
    """One request to one route.

    `route` is the route as the contract writes it; `path` the same with something filled in, where
    `{words}` stand for what a world makes when it is first asked. Expected is `status`, with `code`
    for a refusal or `shape` and `look` for an answer.
    """

    route: str
    path: str
    status: int
    code: str = ""
    shape: Shape = None
    look: Callable[[httpx.Response], object] | None = None
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    # It takes a kernel to answer, so the sandbox's image must have some.
    kernel: bool = False
    # The answer has no end: what there is to look at is its first event.
    endless: bool = False

    @property
    def method(self) -> str:
        return self.route.split(" ", 1)[0]

    @property
    def id(self) -> str:
        said = self.code or "-".join(self.headers) or ""
        return f"{self.route} {self.path} {self.status} {said}".strip()[:150]

    def content(self, world: Mapping[str, str]) -> dict[str, Any]:
        """The request's body for httpx, with what the world has filled in."""
        if self.raw is not None:
            return {"content": self.raw}
        if self.body is None:
            return {}
        text = filled(self.body, world)
        return {"content": json.dumps(text), "headers": {"Content-Type": "application/json"}}


def filled(value: Any, world: Mapping[str, str]) -> Any:
    """A body in which `{words}` are replaced, in names too."""
    if isinstance(value, str):
        return value.format_map(world) if "{" in value else value
    if isinstance(value, list):
        return [filled(one, world) for one in value]
    if isinstance(value, dict):
        return {filled(key, world): filled(one, world) for key, one in value.items()}
    return value


def check(row: Row, answer: httpx.Response, world: Mapping[str, str]) -> None:
    """Holds an answer against its row."""
    told = answer.text[:1000]
    assert answer.status_code == row.status, told
    if row.code:
        assert_error(answer, row.code)
    elif row.status == 422:
        detail = answer.json()["detail"]
        assert detail, told
        assert all({"type", "loc", "msg", "input"} <= set(one) for one in detail), told
    if row.shape is not None:
        assert_shape(answer.json(), filled(row.shape, world))
    if row.look is not None:
        assert row.look(answer), told


def assert_error(answer: httpx.Response, code: str) -> None:
    """A refusal in JSON with a code for programs and a message for people."""
    assert answer.headers["content-type"] == "application/json", answer.text[:1000]
    body = answer.json()
    assert body["code"] == code, body
    assert isinstance(body["message"], str), body
    assert body["message"], body
    # File tools add a number or a better path.
    assert set(body) - {"detail", "count", "suggestion"} == {"code", "message"}, body


def assert_shape(found: Any, wanted: Shape, place: str = "") -> None:
    """Every wanted field is there and is what it should be; further ones are fine."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), f"{place}: {found!r}"
        for name, one in wanted.items():
            assert name in found, f"{place}: no {name} in {found!r}"
            assert_shape(found[name], one, f"{place}.{name}")
    elif isinstance(wanted, type):
        is_truth = isinstance(found, bool) and wanted is not bool
        assert isinstance(found, wanted), f"{place}: {found!r} is no {wanted.__name__}"
        assert not is_truth, f"{place}: {found!r} is a truth value"
    elif isinstance(wanted, list) and len(wanted) == 1 and isinstance(found, list):
        assert found, f"{place}: empty"
        for at, one in enumerate(found):
            assert_shape(one, wanted[0], f"{place}[{at}]")
    elif callable(wanted):
        assert wanted(found), f"{place}: {found!r}"
    else:
        assert found == wanted, f"{place}: {found!r} instead of {wanted!r}"


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream, one JSON object each with an empty line behind."""
    assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
    frames = answer.text.split("\n\n")
    assert frames.pop() == "", answer.text[-200:]
    found: list[dict[str, Any]] = [json.loads(frame) for frame in frames]
    for one in found:
        assert isinstance(one["type"], str)
        assert isinstance(one["timestamp"], int)
    return found


def output(answer: httpx.Response, kind: str = "stdout") -> str:
    """What a stream says was printed."""
    return "".join(one["text"] for one in events(answer) if one["type"] == kind)


def ended_well(answer: httpx.Response) -> bool:
    """The stream begins with an id and ends with exactly one success."""
    kinds = [one["type"] for one in events(answer)]
    ends = [kind for kind in kinds if kind in ("error", "execution_complete")]
    return kinds[0] == "init" and ends == ["execution_complete"] and kinds[-1] == ends[0]


def ended_with(answer: httpx.Response, code: int) -> bool:
    """The stream ends with exactly one error that holds this exit code."""
    ends = [one for one in events(answer) if one["type"] in ("error", "execution_complete")]
    return [one.get("error", {}).get("evalue") for one in ends] == [str(code)]
