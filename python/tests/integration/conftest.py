"""Fixtures with a real server behind them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from barchan import Sandbox
from integration.sandboxes import Box
from live_server import LiveServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture
def own_server() -> Iterator[LiveServer]:
    """A server that a test may end and start again."""
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    try:
        live.start()
        yield live
    finally:
        live.stop()


@pytest.fixture(scope="module")
def sandbox(server: LiveServer) -> Iterator[Sandbox]:
    """One sandbox for the tests of a file."""
    with Sandbox.create("host", server=server.url, api_key=server.api_key) as made:
        yield made


@pytest.fixture(params=["direct", "proxied"], scope="module")
def box(request: pytest.FixtureRequest, server: LiveServer) -> Iterator[Box]:
    """One sandbox for the tests of a file, for each way to it."""
    made = Box(server, request.param == "proxied")
    yield made
    made.end()


@pytest.fixture
def raw(box: Box) -> Iterator[httpx.Client]:
    """The daemon of a sandbox without the SDK."""
    endpoint = box.sdk.get_endpoint(44772)
    headers = {**endpoint.headers, "OPEN-SANDBOX-API-KEY": str(box.config.api_key)}
    with httpx.Client(base_url=f"http://{endpoint.endpoint}", headers=headers, timeout=30) as made:
        yield made
