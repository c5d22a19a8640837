"""Every code that the server can refuse with is asked for: by a row, or, where it takes a runtime
that fails or hours of time, by a test of the server's that is named here."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import (
    create_rows,
    filter_rows,
    lifecycle_rows,
    sandbox_rows,
    snapshot_rows,
    state_rows,
)
from conformance.refusal_rows import REFUSALS, Narrow, Refusal, settings
from conformance.rows import Row, assert_error
from live_server import LiveServer
from paths import ROOT

# Of these chapters of the page the lifecycle API answers no code.
OTHERS = ("Of the daemon inside", "Why a sandbox ended", "Exit codes of the command line")
SERVER_TESTS = ROOT / "crates/server"
FAILS = "takes a runtime that fails"
TIME = "takes a clock that the test sets"
CAUGHT = "takes a moment that cannot be held from outside"
OF_IMAGES = "takes an archive, and is asked for in test_images.py or not to be had from outside"
OF_LAYERS = "takes layers, which no client of others asks for"
OF_ASKS = "takes a connection that waits, which no client of others knows of"
WEAK = "takes a host that cannot do it"
BY_SERVER_TESTS = {
    "ACCESS_LIMIT_REACHED": ("takes 10,000 keys", "src/api/keys.rs"),
    "BODY_TIMEOUT": (TIME, "tests/it/create.rs"),
    "TOO_MANY_FAILURES": (TIME, "tests/it/access.rs"),
    "BACKEND_CONNECTION_FAILED": (FAILS, "tests/it/approvals.rs"),
    "DOCKER::INITIALIZATION_ERROR": (FAILS, "tests/it/create.rs"),
    "DOCKER::SANDBOX_START_FAILED": (FAILS, "tests/it/create.rs"),
    "DOCKER::SANDBOX_DELETE_FAILED": (FAILS, "tests/it/codes.rs"),
    "DOCKER::SANDBOX_PAUSE_FAILED": (FAILS, "tests/it/lifecycle.rs"),
    "DOCKER::SANDBOX_RESUME_FAILED": (FAILS, "tests/it/codes.rs"),
    "SANDBOX::INTERNAL_ERROR": (FAILS, "tests/it/codes.rs"),
    "VOLUME::HOST_PATH_CREATE_FAILED": (FAILS, "tests/it/volumes.rs"),
    "VOLUME::PVC_INSPECT_FAILED": (FAILS, "tests/it/volumes.rs"),
    "SNAPSHOT::INVALID_RESTORE_CONFIG": (FAILS, "tests/it/snapshots.rs"),
    "SNAPSHOT::NOT_READY": (CAUGHT, "tests/it/snapshots.rs"),
    "SNAPSHOT::INVALID_STATE": (CAUGHT, "tests/it/snapshots.rs"),
    "SNAPSHOT::RUNTIME_PREFLIGHT_FAILED": ("takes 25 snapshots", "tests/it/codes.rs"),
    "SNAPSHOT::NOT_IMPLEMENTED": (WEAK, "tests/it/snapshots.rs"),
    "SNAPSHOT::IMAGE_INVALID": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::IMAGE_PLATFORM": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::IMAGE_TOO_LARGE": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::IMAGE_BROKEN_OFF": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::STANDS_ON_HOST": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::NOT_EXPORTABLE": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::TRANSFERS_BUSY": (OF_IMAGES, "tests/it/snapshots/images.rs"),
    "SNAPSHOT::TRANSFER_FAILED": (FAILS, "tests/it/snapshots/images.rs"),
    "LAYER::NOT_FOUND": (OF_LAYERS, "tests/it/layers.rs"),
    "LAYER::FILES_IN_USE": (OF_LAYERS, "tests/it/layers.rs"),
    "LAYER::SANDBOX_BUSY": (OF_LAYERS, "tests/it/layers.rs"),
    "LAYER::COMPARISONS_BUSY": (OF_LAYERS, "tests/it/layers.rs"),
    "LAYER::FAILED": (FAILS, "tests/it/layers.rs"),
    "LAYER::NOT_SUPPORTED": (WEAK, "tests/it/layers.rs"),
    "APPROVAL::NOT_FOUND": (OF_ASKS, "tests/it/approvals.rs"),
    "APPROVAL::NOT_PENDING": (OF_ASKS, "tests/it/approvals.rs"),
    "APPROVAL::EXPIRED": (OF_ASKS, "tests/it/approvals.rs"),
    "SANDBOX::API_NOT_SUPPORTED": (WEAK, "tests/it/lifecycle.rs"),
    "BACKEND_STREAMS_BUSY": ("takes 1,025 streams", "tests/it/tcp.rs"),
    "COMMAND_OUTCOME_UNKNOWN": (CAUGHT, "tests/it/once.rs"),
    "COMMAND_RESULT_EXPIRED": ("takes 64 MiB of results", "src/api/once.rs"),
}


@pytest.fixture(scope="module")
def server_of_refusals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Narrow]:
    folder = tmp_path_factory.mktemp("narrow").resolve()
    state = Path(tempfile.mkdtemp(prefix="barchan-test-"))
    server = LiveServer(state, settings=settings(folder))
    try:
        server.start()
        narrow = Narrow(server, folder)
        yield narrow
        narrow.lifecycle.client.close()
    finally:
        server.stop()


@pytest.fixture
def narrow(server_of_refusals: Narrow) -> Iterator[Narrow]:
    yield server_of_refusals
    server_of_refusals.end()


@pytest.mark.parametrize(
    "refusal", REFUSALS, ids=[f"{at}-{it.code}" for at, it in enumerate(REFUSALS)]
)
def test_it_is_refused_so(narrow: Narrow, refusal: Refusal) -> None:
    answer = refusal.ask(narrow)
    assert f"{answer.status_code} {answer.json()['code']}" == refusal.answer, answer.text
    assert_error(answer, refusal.code)
    assert answer.headers["x-request-id"]
    assert ("retry-after" in answer.headers) == refusal.is_for_now
    if refusal.is_for_now:
        assert int(answer.headers["retry-after"]) >= 1


def documented() -> set[str]:
    """The codes of the page, but for those that only others answer."""
    page = (ROOT / "docs/reference/errors.md").read_text()
    chapters = [it for it in page.split("\n## ")[1:] if not it.startswith(OTHERS)]
    assert len(chapters) == page.count("\n## ") - len(OTHERS), "a chapter has another name"
    line = re.compile(r"^\| `([A-Z_]+(?:::[A-Z_]+)?)` \|", re.MULTILINE)
    return set(line.findall("\n".join(chapters)))


def test_every_code_is_asked_for() -> None:
    modules = (
        *(create_rows, filter_rows, lifecycle_rows),
        *(sandbox_rows, snapshot_rows, state_rows),
    )
    tables = [
        table for module in modules for table in vars(module).values() if isinstance(table, list)
    ]
    rows = {row.code for table in tables for row in table if isinstance(row, Row)} - {""}
    asked = rows | {refusal.code for refusal in REFUSALS}
    assert not asked & set(BY_SERVER_TESTS), "these need no reason any more"
    assert asked | set(BY_SERVER_TESTS) == documented()


@pytest.mark.parametrize("code", BY_SERVER_TESTS)
def test_the_others_are_asked_for_by_the_server_tests(code: str) -> None:
    _, file = BY_SERVER_TESTS[code]
    assert re.search(rf"\d {code}\b", (SERVER_TESTS / file).read_text()), file
