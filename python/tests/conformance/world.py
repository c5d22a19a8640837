"""A sandbox with something in it, and the ways to reach its daemon."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from live_server import LiveServer

T = TypeVar("T")

TOKEN = "X-EXECD-ACCESS-TOKEN"
KEY = "OPEN-SANDBOX-API-KEY"
CREATE: dict[str, Any] = {
    "image": {"uri": "host"},
    "entrypoint": ["tail", "-f", "/dev/null"],
    "resourceLimits": {"cpu": "1", "memory": "512Mi"},
    "timeout": 600,
}
# Wide enough for a slow machine; a route that hangs fails all the same.
WAIT_S = 30.0


def until(what: str, look: Callable[[], T]) -> T:
    """Asks until the answer is yes."""
    deadline = time.monotonic() + WAIT_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.02)
    return found


def as_stranger(
    client: httpx.Client, method: str, url: str, headers: dict[str, str]
) -> httpx.Response:
    """The answer to a request without the right key. Who fails often is told to wait, and does."""
    while (answer := client.request(method, url, headers=headers)).status_code == 429:
        time.sleep(float(answer.headers["Retry-After"]))
    return answer


class Lifecycle:
    """The server's own API, with its key or as somebody else."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.client = httpx.Client(base_url=server.url, timeout=WAIT_S)
        self.key = {KEY: server.api_key}

    def create(self, **fields: Any) -> str:
        answer = self.client.post("/v1/sandboxes", json={**CREATE, **fields}, headers=self.key)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def delete(self, sandbox: str) -> None:
        answer = self.client.delete(f"/v1/sandboxes/{sandbox}", headers=self.key)
        assert answer.status_code in (204, 404), answer.text

    def endpoint(self, sandbox: str, port: int, **query: str) -> dict[str, Any]:
        path = f"/v1/sandboxes/{sandbox}/endpoints/{port}"
        answer = self.client.get(path, params=query, headers=self.key)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


class LifecycleWorld(dict[str, str]):
    """What the rows of the lifecycle API name, made when a row first asks for it."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self.lifecycle = lifecycle
        self.made: list[str] = []
        self.pools: list[str] = []

    def __missing__(self, word: str) -> str:
        # A fresh one each time: rows change what they are given.
        match word:
            case "sandbox":
                return self.create(metadata={"team": "a"})
            case "eternal":
                return self.create(timeout=None)
            case "paused":
                return self.paused()
            case "ended":
                return self.over("true", "Terminated")
            case "failed":
                return self.over("false", "Failed")
            case "gone":
                made = self.create()
                self.lifecycle.delete(made)
                return made
            case "nobody":
                return str(uuid.uuid4())
        return self.other(word)

    def other(self, word: str) -> str:
        """What is no sandbox."""
        match word:
            case "new_pool":
                self.pools.append(f"pool-{uuid.uuid4()}")
                return self.pools[-1]
            case "pool":
                return self.pool()
            case "snapshot":
                return self.snapshot()
        raise KeyError(word)

    def paused(self) -> str:
        made = self.create()
        path = f"/v1/sandboxes/{made}/pause"
        answer = self.lifecycle.client.post(path, headers=self.lifecycle.key)
        assert answer.status_code == 202, answer.text
        return made

    def over(self, program: str, state: str) -> str:
        """A sandbox whose program has ended."""
        made = self.create(entrypoint=[program])
        until("it ended", lambda: self.state(made) == state)
        return made

    def pool(self, **capacity: int) -> str:
        """A pool; without numbers none of its sandboxes stands ready."""
        name = self["new_pool"]
        container = {"image": "host", "command": ["tail", "-f", "/dev/null"]}
        numbers = {"bufferMin": 0, "bufferMax": 0, "poolMin": 0, "poolMax": 2, **capacity}
        body = {
            "name": name,
            "template": {"spec": {"containers": [container]}},
            "capacitySpec": numbers,
        }
        answer = self.lifecycle.client.post("/v1/pools", json=body, headers=self.lifecycle.key)
        assert answer.status_code == 201, answer.text
        return name

    def snapshot(self) -> str:
        """A snapshot that is ready."""
        client, key = self.lifecycle.client, self.lifecycle.key
        taken = client.post(f"/v1/sandboxes/{self['sandbox']}/snapshots", headers=key)
        assert taken.status_code == 202, taken.text
        path = f"/v1/snapshots/{taken.json()['id']}"

        def is_ready() -> bool:
            state = client.get(path, headers=key).json()["status"]["state"]
            assert state in ("Creating", "Ready"), state
            return bool(state == "Ready")

        until("it is ready", is_ready)
        return str(taken.json()["id"])

    def create(self, **fields: Any) -> str:
        made = self.lifecycle.create(**fields)
        self.made.append(made)
        return made

    def state(self, sandbox: str) -> str:
        path = f"/v1/sandboxes/{sandbox}"
        answer = self.lifecycle.client.get(path, headers=self.lifecycle.key)
        return str(answer.json()["status"]["state"])

    def end(self) -> None:
        for made in self.made:
            self.lifecycle.delete(made)
        for name in self.pools:
            answer = self.lifecycle.client.delete(f"/v1/pools/{name}", headers=self.lifecycle.key)
            assert answer.status_code in (204, 404), answer.text


class DaemonWorld(dict[str, str]):
    """What the rows of the in-sandbox API name."""

    def __init__(self, daemon: httpx.Client) -> None:
        self.daemon = daemon
        self.isolated: list[str] = []

    def end(self) -> None:
        """There may not be many isolated sessions."""
        for made in self.isolated:
            self.daemon.delete(f"/v1/isolated/session/{made}")

    def __missing__(self, word: str) -> str:
        make = getattr(self, f"a_{word}", None)
        if make is None:
            raise KeyError(word)
        return str(make())

    def a_dir(self) -> str:
        """The same for all words of one row, and full of what rows look for."""
        folder = f"/tmp/conformance/{uuid.uuid4().hex}"
        self["dir"] = folder
        script = (
            f"mkdir -p {folder}/sub && cd {folder} && printf 'one\\ntwo\\nthree' > file && "
            "printf x > sub/x.py && ln -s /etc link && mkfifo pipe && "
            "printf 0123456789 > digits && chmod 640 digits"
        )
        self.run(script)
        return folder

    def a_binary(self) -> str:
        path = f"{self['dir']}/binary"
        self.run(f"printf 'a\\000\\377' > {path}")
        return path

    def a_partial(self) -> str:
        """A file of which half has been sent."""
        path = f"{self['dir']}/partial"
        query = {"path": path, "total": "10"}
        answer = self.daemon.put("/x/files", params=query, content=b"01234")
        assert answer.status_code == 202, answer.text
        return path

    def a_nobody(self) -> str:
        return uuid.uuid4().hex

    def a_background(self) -> str:
        return self.run("echo one; echo two >&2; exit 5", background=True, wait=True)

    def a_sleeping(self) -> str:
        return self.run("echo asleep; sleep 600", background=True)

    def a_foreground(self) -> str:
        return self.run("echo x")

    def a_reading(self) -> str:
        """A command that waits for input, and for nobody who reads its output."""
        body = {"command": "cat >/dev/null", "stdin": True, "detach": True}
        frame = b""
        with self.daemon.stream("POST", "/x/exec", json=body) as answer:
            chunks = answer.iter_bytes()
            while len(frame) < 13 or len(frame) < 13 + int.from_bytes(frame[9:13]):
                frame += next(chunks)
        payload = frame[13 : 13 + int.from_bytes(frame[9:13])]
        return str(httpx.Response(200, content=payload).json()["id"])

    def a_session(self) -> str:
        return self.post("/session", {}, 200, "session_id")

    def a_pty(self) -> str:
        return self.post("/pty", {"cwd": "/tmp"}, 201, "session_id")

    def a_context(self) -> str:
        return self.post("/code/context", {"language": "python"}, 200, "id")

    def a_isolated(self) -> str:
        self.run("mkdir -p /tmp/isolated")
        return self.isolate("/tmp/isolated", "rw")

    def a_inside(self) -> str:
        """A session on the folder of this row, the same for all its words."""
        self["inside"] = self.isolate(self["dir"], "rw")
        return self["inside"]

    def a_overlaid(self) -> str:
        made = self.isolate(self["dir"], "overlay")
        body = {"code": "rm file; echo x > more"}
        answer = self.daemon.post(f"/v1/isolated/session/{made}/run", json=body)
        assert answer.status_code == 200, answer.text
        return made

    def a_busy(self) -> str:
        made = self.isolate(self["dir"], "overlay")
        self.run_isolated(made, "sleep 600")
        return made

    def a_ran(self) -> str:
        """A run that has ended, in the session of this row."""
        session = self["inside"]
        made = self.run_isolated(session, "echo one; exit 5")
        path = f"/v1/isolated/session/{session}/runs/{made}"
        until("it ended", lambda: not self.daemon.get(path).json()["running"])
        return made

    def isolate(self, path: str, mode: str) -> str:
        """An isolated session with this folder as its workspace."""
        body = {"workspace": {"path": path, "mode": mode}}
        made = self.post("/v1/isolated/session", body, 201, "session_id")
        self.isolated.append(made)
        return made

    def run_isolated(self, session: str, code: str) -> str:
        """Begins a background run and gives its id."""
        body = {"code": code, "background": True}
        return self.post(f"/v1/isolated/session/{session}/run", body, 202, "run_id")

    def post(self, path: str, body: Any, status: int, field: str) -> str:
        answer = self.daemon.post(path, json=body)
        assert answer.status_code == status, answer.text
        return str(answer.json()[field])

    def run(self, command: str, *, background: bool = False, wait: bool = False) -> str:
        """Runs a command and gives its id."""
        body = {"command": command, "background": background}
        answer = self.daemon.post("/command", json=body)
        assert answer.status_code == 200, answer.text
        first = answer.text.split("\n\n", 1)[0]
        command_id = str(httpx.Response(200, text=first).json()["text"])
        if wait:
            path = f"/command/status/{command_id}"
            until("it ended", lambda: not self.daemon.get(path).json()["running"])
        return command_id
