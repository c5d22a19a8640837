"""The private server: found, started once however many ask, and honest when it does not start."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barchan import ServerNotStarted, private
from barchan._address import Address

# Stands in for the program: it notes each start and answers on the socket after a while.
PROGRAM = """#!{python}
import http.server, os, pathlib, socketserver, sys, time
assert sys.argv[1:] == ["serve", "--private"], sys.argv
assert "BARCHAN_API_KEY" not in os.environ
state = pathlib.Path(os.environ["BARCHAN_STATE_DIR"])
with (state / "starts").open("a") as starts:
    starts.write(f"{{os.getpid()}}\\n")
time.sleep(0.2)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def address_string(self):
        return "unix"

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

socket = state / "server/api.sock"
socket.parent.mkdir(exist_ok=True)
socket.unlink(missing_ok=True)
Server(str(socket), Handler).serve_forever()
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    program = tmp_path / "barchan"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    directory = tmp_path / "state"
    monkeypatch.setenv("BARCHAN_PROGRAM", str(program))
    monkeypatch.setenv("BARCHAN_STATE_DIR", str(directory))
    monkeypatch.setenv("BARCHAN_API_KEY", "of another server")
    yield directory
    for pid in starts(directory):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def starts(directory: Path) -> list[int]:
    noted = directory / "starts"
    return [int(line) for line in noted.read_text().split()] if noted.exists() else []


def ensure_in_child(queue: multiprocessing.SimpleQueue[str]) -> None:
    queue.put(str(private.ensure()))


def test_eight_processes_at_once_start_exactly_one(state: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    children = [context.Process(target=ensure_in_child, args=(queue,)) for _ in range(8)]
    for child in children:
        child.start()
    found = {queue.get() for _ in children}
    for child in children:
        child.join()
    assert found == {f"unix:{state}/server/api.sock"}
    assert len(starts(state)) == 1
    assert (state.stat().st_mode & 0o777, (state / "start.lock").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


def test_a_server_that_left_is_started_again(state: Path) -> None:
    address = private.ensure()
    assert private.ensure() == address
    assert len(starts(state)) == 1
    os.kill(starts(state)[0], signal.SIGKILL)
    private._started[-1].wait(10)
    assert private.ensure() == address
    assert len(starts(state)) == 2


def test_a_program_that_fails_is_quoted(state: Path) -> None:
    Path(os.environ["BARCHAN_PROGRAM"]).write_text("#!/bin/sh\necho no namespaces here >&2\nexit 3")
    with pytest.raises(ServerNotStarted, match=r"ended with code 3.*no namespaces here.*doctor"):
        private.ensure()


def test_a_program_that_never_listens_is_ended(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(os.environ["BARCHAN_PROGRAM"]).write_text(
        '#!/bin/sh\necho $$ > "$BARCHAN_STATE_DIR/starts"\nexec sleep 60'
    )
    monkeypatch.setattr(private, "START_S", 0.3)
    begun = time.monotonic()
    with pytest.raises(ServerNotStarted, match=r"did not answer .* within 0\.3 s"):
        private.ensure()
    assert time.monotonic() - begun < 5
    with pytest.raises(ProcessLookupError):
        os.kill(starts(state)[0], 0)


def test_no_program_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BARCHAN_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BARCHAN_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(ServerNotStarted, match="BARCHAN_PROGRAM"):
        private.ensure()
    monkeypatch.setenv("BARCHAN_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(ServerNotStarted, match="none"):
        private.ensure()


def test_an_unusable_directory_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BARCHAN_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(ServerNotStarted, match="BARCHAN_STATE_DIR"):
        private.ensure()


def test_a_held_lock_is_not_waited_for_without_end(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir()
    monkeypatch.setattr(private, "START_S", 0.1)
    with (
        private.locked(state / "start.lock"),
        pytest.raises(ServerNotStarted, match="another process"),
    ):
        private.ensure()


def test_the_state_directory_follows_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BARCHAN_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/x/state")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert private.state_directory() == Path("/x/state/barchan")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert private.state_directory() == Path("/var/lib/barchan")
    assert not private.answers(Address(socket_path="/x/state/barchan/none.sock"))
