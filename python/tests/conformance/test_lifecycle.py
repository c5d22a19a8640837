"""Walks every route of the lifecycle API, below `/v1` and at the root."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from conformance import (
    create_rows,
    filter_rows,
    lifecycle_rows,
    reach,
    sandbox_rows,
    snapshot_rows,
    state_rows,
)
from conformance.rows import Row, assert_error, check
from conformance.world import KEY, TOKEN, Lifecycle, LifecycleWorld, as_stranger

MOUNTED = [
    *sandbox_rows.SANDBOXES,
    *lifecycle_rows.ENDPOINTS,
    *lifecycle_rows.DIAGNOSTICS,
    *lifecycle_rows.REFUSED,
    *lifecycle_rows.POLICIES,
    *lifecycle_rows.POOLS,
    *snapshot_rows.SNAPSHOTS,
    *state_rows.STATE_ROWS,
    *filter_rows.FILTER_ROWS,
    *create_rows.CREATE_ROWS,
]
PLAIN = [*lifecycle_rows.OPEN, *lifecycle_rows.EVENTS, *lifecycle_rows.OTHERS]
# Not of the API itself: what is answered is up to the programs in the sandbox.
PROXY = "ANY /sandboxes/{}/proxy/{}"
# Clients know these, and this server has only refusals for them.
REFUSED = {
    *("POST /templates", "GET /templates", "GET /templates/{}", "DELETE /templates/{}"),
}
# A request for these has nothing in it that could be wrong.
SIMPLE = {"GET /pools", "GET /health", "GET /version", "GET /openapi.json"}
# Any text is a good filter of these names; one that fits nothing finds nothing.
ANY_TEXT = {"state", "sandboxId", "name"}


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


def plain(route: str) -> str:
    """A route without the names of its variable parts and without `/v1`."""
    method, path = route.split(" ", 1)
    return f"{method} {re.sub('{.*?}', '{}', path).removeprefix('/v1')}"


def asked(may: Callable[[int], bool]) -> dict[str, set[str]]:
    """The routes of the rows that are answered with such a status, with the parameters of their
    queries."""
    found = defaultdict[str, set[str]](set)
    for row in (*MOUNTED, *PLAIN):
        if may(row.status) and "(" not in row.route:
            query = urlsplit(row.path.replace("{", "").replace("}", "")).query
            names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
            found[plain(row.route)] |= names
    return found


def test_every_route_is_asked_well_and_badly_with_every_parameter(lifecycle: Lifecycle) -> None:
    described = lifecycle.client.get("/openapi.json").json()["paths"]
    served = {
        plain(f"{method.upper()} {path}"): {
            one["name"] for one in operation.get("parameters", []) if one["in"] == "query"
        }
        for path, operations in described.items()
        for method, operation in operations.items()
        if method in reach.METHODS and not path.startswith("/x/")
    }
    well, badly = asked(lambda status: status < 300), asked(lambda status: status >= 400)
    assert set(well) == set(served) - REFUSED | {PROXY}
    assert set(badly) - {"HEAD /sandboxes/{}/proxy/{}", "OPTIONS /sandboxes/{}/proxy/{}"} == (
        set(served) - SIMPLE | {PROXY}
    )
    never_well = {route: names - well[route] for route, names in served.items()}
    assert not {route: names for route, names in never_well.items() if names}
    never_badly = {route: names - badly[route] - ANY_TEXT for route, names in served.items()}
    assert not {route: names for route, names in never_badly.items() if names}


KEYED = sorted(
    {
        (row.method, row.path.split("?")[0].format_map(defaultdict(lambda: "x")))
        for row in MOUNTED
        if "/proxy/" not in row.path
    }
)


@pytest.mark.parametrize(("method", "path"), KEYED, ids=lambda it: it)
def test_nobody_gets_in_without_the_key(lifecycle: Lifecycle, method: str, path: str) -> None:
    for mount in ("/v1", ""):
        url = mount + path
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
