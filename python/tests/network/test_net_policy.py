"""The policy of a running sandbox, read and changed by the unmodified OpenSandbox clients; a change
holds at once, for open connections too."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule
from opensandbox.sync import SandboxSync

from conformance.osb_client import Osb
from conformance.world import CREATE, Lifecycle, as_stranger
from integration.sandboxes import told
from network import atlas
from network.claims import policy, works
from network.forge import hello
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, attempt, soon

# The program leaves its connections to the end of its process, which is not the end of this one.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FETCH = "curl -sSf --max-time 30 -o /dev/null {}://{}/hello"


def fetches(cell: Cell, name: str, scheme: str = "https") -> bool:
    return cell.sh(FETCH.format(scheme, name)).code == 0


def rules(sandbox: SandboxSync) -> list[str]:
    found = sandbox.get_egress_policy()
    return [f"{rule.action} {rule.target}" for rule in found.egress or []]


def test_of_a_create(lifecycle: Lifecycle) -> None:
    server = lifecycle.server
    made = SandboxSync.create(
        "host",
        timeout=timedelta(minutes=5),
        connection_config=ConnectionConfigSync(domain=server.domain, api_key=server.api_key),
        network_policy=NetworkPolicy(
            defaultAction="deny", egress=[NetworkRule(action="allow", target="allowed.example")]
        ),
    )
    try:
        assert made.get_egress_policy().default_action == "deny"
        assert rules(made) == ["allow allowed.example"]
        for name, is_let in (("allowed.example", True), ("other.example", False)):
            done = told(made.commands.run(f"curl -sSf --max-time 30 http://{name}/hello"))
            assert (done.code == 0) == is_let, done.stderr
    finally:
        made.kill()
        made.close()


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxied"])
def test_by_the_sdk(lifecycle: Lifecycle, cells: Cells, proxied: bool) -> None:
    cell = cells(policy("allow allowed.example"))
    server = lifecycle.server
    config = ConnectionConfigSync(
        domain=server.domain, api_key=server.api_key, use_server_proxy=proxied
    )
    with SandboxSync.connect(cell.id, connection_config=config) as sdk:
        assert fetches(cell, "allowed.example")
        assert not fetches(cell, "other.example")
        sdk.patch_egress_rules([NetworkRule(action="allow", target="other.example")])
        assert rules(sdk) == ["allow other.example", "allow allowed.example"]
        assert fetches(cell, "other.example")
        # What comes last stands first.
        sdk.patch_egress_rules([NetworkRule(action="deny", target="allowed.example")])
        assert rules(sdk) == ["deny allowed.example", "allow other.example"]
        assert not fetches(cell, "allowed.example")
        sdk.delete_egress_rules(["other.example", "nobody.example"])
        assert rules(sdk) == ["deny allowed.example"]
        assert not fetches(cell, "other.example")
        with pytest.raises(SandboxApiException):
            sdk.patch_egress_rules([NetworkRule(action="allow", target="a b.example")])
        assert rules(sdk) == ["deny allowed.example"]


@pytest.fixture
def osb(lifecycle: Lifecycle, tmp_path: Path) -> Osb:
    server = lifecycle.server
    return Osb(server.domain, server.api_key, tmp_path)


def test_by_the_command_line(osb: Osb, cells: Cells) -> None:
    cell = cells(policy())
    osb.sandbox = cell.id
    assert not fetches(cell, "allowed.example")
    osb("egress", "patch", "ID", "--rule", "allow=allowed.example", "--rule", "deny=other.example")
    assert fetches(cell, "allowed.example")
    found = json.dumps(osb.json("egress", "get", "ID"))
    assert "allowed.example" in found
    osb("egress", "patch", "ID", "--rule", "allow=10.0.0.5/8", code=1)


def test_whole_policies(cells: Cells) -> None:
    cell = cells(policy())
    path = "/v1/sandboxes/{id}/networkpolicy"
    cell.ask("PUT", path, json=policy("deny other.example", default="allow"))
    assert fetches(cell, "allowed.example")
    assert not fetches(cell, "other.example")
    cell.ask("PUT", path, json=policy())
    assert not fetches(cell, "allowed.example")
    shown: dict[str, Any] = cell.ask("GET", path)
    assert shown["mode"] == "deny_all", shown


@pytest.mark.parametrize(
    "target", ["", " ", "a b", "a\0.example", "10.0.0.5/8", "x.example:0", "a..b", "*.*.example"]
)
def test_what_is_no_rule(lifecycle: Lifecycle, target: str) -> None:
    body = {**CREATE, "networkPolicy": policy(f"allow {target}")}
    answer = lifecycle.client.post("/v1/sandboxes", json=body, headers=lifecycle.key)
    assert answer.status_code in (400, 422), answer.text


def test_a_change_cuts_what_is_open(net: Internet, cells: Cells) -> None:
    port, to = str(atlas.ECHO_PORT), atlas.ECHO[0]
    cell = cells(policy(f"allow {to}", "allow allowed.example"))
    mark = net.mark()
    begun = cell.start(f"/usr/bin/python3 $NET/probe.py hold {to} {port}")
    soon("it is connected", lambda: net.events(mark, "echo", local=to))
    cell.sdk.patch_egress_rules([NetworkRule(action="deny", target="other.example")])
    status = cell.sdk.commands.get_command_status(begun)
    assert status.running, "what is still allowed stays"
    cell.sdk.patch_egress_rules([NetworkRule(action="deny", target=to)])
    found = json.loads(cell.ended(begun).stdout)
    assert found["outcome"] == "refused", found


def test_a_refusal_is_not_remembered(cells: Cells) -> None:
    """Neither is an answer: what was pinned before a change opens nothing after it."""
    cell = cells(policy("allow allowed.example"))
    works(cell, "look", "allowed.example")
    cell.sdk.patch_egress_rules([NetworkRule(action="deny", target="allowed.example")])
    to, said = atlas.SHARED[0], hello(b"allowed.example").hex()
    assert attempt(cell, "tcp", to, "443", said)["outcome"] == "refused"
    cell.sdk.delete_egress_rules(["allowed.example"])
    cell.sdk.patch_egress_rules([NetworkRule(action="allow", target="allowed.example")])
    works(cell, "look", "allowed.example")
    works(cell, "tcp", to, "443", said)


def test_nobody_inside_changes_it(lifecycle: Lifecycle, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example"))
    for address in ("127.0.0.1", "192.0.0.53", "[::1]", atlas.HOST):
        done = cell.sh(f"curl -sS -f --max-time 30 http://{address}:18080/policy")
        assert done.code != 0, done.stdout
    endpoint = lifecycle.endpoint(cell.id, 18080)
    url = f"http://{endpoint['endpoint']}/policy"
    own = lifecycle.endpoint(cell.id, 44772)["headers"]
    with httpx.Client() as client:
        for method, headers in (("GET", {}), ("DELETE", {}), ("GET", own), ("PUT", own)):
            assert as_stranger(client, method, url, headers).status_code == 401
        assert client.get(url, headers=endpoint["headers"]).status_code == 200
