"""Commands: what their events add up to, and how they are ended early."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from barchan import AsyncSandbox, ProtocolError, Sandbox, errors
from barchan._address import Address
from barchan._calls.commands import Transcript
from barchan._events import Event
from drivers import DRIVERS, Driver
from fake_server import (
    HANG_UP,
    FakeServer,
    Handler,
    Seen,
    answer,
    chunk,
    event,
    failure,
    json_answer,
    stream,
    stream_head,
)

DONE = event("execution_complete", execution_time=12)


@pytest.fixture(params=DRIVERS, ids=["blocking", "async"])
def drive(request: pytest.FixtureRequest) -> Iterator[Callable[[Address], Driver]]:
    made: list[Driver] = []

    def make(address: Address) -> Driver:
        made.append(request.param(address))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


Make = Callable[[Address], Driver]


def saying(*events: bytes) -> Handler:
    return lambda _: [stream(*events)]


def test_output_keeps_its_order_and_its_newlines(drive: Make) -> None:
    said: list[tuple[str, str]] = []
    pieces = [("stdout", "a\n"), ("stderr", "\n"), ("stdout", "b"), ("stderr", "c\r\n")]
    events = [event(kind, text) for kind, text in pieces]
    with FakeServer(saying(event("init", "c1"), event("ping", "pong"), *events, DONE)) as server:
        result = drive(server.address).run(
            "s/1",
            "cmd",
            cwd="/w",
            env={"A": "b"},
            timeout_s=1.5,
            on_stdout=lambda text: said.append(("stdout", text)),
            on_stderr=lambda text: said.append(("stderr", text)),
        )
    assert said == pieces
    assert (result.id, result.exit_code, result.output) == ("c1", 0, "a\n\nbc\r\n")
    assert (result.stdout, result.stderr) == ("a\nb", "\nc\r\n")
    assert (result.duration_ms, result.truncated, result.error) == (12, False, "")
    request = server.seen[0]
    assert request.path == "/v1/sandboxes/s%2F1/proxy/44772/command"
    assert json.loads(request.body) == {
        "command": "cmd", "cwd": "/w", "envs": {"A": "b"}, "timeout": 1500,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("end", "code", "error", "timed_out"),
    [
        (failure("3", "exit status 3"), 3, "exit status 3", False),
        (failure("137", "signal: killed"), 137, "signal: killed", False),
        (failure("137", "timeout: killed after 9 ms (x)"), 137, "timeout: ", True),
        (failure("-1", "signal: killed"), -1, "signal: killed", False),
        (failure("no such file", "fork/exec"), None, "no such file", False),
        (failure("", ""), None, "CommandExecError", False),
        (failure("²"), None, "²", False),
    ],
)
def test_the_end_of_a_command_is_told_as_it_was(
    drive: Make, end: bytes, code: int | None, error: str, timed_out: bool
) -> None:
    with FakeServer(saying(event("init", "c1"), end, DONE)) as server:
        result = drive(server.address).run("s", "x", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (code, timed_out)
    assert error in result.error


def test_a_daemon_that_does_not_say_timeout_is_believed_by_the_clock(drive: Make) -> None:
    def late(_: Seen) -> Iterable[bytes]:
        yield stream_head() + chunk(event("init", "c1"))
        time.sleep(0.2)
        yield chunk(failure("-1", "signal: killed")) + chunk(b"")

    with FakeServer(late) as server:
        assert drive(server.address).run("s", "x", timeout_s=0.15).timed_out


def test_a_background_command_has_no_exit_code_yet(drive: Make) -> None:
    with FakeServer(saying(event("init", "c1"), DONE)) as server:
        result = drive(server.address).run("s", "x", background=True)
    assert (result.id, result.exit_code) == ("c1", None)
    assert json.loads(server.seen[0].body) == {"command": "x", "background": True}


@pytest.mark.parametrize("pieces", [[], [event("init", "c1"), event("stdout", "x")]])
def test_a_stream_without_an_end_is_an_error(drive: Make, pieces: list[bytes]) -> None:
    with FakeServer(lambda request: [stream(*pieces)] if request.body else [answer()]) as server:
        with pytest.raises(ProtocolError, match="before the command ended"):
            drive(server.address).run("s", "x")
        interrupted = [one.path for one in server.seen if one.method == "DELETE"]
    assert len(interrupted) == (1 if pieces else 0)


def add_up(limit: int, *texts: str) -> Transcript:
    transcript = Transcript(limit)
    for text in texts:
        transcript.add(Event("stdout", text))
    transcript.add(Event("execution_complete"))
    return transcript


@pytest.mark.parametrize("size", [1, 3, 7, 10, 64, 1000])
def test_long_output_keeps_its_beginning_and_its_end(size: int) -> None:
    whole = "".join(f"{at:03}é|" for at in range(1000))
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    result = add_up(1200, *pieces).result()
    head, _, rest = result.output.partition("\n[… ")
    dropped, _, tail = rest.partition(" bytes of output left out …]\n")
    assert result.truncated
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len((head + tail).encode()) + int(dropped) == len(whole.encode())
    assert 1200 - 4 * size <= len((head + tail).encode()) <= 1200
    assert result.stdout == head + tail


def test_output_at_the_limit_is_whole() -> None:
    result = add_up(10, "0123", "456789").result()
    assert (result.output, result.truncated) == ("0123456789", False)


def test_memory_stays_bounded_whatever_is_printed() -> None:
    transcript = Transcript(1000)
    for _ in range(20_000):
        transcript.add(Event("stdout", "x" * 50))
    assert len(transcript._tail) + len(transcript._pieces) <= 25


class Endless:
    """A command that never ends, and learns that it was interrupted."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        self.started = threading.Event()

    def __call__(self, request: Seen) -> Iterable[bytes]:
        if request.method == "DELETE":
            assert request.path.endswith("/command?id=c1")
            self.interrupted.set()
            yield answer()
            return
        yield stream_head() + chunk(event("init", "c1")) + chunk(event("stdout", "x\n"))
        self.started.set()
        self.interrupted.wait(10)
        yield HANG_UP


def test_cancelling_ends_the_command() -> None:
    endless = Endless()

    async def cancel(address: Address) -> None:
        seen = asyncio.Event()
        run = AsyncSandbox("s", address).commands.run("x", on_stdout=lambda _: seen.set())
        task = asyncio.create_task(run)
        await asyncio.wait_for(seen.wait(), 10)
        task.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 1

    with FakeServer(endless) as server:
        asyncio.run(cancel(server.address))
        assert endless.interrupted.is_set()


def test_an_exception_in_the_caller_ends_the_command() -> None:
    endless = Endless()

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with FakeServer(endless) as server:
        with pytest.raises(KeyboardInterrupt):
            Sandbox("s", server.address).commands.run("x", on_stdout=stop)
        assert endless.interrupted.is_set()


def test_a_command_whose_server_falls_silent_is_given_up(
    drive: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barchan._calls.commands.GRACE_S", 0.1)
    endless = Endless()
    with FakeServer(endless) as server:
        with pytest.raises(errors.DeadlineExceeded):
            drive(server.address).run("s", "x", timeout_s=0.1)
        assert endless.interrupted.is_set()


def test_status_and_logs_are_read() -> None:
    status = {
        "id": "c1",
        "content": "x",
        "running": False,
        "exit_code": 4,
        "error": "e",
        "started_at": "2025-01-02T03:04:05Z",
        "finished_at": "2025-01-02T03:04:06.5Z",
    }

    def serve(request: Seen) -> Iterable[bytes]:
        if "/status/" in request.path:
            return [json_answer(status)]
        return [answer(body=b"ab\xff", Execd_Commands_Tail_Cursor="42")]

    with FakeServer(serve) as server:
        commands = Sandbox("s", server.address).commands
        found = commands.status("c1")
        assert (found.running, found.exit_code, found.error) == (False, 4, "e")
        assert found.started_at is not None
        assert found.finished_at is not None
        assert (found.finished_at - found.started_at).total_seconds() == 1.5
        logs = commands.logs("c1", 7)
        assert (logs.text, logs.cursor) == ("ab�", 42)
        assert server.seen[-1].path.endswith("/command/c1/logs?cursor=7")
