"""Walks every route of the in-sandbox API, directly and through the server's proxy."""

from __future__ import annotations

from collections.abc import Iterable

import httpx
import pytest

from conformance import command_rows, file_rows, isolated_rows, later_rows, own_rows
from conformance.rows import Row, assert_error, check
from conformance.world import TOKEN, DaemonWorld, Lifecycle, as_stranger

SERVED = [
    *command_rows.COMMANDS,
    *file_rows.FILES,
    *command_rows.METRICS,
    *command_rows.PROXY,
    *file_rows.IDENTITY,
    *command_rows.OTHERS,
]
LATER = [
    *later_rows.SESSION,
    *later_rows.TERMINAL,
    *later_rows.CODES,
    *later_rows.STREAMS,
    *isolated_rows.ISOLATION,
    *isolated_rows.ISOLATED_FILES,
    *own_rows.OWN,
]
NO_ACCESS = "MISSING_OR_INVALID_SECURE_ACCESS"

# The table of routes itself: each must have a row that is answered and one that is refused.
FILE_ROUTES = [
    "GET /files/info",
    "DELETE /files",
    "POST /files/mv",
    "POST /files/permissions",
    "GET /files/search",
    "POST /files/replace",
    "POST /files/upload",
    "GET /files/download",
    "GET /directories/list",
    "POST /directories",
    "DELETE /directories",
]
ROUTES = [
    *FILE_ROUTES,
    *[route.replace(" /", " /v1/filesystem/{uid}/{gid}/", 1) for route in FILE_ROUTES],
    "POST /command",
    "DELETE /command",
    "GET /command/status/{id}",
    "GET /command/{id}/logs",
    "POST /session",
    "POST /session/{id}/run",
    "DELETE /session/{id}",
    "POST /code",
    "DELETE /code",
    "POST /code/context",
    "DELETE /code/contexts",
    "GET /code/contexts/{id}",
    "DELETE /code/contexts/{id}",
    "POST /pty",
    "GET /pty/{id}",
    "DELETE /pty/{id}",
    "GET /pty/{id}/ws",
    "ANY /proxy/{port}",
    "POST /v1/isolated/session",
    "GET /v1/isolated/session/{id}",
    "DELETE /v1/isolated/session/{id}",
    "POST /v1/isolated/session/{id}/run",
    "GET /v1/isolated/session/{id}/runs/{run}",
    "GET /v1/isolated/session/{id}/runs/{run}/logs",
    "GET /v1/isolated/session/{id}/diff",
    "POST /v1/isolated/session/{id}/commit",
    *[route.replace(" /", " /v1/isolated/session/{id}/", 1) for route in FILE_ROUTES],
    "POST /x/exec",
    "GET /x/exec/{id}",
    "DELETE /x/exec/{id}",
    "POST /x/exec/{id}/stdin",
    "GET /x/exec/{id}/stdin",
    "GET /x/files",
    "PUT /x/files",
    "GET /x/uploads",
    "DELETE /x/uploads",
    "GET /x/tar",
    "PUT /x/tar",
    "GET /x/watch",
    *[f"POST /x/fs/{tool}" for tool in ("ls", "read", "write", "edit", "delete", "grep", "glob")],
]
# These take nothing that could be wrong.
WITHOUT_REFUSAL = [
    "GET /ping",
    "GET /metrics",
    "GET /code/contexts",
    "GET /v1/isolated/capabilities",
    "GET /v1/isolated/sessions",
]


def ask(client: httpx.Client, row: Row, world: DaemonWorld) -> httpx.Response:
    content = row.content(world)
    content["headers"] = {**content.get("headers", {}), **row.headers}
    method = "GET" if row.method == "ANY" else row.method
    url = row.path.format_map(world)
    if row.endless:
        with client.stream(method, url, **content) as answer:
            return first_event(answer)
    if row.status != 101:
        return client.request(method, url, **content)
    # The connection is not HTTP any more: whoever reads on would wait for ever.
    with client.stream(method, url, **content) as answer:
        return httpx.Response(answer.status_code, headers=answer.headers, content=b"")


def first_event(answer: httpx.Response) -> httpx.Response:
    """What an endless stream begins with."""
    line = next(line for line in answer.iter_lines() if line) if answer.is_success else ""
    return httpx.Response(answer.status_code, text=line)


def hold(daemon: httpx.Client, row: Row) -> None:
    world = DaemonWorld(daemon)
    try:
        check(row, ask(daemon, row, world), world)
    finally:
        world.end()


ROWS = [*SERVED, *LATER]


@pytest.mark.parametrize("row", [row for row in ROWS if not row.kernel], ids=lambda row: row.id)
def test_row(daemon: httpx.Client, row: Row) -> None:
    hold(daemon, row)


@pytest.mark.parametrize("row", [row for row in ROWS if row.kernel], ids=lambda row: row.id)
def test_row_about_kernels(daemon_with_kernels: httpx.Client, row: Row) -> None:
    hold(daemon_with_kernels, row)


def test_every_route_is_asked_well_and_badly() -> None:
    answered = {row.route for row in ROWS if row.status < 400}
    refused = {row.route for row in ROWS if row.status >= 400}
    assert set(ROUTES) - answered == set()
    assert set(ROUTES) - refused == set()
    assert set(WITHOUT_REFUSAL) - answered == set()
    known = {*ROUTES, *WITHOUT_REFUSAL}
    assert {row.route for row in ROWS if "(unknown)" not in row.route} <= known


ALL_ROUTES = sorted({(row.method, row.path.split("?")[0]) for row in ROWS})


class Anything(dict[str, str]):
    def __missing__(self, word: str) -> str:
        return "x"


@pytest.mark.parametrize(("method", "path"), ALL_ROUTES, ids=lambda it: it)
def test_nobody_gets_in_without_a_token_or_the_key(
    lifecycle: Lifecycle, made_sandbox: str, other_token: str, method: str, path: str
) -> None:
    endpoint = lifecycle.endpoint(made_sandbox, 44772)["endpoint"]
    url = f"http://{endpoint}{path.format_map(Anything())}"
    method = "GET" if method == "ANY" else method
    for headers in ({}, {TOKEN: "wrong"}, {TOKEN: other_token}, {"Authorization": "Bearer x"}):
        answer = as_stranger(lifecycle.client, method, url, headers)
        assert answer.status_code == 401, (headers, answer.text)
        assert_error(answer, NO_ACCESS)


@pytest.fixture(scope="module")
def other_token(lifecycle: Lifecycle) -> Iterable[str]:
    """The token of another sandbox."""
    other = lifecycle.create()
    yield lifecycle.endpoint(other, 44772)["headers"][TOKEN]
    lifecycle.delete(other)


def test_what_was_uploaded_has_the_asked_for_mode(daemon: httpx.Client) -> None:
    world = DaemonWorld(daemon)
    row = next(row for row in file_rows.FILES if row.route == "POST /files/upload")
    check(row, ask(daemon, row, world), world)
    path = "/tmp/conformance/up/a b.txt"
    found = daemon.get("/files/info", params={"path": path}).json()[path]
    assert (found["mode"], found["size"]) == (600, 6)
    assert daemon.get("/files/download", params={"path": path}).content == b"x\r\n--b"


def test_metrics_are_watched_until_one_goes(daemon: httpx.Client) -> None:
    with daemon.stream("GET", "/metrics/watch") as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
        lines = answer.iter_lines()
        for _ in range(2):
            line = next(one for one in lines if one)
            check(command_rows.METRICS[0], httpx.Response(200, text=line), {})
