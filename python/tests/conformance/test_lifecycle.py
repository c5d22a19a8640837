"""Walks every route of the lifecycle API, below `/v1` and at the root."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from conformance import lifecycle_rows, sandbox_rows, snapshot_rows
from conformance.rows import Row, assert_error, check
from conformance.world import KEY, TOKEN, Lifecycle, LifecycleWorld, as_stranger

MOUNTED = [
    *sandbox_rows.SANDBOXES,
    *lifecycle_rows.ENDPOINTS,
    *lifecycle_rows.DIAGNOSTICS,
    *lifecycle_rows.REFUSED,
    *lifecycle_rows.POOLS,
    *snapshot_rows.SNAPSHOTS,
]
PLAIN = [*lifecycle_rows.OPEN, *lifecycle_rows.EVENTS, *lifecycle_rows.OTHERS]
ROUTES = {
    "POST /sandboxes",
    "GET /sandboxes",
    "GET /sandboxes/{id}",
    "DELETE /sandboxes/{id}",
    "PATCH /sandboxes/{id}/metadata",
    "POST /sandboxes/{id}/pause",
    "POST /sandboxes/{id}/resume",
    "POST /sandboxes/{id}/renew-expiration",
    "GET /sandboxes/{id}/endpoints/{port}",
    "GET /sandboxes/{id}/diagnostics/logs",
    "GET /sandboxes/{id}/diagnostics/events",
    "GET /sandboxes/{id}/diagnostics/inspect",
    "GET /sandboxes/{id}/diagnostics/summary",
    "ANY /sandboxes/{id}/proxy/{port}",
    "POST /v1/metrics/events",
    "POST /pools",
    "GET /pools",
    "GET /pools/{name}",
    "PUT /pools/{name}",
    "DELETE /pools/{name}",
    "POST /sandboxes/{id}/snapshots",
    "GET /snapshots",
    "GET /snapshots/{id}",
    "DELETE /snapshots/{id}",
}
REFUSED = {
    *(f"{method} /sandboxes/{{id}}/networkpolicy" for method in ("GET", "PUT", "PATCH", "DELETE")),
    *("POST /templates", "GET /templates", "GET /templates/{id}", "DELETE /templates/{id}"),
}


@pytest.fixture
def world(lifecycle: Lifecycle) -> Iterator[LifecycleWorld]:
    made = LifecycleWorld(lifecycle)
    yield made
    made.end()


def ask(world: LifecycleWorld, row: Row, mount: str = "") -> httpx.Response:
    content = row.content(world)
    key = world.lifecycle.key if row not in lifecycle_rows.OPEN else {}
    content["headers"] = {**key, **content.get("headers", {}), **row.headers}
    method = "POST" if row.method == "ANY" and "ping" not in row.path else row.method
    url = mount + row.path.format_map(world)
    answer = world.lifecycle.client.request(method.replace("ANY", "GET"), url, **content)
    if answer.status_code == 202 and row.route == "POST /sandboxes":
        world.made.append(answer.json()["id"])
    return answer


@pytest.mark.parametrize("mount", ["/v1", ""], ids=["v1", "root"])
@pytest.mark.parametrize("row", MOUNTED, ids=lambda row: row.id)
def test_row(world: LifecycleWorld, row: Row, mount: str) -> None:
    answer = ask(world, row, mount)
    check(row, answer, world)
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.id)
def test_row_as_it_stands(world: LifecycleWorld, row: Row) -> None:
    check(row, ask(world, row), world)


def test_every_route_is_asked_well_and_badly() -> None:
    rows = [*MOUNTED, *PLAIN]
    without_key = {row.route for row in lifecycle_rows.OPEN}
    assert {row.route for row in rows if row.status < 300} - without_key == ROUTES
    # A list of pools has nothing that could be wrong.
    assert {row.route for row in rows if row.status >= 400} >= ROUTES - {"GET /pools"}
    assert {row.route for row in rows if row.status in (501, 502)} >= REFUSED


KEYED = sorted(
    {(row.method, row.path.split("?")[0]) for row in MOUNTED if "/proxy/" not in row.path}
)


@pytest.mark.parametrize(("method", "path"), KEYED, ids=lambda it: it)
def test_nobody_gets_in_without_the_key(lifecycle: Lifecycle, method: str, path: str) -> None:
    words = dict.fromkeys(
        ("sandbox", "eternal", "paused", "ended", "nobody", "pool", "snapshot"), "x"
    )
    for mount in ("/v1", ""):
        url = mount + path.format_map(words)
        for headers, code in (
            ({}, "MISSING_API_KEY"),
            ({TOKEN: lifecycle.server.api_key}, "MISSING_API_KEY"),
            ({KEY: ""}, "INVALID_API_KEY"),
            ({KEY: lifecycle.server.api_key[:-1]}, "INVALID_API_KEY"),
        ):
            answer = as_stranger(lifecycle.client, method, url, headers)
            assert answer.status_code == 401, answer.text
            assert_error(answer, code)


def test_a_request_keeps_its_id(lifecycle: Lifecycle) -> None:
    for path in ("/v1/sandboxes/none", "/v1/nothing", "/health"):
        headers = {"X-Request-ID": "mine-42"}
        assert lifecycle.client.get(path, headers=headers).headers["x-request-id"] == "mine-42"
        assert len(lifecycle.client.get(path).headers["x-request-id"]) == 32


def test_what_is_changed_is_seen_at_once(world: LifecycleWorld) -> None:
    made = world["sandbox"]
    client, key = world.lifecycle.client, world.lifecycle.key
    for verb, state in (("pause", "Paused"), ("resume", "Running")):
        assert client.post(f"/v1/sandboxes/{made}/{verb}", headers=key).status_code == 202
        assert world.state(made) == state
    assert client.delete(f"/v1/sandboxes/{made}", headers=key).status_code == 204
    assert client.get(f"/v1/sandboxes/{made}", headers=key).status_code == 404
