"""Requests over real sockets: kept connections, deadlines, refusals. Blocking and async alike."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barchan import errors
from barchan._address import Address
from barchan._calls import lifecycle
from barchan._http1 import Bytes
from barchan._request import Answer, Call, Request
from drivers import DRIVERS, Driver
from fake_server import HANG_UP, FakeServer, Handler, Seen, answer, json_answer

Make = Callable[[Address], Driver]


@pytest.fixture(params=DRIVERS, ids=["blocking", "async"])
def drive(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Driver] = []

    def make(address: Address) -> Driver:
        made.append(request.param(address))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


def get(path: str = "/x", **limits: Any) -> Call[bytes]:
    return Call(Request("GET", path, **limits), lambda got: got.content)


def post(body: bytes = b"{}") -> Call[bytes]:
    return Call(Request("POST", "/x", {}, Bytes(body)), lambda got: got.content)


def always(reply: bytes) -> Handler:
    return lambda _: [reply]


def test_one_connection_serves_many_requests(drive: Make) -> None:
    with FakeServer(always(answer(body=b"hi"))) as server:
        client = drive(server.address)
        assert [client.call(get()) for _ in range(5)] == [b"hi"] * 5
        client.call(post(b"x" * 200_000))
        assert server.connections == 1
        assert server.seen[-1].body == b"x" * 200_000


def test_a_unix_socket_and_the_key(drive: Make, tmp_path: Path) -> None:
    with FakeServer(always(answer(body=b"hi")), unix=tmp_path / "s") as server:
        address = dataclasses.replace(server.address, api_key="k")
        assert drive(address).call(get()) == b"hi"
        headers = server.seen[0].headers
        assert headers["open-sandbox-api-key"] == "k"
        assert headers["host"] == "localhost"
        assert headers["user-agent"].startswith("Barchan-Python/")


def test_proxies_of_the_environment_do_not_apply(
    drive: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeServer(always(answer(body=b"hi"))) as server:
        assert drive(server.address).call(get()) == b"hi"


def test_a_kept_connection_that_died_is_replaced(drive: Make) -> None:
    with FakeServer(always(answer(body=b"hi"))) as server:
        client = drive(server.address)
        client.call(get())
        server.drop_connections()
        deadline = time.monotonic() + 5
        while server.connections < 2 and time.monotonic() < deadline:
            assert client.call(get()) == b"hi"
        assert server.connections == 2


def dies_on_second_use(request: Seen) -> Iterable[bytes]:
    """Hangs up without an answer when a connection is used again: the worst moment to die."""
    again = dies_on_second_use.used == request.connection  # type: ignore[attr-defined]
    dies_on_second_use.used = request.connection  # type: ignore[attr-defined]
    return [HANG_UP] if again else [answer(body=b"hi")]


def test_only_what_can_be_repeated_is_sent_again(drive: Make) -> None:
    for call, works in ((get(), True), (post(), False)):
        dies_on_second_use.used = 0  # type: ignore[attr-defined]
        with FakeServer(dies_on_second_use) as server:
            client = drive(server.address)
            client.call(call)
            if works:
                assert client.call(call) == b"hi"
                assert len(server.seen) == 3
            else:
                with pytest.raises(errors.Unreachable) as caught:
                    client.call(call)
                assert caught.value.sent
                assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("reply", "kind", "code", "words"),
    [
        (json_answer({"code": "A::B", "message": "no such"}, 404, X_Request_Id="r1"),
         errors.NotFound, "A::B", "no such"),
        (json_answer({"detail": [{"loc": ["body", "timeout"], "msg": "too small"}]}, 422),
         errors.InvalidRequest, "", "body.timeout: too small"),
        (json_answer({"detail": "Not Found"}, 404), errors.NotFound, "", "Not Found"),
        (answer(500, b"<html>oops"), errors.ServerFault, "", "<html>oops"),
        (answer(409), errors.Conflict, "", "no explanation"),
        (answer(401), errors.Unauthorized, "", "BARCHAN_API_KEY"),
        (answer(429, Retry_After="7"), errors.TooManyRequests, "", "try again"),
        (answer(302, Location="/y"), errors.InvalidRequest, "", "302"),
        (json_answer([1], 400), errors.InvalidRequest, "", "[1]"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_was_refused_and_why(
    drive: Make, reply: bytes, kind: type[errors.ApiError], code: str, words: str
) -> None:
    with FakeServer(always(reply)) as server:
        with pytest.raises(kind) as caught:
            drive(server.address).call(get("/v1/thing?secret=1"))
        error = caught.value
        assert error.code == code
        assert words in str(error)
        assert "GET /v1/thing" in str(error)
        assert "secret" not in str(error)
        if isinstance(error, errors.TooManyRequests):
            assert error.retry_after_s == 7
        if isinstance(error, errors.NotFound) and code:
            assert error.request_id == "r1"
            assert "r1" in str(error)


def test_no_server_is_told_at_once(drive: Make, tmp_path: Path) -> None:
    with FakeServer(always(answer())) as server:
        gone = server.address
    for address in (gone, Address(socket_path=str(tmp_path / "none"))):
        with pytest.raises(errors.Unreachable, match="cannot connect") as caught:
            drive(address).call(get())
        assert not caught.value.sent


def silent(_: Seen) -> Iterable[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"
    time.sleep(0.5)
    yield HANG_UP


@pytest.mark.parametrize("limits", [{"silence_s": 0.1}, {"total_s": 0.1}])
def test_a_silent_server_is_left(drive: Make, limits: dict[str, Any]) -> None:
    with FakeServer(silent) as server:
        begun = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded, match=r"0\.1 s"):
            drive(server.address).call(get(**limits))
        assert time.monotonic() - begun < 0.45


def test_a_server_that_never_answers_is_left(drive: Make) -> None:
    def never(_: Seen) -> Iterable[bytes]:
        time.sleep(0.4)
        yield HANG_UP

    with FakeServer(never) as server, pytest.raises(errors.DeadlineExceeded):
        drive(server.address).call(get(answer_s=0.1))


def test_a_stream_that_breaks_off_is_told(drive: Make) -> None:
    with (
        FakeServer(
            lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", HANG_UP]
        ) as server,
        pytest.raises(errors.Unreachable, match="middle"),
    ):
        drive(server.address).call(get())


def test_a_refusal_in_the_middle_of_an_upload_is_heard(drive: Make) -> None:
    refusal = json_answer({"code": "FULL", "message": "no space"}, 507)
    with FakeServer(lambda _: [refusal, HANG_UP], reads_bodies=False) as server:
        with pytest.raises((errors.ServerFault, errors.Unreachable)) as caught:
            drive(server.address).upload("s", "/x", b"y" * 50_000_000)
        # The kernel may throw the answer away together with the connection; a broken connection
        # is then all there is to tell, and it is told as one.
        assert "no space" in str(caught.value) or "gave no answer" in str(caught.value)


def test_answers_have_a_largest_size(drive: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("barchan._blocking.transport", "barchan._async.transport"):
        monkeypatch.setattr(f"{module}.ANSWER_BYTES_MAX", 1000)
    with (
        FakeServer(always(answer(body=b"x" * 1001))) as server,
        pytest.raises(errors.ProtocolError, match="1000"),
    ):
        drive(server.address).call(get())


def test_lists_are_read_page_by_page_as_the_wire_has_them(drive: Make) -> None:
    page = {
        "items": [{"id": "a", "status": {"state": "Running"}, "createdAt": "2025-01-02T03:04:05Z"}],
        "pagination": {"page": 1, "totalItems": 2, "hasNextPage": True},
    }
    with FakeServer(always(json_answer(page))) as server:
        metadata = {"team": "a b&c"}
        found = drive(server.address).call(lifecycle.sandboxes(["Running"], metadata, 1, 50))
        assert (found.items[0].id, found.total_items, found.has_next) == ("a", 2, True)
        assert server.seen[0].path == (
            "/v1/sandboxes?page=1&pageSize=50&state=Running&metadata=team%3Da%2Bb%2526c"
        )


def test_a_pause_says_where_to(drive: Make) -> None:
    with FakeServer(always(answer(202))) as server:
        for to_disk in (False, True):
            drive(server.address).call(lifecycle.pause("s/1", to_disk))
        paths = [one.path for one in server.seen]
        assert paths == ["/v1/sandboxes/s%2F1/pause", "/v1/sandboxes/s%2F1/pause?to=disk"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"items": 3}', b"\xff"])
def test_an_answer_of_another_shape_is_an_error(drive: Make, body: bytes) -> None:
    with FakeServer(always(answer(body=body))) as server, pytest.raises(errors.ProtocolError):
        drive(server.address).call(lifecycle.sandboxes([], {}, 1, 50))


def test_an_answer_can_be_had_as_it_is() -> None:
    with pytest.raises(errors.ProtocolError):
        Answer(head=None, content=b"{").json()  # type: ignore[arg-type]
