"""Questions to the DNS: nothing leaks by them (D7, B112), and no answer opens what is closed
(D4)."""

from __future__ import annotations

import pytest

from network import atlas
from network.claims import fails, nonce, policy, stopped, works
from network.forge import hello, request
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, Host, attempt

# What a sandbox is told to ask; where that goes only the guard knows.
OWN = "192.0.0.53"
NO_SUCH_NAME, REFUSED = 3, 5
SERVERS = (OWN, atlas.RESOLVER, *atlas.PUBLIC_DNS)


def leaks(net: Internet, mark: int, word: str) -> list[str]:
    """Questions with this word in them that somebody outside was asked."""
    return [event["name"] for event in net.events(mark, "dns") if word in event["name"]]


def test_the_resolver_is_one_of_the_sandbox(open_cell: Cell) -> None:
    assert f"nameserver {OWN}" in open_cell.sh("cat /etc/resolv.conf").stdout
    for name in ("allowed.example", "ALLOWED.example", "alias.example"):
        assert works(open_cell, "look", name)["values"] == sorted(atlas.SHARED)
    for by in ("udp", "tcp"):
        found = works(open_cell, "ask", "allowed.example", "TXT", OWN, by)
        assert found["values"] == ["a text"]


@pytest.mark.parametrize("rules", [(), ("allow allowed.example",)])
def test_by_the_library_nothing_leaves(
    net: Internet, host: Host, cells: Cells, rules: tuple[str, ...]
) -> None:
    cell, word = cells(policy(*rules)), nonce()
    mark = net.mark()
    works(host, "look", f"{word}{atlas.TUNNEL}")
    assert leaks(net, mark, word)
    mark = net.mark()
    fails(cell, "look", f"{word}{atlas.TUNNEL}")
    fails(cell, "look", f"{word}.allowed.example")
    assert not net.packets(mark)


KINDS = ("A", "AAAA", "TXT", "NULL", "MX", "CNAME", "SRV", "ANY", "HTTPS")


@pytest.mark.parametrize("by", ["udp", "tcp"])
@pytest.mark.parametrize("server", SERVERS)
def test_past_the_library_nothing_leaves(
    net: Internet, host: Host, cells: Cells, server: str, by: str
) -> None:
    cell = cells(policy())
    for kind in KINDS:
        word = nonce()
        name = f"{word}{atlas.TUNNEL}"
        mark = net.mark()
        if server != OWN:
            works(host, "ask", name, kind, server, by)
            assert leaks(net, mark, word)
        mark = net.mark()
        found = attempt(cell, "ask", name, kind, server, by)
        assert found["outcome"] != "silent", found
        assert found.get("code") in (NO_SUCH_NAME, REFUSED, None), found
        assert not found.get("values")
        assert not net.packets(mark)
        assert not leaks(net, mark, word)


@pytest.mark.parametrize("server", atlas.PUBLIC_DNS)
def test_by_tls_and_https_nothing_leaves(
    net: Internet, host: Host, cells: Cells, server: str
) -> None:
    word = nonce()
    works(host, "ask", f"{word}{atlas.TUNNEL}", "TXT", server, "dot")
    cell = cells(policy("allow allowed.example"))
    stopped(net, cell, server, "ask", f"{word}{atlas.TUNNEL}", "TXT", server, "dot")
    said = request("dns.example", f"/dns-query?dns={word}").hex()
    works(host, "tls", server, "443", "dns.example", said)
    for name in ("dns.example", "allowed.example", "-"):
        stopped(net, cell, server, "tls", server, "443", name, said)


def test_dns_by_tls_takes_a_rule(net: Internet, cells: Cells, open_cell: Cell) -> None:
    server = atlas.PUBLIC_DNS[0]
    words = ("ask", "allowed.example", "A", server, "dot")
    stopped(net, open_cell, server, *words)
    assert works(cells(policy(f"allow {server}")), *words)["values"] == [atlas.SHARED[0]]


def test_names_that_may_be_reached_go_out_plainly(net: Internet, cells: Cells) -> None:
    """The spelling of a question would carry a bit for each letter."""
    cell = cells(policy("allow allowed.example"))
    mark = net.mark()
    works(cell, "ask", "aLlOwEd.eXaMpLe", "A", OWN)
    (asked,) = net.events(mark, "dns", name="allowed.example")
    assert (asked["written"], asked["at"]) == ("allowed.example", atlas.RESOLVER)


@pytest.mark.parametrize("server", [atlas.RESOLVER, *atlas.PUBLIC_DNS])
def test_every_resolver_is_the_own_one(net: Internet, cells: Cells, server: str) -> None:
    cell = cells(policy("allow allowed.example"))
    for by in ("udp", "tcp"):
        mark = net.mark()
        found = works(cell, "ask", "allowed.example", "A", server, by)
        assert found["values"] == [atlas.SHARED[0]]
        assert {event["at"] for event in net.events(mark, "dns")} == {atlas.RESOLVER}


def test_keys_that_hide_names_are_not_handed_in(net: Internet, open_cell: Cell) -> None:
    mark = net.mark()
    found = works(open_cell, "ask", "allowed.example", "HTTPS", OWN)
    assert found["values"] == []
    assert not net.events(mark, "dns", type="HTTPS")


@pytest.mark.parametrize("rules", [None, ("allow *.rebind.example",)])
def test_a_name_that_moves(
    net: Internet, host: Host, cells: Cells, rules: tuple[str, ...] | None
) -> None:
    cell = cells() if rules is None else cells(policy(*rules))
    name, other = (nonce() + atlas.REBINDING for _ in range(2))
    said = request(name).hex()
    works(host, "look", other)
    works(host, "tcp", other, "80", said)
    mark = net.mark()
    assert works(cell, "look", name)["values"] == sorted(atlas.BLIND)
    fails(cell, "look", name)
    fails(cell, "tcp", name, "80", said)
    for address in (atlas.METADATA[0], atlas.METADATA[-1]):
        fails(cell, "tcp", address, "80", said)
        fails(cell, "tcp", address, "443", hello(name.encode()).hex())
    assert not net.packets(mark, *atlas.METADATA)


def test_a_rule_about_a_name_opens_no_private_answer(net: Internet, cells: Cells) -> None:
    cell = cells(policy("allow lan.example", "allow metadata.example"))
    for name in ("lan.example", "metadata.example"):
        fails(cell, "look", name)
    for address in (atlas.PRIVATE[0], atlas.METADATA[0]):
        stopped(net, cell, address, "tcp", address, "80", request("lan.example").hex())


def test_a_rule_about_an_address_lets_its_answers_in(cells: Cells) -> None:
    cell = cells(policy("allow lan.example", "allow 10.0.0.5"))
    assert works(cell, "look", "lan.example")["values"] == [atlas.PRIVATE[0]]
    works(cell, "tcp", "lan.example", "80", request("lan.example").hex())


def test_chains_end(cells: Cells) -> None:
    cell = cells(policy("allow loop.example", "allow alias.example"))
    fails(cell, "look", "loop.example")
    assert works(cell, "look", "alias.example")["values"] == sorted(atlas.SHARED)
    works(cell, "tcp", "alias.example", "443", hello(b"alias.example").hex())


@pytest.mark.parametrize("text", ["", "00", "ff" * 40, "1234" + "01000001000000000000" + "ff"])
def test_what_is_no_question_hurts_nobody(open_cell: Cell, text: str) -> None:
    attempt(open_cell, "tcp", OWN, "53", text, "1")
    attempt(open_cell, "udp", OWN, "53", text, "1")
    works(open_cell, "look", "allowed.example")
