"""Fixtures of tests of what sandboxes may send out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.world import Lifecycle
from network.guarded import Cells, guarded
from network.internet import Internet, internet
from network.places import Cell, Host


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def net() -> Iterator[Internet]:
    """Everybody beyond the host."""
    with tempfile.TemporaryDirectory(prefix="barchan-net-") as folder, internet(Path(folder)) as it:
        yield it


@pytest.fixture(scope="session")
def host(net: Internet) -> Host:
    """The place where nothing defends."""
    return Host(net)


@pytest.fixture(scope="module")
def lifecycle(net: Internet) -> Iterator[Lifecycle]:
    """The server of a file."""
    with guarded(net) as made:
        yield made


@pytest.fixture
def cells(lifecycle: Lifecycle, net: Internet) -> Iterator[Cells]:
    made: list[Cell] = []

    def make(policy: dict[str, Any] | None = None, **fields: Any) -> Cell:
        more: dict[str, Any] = {} if policy is None else {"networkPolicy": policy}
        made.append(Cell(lifecycle, net, **more, **fields))
        return made[-1]

    yield make
    for cell in made:
        cell.end()


@pytest.fixture(scope="module")
def open_cell(lifecycle: Lifecycle, net: Internet) -> Iterator[Cell]:
    """A sandbox without a policy of its own: the internet, and nothing else."""
    made = Cell(lifecycle, net)
    yield made
    made.end()
