"""Fixtures of the walk over all routes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from conformance.world import KEY, WAIT_S, Lifecycle
from live_server import LiveServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def lifecycle(server: LiveServer) -> Iterator[Lifecycle]:
    made = Lifecycle(server)
    yield made
    made.client.close()


@pytest.fixture(scope="module")
def made_sandbox(lifecycle: Lifecycle) -> Iterator[str]:
    """One sandbox for the rows of a file."""
    made = lifecycle.create(resourceLimits={"cpu": "1", "memory": "1Gi"})
    yield made
    lifecycle.delete(made)


@pytest.fixture(scope="module")
def made_sandbox_with_kernels(lifecycle: Lifecycle, data_science: str) -> Iterator[str]:
    """One sandbox whose image has kernels."""
    image = {"uri": data_science}
    made = lifecycle.create(image=image, resourceLimits={"cpu": "1", "memory": "1Gi"})
    yield made
    lifecycle.delete(made)


@contextmanager
def way_in(lifecycle: Lifecycle, sandbox: str, way: str) -> Iterator[httpx.Client]:
    """The way into the sandbox: with its own token as the direct endpoint hands it out, or through
    the server's proxy with the server's key."""
    if way == "direct":
        found = lifecycle.endpoint(sandbox, 44772, use_server_proxy="false")
        headers = found["headers"]
    else:
        found = lifecycle.endpoint(sandbox, 44772, use_server_proxy="true")
        headers = {KEY: lifecycle.server.api_key}
    url = f"http://{found['endpoint']}"
    with httpx.Client(base_url=url, headers=headers, timeout=WAIT_S) as client:
        yield client


@pytest.fixture(params=["direct", "proxied"], scope="module")
def daemon(
    request: pytest.FixtureRequest, lifecycle: Lifecycle, made_sandbox: str
) -> Iterator[httpx.Client]:
    with way_in(lifecycle, made_sandbox, request.param) as client:
        yield client


@pytest.fixture(params=["direct", "proxied"], scope="module")
def daemon_with_kernels(
    request: pytest.FixtureRequest, lifecycle: Lifecycle, made_sandbox_with_kernels: str
) -> Iterator[httpx.Client]:
    with way_in(lifecycle, made_sandbox_with_kernels, request.param) as client:
        yield client


@pytest.fixture
def plain_logs(tmp_path: Path) -> dict[str, str]:
    """Variables with which the program logs without `rich`.

    The client raises some errors as their own cause, and `rich` follows causes without end: a tool
    that fails like this would never answer, whatever the server said. Without it the program falls
    back to the log of the standard library.
    """
    (tmp_path / "rich.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path}
