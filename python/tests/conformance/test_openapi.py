"""Requests made up from the server's own description of its API: whatever is asked, the answer is
one that the description names, and none is a fault of the server's."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conformance.world import KEY
from live_server import LiveServer
from paths import TESTS

# Most requests of each operation and phase; `make openapi` asks for many more.
EXAMPLES = os.environ.get("BARCHAN_OPENAPI_EXAMPLES", "10")
CHECKS = [
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "faults_are_told_and_none_is_ours",
    "Reached",
]
# So that whatever is made up, this machine has room for it.
SETTINGS = """
[limits]
sandboxes_max = 8
[pools]
acquire_wait_s = 1
"""


@pytest.fixture
def own_server() -> Iterator[LiveServer]:
    server = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")), settings=SETTINGS)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def test_every_answer_is_described(own_server: LiveServer, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            Path(sys.executable).parent / "st",
            "run",
            f"{own_server.url}/openapi.json",
            f"--header={KEY}: {own_server.api_key}",
            # It has no end, and tests of its own.
            "--exclude-path=/x/events",
            f"--checks={','.join(CHECKS)}",
            f"--max-examples={EXAMPLES}",
            "--seed=1",
            "--generation-database=none",
            "--request-timeout=60",
            "--continue-on-failure",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "SCHEMATHESIS_HOOKS": "conformance.openapi_hooks",
        },
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr + own_server.tail()


def test_whoever_has_no_key_is_told_of_every_route(own_server: LiveServer) -> None:
    told = httpx.get(f"{own_server.url}/openapi.json").json()
    assert told["openapi"].startswith("3.1")
    assert {"/v1/sandboxes", "/x/events", "/health"} <= set(told["paths"])
