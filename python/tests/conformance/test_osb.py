"""The unmodified command line `osb` 1.1.1 does what it offers against our server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from conformance.osb_client import Osb
from conformance.world import until
from live_server import LiveServer

# The program leaves its connections to the end of its process, which is not the end of this one.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(params=[False, True], ids=["direct", "proxied"], scope="module")
def osb(
    request: pytest.FixtureRequest, server: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Osb]:
    home = tmp_path_factory.mktemp("home")
    made = Osb(server.domain, server.api_key, home, proxied=request.param)
    words = ("-i", "host", "-t", "10m", "-e", "GREETING=hello", "-m", "team=a")
    more = ("--resource", "cpu=1", "--resource", "memory=512Mi", "--entrypoint", "tail")
    rest = ("--entrypoint", "-f", "--entrypoint", "/dev/null")
    made.sandbox = made.json("sandbox", "create", *words, *more, *rest)["id"]
    yield made
    made("sandbox", "kill", "ID")


def execution_of(started: Result) -> str:
    """The id that a background command was given."""
    found = re.search(r"\b[0-9a-f]{32}\b", started.stdout)
    assert found, started.stdout
    return found[0]


def test_it_is_the_published_program() -> None:
    assert metadata.version("opensandbox-cli") == "1.1.1"
    program = Path(sys.executable).with_name("osb")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert "1.1.1" in done.stdout


def test_sandboxes(osb: Osb) -> None:
    found = osb.json("sandbox", "get", "ID")
    assert found["id"] == osb.sandbox
    assert found["status"]["state"] == "Running"
    listed = osb.json("sandbox", "list", "-m", "team=a", "-s", "Running", "--page-size", "200")
    assert osb.sandbox in json.dumps(listed)
    assert osb.sandbox not in osb("sandbox", "list", "-s", "Paused").stdout
    assert "44772" in json.dumps(osb.json("sandbox", "endpoint", "ID", "-p", "44772"))
    assert "true" in json.dumps(osb.json("sandbox", "health", "ID")).lower()
    assert osb.json("sandbox", "metrics", "ID")
    assert osb.json("sandbox", "renew", "ID", "-t", "1h")


def test_pause_and_resume(osb: Osb) -> None:
    osb("sandbox", "pause", "ID")
    assert osb.json("sandbox", "get", "ID")["status"]["state"] == "Paused"
    osb("sandbox", "pause", "ID", code=1)
    osb("sandbox", "resume", "ID")
    assert osb("command", "run", "ID", "--", "echo", "alive").stdout == "alive\n"


@pytest.mark.parametrize(
    ("words", "stdout", "code"),
    [
        (["--", "echo", "hi"], "hi\n", 0),
        (["--", "printf", "a\\n\\nb"], "a\n\nb\n", 0),
        (["--", "sh", "-c", "echo $GREETING"], "hello\n", 0),
        (["-w", "/usr", "--", "pwd"], "/usr\n", 0),
        (["--argv", "--", "printf", "%s|", "a b", "$HOME"], "a b|$HOME|\n", 0),
        (["--", "sh", "-c", "exit 3"], "", 1),
    ],
)
def test_run(osb: Osb, words: list[str], stdout: str, code: int) -> None:
    done = osb("command", "run", "ID", "-o", "raw", *words, code=code)
    assert done.stdout.startswith(stdout)


def test_diagnostics(osb: Osb) -> None:
    told = osb.json("diagnostics", "events", "ID", "-s", "runtime")
    assert (told["sandbox_id"], told["kind"], told["truncated"]) == (osb.sandbox, "events", False)
    assert " started" in told["content"]
    assert " created" in osb("diagnostics", "events", "ID", "-s", "all").stdout
    assert osb.json("diagnostics", "logs", "ID", "-s", "container")["kind"] == "logs"
    osb("diagnostics", "events", "ID", "-s", "nonsense", code=1)
    assert " created" in osb("devops", "events", "ID", "-l", "50").stdout
    osb("devops", "logs", "ID", "-n", "10", "-s", "10m")
    told = osb("devops", "inspect", "ID").stdout
    assert "State:      Running" in told
    assert "memory 536870912 bytes" in told
    assert "% of 1.00 cores" in told, "what it uses is asked of its daemon"
    told = osb("devops", "summary", "ID", "-n", "5", "--event-limit", "5").stdout
    assert all(f"===== {part} =====" in told for part in ("INSPECT", "EVENTS", "LOGS"))
    assert "GREETING" not in told


def test_diagnostics_of_a_sandbox_that_is_gone(osb: Osb) -> None:
    words = ("-i", "host", "-t", "10m", "--entrypoint", "sleep", "--entrypoint", "inf")
    gone = osb.json("sandbox", "create", *words)["id"]
    osb("sandbox", "kill", gone)
    assert (
        " removed: The sandbox was deleted."
        in osb("diagnostics", "events", gone, "-s", "runtime").stdout
    )
    assert "End:        killed" in osb("devops", "inspect", gone).stdout
    assert "(not kept" in osb("devops", "summary", gone).stdout
    osb("diagnostics", "logs", gone, "-s", "all", code=1)


def test_a_time_limit_ends_a_command(osb: Osb) -> None:
    osb("command", "run", "ID", "-t", "1s", "--", "sleep", "60", code=1)


def test_background_commands(osb: Osb) -> None:
    started = osb("command", "run", "ID", "-d", "--", "sh", "-c", "echo one; exit 5")
    command = execution_of(started)

    def status() -> Any:
        return osb.json("command", "status", "ID", command)

    until("it ended", lambda: not status()["running"])
    assert status()["exit_code"] == 5
    assert "one" in osb("command", "logs", "ID", command).stdout
    started = osb("command", "run", "ID", "-d", "--", "sleep", "600")
    command = execution_of(started)
    osb("command", "interrupt", "ID", command)
    until("it ended", lambda: not status()["running"])


def test_files(osb: Osb, tmp_path: Path) -> None:
    osb("file", "mkdir", "ID", "/tmp/osb/sub", "--mode", "755")
    osb("file", "write", "ID", "/tmp/osb/a.txt", "-c", "héllo wörld", "--mode", "0640")
    assert osb("file", "cat", "ID", "/tmp/osb/a.txt").stdout.startswith("héllo wörld")
    osb("file", "write", "ID", "/tmp/osb/in.txt", stdin="from stdin")
    assert osb("file", "cat", "ID", "/tmp/osb/in.txt").stdout.startswith("from stdin")
    (tmp_path / "up").write_bytes(bytes(range(256)) * 999)
    osb("file", "upload", "ID", str(tmp_path / "up"), "/tmp/osb/sub/b.bin")
    osb("file", "download", "ID", "/tmp/osb/sub/b.bin", str(tmp_path / "down"))
    assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
    assert "640" in osb("file", "info", "ID", "/tmp/osb/a.txt", "-o", "json").stdout
    assert "/tmp/osb/sub/b.bin" in osb("file", "search", "ID", "/tmp/osb", "-p", "*.bin").stdout
    osb("file", "replace", "ID", "/tmp/osb/a.txt", "--old", "wörld", "--new", "you")
    osb("file", "chmod", "ID", "/tmp/osb/a.txt", "--mode", "600", "--owner", "root")
    osb("file", "mv", "ID", "/tmp/osb/a.txt", "/tmp/osb/c.txt")
    assert osb("file", "cat", "ID", "/tmp/osb/c.txt").stdout.startswith("héllo you")
    osb("file", "rm", "ID", "/tmp/osb/c.txt")
    osb("file", "cat", "ID", "/tmp/osb/c.txt", code=1)
    osb("file", "rmdir", "ID", "/tmp/osb")
    osb("file", "info", "ID", "/tmp/osb", code=1)


def test_sessions(osb: Osb) -> None:
    session = osb.json("command", "session", "create", "ID", "-w", "/usr")["session_id"]

    # The client quotes each word, so a line of several commands cannot be given.
    def run(*words: str, code: int = 0) -> str:
        return osb("command", "session", "run", "ID", session, "--", *words, code=code).stdout

    assert run("pwd") == "/usr\n"
    run("export", "A=1")
    run("cd", "/tmp")
    assert run("printenv", "A") == "1\n"
    assert run("pwd") == "/tmp\n"
    run("sh", "-c", "exit 3", code=1)
    osb("command", "session", "delete", "ID", session)
    osb("command", "session", "delete", "ID", session, code=1)
