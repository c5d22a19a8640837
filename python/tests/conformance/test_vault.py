"""Credentials of a sandbox, set and read by the unmodified OpenSandbox clients."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import (
    CredentialBinding,
    CredentialProxyConfig,
    NetworkPolicy,
    NetworkRule,
)
from opensandbox.sync import SandboxSync

from conformance.osb_client import Osb
from conformance.world import Lifecycle, until

pytestmark = [
    pytest.mark.integration,
    # The program leaves its connections to the end of its process.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

VALUE = "hunter2-hunter2"
VAULT = "/credential-vault"
HOST = "a.example"
POLICY = {"egress": [{"action": "allow", "target": HOST}]}
# The rest of the contract; what a client makes of it is its own.
KINDS: list[dict[str, Any]] = [
    {"type": "bearer", "credential": "key"},
    {"type": "basic", "credential": "key"},
    {"type": "apiKey", "name": "X-Key", "credential": "key"},
    {"type": "customHeaders", "headers": [{"name": "X-Key", "credential": "key"}]},
    {
        "type": "passthrough",
        "substitutions": [{"credential": "key", "placeholder": "KEY-HERE", "in": ["query"]}],
    },
]


def credential(name: str) -> dict[str, object]:
    return {"name": name, "source": {"type": "inline", "value": VALUE}}


def binding(name: str, auth: dict[str, Any]) -> dict[str, object]:
    requests = {"hosts": [HOST], "methods": ["GET"], "paths": [f"/{name}/*"]}
    return {"name": name, "match": requests, "auth": auth}


@pytest.fixture
def sandbox(lifecycle: Lifecycle) -> Iterator[str]:
    """One that may have credentials."""
    made = lifecycle.create(networkPolicy=POLICY, credentialProxy={"enabled": True})
    yield made
    lifecycle.delete(made)


def refused(status: int, call: Callable[[], object]) -> None:
    with pytest.raises(SandboxApiException) as error:
        call()
    assert error.value.status_code == status, error.value


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxied"])
def test_by_the_sdk(lifecycle: Lifecycle, sandbox: str, proxied: bool) -> None:
    server = lifecycle.server
    config = ConnectionConfigSync(
        domain=server.domain, api_key=server.api_key, use_server_proxy=proxied
    )
    with SandboxSync.connect(sandbox, connection_config=config) as sdk:
        vault = sdk.credential_vault
        refused(404, vault.get)
        bindings: list[CredentialBinding | dict[str, object]] = [
            binding(auth["type"], auth) for auth in KINDS
        ]
        made = vault.create(credentials=[credential("key"), credential("old")], bindings=bindings)
        assert (made.revision, [it.name for it in made.credentials]) == (1, ["key", "old"])
        refused(409, lambda: vault.create(credentials=[], bindings=[]))
        changed = vault.patch(
            expected_revision=1,
            credentials={"add": [credential("new")], "delete": ["old"]},
            bindings={"replace": [binding("bearer", {"type": "bearer", "credential": "new"})]},
        )
        assert changed.revision == 2
        refused(409, lambda: vault.patch(expected_revision=1, credentials={"delete": ["new"]}))
        refused(400, lambda: vault.patch(credentials={"delete": ["nobody"]}))
        found = {it.name: it.revision for it in vault.list_credentials()}
        assert found == {"key": 1, "new": 2}
        assert vault.get_credential("key").source_type == "inline"
        assert len(vault.list_bindings()) == len(KINDS)
        api_key = vault.get_binding("apiKey")
        assert api_key.auth is not None
        assert api_key.match is not None
        assert (api_key.auth.type, api_key.auth.name) == ("apiKey", "X-Key")
        assert (api_key.match.hosts, api_key.match.schemes) == ([HOST], ["https"])
        refused(404, lambda: vault.get_credential("nobody"))
        refused(404, lambda: vault.get_binding("nobody"))
        vault.delete()
        refused(404, vault.get)


def test_by_the_sdk_that_waits_for_nothing(lifecycle: Lifecycle) -> None:
    server = lifecycle.server

    async def tour() -> None:
        made = await Sandbox.create(
            "host",
            timeout=timedelta(minutes=5),
            connection_config=ConnectionConfig(domain=server.domain, api_key=server.api_key),
            network_policy=NetworkPolicy(egress=[NetworkRule(action="allow", target=HOST)]),
            credential_proxy=CredentialProxyConfig(enabled=True),
        )
        try:
            vault = made.credential_vault
            state = await vault.create(
                credentials=[credential("key")], bindings=[binding("all", KINDS[0])]
            )
            assert await vault.get() == state
            assert [it.name for it in await vault.list_bindings()] == ["all"]
            assert (await vault.patch(credentials={"add": [credential("new")]})).revision == 2
            assert (await vault.get_credential("new")).revision == 2
            assert (await vault.get_binding("all")).revision == 1
            assert len(await vault.list_credentials()) == 2
            await vault.delete()
            with pytest.raises(SandboxApiException):
                await vault.get()
        finally:
            await made.kill()
            await made.close()

    asyncio.run(tour())


def test_by_the_command_line(lifecycle: Lifecycle, sandbox: str, tmp_path: Path) -> None:
    server = lifecycle.server
    osb = Osb(server.domain, server.api_key, tmp_path)
    osb.sandbox = sandbox
    new, patch = tmp_path / "new.json", tmp_path / "patch.json"
    new.write_text(
        json.dumps({"credentials": [credential("key")], "bindings": [binding("all", KINDS[0])]})
    )
    patch.write_text(json.dumps({"expectedRevision": 1, "credentials": {"add": [credential("b")]}}))
    vault = "credential-vault"
    assert osb.json(vault, "create", "ID", "--file", str(new))["revision"] == 1
    assert osb.json(vault, "patch", "ID", "--file", str(patch))["revision"] == 2
    osb(vault, "patch", "ID", "--file", str(patch), code=1)
    told = json.dumps(
        [
            osb.json(vault, "get", "ID"),
            osb.json(vault, "credential", "list", "ID"),
            osb.json(vault, "credential", "get", "ID", "key"),
            osb.json(vault, "binding", "list", "ID"),
            osb.json(vault, "binding", "get", "ID", "all"),
        ]
    )
    assert "key" in told, told
    assert VALUE not in told, told
    osb(vault, "delete", "ID")
    osb(vault, "get", "ID", code=1)


def at_port(lifecycle: Lifecycle, sandbox: str, method: str, rest: str, **more: Any) -> int:
    """The status of a call, which is told as text where it fails."""
    endpoint = lifecycle.endpoint(sandbox, 18080)
    url = f"http://{endpoint['endpoint']}{VAULT}{rest}"
    answer = httpx.request(method, url, headers=endpoint["headers"], timeout=30, **more)
    assert VALUE not in answer.text
    if answer.status_code >= 400:
        assert answer.headers["Content-Type"].startswith("text/plain"), answer.headers
    return answer.status_code


def test_what_clients_do_not_send(lifecycle: Lifecycle, sandbox: str) -> None:
    for method, rest, body, status in [
        ("POST", "", {"credentials": [], "binding": []}, 400),
        ("POST", "", {"bindings": [binding("all", KINDS[0])]}, 400),
        ("POST", "", {"credentials": [credential("key")] * 2}, 400),
        ("POST", "", {"credentials": [{"name": "key", "source": VALUE}]}, 400),
        ("PATCH", "", {}, 404),
        ("DELETE", "", None, 404),
        ("GET", "/_active", None, 403),
        ("PUT", "", {}, 405),
    ]:
        assert at_port(lifecycle, sandbox, method, rest, json=body) == status, (method, body)
    assert at_port(lifecycle, sandbox, "POST", "", content=b"x" * (1024 * 1024 + 1)) == 413


def test_a_sandbox_that_did_not_ask_has_none(lifecycle: Lifecycle) -> None:
    plain = lifecycle.create(networkPolicy=POLICY)
    try:
        assert at_port(lifecycle, plain, "GET", "") == 412
        assert at_port(lifecycle, plain, "POST", "", json={}) == 412
    finally:
        lifecycle.delete(plain)


def has_vault(lifecycle: Lifecycle, sandbox: str) -> bool:
    return at_port(lifecycle, sandbox, "GET", "") == 200


def test_a_fork_begins_empty_and_a_restart_forgets_nothing(lifecycle: Lifecycle) -> None:
    source = lifecycle.create(networkPolicy=POLICY, credentialProxy={"enabled": True})
    made = [source]
    try:
        body = {"credentials": [credential("key")], "bindings": []}
        assert at_port(lifecycle, source, "POST", "", json=body) == 201
        path = f"/x/layers/{source}/fork"
        forked = lifecycle.client.post(path, headers=lifecycle.key)
        assert forked.status_code == 201, forked.text
        fork = str(forked.json()["items"][0]["id"])
        made.append(fork)
        assert at_port(lifecycle, fork, "GET", "") == 404
        assert at_port(lifecycle, fork, "POST", "", json={}) == 201
        lifecycle.server.end(signal.SIGKILL)
        lifecycle.server.start()
        for sandbox in made:
            until("it is told again", partial(has_vault, lifecycle, sandbox))
    finally:
        for sandbox in made:
            lifecycle.delete(sandbox)
