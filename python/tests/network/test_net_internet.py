"""The small internet itself, as its host sees it: what each other test takes for granted."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from network import atlas
from network.claims import nonce, works
from network.forge import H2_PREFACE, hello, request
from network.internet import Internet, internet
from network.places import Host
from network.routine import ROUTINE


@pytest.mark.parametrize("name", ROUTINE)
def test_programs_reach_it(host: Host, name: str) -> None:
    done = host.sh(ROUTINE[name].script)
    assert done.code == 0, done.stderr
    assert ROUTINE[name].expected in done.stdout


@pytest.mark.parametrize("address", atlas.EVERYWHERE)
def test_everybody_answers(host: Host, address: str) -> None:
    port = atlas.ECHO_PORT if address in atlas.ECHO else atlas.TLS_PORT
    works(host, "tcp", address, str(port), hello(b"a.example").hex())


def test_every_way_that_attacks_take(host: Host, net: Internet) -> None:
    shared, blind, echo = atlas.SHARED[0], atlas.BLIND[0], atlas.ECHO[0]
    mark = net.mark()
    assert "220" in works(host, "tcp", echo, str(atlas.GREETING_PORT))["answer"]
    works(host, "late", echo, "7", b"x".hex())
    works(host, "two", shared, "80", request("a.example").hex(), request("b.example").hex())
    works(host, "tcp", shared, "80", H2_PREFACE.hex())
    works(host, "tls", shared, "443", "other.example", request("other.example").hex())
    works(host, "udp", echo, "443", b"x".hex())
    works(host, "udp", atlas.ECHO[1], "443", b"x".hex())
    works(host, "ping", shared)
    works(host, "ping", atlas.SHARED[1])
    works(host, "websocket", "allowed.example", str(atlas.WS_PORT), "/")
    works(host, "events", "allowed.example", nonce())
    works(host, "tcp", blind, "443", hello(b"x\0.example", has_ech=True, pieces=3).hex())
    said = net.events(mark, "blind", local=blind)
    assert "x\0.example" in said[0]["said"]
    seen = {packet["protocol"] for packet in net.packets(mark)}
    assert seen == {"tcp", "udp", "icmp", "icmp6"}


@pytest.mark.parametrize("by", ["udp", "tcp", "dot"])
def test_its_resolvers(host: Host, by: str) -> None:
    found = works(host, "ask", "allowed.example", "A", atlas.PUBLIC_DNS[0], by)
    assert found["values"] == [atlas.SHARED[0]]
    found = works(host, "ask", "alias.example", "AAAA", atlas.PUBLIC_DNS[1], by)
    assert found["values"] == [atlas.SHARED[1]]
    assert works(host, "ask", "nobody.example", "A", atlas.PUBLIC_DNS[0], by)["code"] == 3


def test_a_name_that_moves(host: Host) -> None:
    name = nonce() + atlas.REBINDING
    assert works(host, "look", name)["values"] == sorted(atlas.BLIND)
    assert atlas.METADATA[0] in works(host, "look", name)["values"]


def test_nothing_of_it_is_left_behind() -> None:
    links = Path("/sys/class/net")
    before = {link.name for link in links.iterdir()}
    with tempfile.TemporaryDirectory() as folder, internet(Path(folder)) as made:
        pids = [made.host.pid, made.world.pid, *(one.process.pid for one in made.servers)]
        assert {link.name for link in links.iterdir()} == before
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, check=True)
    assert listed.stdout == b""
