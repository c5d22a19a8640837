"""Outbound rules of a sandbox, read and changed by the unmodified OpenSandbox clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule
from opensandbox.sync import SandboxSync

from conformance.osb_client import Osb
from conformance.world import Lifecycle

pytestmark = [
    pytest.mark.integration,
    # The program leaves its connections to the end of its process.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FIRST = {"action": "allow", "target": "a.example"}
MORE = [
    NetworkRule(action="deny", target="b.example"),
    NetworkRule(action="allow", target="*.c.example"),
]


@pytest.fixture
def sandbox(lifecycle: Lifecycle) -> Iterator[str]:
    """One that may reach one name."""
    made = lifecycle.create(networkPolicy={"defaultAction": "deny", "egress": [FIRST]})
    yield made
    lifecycle.delete(made)


def rules(policy: NetworkPolicy) -> list[tuple[str, str]]:
    assert policy.default_action == "deny"
    return [(rule.action, rule.target) for rule in policy.egress or []]


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxied"])
def test_by_the_sdk(lifecycle: Lifecycle, sandbox: str, proxied: bool) -> None:
    server = lifecycle.server
    config = ConnectionConfigSync(
        domain=server.domain, api_key=server.api_key, use_server_proxy=proxied
    )
    with SandboxSync.connect(sandbox, connection_config=config) as sdk:
        assert rules(sdk.get_egress_policy()) == [("allow", "a.example")]
        sdk.patch_egress_rules(MORE)
        assert rules(sdk.get_egress_policy()) == [
            ("deny", "b.example"),
            ("allow", "*.c.example"),
            ("allow", "a.example"),
        ]
        sdk.patch_egress_rules([NetworkRule(action="deny", target="a.example")])
        assert rules(sdk.get_egress_policy())[0] == ("deny", "a.example")
        sdk.delete_egress_rules(["b.example", "*.c.example", "nobody.example"])
        assert rules(sdk.get_egress_policy()) == [("deny", "a.example")]


def test_by_the_sdk_that_waits_for_nothing(lifecycle: Lifecycle, sandbox: str) -> None:
    server = lifecycle.server

    async def tour() -> None:
        config = ConnectionConfig(domain=server.domain, api_key=server.api_key)
        sdk = await Sandbox.connect(sandbox, connection_config=config)
        try:
            await sdk.patch_egress_rules(MORE)
            await sdk.delete_egress_rules(["a.example"])
            found = rules(await sdk.get_egress_policy())
            assert found == [("deny", "b.example"), ("allow", "*.c.example")]
        finally:
            await sdk.close()

    asyncio.run(tour())


def test_by_the_command_line(lifecycle: Lifecycle, sandbox: str, tmp_path: Path) -> None:
    server = lifecycle.server
    osb = Osb(server.domain, server.api_key, tmp_path)
    osb.sandbox = sandbox
    osb("egress", "patch", "ID", "--rule", "deny=b.example", "--rule", "allow=c.example")
    told = json.dumps(osb.json("egress", "get", "ID"))
    for target in ("a.example", "b.example", "c.example"):
        assert target in told, told
