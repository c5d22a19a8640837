"""The private server: started once by eight real processes, and gone when nobody needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from live_server import LiveServer, program

USE = """
from barchan import Sandbox
with Sandbox.create("host") as sandbox:
    print(sandbox.commands.run("echo $((6 * 7))").output, end="")
"""
PATIENCE_S = 30.0


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """A state directory without a server. What was started there is ended afterwards."""
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    for name in ("BARCHAN_SERVER", "BARCHAN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BARCHAN_STATE_DIR", str(live.state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(live.state / "config"))
    monkeypatch.setenv("BARCHAN_PROGRAM", str(program()))
    yield live
    for pid in servers(live):
        os.kill(pid, signal.SIGTERM)
    wait(lambda: not servers(live))
    live.stop()


def servers(live: LiveServer) -> list[int]:
    """Processes that serve this state directory, by the environment they were started with."""
    found = []
    wanted = f"BARCHAN_STATE_DIR={live.state}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                ours = wanted in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if ours and words[1:3] == [b"serve", b"--private"]:
                found.append(int(entry.name))
    return found


def wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_eight_processes_at_once_start_one_server(private: LiveServer) -> None:
    users = [
        subprocess.Popen([sys.executable, "-c", USE], stdout=subprocess.PIPE) for _ in range(8)
    ]
    assert [user.communicate(timeout=120)[0] for user in users] == [b"42\n"] * 8
    log = (private.state / "private-server.log").read_text()
    assert log.count("listening") == 1, log
    assert len(servers(private)) == 1


def test_it_leaves_by_itself_and_its_next_user_starts_it_again(private: LiveServer) -> None:
    settings = private.state / "idle.toml"
    settings.write_text("[server]\nidle_exit_s = 1\n")
    with (private.state / "idle.log").open("wb") as log:
        command = [str(program()), "serve", "--private", "--config", str(settings)]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    wait((private.state / "server/api.sock").exists)
    use(private)
    assert server.wait(PATIENCE_S) == 0
    wait(lambda: not private.launchers())
    use(private)
    assert len(servers(private)) == 1


def use(live: LiveServer) -> None:
    """Runs a command by way of the private server, in a process that may have to start it."""
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, check=False)
    assert done.stdout == b"42\n", f"{done.stderr!r} {live.state}"
