"""Fixtures with a real server behind them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barchan import Sandbox
from live_server import LiveServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def server() -> Iterator[LiveServer]:
    """One server for the whole run: `server.domain` and `server.api_key` for clients."""
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    try:
        live.start()
        yield live
    finally:
        live.stop()


@pytest.fixture
def own_server() -> Iterator[LiveServer]:
    """A server that a test may end and start again."""
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    try:
        live.start()
        yield live
    finally:
        live.stop()


@pytest.fixture(scope="session")
def data_science(server: LiveServer) -> str:
    """The name of the image with the libraries for analysis; built when it is first needed."""
    server.build_image("data-science")
    return "data-science"


@pytest.fixture(scope="module")
def sandbox(server: LiveServer) -> Iterator[Sandbox]:
    """One sandbox for the tests of a file."""
    with Sandbox.create("host", server=server.url, api_key=server.api_key) as made:
        yield made
