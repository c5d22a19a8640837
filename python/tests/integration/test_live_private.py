"""The private server: started once by eight real processes, and gone when nobody needs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from live_server import LiveServer, program

USE = """
from barchan.deepagents import BarchanBackend
with BarchanBackend.create("host") as backend:
    print(backend.execute("echo $((6 * 7))").output, end="")
"""


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """A state directory without a server, which leaves after a second of idleness."""
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    config = live.state / "config"
    (config / "barchan").mkdir(parents=True)
    (config / "barchan" / "barchan.toml").write_text("[server]\nidle_exit_s = 2\n")
    for name in ("BARCHAN_SERVER", "BARCHAN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BARCHAN_STATE_DIR", str(live.state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("BARCHAN_PROGRAM", str(program()))
    yield live
    live.stop()


def serving(live: LiveServer) -> list[int]:
    """Processes that serve this state directory, by the environment they were started with."""
    found = []
    wanted = f"BARCHAN_STATE_DIR={live.state}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                names_it = wanted in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:3] == [b"serve", b"--private"] and names_it:
                found.append(int(entry.name))
    return found


def test_eight_processes_start_one_server_that_leaves_by_itself(private: LiveServer) -> None:
    users = [
        subprocess.Popen([sys.executable, "-c", USE], stdout=subprocess.PIPE, env=os.environ)
        for _ in range(8)
    ]
    said = [user.communicate(timeout=120)[0] for user in users]
    assert said == [b"42\n"] * 8
    log = (private.state / "private-server.log").read_text()
    assert log.count("listening") == 1, log
    deadline = time.monotonic() + 30
    while serving(private) or private.launchers():
        assert time.monotonic() < deadline, "it does not leave"
        time.sleep(0.1)
    # Its next user starts it again.
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, check=False, timeout=60)
    assert done.stdout == b"42\n", done.stderr
