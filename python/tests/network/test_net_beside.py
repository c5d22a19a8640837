"""Ways beside TCP and the DNS (D8), and against the guard from inside (D10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from network import atlas
from network.claims import defended, fails, nonce, policy, stopped, works
from network.forge import hello
from network.guarded import Cells
from network.internet import Internet
from network.places import Cell, Host, Place, attempt

QUIC = (b"\xc3\0\0\0\x01\x08" + bytes(8) + b"\0\0\x44\x9e" + bytes(1180)).hex()


@pytest.mark.parametrize("port", [7, 123, 443])
@pytest.mark.parametrize("address", atlas.ECHO)
def test_datagrams(net: Internet, host: Host, open_cell: Cell, address: str, port: int) -> None:
    said = QUIC if port == 443 else b"x".hex()
    defended(net, host, open_cell, address, "udp", address, str(port), said)


def test_datagrams_to_an_allowed_address(net: Internet, cells: Cells) -> None:
    cell = cells(policy("allow echo.example", f"allow {atlas.ECHO[0]}"))
    works(cell, "look", "echo.example")
    stopped(net, cell, atlas.ECHO[0], "udp", atlas.ECHO[0], "443", QUIC)


def test_datagrams_to_port_53_are_questions_and_nothing_else(
    net: Internet, host: Host, open_cell: Cell
) -> None:
    said = (b"\x12\x34not a question" + nonce().encode()).hex()
    works(host, "udp", atlas.ECHO[0], "53", said)
    mark = net.mark()
    attempt(open_cell, "udp", atlas.ECHO[0], "53", said, "1")
    assert not net.packets(mark)


@pytest.mark.parametrize("address", [atlas.SHARED[0], atlas.SHARED[1], atlas.METADATA[0]])
def test_ping(net: Internet, host: Host, open_cell: Cell, address: str) -> None:
    defended(net, host, open_cell, address, "ping", address)


# Each is a right over the network; the last ones are ways to a network of one's own.
RIGHTS = """
import ctypes, json, os, socket, struct, subprocess
def raw(family, kind, protocol):
    socket.socket(family, kind, protocol).close()
def option(level, name, value):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as it:
        it.setsockopt(level, name, value)
def netfilter(kind, more=b""):
    # A batch: begin, one request, end.
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as it:
        def part(kind, flags, resource, more=b""):
            head = struct.pack("=IHHII", 20 + len(more), kind, flags, 1, 0)
            return head + struct.pack("!BBH", 1 if more else 0, 0, resource) + more
        it.sendall(part(16, 1, 10) + part(kind, 5, 0, more) + part(17, 1, 10))
        code = struct.unpack("=i", it.recv(65536)[16:20])[0]
        if code:
            raise OSError(-code, os.strerror(-code))
def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(1, done.stderr.strip())
def bind(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as it:
        it.setsockopt(socket.SOL_IP, 19, 1)
        it.bind(("93.184.1.10", port))
ROWS = {
    "raw IPv4": lambda: raw(socket.AF_INET, socket.SOCK_RAW, 255),
    "raw IPv6": lambda: raw(socket.AF_INET6, socket.SOCK_RAW, 255),
    "raw ICMP": lambda: raw(socket.AF_INET, socket.SOCK_RAW, 1),
    "packets": lambda: raw(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)),
    "transparent": lambda: bind(9200),
    "mark": lambda: option(socket.SOL_SOCKET, 36, 7),
    "flush rules": lambda: netfilter(10 << 8 | 2),
    "make rules": lambda: netfilter(10 << 8, struct.pack("=HH4s", 8, 1, b"own")),
    "link down": lambda: run("ip", "link", "set", "lo", "down"),
    "link": lambda: run("ip", "link", "add", "v0", "type", "veth"),
    "route": lambda: run("ip", "route", "flush", "table", "all"),
    "rule": lambda: run("ip", "rule", "add", "from", "all", "lookup", "9"),
    "address": lambda: run("ip", "addr", "add", "169.254.169.254/32", "dev", "lo"),
    "tunnel": lambda: os.close(os.open("/dev/net/tun", os.O_RDWR)),
    "setting": lambda: open("/proc/sys/net/ipv4/ip_forward", "w").write("1"),
    "another network": lambda: run("unshare", "--net", "true"),
}
found = {}
for name, attempt in ROWS.items():
    try:
        attempt()
        found[name] = "done"
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


def rights(place: Place, before: str = "") -> dict[str, Any]:
    done = place.sh(f"{before} /usr/bin/python3 - <<'END'\n{RIGHTS}\nEND")
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_has_no_rights_over_its_network(net: Internet, host: Host, open_cell: Cell) -> None:
    # Beside the server they all work; in a network of its own, which they leave in pieces.
    here = rights(host, "unshare --net")
    assert set(here.values()) == {"done"}, here
    found = rights(open_cell)
    assert not [name for name, told in found.items() if told == "done"], found
    to = atlas.METADATA[0]
    stopped(net, open_cell, to, "tcp", to, "443", hello(b"x.example").hex())
    works(open_cell, "look", "allowed.example")


def test_an_inner_network_leads_nowhere(net: Internet, open_cell: Cell) -> None:
    mark = net.mark()
    probe = f"/usr/bin/python3 $NET/probe.py tcp {atlas.OTHER[0]} 443 00"
    done = open_cell.sh(f"unshare --user --map-root-user --net sh -c 'ip link set lo up; {probe}'")
    assert '"answered"' not in done.stdout
    assert not net.packets(mark)


def test_its_guard_is_nowhere_to_be_seen(open_cell: Cell) -> None:
    found = open_cell.sh("cat /proc/[0-9]*/comm /proc/net/unix; true").stdout
    assert "bash" in found
    assert "egress" not in found


DOORS = """
import socket
for name in ("tcp", "tcp6"):
    for line in open(f"/proc/net/{name}").readlines()[1:]:
        words = line.split()
        port = int(words[1].rpartition(":")[2], 16)
        # One of them is the daemon's, which tells whoever asks that it is no Jupyter server.
        if words[3] == "0A" and port != 44771:
            print(port)
"""


def test_the_guards_door_is_no_way_around_it(net: Internet, open_cell: Cell) -> None:
    """It listens inside: whoever goes to its own port says nowhere else to go."""
    ports = set(open_cell.sh(f"/usr/bin/python3 - <<'END'\n{DOORS}\nEND").stdout.split())
    assert ports
    for port in sorted(ports):
        for address in ("127.0.0.1", "::1", "192.0.0.53", atlas.METADATA[0], "10.0.0.5"):
            mark = net.mark()
            fails(open_cell, "tcp", address, port, hello(b"allowed.example").hex())
            assert not net.packets(mark)
    works(open_cell, "look", "allowed.example")


def test_whoever_listens_on_everything_hears_nothing_of_others(
    net: Internet, open_cell: Cell
) -> None:
    """A listener inside does not stand in for an address of the world."""
    open_cell.start("cd /var/empty 2>/dev/null; exec /usr/bin/python3 -m http.server --bind :: 80")
    up = "curl -sSf -o /dev/null --retry 20 --retry-connrefused --retry-delay 1 http://[::1]/"
    assert open_cell.sh(up).code == 0
    done = open_cell.sh("curl -sSf --max-time 30 http://other.example/hello")
    assert atlas.OTHER[0] in done.stdout or atlas.OTHER[1] in done.stdout
    to = atlas.METADATA[0]
    stopped(net, open_cell, to, "tcp", to, "80", hello(b"x.example").hex())
