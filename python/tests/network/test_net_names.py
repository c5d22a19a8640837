"""Rules about names, and who tries to pass for an allowed one: addresses that no answer gave (D3,
B113), forged greetings and requests (D5, B115), spellings (D6), and relays (D9)."""

from __future__ import annotations

import pytest

from network import atlas
from network.claims import defended, fails, policy, stopped, works
from network.forge import H2_PREFACE, hello, request
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, Host, attempt

SHARED = atlas.SHARED
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
OPAQUE = b"x y z\r\n\r\n"


@pytest.fixture
def cell(cells: Cells) -> Cell:
    """It may reach one name, and has been there."""
    made = cells(policy("allow allowed.example"))
    for family in ("-4", "-6"):
        done = made.sh(f"curl -sSf {family} --max-time 30 https://allowed.example/hello")
        assert done.code == 0, done.stderr
    return made


FORGED = {
    "the name in TLS": (443, hello(b"allowed.example")),
    "the name in HTTP": (80, request("allowed.example")),
    "no name": (443, hello()),
    "a hidden name": (443, hello(b"allowed.example", has_ech=True)),
    "something else": (22, b"SSH-2.0-x\r\n"),
    "garbage at 443": (443, OPAQUE),
    "HTTP/2 in the clear": (80, H2_PREFACE),
    "PostgreSQL": (5432, b"\0\0\0\x08\x04\xd2\x16\x2f"),
}


@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("address", atlas.BLIND)
def test_an_address_that_no_answer_gave(
    net: Internet, host: Host, cells: Cells, address: str, how: str
) -> None:
    port, said = FORGED[how]
    cell = cells(policy("allow allowed.example", "allow *.other.example"))
    defended(net, host, cell, address, "tcp", address, str(port), said.hex())
    works(cell, "look", "allowed.example")
    stopped(net, cell, address, "tcp", address, str(port), said.hex())


def test_an_address_counts_once_its_name_was_answered(net: Internet, cells: Cells) -> None:
    cell = cells(policy("allow allowed.example"))
    for address in SHARED:
        said = hello(b"allowed.example").hex()
        stopped(net, cell, address, "tcp", address, "443", said)
    works(cell, "look", "allowed.example")
    for address in SHARED:
        works(cell, "tcp", address, "443", hello(b"allowed.example").hex())


def test_what_one_sandbox_was_answered_opens_nothing_to_another(
    net: Internet, cells: Cells
) -> None:
    asker, other = cells(policy("allow allowed.example")), cells(policy("allow allowed.example"))
    works(asker, "look", "allowed.example")
    stopped(net, other, SHARED[0], "tcp", SHARED[0], "443", hello(b"allowed.example").hex())


# Some servers take these, and hear a name in them that others do not.
HIDDEN = {
    "a warning before the greeting": (443, b"\x15\x03\x01\0\x02\x01\0" + hello(b"other.example")),
    "a request of old": (80, b"GET /hello\r\n"),
    "a request without a version": (80, b"POST /\r\nHost: other.example\r\n\r\n"),
    "another protocol's request": (80, b"GET / RTSP/1.0\r\nHost: other.example\r\n\r\n"),
    "who speaks for others": (
        80,
        b"PROXY TCP4 1.1.1.1 2.2.2.2 5 80\r\n" + request("other.example"),
    ),
    "empty lines first": (80, b"\r\n\r\n" + request("other.example")),
    "a folded line": (80, b"GET / HTTP/1.1\r\nHost: allowed.example\r\n other.example\r\n\r\n"),
    "two names in TLS": (443, hello(b"allowed.example", b"other.example")),
}

NEIGHBOUR = {
    "its name": (443, hello(b"neighbour.example")),
    "its name in pieces": (443, hello(b"neighbour.example", pieces=5)),
    "no name": (443, hello()),
    "a hidden name": (443, hello(b"allowed.example", has_ech=True)),
    "two names": (443, hello(b"allowed.example", b"neighbour.example")),
    "its name, in HTTP": (80, request("neighbour.example")),
    "no name, in HTTP": (80, b"GET /hello HTTP/1.1\r\n\r\n"),
    "an old request": (80, b"GET /hello HTTP/1.0\r\n\r\n"),
    "two Hosts": (80, request("allowed.example", "/hello", "Host: neighbour.example")),
    "another target": (80, request("allowed.example", "http://neighbour.example/hello")),
    "a way through": (80, request("allowed.example", "neighbour.example:443", method="CONNECT")),
    "HTTP/2 in the clear": (80, H2_PREFACE),
    "a bare line feed": (80, b"GET /hello HTTP/1.1\nHost: neighbour.example\n\r\n\r\n"),
    "a space before the colon": (80, b"GET /hello HTTP/1.1\r\nHost : neighbour.example\r\n\r\n"),
    "garbage": (443, OPAQUE),
    "a banner": (80, b"SSH-2.0-x\r\n"),
    "a greeting of old": (443, b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10" + bytes(37)),
    **HIDDEN,
}


@pytest.mark.parametrize("how", NEIGHBOUR)
@pytest.mark.parametrize("address", SHARED)
def test_a_neighbour_on_the_same_address(net: Internet, cell: Cell, address: str, how: str) -> None:
    port, said = NEIGHBOUR[how]
    mark = net.mark()
    stopped(net, cell, address, "tcp", address, str(port), said.hex())
    assert not net.events(mark, "connection", local=address)


@pytest.mark.parametrize("how", ["its name", "its name in pieces", "no name", "a hidden name"])
def test_such_a_neighbour_is_reached_where_nothing_defends(host: Host, how: str) -> None:
    """What a server of TLS answers begins with its own greeting, not with a complaint."""
    for address in SHARED:
        found = works(host, "tcp", address, "443", NEIGHBOUR[how][1].hex())
        assert found["answer"].startswith("\x16\x03\x03"), found


@pytest.mark.parametrize("how", ["its name, in HTTP", "another target", "HTTP/2 in the clear"])
def test_so_it_is_by_http(host: Host, how: str) -> None:
    for address in SHARED:
        works(host, "tcp", address, "80", NEIGHBOUR[how][1].hex())


SPELLED = {
    "as it is": (b"allowed.example", True),
    "in capitals": (b"Allowed.EXAMPLE", True),
    "longer at the front": (b"notallowed.example", False),
    "below it": (b"sub.allowed.example", False),
    "longer at the end": (b"allowed.example.other.example", False),
    "NUL before it": (b"other.example\0.allowed.example", False),
    "NUL behind it": (b"allowed.example\0.other.example", False),
    "NUL at its end": (b"allowed.example\0", False),
    "somebody at it": (b"other.example@allowed.example", False),
    "at somebody": (b"allowed.example@other.example", False),
    "a slash": (b"other.example/.allowed.example", False),
    "a space": (b" allowed.example", False),
    "an escape": (b"\x1b[2Jallowed.example", False),
    "another alphabet": ("\u0430llowed.example".encode(), False),
    "another alphabet in ASCII": (b"xn--llowed-3yf.example", False),
    "a wide dot": ("allowed\u3002example".encode(), False),
    "nothing": (b"", False),
    "a dot": (b".", False),
    "two dots": (b"allowed..example", False),
    "its address": (SHARED[0].encode(), False),
    "very long": (b"a" * 300 + b".allowed.example", False),
}


@pytest.mark.parametrize("how", SPELLED)
@pytest.mark.parametrize("protocol", ["tls", "http"])
def test_spellings(net: Internet, cell: Cell, how: str, protocol: str) -> None:
    name, is_same = SPELLED[how]
    host = name.decode("latin-1")
    said, port = (hello(name), "443") if protocol == "tls" else (request(host), "80")
    if is_same:
        works(cell, "tcp", SHARED[0], port, said.hex())
    elif (how, protocol) == ("a space", "http"):
        # A space there is none of the name.
        works(cell, "tcp", SHARED[0], port, said.hex())
    else:
        stopped(net, cell, SHARED[0], "tcp", SHARED[0], port, said.hex())


@pytest.mark.parametrize("host", ["allowed.example:80", "allowed.example.", "ALLOWED.example.:80"])
def test_hosts_that_are_the_same(cell: Cell, host: str) -> None:
    works(cell, "tcp", SHARED[0], "80", request(host).hex())


def test_one_dot_at_the_end_means_nothing(cell: Cell) -> None:
    works(cell, "tcp", SHARED[0], "443", hello(b"allowed.example.").hex())
    works(cell, "look", "allowed.example.")


@pytest.mark.parametrize(
    "host",
    [
        "allowed.example:80:80",
        "allowed.example:x",
        "allowed.example, neighbour.example",
        "[allowed.example]",
        "http://allowed.example",
        "allowed.example#",
    ],
)
def test_hosts_that_are_none(net: Internet, cell: Cell, host: str) -> None:
    stopped(net, cell, SHARED[0], "tcp", SHARED[0], "80", request(host).hex())


@pytest.mark.parametrize(
    ("rule", "name", "is_let"),
    [
        ("*.allowed.example", "sub.allowed.example", True),
        ("*.allowed.example", "deep.sub.allowed.example", True),
        ("*.allowed.example", "allowed.example", False),
        ("*.allowed.example", "notallowed.example", False),
        ("Allowed.Example.", "allowed.example", True),
        ("b\u00fccher.example", "xn--bcher-kva.example", True),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", True),
        ("allowed.example:443", "allowed.example", True),
        ("allowed.example:80", "allowed.example", False),
    ],
)
def test_rules(host: Host, cells: Cells, rule: str, name: str, is_let: bool) -> None:
    cell = cells(policy(f"allow {rule}"))
    script = f"curl -sSf --max-time 30 https://{name}/hello"
    assert host.sh(script).code == 0
    done = cell.sh(script)
    assert (done.code == 0) == is_let, done.stderr


def test_rules_that_overlap(cells: Cells) -> None:
    cell = cells(policy("deny sub.allowed.example", "allow *.allowed.example"))
    assert cell.sh("curl -sSf --max-time 30 https://deep.sub.allowed.example/hello").code == 0
    assert cell.sh("curl -sSf --max-time 30 https://sub.allowed.example/hello").code != 0
    cell = cells(policy("allow *.allowed.example", "deny sub.allowed.example"))
    assert cell.sh("curl -sSf --max-time 30 https://sub.allowed.example/hello").code == 0


@pytest.mark.parametrize("second", ["neighbour.example", "other.example", "", "allowed.example@x"])
def test_a_later_request_is_judged_too(net: Internet, cell: Cell, second: str) -> None:
    first = request("allowed.example").hex()
    mark = net.mark()
    found = attempt(cell, "two", SHARED[0], "80", first, request(second).hex())
    assert found["outcome"] == "refused", found
    assert " 200 " in found["answers"][0]
    assert [event["host"] for event in net.events(mark, "http")] == ["allowed.example"]
    found = attempt(cell, "two", SHARED[0], "80", first, first)
    assert " 200 " in found["answers"][1], found


def test_a_request_hidden_in_a_body(net: Internet, cell: Cell) -> None:
    """What one side calls a body, the other might call a request."""
    inner = request("neighbour.example").decode()
    rows = (
        (f"Content-Length: {len(inner)}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: x, chunked", f"Content-Length: {len(inner)}"),
        ("Content-Length: 0", f"Content-Length: {len(inner)}"),
        ("Content-Length: +0",),
    )
    for lines in rows:
        mark = net.mark()
        said = request("allowed.example", "/hello", *lines, method="POST") + b"0\r\n\r\n"
        attempt(cell, "tcp", SHARED[0], "80", (said + inner.encode()).hex())
        net.settle()
        assert not net.events(mark, "http", host="neighbour.example"), lines


def test_an_upgrade_to_http2_hides_nothing(net: Internet, host: Host, cell: Cell) -> None:
    said = request("allowed.example", "/hello", *UPGRADE).hex()
    mark = net.mark()
    assert " 101 " in works(host, "tcp", SHARED[0], "80", said)["answer"]
    assert net.events(mark, "upgrade")
    mark = net.mark()
    attempt(cell, "tcp", SHARED[0], "80", said)
    net.settle()
    assert not net.events(mark, "upgrade")


def test_whoever_waits_is_judged_when_they_speak(net: Internet, host: Host, cells: Cells) -> None:
    cell = cells(policy("deny neighbour.example", default="allow"))
    works(cell, "look", "allowed.example")
    for port, said in (("443", hello(b"neighbour.example")), ("80", request("neighbour.example"))):
        works(host, "late", SHARED[0], port, said.hex())
        mark = net.mark()
        assert attempt(cell, "late", SHARED[0], port, said.hex())["outcome"] == "refused"
        net.settle()
        assert not net.events(mark, "http", host="neighbour.example")
        good = hello(b"allowed.example") if port == "443" else request("allowed.example")
        works(cell, "late", SHARED[0], port, good.hex())


REFUSED_EVERYWHERE = {
    "its name in TLS": (443, hello(b"other.example")),
    "its name in HTTP": (80, request("other.example")),
    "a hidden name": (443, hello(b"allowed.example", has_ech=True)),
    "HTTP/2 in the clear": (80, H2_PREFACE),
    **HIDDEN,
}


@pytest.mark.parametrize("how", REFUSED_EVERYWHERE)
def test_a_refused_name_is_refused_at_every_address(
    net: Internet, host: Host, cells: Cells, how: str
) -> None:
    """Whoever says nothing may go there, so a connection may be made; what is said stays here."""
    port, said = REFUSED_EVERYWHERE[how]
    to = atlas.BLIND[0]
    cell = cells(policy("deny other.example", default="allow"))
    mark = net.mark()
    works(host, "tcp", to, str(port), said.hex())
    assert net.events(mark, "blind", said=said.decode("latin-1"))
    mark = net.mark()
    fails(cell, "tcp", to, str(port), said.hex())
    net.settle()
    assert not [event for event in net.events(mark, "blind") if event["said"]]
    works(cell, "tcp", to, "443", hello(b"allowed.example").hex())
    works(cell, "tcp", to, "5432", OPAQUE.hex())


def test_where_nothing_is_refused_names_may_hide(open_cell: Cell) -> None:
    to = atlas.BLIND[0]
    works(open_cell, "tcp", to, "443", hello(b"allowed.example", has_ech=True).hex())
    works(open_cell, "tcp", to, "80", H2_PREFACE.hex())
    works(open_cell, "tcp", to, "22", b"SSH-2.0-x\r\n".hex())


def test_within_tls_only_the_server_of_the_name_hears(net: Internet, cell: Cell) -> None:
    """Nobody looks into TLS: another name there goes to the allowed name's server, which has to
    refuse it."""
    said = request("neighbour.example").hex()
    mark = net.mark()
    found = works(cell, "tls", SHARED[0], "443", "allowed.example", said)
    assert " 421 " in found["answer"]
    (heard,) = net.events(mark, "http", host="neighbour.example")
    assert (heard["sni"], heard["local"]) == ("allowed.example", SHARED[0])


RELAY = """
import contextlib, socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for one in (a, b):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
door = socket.create_server(("127.0.0.1", 9100))
open(sys.argv[1], "w").close()
while True:
    inner, _ = door.accept()
    outer = socket.create_connection((sys.argv[2], int(sys.argv[3])))
    for pair in ((inner, outer), (outer, inner)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def test_a_relay_inside_changes_nothing(net: Internet, cell: Cell) -> None:
    cell.put("relay.py", RELAY)
    to = atlas.BLIND[0]
    cell.start(f"/usr/bin/python3 $NET/relay.py $NET/made {to} 443")
    assert cell.sh("until [ -e $NET/made ]; do :; done").code == 0
    mark = net.mark()
    found = attempt(cell, "tcp", "127.0.0.1", "9100", hello(b"allowed.example").hex())
    assert found["outcome"] == "refused", found
    assert not net.packets(mark, to)


def test_ports_without_names_take_a_rule_about_the_port(net: Internet, cells: Cells) -> None:
    to, port = atlas.ECHO[0], str(atlas.ECHO_PORT)
    cell = cells(policy("allow echo.example"))
    works(cell, "look", "echo.example")
    stopped(net, cell, to, "tcp", to, port, OPAQUE.hex())
    cell = cells(policy(f"allow echo.example:{port}", f"allow echo.example:{atlas.GREETING_PORT}"))
    works(cell, "look", "echo.example")
    works(cell, "tcp", to, port, OPAQUE.hex())
    found = works(cell, "tcp", to, str(atlas.GREETING_PORT))
    assert found["answer"].encode() == atlas.GREETING
