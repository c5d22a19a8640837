"""Commands as bytes: frames cut anywhere, connections that break, input beside output."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from barchan import ExecResult, ProtocolError, Usage, errors
from barchan._address import Address
from barchan._calls.exec import ExecTranscript
from barchan._frames import ALIVE, ENDED, GAP, HEAD, STARTED, STDERR, STDOUT, USAGE, FrameDecoder
from drivers import DRIVERS, Driver
from fake_server import HANG_UP, FakeServer, Seen, answer, chunk, json_answer, stream, stream_head

Make = Callable[[Address], Driver]


def frame(kind: int, offset: int, payload: bytes = b"") -> bytes:
    return HEAD.pack(kind, offset, len(payload)) + payload


BEGIN = frame(STARTED, 0, b'{"id":"c1"}')
USED = frame(USAGE, 5, b'{"user_us":1,"system_us":2,"max_rss_bytes":3,"wall_us":4}')
END = frame(ENDED, 5, b'{"exit_code":7,"error":"exit status 7"}')
FIRST = frame(STDOUT, 0, b"a\0b")
REST = frame(STDERR, 3, b"\xff\n") + frame(ALIVE, 5) + frame(200, 5, b"?") + USED + END


@pytest.fixture(params=DRIVERS, ids=["blocking", "async"])
def drive(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Driver] = []

    def make(address: Address) -> Driver:
        made.append(request.param(address))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_any_cut_gives_the_same_frames() -> None:
    whole = BEGIN + FIRST + REST
    wanted = FrameDecoder().feed(whole)
    for at in range(len(whole) + 1):
        decoder = FrameDecoder()
        assert decoder.feed(whole[:at]) + decoder.feed(whole[at:]) == wanted, at


def test_a_frame_that_cannot_be_is_refused() -> None:
    with pytest.raises(ProtocolError):
        FrameDecoder().feed(HEAD.pack(STDOUT, 0, 2**20 + 1))
    for payload in (b"\xff", b"[]", b"{"):
        with pytest.raises(ProtocolError):
            ExecTranscript().feed(frame(ENDED, 0, payload))


def test_a_command_is_told_byte_for_byte(drive: Make) -> None:
    told: list[bytes] = []
    with FakeServer(lambda _: [stream(BEGIN, FIRST, REST)]) as server:
        result = drive(server.address).exec(
            "s/1", ["x", "y"], cwd="/w", env={"A": "b"}, timeout_s=1.5, on_stdout=told.append
        )
    assert isinstance(result, ExecResult)
    assert (result.id, result.exit_code, result.error) == ("c1", 7, "exit status 7")
    assert (result.stdout, result.stderr, result.output) == (b"a\0b", b"\xff\n", b"a\0b\xff\n")
    assert (result.usage, result.truncated, told) == (Usage(1, 2, 3, 4), False, [b"a\0b"])
    request = server.seen[0]
    assert request.path == "/v1/sandboxes/s%2F1/proxy/44772/x/exec"
    assert json.loads(request.body) == {
        "argv": ["x", "y"], "cwd": "/w", "envs": {"A": "b"}, "timeout": 1500,
    }  # fmt: skip


@pytest.mark.parametrize("cut", range(0, 15, 3))
def test_a_broken_stream_goes_on_where_it_broke(drive: Make, cut: int) -> None:
    def handler(request: Seen) -> Iterable[bytes]:
        if request.method == "POST":
            return [stream_head() + chunk(BEGIN + FIRST + REST[:cut]), HANG_UP]
        if len(server.seen) == 2:
            return [json_answer({"code": "X", "message": "not yet"}, 502)]
        return [stream(frame(STARTED, 3, b'{"id":"c1"}'), REST)]

    with FakeServer(handler) as server:
        result = drive(server.address).exec("s", "x")
    assert (result.output, result.exit_code) == (b"a\0b\xff\n", 7)
    asked = [parse_qs(urlsplit(request.path).query) for request in server.seen[1:]]
    assert asked == [{"since": ["3"], "hold": ["true"]}] * 2


def test_a_command_that_cannot_be_reached_again_is_an_error(drive: Make) -> None:
    def handler(request: Seen) -> Iterable[bytes]:
        if request.method == "POST":
            return [stream_head() + chunk(BEGIN), HANG_UP]
        return [json_answer({"code": "X", "message": "gone"}, 404)]

    with FakeServer(handler) as server, pytest.raises(errors.NotFound, match="gone"):
        drive(server.address).exec("s", "x")
    assert server.seen[-1].method == "DELETE"


def test_input_is_sent_while_output_is_read(drive: Make) -> None:
    content = bytes(range(256)) * 4096
    got: list[tuple[str, bytes]] = []
    over, late = threading.Event(), threading.Event()

    def handler(request: Seen) -> Iterable[bytes]:
        if "/stdin" not in request.path:
            yield stream_head() + chunk(BEGIN)
            assert over.wait(20)
            yield chunk(FIRST + REST) + b"0\r\n\r\n"
            return
        got.append((urlsplit(request.path).query, request.body))
        state = {"accepted_bytes": sum(len(body) for _, body in got), "open": bool(request.body)}
        if len(got) == 2 and not late.is_set():
            late.set()
            got.pop()
            yield json_answer({"code": "BACKEND_TIMEOUT", "message": "slow"}, 504)
            return
        yield json_answer(state)
        if not request.body:
            over.set()

    with FakeServer(handler) as server:
        result = drive(server.address).exec("s", "cat", stdin=content)
    assert result.exit_code == 7
    assert b"".join(body for _, body in got) == content
    offsets = [int(parse_qs(query)["offset"][0]) for query, _ in got]
    assert offsets == [*range(0, len(content) + 1, 256 * 1024)]
    assert [parse_qs(query)["close"][0] for query, _ in got][-2:] == ["false", "true"]
    assert json.loads(server.seen[0].body)["stdin"] is True


def test_a_key_is_sent_and_a_command_with_one_is_not_ended(drive: Make) -> None:
    def handler(request: Seen) -> Iterable[bytes]:
        if request.method == "POST":
            return [stream_head() + chunk(BEGIN), HANG_UP]
        return [answer(404)]

    with FakeServer(handler) as server, pytest.raises(errors.NotFound):
        drive(server.address).exec("s", "x", idempotency_key="k-1")
    assert server.seen[0].headers["idempotency-key"] == "k-1"
    assert [request.method for request in server.seen] == ["POST", "GET"]


@pytest.mark.parametrize("bytes_max", [0, 1, 10, 64, 1000])
def test_long_output_keeps_its_beginning_and_end(bytes_max: int) -> None:
    transcript = ExecTranscript(bytes_max)
    said = b"".join(b"%03d|" % number for number in range(100))
    for at in range(0, len(said), 7):
        transcript.feed(frame(STDOUT, at, said[at : at + 7]))
    transcript.feed(frame(ENDED, 400, b'{"exit_code":0}'))
    result = transcript.result()
    assert result.truncated == (bytes_max < 400)
    assert len(result.output) == min(bytes_max, 400)
    half = bytes_max // 2 - 7
    if 0 < half < 193:
        assert result.output.startswith(said[:half])
        assert result.output.endswith(said[-half:])


def test_a_gap_is_output_that_is_missing() -> None:
    transcript = ExecTranscript()
    transcript.feed(BEGIN + frame(GAP, 100) + frame(STDOUT, 100, b"x") + END)
    assert (transcript.result().truncated, transcript.result().output) == (True, b"x")
    with pytest.raises(ProtocolError):
        ExecTranscript().result()
