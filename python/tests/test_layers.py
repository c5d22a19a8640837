"""Sealed layers: the calls, and what is told of one behind a command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import pytest

from barchan import Conflict, Layer, LayerFailure, NotFound, ProtocolError, ServerFault
from barchan._address import Address
from barchan._frames import ENDED, HEAD, LAYER, LAYER_ERROR, STARTED
from drivers import DRIVERS, Driver
from fake_server import (
    HANG_UP,
    FakeServer,
    Seen,
    answer,
    chunk,
    event,
    failure,
    json_answer,
    stream,
    stream_head,
)

Make = Callable[[Address], Driver]

TOLD = {
    "number": 3, "parent": 2, "label": "make", "sealedAt": "2025-01-02T03:04:05.5Z",
    "copied": False, "stillMs": 1.25, "sizeBytes": 4096, "entries": 2,
}  # fmt: skip
BARE = {"number": 4, "parent": 3}
WHY = {"code": "LAYER::FAILED", "message": "the disk is full"}
NOT_TOLD = "LAYER::NOT_TOLD"

INIT, DONE = event("init", "c1"), event("execution_complete")
SEALED, BROKEN = event("layer", layer=TOLD), event("layer_error", **WHY)


def frame(kind: int, found: object) -> bytes:
    payload = found if isinstance(found, bytes) else json.dumps(found).encode()
    return HEAD.pack(kind, 0, len(payload)) + payload


BEGIN, END = frame(STARTED, {"id": "c1"}), frame(ENDED, {"exit_code": 0})


@pytest.fixture(params=DRIVERS, ids=["blocking", "async"])
def drive(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Driver] = []

    def make(address: Address) -> Driver:
        made.append(request.param(address))
        return made[-1]

    yield make
    for one in made:
        one.close()


def told(layer: Layer | None, error: LayerFailure | None) -> int | str:
    """The layer's number, or the code that says why there is none."""
    assert (layer is None) != (error is None)
    return layer.number if layer is not None else error.code if error is not None else ""


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([INIT, DONE, SEALED], 3),
        ([INIT, failure("7"), event("ping", "pong"), SEALED], 3),
        ([INIT, DONE, BROKEN], "LAYER::FAILED"),
        ([INIT, DONE], NOT_TOLD),
        ([INIT, DONE, event("layer", layer={"number": "x"})], NOT_TOLD),
        # What the sandbox itself says is not the last word.
        ([INIT, event("layer", layer=BARE), DONE, SEALED], 3),
        ([INIT, DONE, event("layer", layer=BARE), BROKEN], "LAYER::FAILED"),
    ],
)
def test_the_last_word_behind_a_command_counts(
    drive: Make, pieces: list[bytes], expected: int | str
) -> None:
    with FakeServer(lambda _: [stream(*pieces)]) as server:
        result = drive(server.address).run("s", "x", seal=True)
        plain = drive(server.address).run("s", "x")
    assert told(result.layer, result.layer_error) == expected
    assert (plain.layer, plain.layer_error) == (None, None)
    assert "x-barchan-seal" not in server.seen[1].headers


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([BEGIN, END, frame(LAYER, TOLD)], 3),
        ([BEGIN, END, frame(LAYER_ERROR, WHY)], "LAYER::FAILED"),
        ([BEGIN, END], NOT_TOLD),
        ([BEGIN, END, frame(LAYER, b"\xff")], NOT_TOLD),
        ([BEGIN, frame(LAYER, BARE), END, frame(LAYER, TOLD)], 3),
        # A sandbox's own word, and the beginning of a frame that swallows the server's.
        ([BEGIN, END, frame(LAYER, BARE), HEAD.pack(99, 0, 9999), frame(LAYER, TOLD)], NOT_TOLD),
    ],
)
def test_the_last_frame_behind_a_command_counts(
    drive: Make, pieces: list[bytes], expected: int | str
) -> None:
    with FakeServer(lambda _: [stream(*pieces)]) as server:
        result = drive(server.address).exec("s", "x", seal="ü b")
        plain = drive(server.address).exec("s", "x")
    assert told(result.layer, result.layer_error) == expected
    assert (plain.layer, plain.layer_error) == (None, None)
    assert server.seen[0].headers["x-barchan-seal"] == "%C3%BC%20b"


def test_a_command_that_ended_outlives_its_connection(drive: Make) -> None:
    def events(_: Seen) -> Iterable[bytes]:
        return [stream_head() + chunk(INIT + DONE + event("layer", layer=BARE)), HANG_UP]

    def frames(_: Seen) -> Iterable[bytes]:
        return [stream_head() + chunk(BEGIN + END + frame(LAYER, BARE)), HANG_UP]

    with FakeServer(events) as server:
        ran = drive(server.address).run("s", "x", seal=True)
    assert (ran.exit_code, told(ran.layer, ran.layer_error)) == (0, NOT_TOLD)
    with FakeServer(frames) as server:
        done = drive(server.address).exec("s", "x", seal=True)
    assert (done.exit_code, told(done.layer, done.layer_error)) == (0, NOT_TOLD)
    assert len(server.seen) == 1


def test_a_command_that_was_reached_again_does_not_know_its_layer(drive: Make) -> None:
    def handler(request: Seen) -> Iterable[bytes]:
        if request.method == "POST":
            return [stream_head() + chunk(BEGIN), HANG_UP]
        return [stream(BEGIN, END, frame(LAYER, BARE))]

    with FakeServer(handler) as server:
        done = drive(server.address).exec("s", "x", seal=True)
    assert (done.exit_code, told(done.layer, done.layer_error)) == (0, NOT_TOLD)


def test_layers_are_sealed_and_listed(drive: Make) -> None:
    def handler(request: Seen) -> Iterable[bytes]:
        if request.method == "GET":
            return [json_answer({"items": [TOLD, BARE]})]
        return [json_answer(TOLD, 201)]

    with FakeServer(handler) as server:
        driver = drive(server.address)
        layer = driver.layers("s/1", "seal", "make", when_busy="refuse")
        listed = driver.layers("s/1", "list")
    assert (layer.number, layer.parent, layer.label, layer.copied) == (3, 2, "make", False)
    assert (layer.still_ms, layer.size_bytes, layer.entries) == (1.25, 4096, 2)
    assert layer.sealed_at.year == 2025
    assert listed == [layer, Layer(4, 3)]
    assert server.seen[0].path == "/x/layers/s%2F1"
    assert json.loads(server.seen[0].body) == {"label": "make", "whenBusy": "refuse"}


def test_layers_are_gone_back_to_forked_and_forgotten(drive: Make) -> None:
    def handler(request: Seen) -> Iterable[bytes]:
        if request.method == "DELETE":
            return [answer(204)]
        if request.path.endswith("/fork"):
            return [json_answer({"layer": 3, "items": [{"id": "a"}, {"id": "b"}]}, 201)]
        return [json_answer({"id": "s", "status": {"state": "Running"}})]

    with FakeServer(handler) as server:
        driver = drive(server.address)
        assert driver.layers("s", "undo", 3).state == "Running"
        made = driver.layers("s", "fork", 3, count=2, lifetime_s=60, metadata={"a": "b"})
        driver.layers("s", "forget", 3)
    assert [one.id for one in made] == ["a", "b"]
    assert made[0].address == server.address
    assert [(one.method, one.path) for one in server.seen] == [
        ("POST", "/x/layers/s/undo"),
        ("POST", "/x/layers/s/fork"),
        ("DELETE", "/x/layers/s/kept/3"),
    ]
    bodies = [json.loads(one.body) for one in server.seen[:2]]
    assert bodies == [
        {"layer": 3, "whenBusy": "force"},
        {"layer": 3, "count": 2, "timeout": 60, "metadata": {"a": "b"}},
    ]


@pytest.mark.parametrize(
    ("args", "options", "body"),
    [
        ((), {}, {}),
        ((0,), {}, {"layer": 0}),
        ((3,), {"name": "best"}, {"layer": 3, "name": "best"}),
    ],
)
def test_a_snapshot_is_made_of_a_layer(
    drive: Make, args: tuple[int, ...], options: dict[str, str], body: dict[str, object]
) -> None:
    made = {
        "id": "0b0e", "sandboxId": "s", "name": "best", "createdAt": "2025-01-02T03:04:05Z",
        "status": {"state": "Creating", "reason": "being_taken", "message": "wait"},
    }  # fmt: skip
    with FakeServer(lambda _: [json_answer(made, 202)]) as server:
        found = drive(server.address).layers("s/1", "commit", *args, **options)
    assert (found.id, found.sandbox_id, found.name) == ("0b0e", "s", "best")
    assert (found.state, found.reason, found.message) == ("Creating", "being_taken", "wait")
    assert found.created_at.year == 2025
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("POST", "/x/layers/s%2F1/commit")
    assert json.loads(seen.body) == body


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (json_answer({"code": "LAYER::NOT_FOUND", "message": "x"}, 404), NotFound),
        (json_answer({"status": {}}, 202), ProtocolError),
        (json_answer([], 202), ProtocolError),
    ],
)
def test_a_snapshot_that_does_not_begin_is_an_error(
    drive: Make, reply: bytes, error: type[Exception]
) -> None:
    with FakeServer(lambda _: [reply]) as server, pytest.raises(error):
        drive(server.address).layers("s", "commit", 3)


CHANGED = {
    "path": "/a", "change": "changed", "differs": ["content", "mode"], "diff": "--- a/a\n",
    "diffCut": "diff", "old": {"mode": 644}, "new": {"mode": 755},
}  # fmt: skip
REMOVED = {"path": "/b", "change": "deleted", "binary": True}
SUMMARY = {"summary": {"added": 0, "changed": 1, "deleted": 1, "cut": "time"}}


def lines(*found: object) -> bytes:
    return answer(200, "".join(f"{json.dumps(line)}\n" for line in found).encode())


def test_what_differs_between_layers_is_told(drive: Make) -> None:
    with FakeServer(lambda _: [lines(CHANGED, REMOVED, SUMMARY)]) as server:
        driver = drive(server.address)
        found = driver.layers("s", "diff", 1, 3)
        driver.layers("s", "diff")
    assert [one.path for one in server.seen] == ["/x/layers/s/diff?from=1&to=3", "/x/layers/s/diff"]
    changed, removed = found.changes
    assert (changed.path, changed.change, changed.differs) == ("/a", "changed", ("content", "mode"))
    assert (changed.diff, changed.diff_cut, changed.binary) == ("--- a/a\n", "diff", False)
    assert (changed.old, changed.new) == ({"mode": 644}, {"mode": 755})
    assert (removed.path, removed.change, removed.diff, removed.binary) == (
        "/b", "deleted", None, True,
    )  # fmt: skip
    assert found.cut == "time"


def test_why_a_diff_broke_off_is_told(drive: Make) -> None:
    with (
        FakeServer(lambda _: [lines(CHANGED, {"error": WHY})]) as server,
        pytest.raises(ServerFault, match="the disk is full") as caught,
    ):
        drive(server.address).layers("s", "diff")
    assert caught.value.code == "LAYER::FAILED"


@pytest.mark.parametrize("reply", [lines(CHANGED), lines(), answer(200, b"{}\nno json\n")])
def test_a_diff_that_is_not_whole_is_none(drive: Make, reply: bytes) -> None:
    with FakeServer(lambda _: [reply]) as server, pytest.raises(ProtocolError):
        drive(server.address).layers("s", "diff")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (json_answer({"code": "LAYER::FILES_IN_USE", "message": "x"}, 409), Conflict),
        (json_answer({"label": "x"}, 201), ProtocolError),
        (json_answer([], 201), ProtocolError),
    ],
)
def test_what_goes_wrong_with_a_layer_is_told(
    drive: Make, reply: bytes, error: type[Exception]
) -> None:
    with FakeServer(lambda _: [reply]) as server, pytest.raises(error):
        drive(server.address).layers("s", "seal")
