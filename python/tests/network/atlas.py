"""Who has which address in the internet of these tests, and what its resolver knows."""

from __future__ import annotations

# The host that runs the server: one address of the internet, one of its own network, and IPv6.
HOST = "93.184.0.2"
HOST_LAN = "10.77.0.2"
HOST_V6 = "2606:2800:220::2"
HOST_LINK = "fe80::a"
HOST_ADDRESSES = (HOST, HOST_LAN, HOST_V6)
# A service on the host that listens on all of its addresses.
HOST_PORT = 8000

# Its neighbour on the wire, which is the whole internet.
GATEWAY = "93.184.0.1"
GATEWAY_LAN = "10.77.0.1"
GATEWAY_V6 = "2606:2800:220::1"
GATEWAY_LINK = "fe80::1"

# The resolver that the host is told of; like many, it is in the host's own network.
RESOLVER = GATEWAY_LAN

V4 = "93.184.1."
V6 = "2606:2800:220:1::"

# Two names share this one.
SHARED = (f"{V4}10", f"{V6}10")
SUB = (f"{V4}11", f"{V6}11")
OTHER = (f"{V4}20", f"{V6}20")
SUFFIX = (f"{V4}21", f"{V6}21")
# Listens on many ports and answers whatever is said, without reading it.
BLIND = (f"{V4}30", f"{V6}30")
GIT = (f"{V4}40", f"{V6}40")
PACKAGES = (f"{V4}50", f"{V6}50")
ECHO = (f"{V4}70", f"{V6}70")
ONLY_V6 = (f"{V6}80",)
# A resolver for everybody, by UDP, TCP, TLS and HTTPS.
PUBLIC_DNS = ("8.8.8.8", "2001:4860:4860::8888")

METADATA = (
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "fd00:ec2::254",
)
PRIVATE = (
    "10.0.0.5",
    "172.16.5.5",
    "192.168.7.7",
    "100.64.3.3",
    "169.254.9.9",
    "198.18.0.7",
    "fd12:3456::7",
)
# IPv6 addresses that carry an IPv4 one: NAT64, NAT64 of a network's own, 6to4.
CARRIED = (
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::a00:5",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2002:a00:5::1",
)
CARRIED_PUBLIC = "64:ff9b::5db8:11e"

# What serves HTTP, TLS and WebSockets.
WEB = (
    *SHARED,
    *SUB,
    *OTHER,
    *SUFFIX,
    *GIT,
    *PACKAGES,
    *ONLY_V6,
    *METADATA,
    *PRIVATE,
    *CARRIED,
    CARRIED_PUBLIC,
    GATEWAY,
    GATEWAY_LAN,
    GATEWAY_V6,
)
HTTP_PORT = 80
TLS_PORT = 443
WS_PORT = 8080

BLIND_PORTS = (22, 80, 443, 853, 5432)

# A client speaks first at one of them, the server at the other.
ECHO_PORT = 7
GREETING_PORT = 2525
GREETING = b"220 welcome\r\n"
ECHO_UDP_PORTS = (7, 123, 443, 53)

SSH_PORT = 22
DNS_PORT = 53
DOT_PORT = 853

EVERYWHERE = tuple(dict.fromkeys((*WEB, *BLIND, *ECHO, *PUBLIC_DNS)))
ON_LINK = (GATEWAY, GATEWAY_LAN, GATEWAY_V6)

TTL_S = 5


def _both(addresses: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("AAAA" if ":" in address else "A", address) for address in addresses]


Records = list[tuple[str, str]]

# Names of one address each, whatever it is, are made by `named`.
ZONE: dict[str, Records] = {
    "allowed.example": [*_both(SHARED), ("TXT", '"a text"')],
    "neighbour.example": _both(SHARED),
    "sub.allowed.example": _both(SUB),
    "deep.sub.allowed.example": _both(SUB),
    "other.example": _both(OTHER),
    "notallowed.example": _both(SUFFIX),
    "blind.example": _both(BLIND),
    "git.example": _both(GIT),
    "packages.example": _both(PACKAGES),
    "echo.example": _both(ECHO),
    "six.example": _both(ONLY_V6),
    "dns.example": _both(PUBLIC_DNS),
    # The long way round.
    "alias.example": [("CNAME", "chain.example.")],
    "chain.example": [("CNAME", "end.example.")],
    "end.example": _both(SHARED),
    "loop.example": [("CNAME", "pool.example.")],
    "pool.example": [("CNAME", "loop.example.")],
    # Names that lead where nobody should go.
    "metadata.example": _both((METADATA[0], METADATA[-1])),
    "to-metadata.example": [("CNAME", "metadata.example.")],
    "lan.example": _both((PRIVATE[0], PRIVATE[-1])),
    "mixed.example": _both((PRIVATE[0], *SHARED)),
    "loopback.example": _both(("127.0.0.1", "::1")),
    "zero.example": _both(("0.0.0.0",)),
    "host.example": _both((HOST, HOST_V6)),
    "xn--bcher-kva.example": _both(OTHER),
}

# Below this name the first answer is of the internet, and each later one is not.
REBINDING = ".rebind.example"
REBOUND_TO = {"A": METADATA[0], "AAAA": METADATA[-1]}
# Below this name everything exists, so that whoever asks can say anything.
TUNNEL = ".tunnel.example"
