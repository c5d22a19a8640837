"""Credentials are taken only where nobody between the caller and the server reads along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from conformance.world import WAIT_S, Lifecycle
from network import atlas
from network.claims import policy
from network.guarded import guarded
from network.internet import Internet

NEW: dict[str, Any] = {"credentials": [], "bindings": []}


@pytest.fixture(scope="module")
def trusting(net: Internet) -> Iterator[Lifecycle]:
    """A server that takes this host's own address for that of a proxy."""
    with guarded(net, f'vault_trusted_proxies = ["{atlas.HOST}"]') as made:
        yield made


def statuses(lifecycle: Lifecycle, address: str) -> list[int]:
    """What calls are answered that come from this address of the host, and go to it."""
    sandbox = lifecycle.create(networkPolicy=policy(), credentialProxy={"enabled": True})
    port = lifecycle.server.domain.rpartition(":")[2]
    url = f"http://{address}:{port}/v1/sandboxes/{sandbox}/proxy/18080/credential-vault"
    calls: list[tuple[str, Any]] = [("GET", None), ("POST", NEW), ("PATCH", {}), ("DELETE", None)]
    try:
        with httpx.Client(timeout=WAIT_S, headers=lifecycle.key) as client:
            return [client.request(how, url, json=body).status_code for how, body in calls]
    finally:
        lifecycle.delete(sandbox)


def test_loopback(lifecycle: Lifecycle) -> None:
    assert statuses(lifecycle, "127.0.0.1") == [404, 201, 200, 204]


def test_the_open_network(lifecycle: Lifecycle) -> None:
    assert statuses(lifecycle, atlas.HOST) == [404, 426, 426, 404]


def test_a_trusted_proxy(trusting: Lifecycle) -> None:
    assert statuses(trusting, atlas.HOST) == [404, 201, 200, 204]
