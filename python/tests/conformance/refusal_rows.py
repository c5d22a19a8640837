"""Refusals that need more than one request, or a server with narrow settings: each a few calls and
what the last of them is answered."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from conformance.world import CREATE, KEY, TOKEN, Lifecycle, LifecycleWorld, until
from live_server import LiveServer

# The server's own settings; the folder of the host is filled in.
SETTINGS = """
[limits]
snapshots_max = 2
sandboxes_max = {room}
[pools]
acquire_wait_s = 1
[proxy]
answer_wait_s = 1
[storage]
allowed_host_paths = [{folder}]
"""
# The slowest rate there is.
ONE = {"perSecond": 1, "burst": 1}
# Above what the rows have at a time, and soon reached.
ROOM = 8
ADMIN = "/x/tenants"
MUTE = (
    "import socket\n"
    "def served(port, answer):\n"
    "    s = socket.create_server(('127.0.0.1', port))\n"
    "    while True:\n"
    "        c, _ = s.accept()\n"
    "        c.recv(9999)\n"
    "        if answer: c.sendall(answer); c.close()\n"
    "        else: kept.append(c)\n"
    "kept = []\n"
    "import threading\n"
    "threading.Thread(target=served, args=(8001, b'no HTTP\\r\\n\\r\\n')).start()\n"
    "served(8002, b'')\n"
)


class Narrow:
    """A server with narrow settings, and what is asked of it."""

    def __init__(self, server: LiveServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.lifecycle = Lifecycle(server)
        self.world = LifecycleWorld(self.lifecycle)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """A request with the settings' key, unless `key` is another one or empty."""
        key = headers.pop("key", self.server.api_key)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            sent[KEY] = key
        return self.lifecycle.client.request(method, path, json=body, headers=sent)

    def create(self, key: str = "", **fields: Any) -> httpx.Response:
        """A create with some fields different; what is made goes away with the row."""
        more = {"key": key} if key else {}
        body = {name: it for name, it in {**CREATE, **fields}.items() if it is not ...}
        answer = self.call("POST", "/v1/sandboxes", body, **more)
        if answer.status_code == 202:
            self.world.made.append(answer.json()["id"])
        return answer

    def tenant(self, quota: dict[str, int] | None = None, **terms: Any) -> str:
        """The key of a tenant of its own."""
        name = f"t-{uuid.uuid4().hex[:12]}"
        body = {"name": name, "quota": quota or {}, **terms}
        assert self.call("POST", ADMIN, body).status_code == 201
        return self.key({"label": "k", "tenant": name})

    def key(self, body: dict[str, Any]) -> str:
        made = self.call("POST", "/x/keys", body)
        assert made.status_code == 201, made.text
        return str(made.json()["key"])

    def over(self, quota: dict[str, int]) -> httpx.Response:
        """A create by a tenant with this quota."""
        return self.create(self.tenant(quota))

    def mount(
        self, host: str = "", claim: str = "", path: str = "/m", **more: Any
    ) -> httpx.Response:
        """A create with one volume."""
        volume: dict[str, Any] = {"name": "v", "mountPath": path}
        if host:
            volume["host"] = {"path": host}
        else:
            volume["pvc"] = {"claimName": claim, "storage": "16Mi", **more.pop("pvc", {})}
        return self.create(volumes=[{**volume, **more}])

    def again(self, number: int, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """The last of so many answers."""
        return [ask() for _ in range(number)][-1]

    def address(self, expires_in_s: int) -> str:
        """The path of a signed address of a port."""
        until_s = str(int(time.time()) + expires_in_s)
        found = self.lifecycle.endpoint(self.world["sandbox"], 80, expires=until_s, form="path")
        return "/" + str(found["endpoint"]).split("/", 1)[1]

    def behind(self, port: int) -> httpx.Response:
        """A request to a program that does not answer as it should."""
        made = self.create(entrypoint=["python3", "-c", MUTE]).json()["id"]
        path = f"/v1/sandboxes/{made}/proxy/{port}/"

        def listens() -> httpx.Response | None:
            answer = self.call("GET", path)
            nobody = answer.json()["code"] == "BACKEND_CONNECTION_FAILED"
            return None if nobody else answer

        found = until("it listens", listens)
        assert found is not None
        return found

    def command(self, key: str, command: str) -> httpx.Response:
        """A command in a sandbox, the same for one row."""
        self.world.setdefault("one", self.world["sandbox"])
        path = f"/v1/sandboxes/{self.world['one']}/proxy/44772/command"
        return self.call("POST", path, {"command": command}, Idempotency_Key=key)

    def broken_settings(self) -> httpx.Response:
        file = self.server.state / "barchan.toml"
        before = file.read_text()
        file.write_text("[limts]\n")
        try:
            return self.call("POST", "/x/reload")
        finally:
            file.write_text(before)

    def without(self, feature: str, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """An answer while the operator has switched something off."""
        file = self.server.state / "barchan.toml"
        before = file.read_text()
        file.write_text(f"{before}\n[features]\n{feature} = false\n")
        try:
            assert self.call("POST", "/x/reload").status_code == 200
            return ask()
        finally:
            file.write_text(before)
            assert self.call("POST", "/x/reload").status_code == 200

    def is_removed(self, path: str) -> bool:
        return self.call("DELETE", path).status_code in (204, 404)

    def snap(self, sandbox: str) -> httpx.Response:
        return self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots")

    def end(self) -> None:
        """Nothing of a row is left for the next."""
        for made in self.world.made:
            self.lifecycle.delete(made)
        for found in self.call("GET", "/v1/snapshots").json()["items"]:
            until("it is removed", partial(self.is_removed, f"/v1/snapshots/{found['id']}"))
        self.world.end()
        self.world = LifecycleWorld(self.lifecycle)


@dataclass(frozen=True)
class Refusal:
    """What is answered, and to what."""

    answer: str
    ask: Callable[[Narrow], httpx.Response]
    # A header that tells when to come back.
    is_for_now: bool = False

    @property
    def code(self) -> str:
        return self.answer.partition(" ")[2]


def expired_key(it: Narrow) -> httpx.Response:
    at = int(time.time()) + 2
    key = it.key({"label": "short", "expiresAt": at})
    until(
        "its time is over",
        lambda: it.call("GET", "/v1/sandboxes", key=key).status_code == 401,
    )
    return it.call("GET", "/v1/sandboxes", key=key)


def expired_address(it: Narrow) -> httpx.Response:
    path = it.address(2)
    until(
        "its time is over",
        lambda: it.call("GET", path, key="").json()["code"] == "SIGNED_ADDRESS_EXPIRED",
    )
    return it.call("GET", path, key="")


def too_fast(it: Narrow) -> httpx.Response:
    """One request a second may be made, and more are."""
    key = it.tenant(rate=ONE)

    def refused() -> httpx.Response | None:
        answer = it.call("GET", "/v1/sandboxes", key=key)
        return answer if answer.status_code == 429 else None

    found = until("one is too many", refused)
    assert found is not None
    return found


def tenant_twice(it: Narrow) -> httpx.Response:
    body = {"name": f"t-{uuid.uuid4().hex[:12]}"}
    return it.again(2, lambda: it.call("POST", ADMIN, body))


def tenant_in_use(it: Narrow) -> httpx.Response:
    it.tenant()
    used = [one["name"] for one in it.call("GET", ADMIN).json()["tenants"] if one["keys"]]
    return it.call("DELETE", f"{ADMIN}/{used[0]}")


def stood_upon(it: Narrow) -> httpx.Response:
    snapshot = it.world.snapshot()
    fields: dict[str, Any] = {"image": ..., "entrypoint": ..., "snapshotId": snapshot}
    assert it.create(**fields).status_code == 202
    return it.call("DELETE", f"/v1/snapshots/{snapshot}")


def volume_in_use(it: Narrow) -> httpx.Response:
    assert it.mount(claim="used").status_code == 202
    try:
        return it.call("DELETE", "/x/volumes/used")
    finally:
        it.end()
        assert it.call("DELETE", "/x/volumes/used").status_code == 204


def dangling(it: Narrow) -> httpx.Response:
    link = it.folder / "dangling"
    with suppress(FileExistsError):
        link.symlink_to(it.folder / "nothing" / "there")
    return it.mount(str(link))


def as_token(it: Narrow) -> httpx.Response:
    """The token of another sandbox."""
    one, other = it.world["sandbox"], it.world["sandbox"]
    token = it.lifecycle.endpoint(other, 80)["headers"][TOKEN]
    path = f"/v1/sandboxes/{one}/proxy/44772/ping"
    return it.lifecycle.client.get(path, headers={TOKEN: token})


NOBODY = str(uuid.UUID(int=0))
TWICE = [{"name": "v", "mountPath": path, "pvc": {"claimName": path[1:]}} for path in ("/a", "/b")]
HALF = {"cpu": "1", "memory": "128Mi"}

REFUSALS = [
    # Who may.
    Refusal("401 MISSING_API_KEY", lambda it: it.call("GET", "/v1/sandboxes", key="")),
    Refusal("401 API_KEY_EXPIRED", expired_key),
    Refusal("403 ADMIN_ONLY", lambda it: it.call("POST", "/x/reload", key=it.tenant())),
    Refusal("403 ADMIN_ONLY", lambda it: it.call("GET", "/v1/pools", key=it.tenant())),
    Refusal("403 ADMIN_ONLY", lambda it: it.create(it.tenant(), extensions={"poolRef": "any"})),
    Refusal("404 KEY_NOT_FOUND", lambda it: it.call("DELETE", "/x/keys/none")),
    Refusal("404 TENANT_NOT_FOUND", lambda it: it.call("GET", f"{ADMIN}/none")),
    Refusal("409 TENANT_ALREADY_EXISTS", tenant_twice),
    Refusal("409 TENANT_IN_USE", tenant_in_use),
    Refusal("401 MISSING_OR_INVALID_SECURE_ACCESS", as_token),
    Refusal(
        "401 SIGNED_ADDRESS_INVALID",
        lambda it: it.call("GET", it.address(60).replace("/80/", "/81/"), key=""),
    ),
    Refusal("401 SIGNED_ADDRESS_EXPIRED", expired_address),
    # How much.
    Refusal("403 QUOTA::SANDBOXES", lambda it: it.over({"sandboxes": 0})),
    Refusal("403 QUOTA::CPU", lambda it: it.over({"cpuMillis": 1})),
    Refusal("403 QUOTA::MEMORY", lambda it: it.over({"memoryBytes": 1})),
    Refusal("403 QUOTA::DISK", lambda it: it.over({"diskBytes": 1})),
    Refusal("429 RATE_LIMITED", too_fast, is_for_now=True),
    Refusal(
        "429 SANDBOX::LIMIT_REACHED",
        lambda it: it.again(ROOM + 1, lambda: it.create(resourceLimits=HALF)),
        is_for_now=True,
    ),
    Refusal(
        "429 SNAPSHOT::LIMIT_REACHED",
        lambda it: (
            one := it.world["sandbox"],
            it.again(3, lambda: it.snap(one)),
        )[1],
        is_for_now=True,
    ),
    Refusal(
        "429 KUBERNETES::POOL_CAPACITY_EXHAUSTED",
        lambda it: it.create(extensions={"poolRef": it.world.pool(poolMax=0)}),
        is_for_now=True,
    ),
    # What was switched off, and what cannot be read.
    Refusal(
        "403 FEATURE_DISABLED",
        lambda it: it.without("snapshots", lambda: it.call("GET", "/v1/snapshots")),
    ),
    Refusal(
        "403 FEATURE_DISABLED",
        lambda it: it.without("pause", lambda: it.call("POST", f"/v1/sandboxes/{NOBODY}/pause")),
    ),
    Refusal("409 SETTINGS_UNUSABLE", Narrow.broken_settings),
    # Snapshots and volumes.
    Refusal("409 SNAPSHOT::DELETE_CONFLICT", stood_upon),
    Refusal(
        "403 QUOTA::SNAPSHOTS",
        lambda it: (
            key := it.tenant({"snapshots": 0}),
            made := it.create(key).json()["id"],
            it.call("POST", f"/v1/sandboxes/{made}/snapshots", key=key),
        )[2],
    ),
    Refusal("400 VOLUME::DUPLICATE_NAME", lambda it: it.create(volumes=TWICE)),
    Refusal("400 VOLUME::INVALID_MOUNT_PATH", lambda it: it.mount(claim="a", path="/proc/x")),
    Refusal("400 VOLUME::INVALID_SUB_PATH", lambda it: it.mount(claim="a", subPath="a/../../b")),
    Refusal("400 VOLUME::HOST_PATH_NOT_FOUND", dangling),
    Refusal(
        "400 VOLUME::PVC_NOT_FOUND",
        lambda it: it.mount(claim="absent", pvc={"createIfNotExists": False}),
    ),
    Refusal("409 VOLUME::IN_USE", volume_in_use),
    Refusal("404 VOLUME::PVC_NOT_FOUND", lambda it: it.call("DELETE", "/x/volumes/absent")),
    # Programs inside.
    Refusal("502 BACKEND_RESPONSE_FAILED", lambda it: it.behind(8001)),
    Refusal("504 BACKEND_TIMEOUT", lambda it: it.behind(8002)),
    Refusal("400 INVALID_IDEMPOTENCY_KEY", lambda it: it.command("x" * 256, "true")),
    Refusal(
        "422 IDEMPOTENCY_KEY_REUSED",
        lambda it: (it.command("k", "echo one"), it.command("k", "echo two"))[1],
    ),
]


def settings(folder: Path) -> str:
    return SETTINGS.format(room=ROOM, folder=json.dumps(str(folder)))
