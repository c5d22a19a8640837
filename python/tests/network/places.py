"""Where an attempt is made: in a sandbox, or on its host where nothing defends."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from opensandbox.config import ConnectionConfigSync
from opensandbox.models.execd import RunCommandOpts
from opensandbox.sync import SandboxSync

from conformance.world import Lifecycle
from integration.sandboxes import Told, told
from network import atlas, probe
from network.internet import Internet
from paths import TESTS

T = TypeVar("T")

# Longer than anything that runs waits by itself.
LIMIT_S = 90
# Programs that make connections are told whom to trust by these.
TRUST = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT")


def soon(what: str, look: Callable[[], T]) -> T:
    """Asks until the answer is yes."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.02)
    return found


class Place(Protocol):
    def sh(self, script: str) -> Told:
        """Runs a shell's script with the folder `$NET`, which has the probe and whom to trust."""
        ...


def ready(script: str, folder: str) -> str:
    """A script with the environment that every place has."""
    trust = " ".join(f"{name}={folder}/ca.pem" for name in TRUST)
    return f"export NET={folder} {trust}\n{script}"


def attempt(place: Place, *words: str) -> dict[str, Any]:
    """What comes of one attempt of the probe."""
    quoted = " ".join(f"'{word}'" for word in words)
    done = place.sh(f"/usr/bin/python3 $NET/probe.py {quoted}")
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Host:
    """The host itself, as a program beside the server sees the network."""

    def __init__(self, internet: Internet) -> None:
        self.internet = internet
        self.folder = internet.folder / "beside"
        self.folder.mkdir()
        (self.folder / "probe.py").write_text(Path(probe.__file__).read_text())
        (self.folder / "ca.pem").write_text(internet.authority.read_text())
        self.names = internet.folder / "resolv.conf"
        self.names.write_text(f"nameserver {atlas.RESOLVER}\n")

    def sh(self, script: str) -> Told:
        # A view of the files of its own, in which the host's resolver is that of this internet.
        view = 'mount --bind "$0" /etc/resolv.conf && exec sh -c "$1"'
        words = ["unshare", "--mount", "sh", "-c", view, str(self.names)]
        with self.internet.host.entered():
            done = subprocess.run(
                [*words, ready(script, str(self.folder))],
                cwd=self.folder,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder)},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        return Told(done.stdout, done.stderr, done.returncode)


class Cell:
    """A sandbox with a policy, or with the one that holds when a request has none; or a sandbox
    that is there already."""

    FOLDER = "/tmp/net"

    def __init__(
        self, lifecycle: Lifecycle, internet: Internet, known: str = "", **fields: Any
    ) -> None:
        server = lifecycle.server
        self.lifecycle, self.internet = lifecycle, internet
        self.id = known or lifecycle.create(**fields)
        config = ConnectionConfigSync(domain=server.domain, api_key=server.api_key)
        self.sdk = SandboxSync.connect(self.id, connection_config=config)
        self.equip()

    def equip(self) -> None:
        """Gives it what attempts are made with; that lies where a new start finds nothing."""
        self.put("probe.py", (TESTS / "network" / "probe.py").read_text())
        self.put("ca.pem", self.internet.authority.read_text())

    def put(self, name: str, text: str) -> None:
        self.sdk.files.write_file(f"{self.FOLDER}/{name}", text)

    def sh(self, script: str) -> Told:
        opts = RunCommandOpts(timeout=timedelta(seconds=LIMIT_S))
        return told(self.sdk.commands.run(ready(script, self.FOLDER), opts=opts))

    def plain(self, script: str) -> Told:
        """Runs a script as the sandbox has it: nobody tells it whom to trust."""
        opts = RunCommandOpts(timeout=timedelta(seconds=LIMIT_S))
        return told(self.sdk.commands.run(script, opts=opts))

    def start(self, script: str) -> str:
        """Begins a script and gives what `ended` takes."""
        opts = RunCommandOpts(background=True)
        begun = self.sdk.commands.run(ready(script, self.FOLDER), opts=opts)
        assert begun.id
        return begun.id

    def ended(self, command: str) -> Told:
        """What became of a script that was begun, once it has ended."""

        def look() -> Any:
            status = self.sdk.commands.get_command_status(command)
            return None if status.running else status

        status = soon("the command ended", look)
        output = self.sdk.commands.get_background_command_logs(command).content
        return Told(output, "", status.exit_code)

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """A request to the server about this sandbox, with its key."""
        client, key = self.lifecycle.client, self.lifecycle.key
        answer = client.request(method, path.format(id=self.id), headers=key, **more)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def connections(self) -> list[dict[str, Any]]:
        """What it reached and what was refused, the newest first."""
        found: list[dict[str, Any]] = self.ask("GET", "/x/sandboxes/{id}/connections")[
            "connections"
        ]
        return found

    def end(self) -> None:
        self.sdk.close()
        self.lifecycle.delete(self.id)
