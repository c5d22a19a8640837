"""What each unmodified client can ask of the lifecycle API it does ask here, filters included, and
is refused in its own words. A recorder before the server says what was asked."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from conformance import reach
from conformance.js_client import run_script
from conformance.osb_client import Osb
from conformance.osb_tour import refusals as osb_refusals
from conformance.osb_tour import visit as osb_visit
from conformance.recorder import Recorder, recorded
from conformance.sdk_tour import Client, refusals, tenants_refusals, visit
from conformance.test_mcp import tools
from conformance.world import Lifecycle, LifecycleWorld
from live_server import LiveServer

# `osb` leaves its connections to the end of its process, which is not the end of this one.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SETTINGS = "[pools]\nacquire_wait_s = 1\n"


@dataclass
class Place:
    """A server with a pool that has nothing to give and a tenant that may have little."""

    server: LiveServer
    described: dict[str, Any]
    pool: str
    # A sandbox of somebody else, and ended ones by their states.
    foreign: str
    ended: dict[str, str]
    tenants_key: str

    @contextmanager
    def watched(self, client: str) -> Iterator[Recorder]:
        """A way to the server; behind it, the client must have asked what it can."""
        with recorded(self.server.domain) as recorder:
            yield recorder
        found = recorder.routes(self.described)
        found.pop(reach.PROXY, None)
        told = {" ".join([place, *sorted(names)]) for place, names in found.items()}
        assert told == reach.ASKED[client], client


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    server = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")), settings=SETTINGS)
    try:
        server.start()
        world = LifecycleWorld(Lifecycle(server))
        quota = ("--sandboxes", "1", "--snapshots", "0")
        made = server.command("tenant", "create", "small", *quota)
        assert made.returncode == 0, made.stderr
        made = server.command("key", "create", "k", "--tenant", "small", "--json")
        assert made.returncode == 0, made.stderr
        yield Place(
            server,
            httpx.get(f"{server.url}/openapi.json").json(),
            world.pool(poolMax=0),
            world["eternal"],
            {"Terminated": world["ended"], "Failed": world["failed"]},
            str(json.loads(made.stdout)["key"]),
        )
        world.end()
        world.lifecycle.client.close()
    finally:
        server.stop()


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_the_python_sdk(place: Place, flavour: str) -> None:
    with place.watched("sdk") as recorder:
        client = Client(flavour, recorder.domain, place.server.api_key)
        try:
            visit(client)
            for state, ended in place.ended.items():
                info = client(client.manager.get_sandbox_info(ended))
                assert (info.status.state, bool(info.status.message)) == (state, True)
            for name, call, code in refusals(client, place.pool):
                assert client.code(call) == code, name
        finally:
            client.end()


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_the_python_sdk_of_a_tenant(place: Place, flavour: str) -> None:
    client = Client(flavour, place.server.domain, place.tenants_key)
    try:
        for name, call, code in tenants_refusals(client, place.foreign):
            assert client.code(call) == code, name
    finally:
        client.end()


def test_the_javascript_sdk(place: Place) -> None:
    with place.watched("npm") as recorder:
        more = {
            "POOL": place.pool,
            "FOREIGN": place.foreign,
            "ENDED": json.dumps(place.ended),
            "TENANTS_KEY": place.tenants_key,
        }
        run_script("tour.test.mjs", recorder.domain, place.server.api_key, more)


def test_the_command_line(place: Place, tmp_path: Path) -> None:
    with place.watched("osb") as recorder:
        osb = Osb(recorder.domain, place.server.api_key, tmp_path)
        osb_visit(osb, tmp_path)
        for state, ended in place.ended.items():
            assert osb.json("sandbox", "get", ended)["status"]["state"] == state
            assert ended in osb("sandbox", "list", "-s", state, "-o", "json").stdout
        osb_refusals(osb, tmp_path, place.pool)
    tenants = Osb(place.server.domain, place.tenants_key, tmp_path)
    own = tenants.create("--resource", "cpu=1", "--resource", "memory=256Mi")
    tenants.refused("QUOTA::SANDBOXES", "sandbox", "create", *tenants.HOST)
    tenants.refused("QUOTA::SNAPSHOTS", "snapshot", "create", own)
    tenants.refused("SANDBOX_NOT_FOUND", "sandbox", "get", place.foreign)
    tenants.refused("SANDBOX_NOT_FOUND", "snapshot", "create", place.foreign)
    tenants("sandbox", "kill", own)


async def test_the_mcp_server(place: Place, plain_logs: dict[str, str]) -> None:
    host: dict[str, Any] = {"image": "host", "entrypoint": ["tail", "-f", "/dev/null"]}
    with place.watched("mcp") as recorder:
        env = {"OPEN_SANDBOX_DOMAIN": recorder.domain, **plain_logs}
        async with tools(place.server, **env) as call:
            made = await call("sandbox_create", **host, metadata={"team": "mcp"})
            wanted = {"states": ["Running"], "metadata": {"team": "mcp"}, "page": 1, "page_size": 9}
            listed = await call("sandbox_list", filter=wanted)
            assert made["sandbox_id"] in json.dumps(listed)
            call.sandbox = made["sandbox_id"]
            await call("sandbox_get_info")
            await call("sandbox_renew", timeout_seconds=600)
            await call("sandbox_kill")
            for state, ended in place.ended.items():
                found = await call("sandbox_get_info", sandbox_id=ended)
                assert found["status"]["state"] == state
            # The program tells its callers that a tool failed, and not why.
            refused: list[tuple[str, dict[str, Any]]] = [
                ("sandbox_get_info", {}),
                ("sandbox_list", {"filter": {"page_size": 201}}),
                ("sandbox_create", {**host, "extensions": {"poolRef": "none"}}),
                ("sandbox_create", {**host, "extensions": {"poolRef": place.pool}}),
                ("sandbox_create", {**host, "metadata": {"-": ""}}),
            ]
            for name, arguments in refused:
                await call.refusal(name, **arguments)
    env = {"OPEN_SANDBOX_API_KEY": place.tenants_key, **plain_logs}
    async with tools(place.server, **env) as call:
        made = await call("sandbox_create", **host)
        foreign = {"sandbox_id": place.foreign}
        await call.refusal("sandbox_create", **host)
        for name in ("sandbox_get_info", "sandbox_kill", "sandbox_get_info"):
            await call.refusal(name, **foreign)
        await call("sandbox_kill", sandbox_id=made["sandbox_id"])


def test_some_client_asks_for_every_operation(place: Place) -> None:
    """What no client asks for is on a list, and the tables of rows ask for it."""
    served = {
        f"{method.upper()} {path}"
        for path, operations in place.described["paths"].items()
        for method in operations
        if not path.startswith("/x/") and method in reach.METHODS
    }
    by_clients = {" ".join(told.split(" ")[:2]) for asked in reach.ASKED.values() for told in asked}
    assert by_clients | set(reach.BY_NO_CLIENT) == served
    assert not by_clients & set(reach.BY_NO_CLIENT)
