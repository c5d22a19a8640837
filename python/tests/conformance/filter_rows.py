"""What lists and diagnostics may be asked for, with its bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from conformance.rows import Row
from conformance.sandbox_rows import NO_SANDBOX

BAD_FORMAT = "INVALID_METADATA_FORMAT"
BAD_VALUE = "SANDBOX::INVALID_PARAMETER"
LIST, SNAPSHOTS = "GET /sandboxes", "GET /snapshots"
STATES = ["Pending", "Running", "Pausing", "Paused", "Resuming", "Stopping", "Terminated", "Failed"]


def page(number: int, size: int) -> Callable[[httpx.Response], bool]:
    """The page says of itself what was asked for."""

    def look(answer: httpx.Response) -> bool:
        told: dict[str, Any] = answer.json()["pagination"]
        return bool((told["page"], told["pageSize"]) == (number, size))

    return look


def only(*names: str) -> Callable[[httpx.Response], bool]:
    """All that is listed is in one of these states."""
    return lambda it: all(one["status"]["state"] in names for one in it.json()["items"])


def empty(answer: httpx.Response) -> bool:
    """A list without anything has no pages."""
    told = answer.json()
    return bool(told["items"] == [] and told["pagination"]["totalPages"] == 0)


def pages(route: str) -> list[Row]:
    """The bounds of pages, the same for all lists."""
    path = route.split(" ", 1)[1]
    good = [
        ("", page(1, 20)),
        ("page=1&pageSize=1", page(1, 1)),
        ("page=0002&pageSize=200", page(2, 200)),
        ("page=9223372036854775807", page(9223372036854775807, 20)),
        ("pageSize=1&pageSize=7", page(1, 7)),
    ]
    bad = ["page=0", "page=-1", "page=", "page=x", "page=1.5", "page=1_0", "page=%D9%A1"]
    bad += ["page=99999999999999999999", "pageSize=0", "pageSize=201", "pageSize=", "pageSize=-1"]
    return [
        *[Row(route, f"{path}?{query}", 200, look=look) for query, look in good],
        *[Row(route, f"{path}?{query}", 422) for query in bad],
    ]


LISTS = [
    *pages(LIST),
    *pages(SNAPSHOTS),
    *[Row(LIST, f"/sandboxes?state={state}", 200, look=only(state)) for state in STATES],
    *[Row(LIST, f"/sandboxes?state={state.upper()}", 200, look=only(state)) for state in STATES],
    Row(LIST, "/sandboxes?state=paused&state=failed", 200, look=only("Paused", "Failed")),
    Row(LIST, "/sandboxes?state=", 200, look=empty),
    Row(LIST, "/sandboxes?state=nonsense", 200, look=empty),
    Row(LIST, "/sandboxes?metadata=", 200),
    *[
        Row(LIST, f"/sandboxes?metadata={text}", 200, look=empty)
        for text in ("%3Db", "a%3Db%3Dc", "a%3Db;c%3Dd", "none%3D", "a%3Dno%26b%3Dno")
    ],
    *[
        Row(LIST, f"/sandboxes?metadata={text}", 400, BAD_FORMAT)
        for text in ("a", "a%3Db%26", "%26a%3Db", "a%3Db%26%26c%3Dd", "a%3Db%26c")
    ],
    # Bad numbers are told before a bad filter.
    Row(LIST, "/sandboxes?metadata=a&page=0", 422),
    *[
        Row(SNAPSHOTS, f"/snapshots?state={state}", 200, look=only(state))
        for state in ("Creating", "Ready", "Failed", "Deleting")
    ],
    *[
        Row(SNAPSHOTS, f"/snapshots?{query}", 200, look=empty)
        for query in ("state=ready", "state=", "sandboxId={nobody}", "name=none", "name=")
    ],
]

LOGS, HISTORY = "diagnostics/logs", "diagnostics/events"


def asked(what: str, *rows: tuple[str, int, str]) -> list[Row]:
    """Queries of one of the diagnostics."""
    route = f"GET /sandboxes/{{id}}/{what}"
    path = f"/sandboxes/{{sandbox}}/{what}"
    return [Row(route, f"{path}?{query}", status, code) for query, status, code in rows]


NO_SCOPE = "DIAGNOSTICS_SCOPE_UNSUPPORTED"
DIAGNOSED = [
    *asked(
        LOGS,
        *[(f"tail={number}", 200, "") for number in ("1", "10000")],
        *[(f"tail={number}", 422, "") for number in ("0", "10001", "x", "")],
        *[(f"scope={scope}", 200, "") for scope in ("container", "all", "%20ALL%20")],
        *[(f"scope={scope}", 400, NO_SCOPE) for scope in ("", "runtime", "x")],
        ("since=10m&container=main", 200, ""),
    ),
    *asked(
        HISTORY,
        *[(f"limit={number}", 200, "") for number in ("1", "500")],
        *[(f"limit={number}", 422, "") for number in ("0", "501", "x", "")],
        *[(f"scope={scope}", 200, "") for scope in ("runtime", "all", "%20Runtime")],
        *[(f"scope={scope}", 400, NO_SCOPE) for scope in ("", "container", "x")],
    ),
    *asked(
        "diagnostics/summary",
        ("tail=1&event_limit=1", 200, ""),
        ("tail=0", 422, ""),
        ("tail=10001", 422, ""),
        ("event_limit=0", 422, ""),
        ("event_limit=501", 422, ""),
    ),
    # A bad scope is told before a sandbox is looked for.
    Row(f"GET /sandboxes/{{id}}/{LOGS}", f"/sandboxes/{{nobody}}/{LOGS}?scope=x", 400, NO_SCOPE),
    Row(
        f"GET /sandboxes/{{id}}/{LOGS}", f"/sandboxes/{{nobody}}/{LOGS}?scope=all", 404, NO_SANDBOX
    ),
]

PORT = "GET /sandboxes/{id}/endpoints/{port}"
ADDRESSES = [
    *[
        Row(PORT, f"/sandboxes/{{sandbox}}/endpoints/80?use_server_proxy={word}", 200)
        for word in ("true", "1", "YES", "on", "false", "0", "No", "OFF")
    ],
    *[
        Row(PORT, f"/sandboxes/{{sandbox}}/endpoints/80?{query}", 422)
        for query in ("use_server_proxy=maybe", "expires=", "expires=x", "expires=1.5")
    ],
    *[
        Row(PORT, f"/sandboxes/{{sandbox}}/endpoints/80?{query}", 400, BAD_VALUE)
        for query in ("expires=0", "form=other", "expires=9999999999&use_server_proxy=true")
    ],
    *[
        Row(
            PORT,
            f"/sandboxes/{{sandbox}}/endpoints/80?expires=9999999999&{query}",
            200,
            look=lambda it: "headers" not in it.json(),
        )
        for query in ("form=path", "form=host", "use_server_proxy=false")
    ],
    *[
        Row(PORT, f"/sandboxes/{{nobody}}/endpoints/{port}", status, code)
        for port, status, code in (
            ("-1", 400, "DOCKER::INVALID_PORT"),
            ("70000", 400, "DOCKER::INVALID_PORT"),
            ("1.5", 422, ""),
            ("%20", 422, ""),
        )
    ],
]
FILTER_ROWS = [*LISTS, *DIAGNOSED, *ADDRESSES]
