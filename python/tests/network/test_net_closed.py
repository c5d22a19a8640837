"""What no sandbox reaches without a rule about its address: metadata (D1), networks that are not
the internet, the host and other sandboxes (D2), in IPv4, IPv6 and whatever carries one in the
other (B118)."""

from __future__ import annotations

import pytest

from conformance.world import Lifecycle
from network import atlas
from network.claims import defended, fails, nonce, policy, stopped, works
from network.forge import hello, request
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, Host, attempt

CLOSED = (*atlas.METADATA, *atlas.PRIVATE, *atlas.CARRIED, atlas.GATEWAY_LAN)
# What has an answer on the host: services listen there on all addresses.
LOOPBACK = ("127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1")
# What nobody has.
NOWHERE = ("0.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "ff02::1%lo", "fe80::1%lo")
# No protocol that anybody looks into; a server of HTTP refuses it in words.
GARBAGE = b"x y z\r\n\r\n".hex()


@pytest.mark.parametrize("address", CLOSED)
def test_by_address(net: Internet, host: Host, open_cell: Cell, address: str) -> None:
    written = f"[{address}]" if ":" in address else address
    said = request(written, "/latest/meta-data").hex()
    defended(net, host, open_cell, address, "tcp", address, "80", said)
    said = hello(b"allowed.example").hex()
    defended(net, host, open_cell, address, "tcp", address, "443", said)


@pytest.mark.parametrize("address", CLOSED)
def test_under_a_name_of_the_internet(
    net: Internet, host: Host, open_cell: Cell, address: str
) -> None:
    works(open_cell, "look", "allowed.example")
    said = request("allowed.example").hex()
    defended(net, host, open_cell, address, "tcp", address, "80", said)


@pytest.mark.parametrize("address", [it for it in CLOSED if ":" not in it])
def test_written_as_ipv6(net: Internet, host: Host, open_cell: Cell, address: str) -> None:
    said = hello(b"allowed.example").hex()
    defended(net, host, open_cell, address, "tcp", f"::ffff:{address}", "443", said)


@pytest.mark.parametrize(
    "written", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"]
)
def test_metadata_written_in_other_ways(
    net: Internet, host: Host, open_cell: Cell, written: str
) -> None:
    said = request(written, "/latest").hex()
    defended(net, host, open_cell, atlas.METADATA[0], "tcp", written, "80", said)


@pytest.mark.parametrize("name", ["metadata.example", "to-metadata.example", "lan.example"])
def test_by_name(net: Internet, host: Host, open_cell: Cell, name: str) -> None:
    closed = works(host, "look", name)["values"]
    said = request(name).hex()
    works(host, "tcp", name, "80", said)
    mark = net.mark()
    fails(open_cell, "look", name)
    fails(open_cell, "tcp", name, "80", said)
    assert not net.packets(mark, *closed)


@pytest.mark.parametrize("name", ["loopback.example", "zero.example"])
def test_a_name_of_nowhere(host: Host, open_cell: Cell, name: str) -> None:
    works(host, "look", name)
    fails(open_cell, "look", name)


def test_of_a_mixed_answer_only_the_internet_is_left(host: Host, open_cell: Cell) -> None:
    assert atlas.PRIVATE[0] in works(host, "look", "mixed.example")["values"]
    assert works(open_cell, "look", "mixed.example")["values"] == sorted(atlas.SHARED)


def test_by_redirect(net: Internet, host: Host, open_cell: Cell) -> None:
    for target in ("http://169.254.169.254/latest", "http://metadata.example/latest"):
        script = f"curl -sS -f -L --max-time 30 'http://other.example/to/{target}'"
        done = host.sh(script)
        assert (done.code, '"/latest"' in done.stdout) == (0, True), done.stderr
        mark = net.mark()
        assert open_cell.sh(script).code != 0
        assert net.events(mark, "http", host="other.example"), "the first step is allowed"
        assert not net.packets(mark, *atlas.METADATA)


@pytest.mark.parametrize("port", ["service", "server"])
@pytest.mark.parametrize("address", [*atlas.HOST_ADDRESSES, "::ffff:93.184.0.2", *LOOPBACK])
def test_the_host(
    lifecycle: Lifecycle, net: Internet, host: Host, open_cell: Cell, address: str, port: str
) -> None:
    own = lifecycle.server.domain.rpartition(":")[2]
    number = own if port == "server" else str(atlas.HOST_PORT)
    works(host, "tcp", address, number, GARBAGE)
    mark = net.mark()
    fails(open_cell, "tcp", address, number, GARBAGE)
    assert not net.events(mark, "blind")


@pytest.mark.parametrize("target", ["0.0.0.0/0", "::/0", "93.184.0.0/16", "*", "host.example"])
def test_the_host_is_not_opened_by_what_it_is_in(
    net: Internet, host: Host, cells: Cells, target: str
) -> None:
    cell = cells(policy(f"allow {target}"))
    for address in atlas.HOST_ADDRESSES:
        works(host, "tcp", address, str(atlas.HOST_PORT), GARBAGE)
        mark = net.mark()
        fails(cell, "tcp", address, str(atlas.HOST_PORT), GARBAGE)
        fails(cell, "tcp", "host.example", str(atlas.HOST_PORT), request("host.example").hex())
        assert not net.events(mark, "blind")


@pytest.mark.parametrize("address", atlas.HOST_ADDRESSES)
def test_the_host_opens_by_a_rule_about_that_address(cells: Cells, address: str) -> None:
    works(cells(policy(f"allow {address}")), "tcp", address, str(atlas.HOST_PORT), GARBAGE)


@pytest.mark.parametrize("address", NOWHERE)
def test_nowhere(net: Internet, open_cell: Cell, address: str) -> None:
    stopped(net, open_cell, address.partition("%")[0], "tcp", address, "80", GARBAGE)


def test_another_sandbox(cells: Cells) -> None:
    server, client = cells(), cells()
    word = nonce()
    server.put("index.html", word)
    server.start("cd $NET && exec /usr/bin/python3 -m http.server --bind :: 9000")
    fetch = "curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://[{}]:9000/"
    assert server.sh(fetch.format("::1")).stdout == word
    addresses = server.sh("hostname -I; echo 127.0.0.1 ::1 192.0.0.53").stdout.split()
    for address in addresses:
        found = attempt(client, "tcp", address, "9000", request(address, "/").hex())
        assert found["outcome"] == "refused", found


@pytest.mark.parametrize(
    ("target", "address", "neighbour"),
    [
        ("10.0.0.0/8", atlas.PRIVATE[0], atlas.PRIVATE[1]),
        ("10.0.0.5", atlas.PRIVATE[0], atlas.GATEWAY_LAN),
        ("fd12:3456::/32", atlas.PRIVATE[-1], atlas.METADATA[-1]),
        (atlas.METADATA[0], atlas.METADATA[0], atlas.METADATA[1]),
        ("169.254.0.0/16", "169.254.9.9", atlas.METADATA[0]),
        ("10.0.0.5:80", atlas.PRIVATE[0], atlas.PRIVATE[1]),
    ],
)
def test_a_rule_opens_what_it_says_and_no_more(
    net: Internet, cells: Cells, target: str, address: str, neighbour: str
) -> None:
    cell = cells(policy(f"allow {target}"))
    works(cell, "tcp", address, "80", GARBAGE)
    stopped(net, cell, neighbour, "tcp", neighbour, "80", GARBAGE)
    if target.endswith(":80"):
        stopped(net, cell, address, "tcp", address, "443", hello(b"x.example").hex())


def test_what_has_only_ipv6_follows_its_rule(net: Internet, host: Host, cells: Cells) -> None:
    said = hello(b"six.example").hex()
    to = atlas.ONLY_V6[0]
    works(cells(policy("allow six.example")), "tcp", "six.example", "443", said)
    defended(net, host, cells(policy()), to, "tcp", to, "443", said)
    defended(net, host, cells(policy()), to, "tcp", "six.example", "443", said)
    closed = cells(policy("deny six.example", default="allow"))
    defended(net, host, closed, to, "tcp", "six.example", "443", said)


@pytest.mark.parametrize("address", [*atlas.OTHER, atlas.CARRIED_PUBLIC, *atlas.PUBLIC_DNS])
def test_deny_all(net: Internet, host: Host, cells: Cells, address: str) -> None:
    said = hello(b"other.example").hex()
    for rules in ((), ("allow allowed.example",)):
        defended(net, host, cells(policy(*rules)), address, "tcp", address, "443", said)


def test_loopback_of_its_own_stays(cells: Cells) -> None:
    cell = cells(policy())
    cell.start("cd $NET && exec /usr/bin/python3 -m http.server --bind :: 9000")
    for address in ("127.0.0.1", "[::1]", "localhost"):
        script = "curl -sSf -o /dev/null --retry 20 --retry-connrefused --retry-delay 1"
        done = cell.sh(f"{script} http://{address}:9000/")
        assert done.code == 0, done.stderr
