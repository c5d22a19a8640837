"""Connections for which somebody is asked, and the account of what was reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.world import Lifecycle
from network import atlas
from network.claims import policy, stopped, works
from network.forge import hello
from network.guarded import Cells, guarded
from network.internet import Internet
from network.places import Cell, attempt, soon

FETCH = "curl -sSf --max-time 80 http://other.example/hello"


def pending(cell: Cell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cell.ask("GET", "/x/approvals?state=pending")["items"]
    return [item for item in found if item.get("sandboxId") == cell.id]


def asked(cell: Cell) -> dict[str, Any]:
    """What waits, once something does."""
    soon("somebody is asked", lambda: pending(cell))
    return pending(cell)[0]


def shown(cell: Cell, item: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = cell.ask("GET", f"/x/approvals/{item['id']}")
    return found


def test_approve(net: Internet, cells: Cells) -> None:
    cell = cells(policy("ask other.example"))
    mark = net.mark()
    begun = cell.start(FETCH)
    item = asked(cell)
    assert (item["kind"], item["state"], item["default"]) == ("egress", "pending", "reject")
    assert item["details"]["name"] == "other.example"
    assert item["details"]["port"] == 80
    assert item["details"]["address"] in atlas.OTHER
    assert not net.packets(mark, *atlas.OTHER), "it waits"
    cell.ask("POST", f"/x/approvals/{item['id']}/approve", json={"reason": "a mirror"})
    done = cell.ended(begun)
    assert done.code == 0, done.stdout
    assert net.events(mark, "http", host="other.example")
    told = shown(cell, item)
    assert told["state"] == "approved"
    assert (told["decision"]["word"], told["decision"]["reason"]) == ("approve", "a mirror")


def test_reject(net: Internet, cells: Cells) -> None:
    cell = cells(policy("ask other.example"))
    mark = net.mark()
    begun = cell.start(FETCH)
    item = asked(cell)
    cell.ask("POST", f"/x/approvals/{item['id']}/reject", json={"reason": "no"})
    assert cell.ended(begun).code != 0
    assert not net.packets(mark, *atlas.OTHER)
    assert shown(cell, item)["state"] == "rejected"
    again = f"/x/approvals/{item['id']}/approve"
    key = cell.lifecycle.key
    assert cell.lifecycle.client.post(again, headers=key).status_code == 409


def test_what_the_rules_say_is_not_asked(net: Internet, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example", "deny neighbour.example", "ask *.example"))
    works(cell, "tcp", "allowed.example", "443", hello(b"allowed.example").hex())
    to = atlas.SHARED[0]
    stopped(net, cell, to, "tcp", to, "443", hello(b"neighbour.example").hex())
    assert not pending(cell)


@pytest.fixture(scope="module")
def hasty(net: Internet) -> Iterator[Lifecycle]:
    """A server that waits a second for a word."""
    with guarded(net, "ask_s = 1") as made:
        yield made


def test_nobody_says_anything(hasty: Lifecycle, net: Internet) -> None:
    cell = Cell(hasty, net, networkPolicy=policy("ask other.example"))
    try:
        mark = net.mark()
        begun = cell.start(FETCH)
        assert cell.ended(begun).code != 0
        assert not net.packets(mark, *atlas.OTHER)

        def ours() -> list[dict[str, Any]]:
            items = cell.ask("GET", "/x/approvals?state=expired")["items"]
            return [item for item in items if item.get("sandboxId") == cell.id]

        soon("it is expired", ours)
        late = f"/x/approvals/{ours()[0]['id']}/approve"
        answer = hasty.client.post(late, headers=hasty.key)
        assert answer.status_code == 409, answer.text
    finally:
        cell.end()


def row(cell: Cell, **wanted: Any) -> dict[str, Any]:
    """The newest line of the account with these values."""
    found = [
        it
        for it in cell.connections()
        if all(it.get(key) == value for key, value in wanted.items())
    ]
    assert found, f"{wanted}: {cell.connections()}"
    return found[0]


def test_the_account(cells: Cells) -> None:
    cell = cells(policy("allow allowed.example", "deny other.example"))
    assert cell.sh("curl -sSf -4 https://allowed.example/hello").code == 0
    assert cell.sh("curl -sSf -4 https://other.example/hello").code != 0
    attempt(cell, "tcp", atlas.BLIND[0], "443", hello(b"other.example").hex())
    attempt(cell, "tcp", atlas.METADATA[0], "80", "00")
    made = row(cell, protocol="tcp", name="allowed.example")
    assert made["address"] == atlas.SHARED[0]
    assert (made["port"], made["verdict"], made["reason"]) == (443, "allow", "rule")
    assert made["rule"] == "allow allowed.example"
    assert made["sentBytes"] > 100
    assert made["receivedBytes"] > 100
    asked = row(cell, protocol="dns", name="allowed.example")
    assert asked["verdict"] == "allow"
    refused = row(cell, protocol="dns", name="other.example")
    assert (refused["verdict"], refused["rule"]) == ("deny", "deny other.example")
    refused = row(cell, protocol="tcp", name="other.example")
    assert (refused["verdict"], refused["receivedBytes"]) == ("deny", 0)
    refused = row(cell, protocol="tcp", address=atlas.METADATA[0])
    assert (refused["verdict"], refused["reason"]) == ("deny", "address_metadata")


def test_the_account_on_the_command_line(lifecycle: Lifecycle, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example"))
    assert cell.sh("curl -sSf https://allowed.example/hello").code == 0
    # A name that would speak to a terminal, and one that would look like another line.
    attempt(cell, "ask", "\x1b[2J\x1b[31mred.example", "A", "192.0.0.53")
    attempt(cell, "ask", "a\n5 allow.example", "A", "192.0.0.53")
    attempt(cell, "tcp", atlas.BLIND[0], "80", b"GET / HTTP/1.1\r\nHost: \x1b[2J\r\n\r\n".hex())
    done = lifecycle.server.command("connections", cell.id)
    assert done.returncode == 0, done.stderr
    assert "allowed.example" in done.stdout
    assert not [it for it in done.stdout if ord(it) < 32 and it != "\n"]
    done = lifecycle.server.command("connections", cell.id, "--denied")
    assert "allowed.example" not in done.stdout
