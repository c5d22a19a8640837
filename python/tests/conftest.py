"""What all tests share."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from live_server import LiveServer
from paths import EXAMPLE

sys.path[:0] = [str(EXAMPLE)]


@pytest.fixture(scope="session")
def server() -> Iterator[LiveServer]:
    """One server for the whole run: `server.domain` and `server.api_key` for clients."""
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
