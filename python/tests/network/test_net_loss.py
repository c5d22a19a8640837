"""Without its guard a sandbox reaches nothing (D10, B116), and what it may use has an end (D13)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformance.world import Lifecycle
from network import atlas
from network.claims import fails, policy, stopped, works
from network.forge import hello, request
from network.guarded import guarded, guards
from network.internet import Internet
from network.places import Cell, attempt, soon

PLACES = 8
BYTES = 3_000_000
ALLOWED = hello(b"allowed.example").hex()


@contextmanager
def cell_of(lifecycle: Lifecycle, net: Internet, *rules: str) -> Iterator[Cell]:
    made = Cell(lifecycle, net, networkPolicy=policy(*rules))
    try:
        yield made
    finally:
        made.end()


def reaches(cell: Cell) -> bool:
    """Whether what it may reach can be reached."""
    found = attempt(cell, "look", "allowed.example")
    if found["outcome"] != "answered":
        return False
    return bool(attempt(cell, "tcp", atlas.SHARED[0], "443", ALLOWED)["outcome"] == "answered")


def test_a_killed_guard(lifecycle: Lifecycle, net: Internet) -> None:
    with cell_of(lifecycle, net, "allow allowed.example") as cell:
        assert reaches(cell)
        ((guard, launcher),) = guards(lifecycle).items()
        # Nobody starts another one meanwhile.
        os.kill(launcher, signal.SIGSTOP)
        try:
            os.kill(guard, signal.SIGKILL)
            soon("the guard is gone", lambda: guard not in guards(lifecycle))
            mark = net.mark()
            for address in (*atlas.SHARED, *atlas.OTHER, atlas.METADATA[0]):
                found = attempt(cell, "tcp", address, "443", ALLOWED, "1")
                assert found["outcome"] != "answered", found
            assert (
                attempt(cell, "ask", "allowed.example", "A", "192.0.0.53")["outcome"] != "answered"
            )
            assert attempt(cell, "udp", atlas.ECHO[0], "443", "00")["outcome"] == "refused"
            assert not net.packets(mark)
        finally:
            os.kill(launcher, signal.SIGCONT)
        soon("the guard is back", lambda: reaches(cell))
        assert guard not in guards(lifecycle)
        to = atlas.OTHER[0]
        stopped(net, cell, to, "tcp", to, "443", hello(b"other.example").hex())
        fails(cell, "look", "other.example")


def test_a_guard_that_is_killed_again_and_again(lifecycle: Lifecycle, net: Internet) -> None:
    to, said = atlas.OTHER[0], hello(b"other.example").hex()
    with cell_of(lifecycle, net, "allow allowed.example") as cell:
        for _ in range(5):
            soon("there is a guard", lambda: guards(lifecycle))
            for guard in guards(lifecycle):
                os.kill(guard, signal.SIGKILL)
            mark = net.mark()
            assert attempt(cell, "tcp", to, "443", said)["outcome"] != "answered"
            assert not net.packets(mark, to)
        soon("the guard is back", lambda: reaches(cell))


def test_what_is_made_while_the_guard_is_gone(lifecycle: Lifecycle, net: Internet) -> None:
    for guard in guards(lifecycle):
        os.kill(guard, signal.SIGKILL)
    with cell_of(lifecycle, net, "allow allowed.example") as cell:
        mark = net.mark()
        assert attempt(cell, "look", "other.example")["outcome"] == "refused"
        soon("the guard is back", lambda: reaches(cell))
        assert not [it for it in net.events(mark, "dns") if it["name"] == "other.example"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_starts_anew(net: Internet, how: signal.Signals) -> None:
    with guarded(net) as lifecycle, cell_of(lifecycle, net, "allow allowed.example") as cell:
        assert reaches(cell)
        lifecycle.server.end(how)
        lifecycle.server.start()
        soon("it goes on", lambda: reaches(cell))
        to = atlas.OTHER[0]
        stopped(net, cell, to, "tcp", to, "443", hello(b"other.example").hex())
        assert cell.sdk.get_egress_policy().default_action == "deny"


@pytest.fixture(scope="module")
def tight(net: Internet) -> Iterator[Lifecycle]:
    """A server that gives little."""
    lines = (f"connections_max = {PLACES}", f"total_bytes_max = {BYTES}")
    with guarded(net, *lines) as made:
        yield made


def test_connections_have_an_end(tight: Lifecycle, net: Internet) -> None:
    to, port = atlas.ECHO[0], str(atlas.ECHO_PORT)
    with cell_of(tight, net, f"allow {to}") as cell:
        found = attempt(cell, "flood", to, port, str(3 * PLACES))
        assert found["answered"] == PLACES, found
        assert (found["refused"], found["silent"]) == (2 * PLACES, 0), found
        soon(
            "they are given back",
            lambda: attempt(cell, "flood", to, port, str(PLACES))["answered"] == PLACES,
        )


def test_one_sandbox_does_not_use_up_anothers(tight: Lifecycle, net: Internet) -> None:
    to, port = atlas.ECHO[0], str(atlas.ECHO_PORT)
    with cell_of(tight, net, f"allow {to}") as greedy, cell_of(tight, net, f"allow {to}") as other:
        begun = greedy.start(f"/usr/bin/python3 $NET/probe.py flood {to} {port} {3 * PLACES}")
        for _ in range(5):
            works(other, "tcp", to, port, "00")
        greedy.ended(begun)


def test_bytes_have_an_end(tight: Lifecycle, net: Internet) -> None:
    script = "curl -sS -o /dev/null -w '%{{size_download}}' http://allowed.example/large/{}"
    with cell_of(tight, net, "allow allowed.example") as cell:
        assert cell.sh(script.format(1_000_000)).stdout == "1000000"
        done = cell.sh(script.format(50_000_000))
        assert done.code != 0
        assert int(done.stdout) < 2 * BYTES
        found = attempt(cell, "tcp", atlas.SHARED[0], "80", request("allowed.example").hex())
        assert found["outcome"] == "refused"
        reasons = {row["reason"] for row in cell.connections()}
        assert any(reason.startswith("limit_") for reason in reasons), reasons


def test_many_refusals_are_no_trouble(lifecycle: Lifecycle, net: Internet) -> None:
    with cell_of(lifecycle, net, "allow allowed.example") as cell:
        mark = net.mark()
        found = attempt(cell, "flood", atlas.METADATA[0], "80", "900")
        assert (found["refused"], found["silent"]) == (900, 0), found
        assert not net.packets(mark)
        assert reaches(cell)
        rows = [it for it in cell.connections() if it.get("address") == atlas.METADATA[0]]
        assert {row["verdict"] for row in rows} == {"deny"}


def test_many_connections_are_no_trouble(lifecycle: Lifecycle, net: Internet) -> None:
    to, port = atlas.ECHO[0], str(atlas.ECHO_PORT)
    with cell_of(lifecycle, net, f"allow {to}") as cell:
        found = attempt(cell, "flood", to, port, "500")
        assert (found["answered"], found["silent"]) == (500, 0), found
