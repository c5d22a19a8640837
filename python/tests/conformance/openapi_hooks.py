"""What `st run` is taught about this server: see `test_openapi.py`."""

from __future__ import annotations

import json
import re
from typing import Any

import schemathesis

from paths import ROOT

# With these the fault is not the server's: what is asked for is not there, or not offered, and
# clients of OpenSandbox expect these statuses.
NOT_OURS = {
    "BACKEND_CONNECTION_FAILED",
    "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
    "DOCKER::SANDBOX_START_FAILED",
    "FSB::API_NOT_SUPPORTED",
    "SNAPSHOT::NOT_IMPLEMENTED",
}
# What a run is worth nothing without.
REACHED = {
    "GET /health",
    "GET /metrics",
    "POST /v1/sandboxes",
    "GET /v1/sandboxes",
    "GET /v1/sandboxes/{sandboxId}",
    "DELETE /v1/sandboxes/{sandboxId}",
    "PATCH /v1/sandboxes/{sandboxId}/metadata",
    "GET /v1/sandboxes/{sandboxId}/diagnostics/events",
    "GET /v1/sandboxes/{sandboxId}/diagnostics/inspect",
    "GET /v1/sandboxes/{sandboxId}/diagnostics/logs",
    "GET /v1/sandboxes/{sandboxId}/diagnostics/summary",
    "GET /x/sandboxes/{sandboxId}",
    "POST /v1/pools",
    "GET /v1/pools",
    "POST /v1/metrics/events",
    "POST /x/reload",
    "GET /x/volumes",
}


def documented_codes() -> set[str]:
    page = (ROOT / "docs/reference/errors.md").read_text()
    return set(re.findall(r"`([A-Z_]+(?:::[A-Z_]+)?)`", page))


CODES = documented_codes()


@schemathesis.hook
def map_body(_context: schemathesis.HookContext, body: Any) -> Any:
    """Names an image that is there in every other request for a sandbox."""
    image = body.get("image") if isinstance(body, dict) else None
    if isinstance(image, dict) and len(repr(body)) % 2:
        return {**body, "image": {**image, "uri": "host"}}
    return body


@schemathesis.check
def faults_are_told_and_none_is_ours(
    _context: schemathesis.CheckContext,
    response: schemathesis.Response,
    _case: schemathesis.Case[Any],
) -> None:
    """A refusal has a code that a page tells of, and none says that the server failed."""
    if response.status_code < 400:
        return
    code = json.loads(response.content).get("code")
    if code is not None and code not in CODES:
        raise AssertionError(f"no page tells of {code}")
    if response.status_code >= 500 and code not in NOT_OURS:
        raise AssertionError(f"{response.status_code} {code}: {response.text}")


@schemathesis.check
class Reached:
    """The requests were good enough to get somewhere."""

    def __init__(self) -> None:
        self.reached: set[str] = set()

    def after_response(
        self,
        _context: schemathesis.CheckContext,
        response: schemathesis.Response,
        case: schemathesis.Case[Any],
    ) -> None:
        if response.status_code < 300:
            self.reached.add(case.operation.label)

    def after_run(self, _context: schemathesis.CheckContext) -> None:
        missed = sorted(REACHED - self.reached)
        if missed:
            raise AssertionError(f"never succeeded: {', '.join(missed)}")
