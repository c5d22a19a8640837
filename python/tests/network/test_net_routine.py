"""What is allowed works as if nobody looked: the programs of every day, events as they come, large
files; and each further step is judged for itself (D14, B119)."""

from __future__ import annotations

import hashlib

import pytest

from conformance.world import CREATE, Lifecycle
from network import atlas
from network.claims import nonce, policy, works
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, Host
from network.routine import ROUTINE
from network.servers.web import PIECE

# A quotation mark within quotation marks, to a shell.
QUOTED = "'\\''"


@pytest.mark.parametrize("name", ROUTINE)
def test_with_a_rule_about_it(cells: Cells, name: str) -> None:
    chore = ROUTINE[name]
    done = cells(policy(*chore.rules)).sh(chore.script)
    assert done.code == 0, done.stderr
    assert chore.expected in done.stdout


@pytest.mark.parametrize("name", ROUTINE)
def test_without_any_policy(open_cell: Cell, name: str) -> None:
    done = open_cell.sh(ROUTINE[name].script)
    assert done.code == 0, done.stderr
    assert ROUTINE[name].expected in done.stdout


@pytest.mark.parametrize("name", ROUTINE)
def test_with_a_rule_about_something_else(net: Internet, cells: Cells, name: str) -> None:
    """It fails by itself, before its own patience ends."""
    mark = net.mark()
    cell = cells(policy("allow other.example", "allow other.example:22"))
    done = cell.sh(f"timeout 60 sh -c '{ROUTINE[name].script.replace(chr(39), QUOTED)}'")
    assert done.code not in (0, 124), done.stdout
    assert ROUTINE[name].expected not in done.stdout
    assert not net.packets(mark)


def test_a_redirect_is_judged_anew(net: Internet, host: Host, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example"))
    for scheme in ("http", "https"):
        for target in ("other.example", "neighbour.example", atlas.OTHER[0]):
            step = f"{scheme}://allowed.example/to/http://{target}/hello"
            script = f"curl -sSf -L --max-time 30 '{step}'"
            done = host.sh(script)
            assert (done.code, f'"host": "{target}"' in done.stdout) == (0, True), done.stderr
            mark = net.mark()
            assert cell.sh(script).code != 0
            net.settle()
            assert {it["host"] for it in net.events(mark, "http")} == {"allowed.example"}


def test_events_come_as_they_are_sent(host: Host, cells: Cells) -> None:
    works(host, "events", "allowed.example", nonce())
    works(cells(policy("allow allowed.example")), "events", "allowed.example", nonce())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_large_file_comes_whole(cells: Cells, scheme: str) -> None:
    bytes_total = 32 << 20
    cell = cells(policy("allow allowed.example"))
    done = cell.sh(f"curl -sSf {scheme}://allowed.example/large/{bytes_total} | sha256sum")
    whole = (PIECE * (bytes_total // len(PIECE) + 1))[:bytes_total]
    assert done.stdout.split()[0] == hashlib.sha256(whole).hexdigest(), done.stderr
    rows = [row for row in cell.connections() if row.get("name") == "allowed.example"]
    assert max(row["receivedBytes"] for row in rows) >= bytes_total


def test_a_large_upload_comes_whole(net: Internet, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example"))
    mark = net.mark()
    script = "head -c 8388608 /dev/zero | curl -sSf --data-binary @- http://allowed.example/hello"
    assert cell.sh(script).code == 0
    (seen,) = net.events(mark, "http", host="allowed.example")
    assert ["content-length", "8388608"] in seen["headers"]


def test_variables_of_a_guard_are_none_of_a_sandbox(
    lifecycle: Lifecycle, net: Internet, cells: Cells
) -> None:
    own = {"OPENSANDBOX_EGRESS_POLICY_FILE": "/tmp/policy", "OPENSANDBOX_EGRESS_LOG_LEVEL": "debug"}
    cell = cells(policy("allow allowed.example"), env=own)
    assert "OPENSANDBOX_EGRESS" not in cell.sh("env").stdout
    assert cell.sh("curl -sSf --max-time 30 https://allowed.example/hello").code == 0
    mark = net.mark()
    cell.put("../policy", '{"defaultAction": "allow"}')
    assert cell.sh("curl -sSf --max-time 30 https://other.example/hello").code != 0
    assert not net.packets(mark)
    for name in ("OPENSANDBOX_EGRESS_RULES", "OPENSANDBOX_EGRESS_DNS_UPSTREAM"):
        body = {**CREATE, "networkPolicy": policy(), "env": {name: "8.8.8.8"}}
        answer = lifecycle.client.post("/v1/sandboxes", json=body, headers=lifecycle.key)
        assert answer.status_code == 400, answer.text


def test_a_proxy_of_ones_own_leads_nowhere_else(net: Internet, cells: Cells) -> None:
    to = atlas.BLIND[0]
    cell = cells(policy("allow allowed.example"), env={"HTTPS_PROXY": f"http://{to}:443"})
    mark = net.mark()
    assert cell.sh("curl -sSf --max-time 30 https://allowed.example/hello").code != 0
    assert not net.packets(mark, to)


@pytest.mark.parametrize("said", ["x", "PING", "hello\n"])
def test_a_client_that_says_little_is_answered(host: Host, cells: Cells, said: str) -> None:
    """Where a rule about the address lets everything through, nothing has to be waited for."""
    to, port = atlas.ECHO[0], str(atlas.ECHO_PORT)
    works(host, "tcp", to, port, said.encode().hex())
    works(cells(policy(f"allow {to}")), "tcp", to, port, said.encode().hex())
    works(cells(), "tcp", to, port, said.encode().hex())
