"""Private networks: sandboxes that reach each other by name, and nobody else who does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from network.claims import policy
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, soon

# Answers each connection with its own name and what it was told.
ECHO = """
import socket, sys
with socket.create_server(("127.0.0.1", 7000)) as server:
    print("listening", flush=True)
    while True:
        client, _ = server.accept()
        with client:
            said = b""
            while piece := client.recv(65536):
                said += piece
            client.sendall(sys.argv[1].encode() + b":" + said)
"""
# Says something to a port and prints what is answered, or why nothing is.
CALL = """
import json, socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8) as it:
        it.sendall(sys.argv[3].encode())
        it.shutdown(socket.SHUT_WR)
        told = b""
        while piece := it.recv(65536):
            told += piece
        print(json.dumps(told.decode()))
except OSError as error:
    print(json.dumps({"error": type(error).__name__}))
"""


def member(cells: Cells, networks: str | None, name: str | None = None, **more: Any) -> Cell:
    """A sandbox that serves under its name."""
    extensions = {"barchan.networks": networks, "barchan.network.name": name}
    kept = {key: value for key, value in extensions.items() if value is not None}
    cell = cells(extensions=kept, **more)
    cell.put("echo.py", ECHO)
    cell.put("call.py", CALL)
    cell.start(f"exec /usr/bin/python3 $NET/echo.py {name or 'nameless'}")
    ready = "grep -q ':1B58 ' /proc/net/tcp"
    soon("it listens", lambda: cell.sh(ready).code == 0)
    return cell


def call(cell: Cell, host: str, said: str = "hello", port: int = 7000) -> Any:
    done = cell.sh(f"/usr/bin/python3 $NET/call.py {host} {port} {said}")
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_members_reach_each_other_by_name(cells: Cells) -> None:
    web, db = member(cells, "team,other", "web"), member(cells, "team", "db")
    for host in ("db", "db.team", db.id):
        assert call(web, host) == "db:hello", host
    assert call(db, "web.team") == "web:hello"
    # Its own name is one like the others.
    assert call(db, "db") == "db:hello"
    assert "error" in call(db, "web.other")


def test_nobody_else_does(net: Internet, cells: Cells) -> None:
    db = member(cells, "team", "db")
    stranger, nobody = member(cells, "third", "web"), member(cells, None)
    address = db.sh("getent ahostsv4 db | head -n 1").stdout.split()[0]
    mark = net.mark()
    for cell in (stranger, nobody):
        for host in ("db", "db.team", db.id, address):
            assert "error" in call(cell, host), host
    assert not net.packets(mark, address) if address else True


def test_a_policy_does_not_close_a_network(cells: Cells) -> None:
    closed = member(cells, "team", "closed", policy=policy("deny *.example"))
    db = member(cells, "team", "db")
    assert call(closed, "db") == "db:hello"
    assert call(db, "closed") == "closed:hello"


def test_who_ends_is_gone_and_who_comes_is_there(cells: Cells) -> None:
    web, first = member(cells, "team", "web"), member(cells, "team", "db")
    assert call(web, "db") == "db:hello"
    first.ask("DELETE", "/v1/sandboxes/{id}")
    soon("its name is gone", lambda: "error" in call(web, "db"))
    member(cells, "team", "db")
    soon("the name is there again", lambda: call(web, "db") == "db:hello")


def test_two_of_one_name_are_both_there(cells: Cells) -> None:
    web = member(cells, "team", "web")
    for _ in range(2):
        member(cells, "team", "db")
    found = web.sh("getent ahostsv4 db | cut -d ' ' -f 1 | sort -u").stdout.split()
    assert len(found) == 2, found


def test_a_port_where_nobody_listens_is_refused(cells: Cells) -> None:
    web, db = member(cells, "team", "web"), member(cells, "team", "db")
    assert "error" in call(web, "db", port=7001)
    rows = [row for row in web.connections() if row.get("port") == 7001]
    assert [(row["verdict"], row["reason"]) for row in rows] == [("deny", "peer_refused")]
    assert rows[0]["name"] == db.id


def test_much_passes_unchanged(cells: Cells) -> None:
    web, _ = member(cells, "team", "web"), member(cells, "team", "db")
    script = (
        "head -c 20000000 /dev/urandom >/tmp/sent; "
        "(printf db:; cat /tmp/sent) | sha256sum; "
        '/usr/bin/python3 -c "import socket, sys, hashlib, threading\n'
        "it = socket.create_connection(('db', 7000))\n"
        "it.sendall(open('/tmp/sent', 'rb').read())\n"
        "it.shutdown(socket.SHUT_WR)\n"
        "sum = hashlib.sha256()\n"
        "while piece := it.recv(65536): sum.update(piece)\n"
        "print(sum.hexdigest(), ' -')\""
    )
    done = web.sh(script)
    sent, told = done.stdout.splitlines()
    assert sent.split() == told.split(), done.stderr


@pytest.mark.parametrize(
    ("networks", "name"), [("Team", None), ("", None), ("a.b", None), ("team", "x y")]
)
def test_what_names_no_network_is_refused(cells: Cells, networks: str, name: str | None) -> None:
    with pytest.raises(AssertionError, match="is no name for a network"):
        member(cells, networks, name)
