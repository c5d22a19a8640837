"""A real server for tests: started on a free port with a state directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket as sockets
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from paths import ROOT

START_S = 60.0
STOP_S = 30.0
IMAGE_S = 1800.0


def program() -> Path:
    """The program under test. Tests that need it fail without it: nothing is skipped silently."""
    named = os.environ.get("BARCHAN_PROGRAM")
    assert named, "set BARCHAN_PROGRAM to the barchan program, or run `make test-python`"
    return Path(named).absolute()


@dataclass
class LiveServer:
    """A server that runs until `stop`. `domain` and `api_key` are what an SDK is given; `settings`
    are further sections of its settings file, `listen` further lines of the section `server`."""

    state: Path
    domain: str = ""
    api_key: str = field(default="", repr=False)
    process: subprocess.Popen[bytes] | None = None
    settings: str = ""
    listen: str = ""

    @property
    def url(self) -> str:
        """The address for our own client."""
        return f"http://{self.domain}"

    @property
    def socket(self) -> str:
        """The address of the Unix socket, which needs no key."""
        return f"unix:{self.state}/server/api.sock"

    @property
    def log(self) -> Path:
        return self.state / "server.log"

    def start(self) -> None:
        """Starts it and waits until it says where it listens."""
        file = self.state / "barchan.toml"
        port = self.domain.rpartition(":")[2] or "0"
        own = f"[server]\nport = {port}\n{self.listen}[log]\njson = true\n"
        file.write_text(f"{own}{self.settings}")
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [str(program()), "serve", "--config", str(file)],
                env=self.environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not (address := self.announced(before)):
            assert self.process.poll() is None, f"the server ended: {self.tail()}"
            assert time.monotonic() < deadline, f"the server does not listen: {self.tail()}"
            time.sleep(0.02)
        self.domain = address
        self.api_key = (self.state / "server" / "api_key").read_text().strip()

    def announced(self, start: int) -> str:
        """The TCP address that the log names behind this position, or nothing yet."""
        for line in self.log.read_bytes()[start:].splitlines():
            with suppress(ValueError):
                fields = json.loads(line).get("fields", {})
                if fields.get("message") == "listening" and "address" in fields:
                    return str(fields["address"])
        return ""

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "BARCHAN_API_KEY"}
        return {**kept, "BARCHAN_STATE_DIR": str(self.state)}

    def command(self, *arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs the program against this state directory."""
        return subprocess.run(
            [str(program()), *arguments],
            env=self.environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def build_image(self, name: str) -> None:
        done = self.command("image", "build", name, timeout_s=IMAGE_S)
        assert done.returncode == 0, done.stderr

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends the server process, gently or not; its sandboxes live on in the launcher."""
        assert self.process is not None
        self.process.send_signal(how)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        # Whoever is killed is the keeper, and the server that dies with it dies after it.
        deadline = time.monotonic() + STOP_S
        while self.listens():
            assert time.monotonic() < deadline, f"{self.domain} is still listened on"

    def listens(self) -> bool:
        """Whether anybody takes connections at its address."""
        host, _, port = self.domain.rpartition(":")
        try:
            sockets.create_connection((host.strip("[]"), int(port)), STOP_S).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Ends the server and everything that it started, and removes its state."""
        try:
            if self.process is not None and self.process.poll() is None:
                self.end()
        finally:
            self.end_launcher()
        shutil.rmtree(self.state)

    def end_launcher(self) -> None:
        """The launcher outlives its server on purpose; a test takes it along."""
        deadline = time.monotonic() + STOP_S
        while pids := self.launchers():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            assert time.monotonic() < deadline, f"the launcher does not end: {pids}"
            time.sleep(0.05)
        while groups := self.groups():
            for group in groups:
                with suppress(OSError):
                    group.rmdir()
            assert time.monotonic() < deadline, f"control groups stay: {groups}"
            time.sleep(0.05)

    def groups(self) -> list[Path]:
        """The control groups of this state directory, the innermost first. A launcher that was
        killed leaves them to its successor, and here there is none."""
        found = self.state.stat()
        own = f"barchan-{found.st_dev:x}-{found.st_ino:x}"
        tops = list(Path("/sys/fs/cgroup").rglob(own))
        inner = [it for top in tops for it in top.rglob("*") if it.is_dir()]
        return sorted([*tops, *inner], reverse=True)

    def launchers(self) -> list[int]:
        """Processes whose command line names this state directory."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    status = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    if str(self.state).encode() in words and status != "Z":
                        found.append(int(entry.name))
        return found
