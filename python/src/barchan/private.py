"""The user's private server: one per user and state directory, started when it is first needed.

It listens on a Unix socket that only this user can reach, and leaves by itself when it is idle.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barchan import errors
from barchan._address import Address
from barchan._blocking.transport import Transport
from barchan._calls import lifecycle

START_S = 30.0
LOOK_EVERY_S = 0.02
LOG_TAIL_BYTES = 2000
SOCKET_NAME = "server/api.sock"
LOCK_NAME = "start.lock"
LOG_NAME = "private-server.log"


class Detached(subprocess.Popen[bytes]):
    """A process that is meant to outlive this one."""

    def __del__(self) -> None:
        """Does not complain that it still runs."""


_started: list[Detached] = []


def state_directory() -> Path:
    """Where the private server keeps its state: $BARCHAN_STATE_DIR, else the usual place."""
    if named := os.environ.get("BARCHAN_STATE_DIR"):
        return Path(named).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/barchan")
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "barchan"


def program() -> Path:
    """The `barchan` program: $BARCHAN_PROGRAM, else one beside this package, else one in PATH."""
    if named := os.environ.get("BARCHAN_PROGRAM"):
        path = Path(named)
        if not os.access(path, os.X_OK):
            raise errors.ServerNotStarted(f"BARCHAN_PROGRAM is no program: {named}")
        return path
    for candidate in (Path(__file__).parent / "bin" / "barchan", Path(sys.prefix) / "bin/barchan"):
        if os.access(candidate, os.X_OK):
            return candidate
    if found := shutil.which("barchan"):
        return Path(found)
    raise errors.ServerNotStarted(
        "no server is configured, and the program `barchan` to start one was not found.",
        hint="Put it in PATH, name it in BARCHAN_PROGRAM, or name a server in BARCHAN_SERVER.",
    )


def answers(address: Address) -> bool:
    """Whether a server answers there."""
    transport = Transport(address)
    try:
        return transport.call(lifecycle.health())
    except errors.BarchanError:
        return False
    finally:
        transport.close()


def ensure() -> Address:
    """The private server's address. Starts the server if it does not run.

    Any number of processes may call this at once: a lock lets one of them start it.
    """
    for ended in [one for one in _started if one.poll() is not None]:
        _started.remove(ended)
    directory = state_directory()
    address = Address(socket_path=str(directory / SOCKET_NAME))
    if answers(address):
        return address
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(directory / LOCK_NAME):
            if not answers(address):
                start(address, directory)
    except OSError as error:
        raise errors.ServerNotStarted(
            f"the private server's directory {directory} cannot be used: {error}.",
            hint="Name another one in BARCHAN_STATE_DIR.",
        ) from error
    return address


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock on a file. It ends with the process at the latest."""
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        deadline = time.monotonic() + 2 * START_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise errors.ServerNotStarted(
                        f"another process holds {path} and does not come to an end with starting."
                    ) from None
                time.sleep(LOOK_EVERY_S)
        yield


def start(address: Address, directory: Path) -> None:
    """Starts the server and waits until it answers."""
    command = [str(program()), "serve", "--private"]
    log = directory / LOG_NAME
    environment = {**os.environ, "BARCHAN_STATE_DIR": str(directory)}
    # The key of a server elsewhere is none of its business.
    environment.pop("BARCHAN_API_KEY", None)
    with log.open("ab") as output:
        try:
            process = Detached(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise errors.ServerNotStarted(f"cannot run {command[0]}: {error}") from error
    _started.append(process)
    deadline = time.monotonic() + START_S
    while not answers(address):
        code = process.poll()
        if code is not None and not answers(address):
            raise errors.ServerNotStarted(
                f"`{' '.join(command)}` ended with code {code}. {tail(log)}",
                hint="`barchan doctor` says what this host lacks.",
            )
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise errors.ServerNotStarted(
                f"`{' '.join(command)}` did not answer on {address} within {START_S:g} s. "
                f"{tail(log)}"
            )
        time.sleep(LOOK_EVERY_S)


def tail(log: Path) -> str:
    """The last lines that the server wrote."""
    try:
        text = log.read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace").strip()
    except OSError:
        text = ""
    return f"It said: {text}" if text else f"It wrote nothing to {log}."
