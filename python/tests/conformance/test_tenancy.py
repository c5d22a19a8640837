"""The unmodified SDK with the keys of tenants: each works with its own sandboxes alone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SandboxFilter
from opensandbox.sync import SandboxManagerSync, SandboxSync

from conformance.world import KEY, WAIT_S, as_stranger
from live_server import LiveServer


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    try:
        live.start()
        yield live
    finally:
        live.stop()


def tenant(server: LiveServer, name: str, sandboxes: int) -> str:
    """A tenant that may have so many sandboxes, and its key."""
    made = server.command("tenant", "create", name, "--sandboxes", str(sandboxes))
    assert made.returncode == 0, made.stderr
    made = server.command("key", "create", f"key of {name}", "--tenant", name, "--json")
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["key"])


def config(server: LiveServer, key: str, *, proxied: bool = False) -> ConnectionConfigSync:
    return ConnectionConfigSync(domain=server.domain, api_key=key, use_server_proxy=proxied)


def make(server: LiveServer, key: str, *, proxied: bool = False) -> SandboxSync:
    return SandboxSync.create(
        "host",
        connection_config=config(server, key, proxied=proxied),
        timeout=timedelta(minutes=5),
    )


@pytest.mark.parametrize("proxied", [False, True])
def test_a_tenant_works_with_its_own_sandboxes_alone(
    shared_server: LiveServer, proxied: bool
) -> None:
    server, suffix = shared_server, "p" if proxied else "d"
    ours, theirs = tenant(server, f"ours-{suffix}", 1), tenant(server, f"theirs-{suffix}", 1)
    foreign = make(server, theirs, proxied=proxied)
    made = make(server, ours, proxied=proxied)
    manager = SandboxManagerSync.create(config(server, ours))
    try:
        done = made.commands.run("echo ours")
        assert [line.text.rstrip("\n") for line in done.logs.stdout] == ["ours"]
        made.files.write_file("/tmp/ours", "kept")
        assert made.files.read_file("/tmp/ours") == "kept"
        listed = manager.list_sandbox_infos(SandboxFilter())
        assert [found.id for found in listed.sandbox_infos] == [made.id]
        for refused in (
            lambda: manager.get_sandbox_info(foreign.id),
            lambda: manager.kill_sandbox(foreign.id),
            lambda: manager.pause_sandbox(foreign.id),
            lambda: SandboxSync.connect(foreign.id, connection_config=config(server, ours)),
        ):
            with pytest.raises(Exception, match="there is no sandbox"):
                refused()
        with pytest.raises(SandboxApiException) as told:
            make(server, ours)
        assert told.value.status_code == 403
        assert told.value.error.code == "QUOTA::SANDBOXES"
        assert foreign.commands.run("true").error is None
    finally:
        manager.close()
        for sandbox in (made, foreign):
            sandbox.kill()
            sandbox.close()


def test_a_revoked_key_is_none_and_the_log_says_who_did_what(shared_server: LiveServer) -> None:
    server = shared_server
    key = tenant(server, "revoked", 1)
    made = make(server, key)
    made.kill()
    made.close()
    keys = json.loads(server.command("key", "list", "--json").stdout)
    ident = next(found["id"] for found in keys if found["tenant"] == "revoked")
    assert server.command("key", "revoke", ident).returncode == 0
    with httpx.Client(base_url=server.url, timeout=WAIT_S) as client:
        refused = as_stranger(client, "GET", "/v1/sandboxes", {KEY: key})
    assert (refused.status_code, refused.json()["code"]) == (401, "INVALID_API_KEY")
    told = server.command("audit", "--tenant", "revoked", "--json").stdout
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["operation"] for line in lines] == ["sandbox.create", "sandbox.delete"]
    assert {line["sandbox"] for line in lines} == {made.id}
    assert {line["actor"]["label"] for line in lines} == {"key of revoked"}
    assert key.rpartition("_")[2] not in told
