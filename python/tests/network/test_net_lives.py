"""The policy of a sandbox goes with it through its life, and with what is made of it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from opensandbox.models.sandboxes import NetworkRule

from conformance.world import CREATE, Lifecycle
from network import atlas
from network.claims import policy, stopped
from network.forge import hello
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, soon

FETCH = "curl -sSf --max-time 30 -o /dev/null http://{}/hello"
TARGET = "/v1/sandboxes/{id}"


def holds(net: Internet, cell: Cell) -> None:
    """It reaches one name and nothing else."""
    cell.equip()
    for name, is_let in (("allowed.example", True), ("other.example", False)):
        done = cell.sh(FETCH.format(name))
        assert (done.code == 0) == is_let, done.stderr
    for to in (atlas.OTHER[0], atlas.METADATA[0]):
        stopped(net, cell, to, "tcp", to, "443", hello(b"allowed.example").hex())
    found = cell.sdk.get_egress_policy()
    listed = [f"{rule.action} {rule.target}" for rule in found.egress or []]
    assert (found.default_action, listed) == ("deny", ["allow allowed.example"])


@pytest.fixture
def cell(cells: Cells) -> Cell:
    """Its policy was another one when it was made."""
    made = cells(policy("allow other.example"))
    made.sdk.delete_egress_rules(["other.example"])
    made.sdk.patch_egress_rules([NetworkRule(action="allow", target="allowed.example")])
    return made


def is_in(cell: Cell, state: str) -> None:
    soon(state, lambda: cell.ask("GET", TARGET)["status"]["state"] == state)


@pytest.mark.parametrize("to", ["memory", "disk"])
def test_a_pause(net: Internet, cell: Cell, to: str) -> None:
    holds(net, cell)
    cell.ask("POST", f"{TARGET}/pause" + ("?to=disk" if to == "disk" else ""))
    is_in(cell, "Paused")
    cell.ask("POST", f"{TARGET}/resume")
    is_in(cell, "Running")
    holds(net, cell)


def test_a_return_to_a_layer(net: Internet, cell: Cell) -> None:
    number = cell.ask("POST", "/x/layers/{id}", json={})["number"]
    cell.ask("POST", "/x/layers/{id}/undo", json={"layer": number})
    is_in(cell, "Running")
    holds(net, cell)


def made_of(lifecycle: Lifecycle, net: Internet, cell: Cell, way: str) -> str:
    """Another sandbox, made of this one."""
    if way == "fork":
        made: dict[str, Any] = cell.ask("POST", "/x/layers/{id}/fork", json={"count": 1})
        return str(made["items"][0]["id"])
    snapshot = cell.ask("POST", f"{TARGET}/snapshots")["id"]

    def is_ready() -> bool:
        found = cell.ask("GET", f"/v1/snapshots/{snapshot}")
        return bool(found["status"]["state"] == "Ready")

    soon("the snapshot is ready", is_ready)
    body = {**CREATE, "snapshotId": snapshot}
    del body["image"], body["entrypoint"]
    return str(cell.ask("POST", "/v1/sandboxes", json=body)["id"])


@pytest.mark.parametrize("way", ["fork", "snapshot"])
def test_another_one_of_it(lifecycle: Lifecycle, net: Internet, cell: Cell, way: str) -> None:
    made = Cell(lifecycle, net, made_of(lifecycle, net, cell, way))
    try:
        holds(net, made)
        # From here on each has its own.
        made.sdk.patch_egress_rules([NetworkRule(action="allow", target="other.example")])
        assert made.sh(FETCH.format("other.example")).code == 0
        holds(net, cell)
    finally:
        made.end()


def test_connections_end_with_it(lifecycle: Lifecycle, net: Internet, cells: Cells) -> None:
    to = atlas.ECHO[0]
    cell = cells(policy(f"allow {to}"))
    mark = net.mark()
    cell.start(f"/usr/bin/python3 $NET/probe.py hold {to} {atlas.ECHO_PORT}")
    soon("it is connected", lambda: net.events(mark, "echo", local=to))
    assert not net.events(mark, "echo ended")
    lifecycle.delete(cell.id)
    soon("it is gone", lambda: net.events(mark, "echo ended", local=to))


def test_what_ended_is_forgotten(lifecycle: Lifecycle, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example"))
    lifecycle.delete(cell.id)
    for path in ("/x/sandboxes/{}/connections", "/v1/sandboxes/{}/networkpolicy"):
        for name in (cell.id, str(uuid.uuid4())):
            answer = lifecycle.client.get(path.format(name), headers=lifecycle.key)
            assert answer.status_code == 404, answer.text
