"""Every operation on a sandbox in each state that can be had from outside. Those that pass too
soon, `Pending` and `Stopping`, are held by the server's own tests."""

from __future__ import annotations

from typing import Any

from conformance.rows import Row
from conformance.sandbox_rows import NO_SANDBOX

STATES = ("sandbox", "paused", "ended", "failed", "gone", "nobody")
STOPPED = "DOCKER::SANDBOX_NOT_RUNNING"
UNPAUSED = "DOCKER::SANDBOX_NOT_PAUSED"
NO_SOURCE = "SNAPSHOT::INVALID_SOURCE_STATE"
LATER = {"expiresAt": "2099-01-01T00:00:00Z"}
Answer = int | tuple[int, str]


def each(route: str, *answers: Answer, body: Any = None, rest: str = "") -> list[Row]:
    """A row for each state, in their order. Of one that was never there nothing is told at all."""
    told = [*answers, (404, NO_SANDBOX)]
    assert len(told) == len(STATES), route
    path = route.split(" ", 1)[1]
    rows = []
    for word, answer in zip(STATES, told, strict=True):
        status, code = answer if isinstance(answer, tuple) else (answer, "")
        filled = path.replace("{id}", f"{{{word}}}") + rest
        rows.append(Row(route, filled.replace("{port}", "44772"), status, code, body=body))
    return rows


def states(word: str) -> Row:
    """A sandbox shows its state and since when it is in it."""
    names = {"sandbox": "Running", "paused": "Paused", "ended": "Terminated", "failed": "Failed"}
    return Row(
        "GET /sandboxes/{id}",
        f"/sandboxes/{{{word}}}",
        200,
        shape={"status": {"state": names[word], "reason": str, "lastTransitionAt": str}},
    )


GONE = (404, NO_SANDBOX)
NOT_RUNNING, NOT_PAUSED = (409, STOPPED), (409, UNPAUSED)
SOURCE = (409, NO_SOURCE)
ONE = "/sandboxes/{id}"

STATE_ROWS = [
    *[states(word) for word in STATES[:4]],
    *each(f"GET {ONE}", 200, 200, 200, 200, GONE),
    *each(f"DELETE {ONE}", 204, 204, 204, 204, GONE),
    *each(f"PATCH {ONE}/metadata", 200, 200, 200, 200, GONE, body={"a": "b"}),
    *each(f"POST {ONE}/pause", 202, NOT_RUNNING, NOT_RUNNING, NOT_RUNNING, GONE),
    *each(f"POST {ONE}/resume", NOT_PAUSED, 202, NOT_PAUSED, NOT_PAUSED, GONE),
    *each(f"POST {ONE}/renew-expiration", 200, 200, 200, 200, GONE, body=LATER),
    *each(f"POST {ONE}/snapshots", 202, SOURCE, SOURCE, SOURCE, GONE),
    *each(
        f"GET {ONE}/endpoints/{{port}}",
        *(200, 200, (404, STOPPED), (404, STOPPED), GONE),
    ),
    *each(f"GET {ONE}/diagnostics/logs", 200, 200, 200, 200, GONE),
    *each(f"GET {ONE}/diagnostics/events", 200, 200, 200, 200, 200),
    *each(f"GET {ONE}/diagnostics/inspect", 200, 200, 200, 200, 200),
    *each(f"GET {ONE}/diagnostics/summary", 200, 200, 200, 200, 200),
    *each(
        f"GET {ONE}/networkpolicy",
        *(200, 200, NOT_RUNNING, NOT_RUNNING, GONE),
    ),
    *each(
        f"ANY {ONE}/proxy/{{port}}",
        *(200, NOT_RUNNING, NOT_RUNNING, NOT_RUNNING, GONE),
        rest="/ping",
    ),
]
