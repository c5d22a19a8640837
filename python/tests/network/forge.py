"""Beginnings of connections that say what no honest client would."""

from __future__ import annotations

import ssl
import struct

SNI, ECH = 0x0000, 0xFE0D
HANDSHAKE, CLIENT_HELLO = 22, 1
H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"


def _greeting() -> bytes:
    """The ClientHello of a real client, without its frames: OpenSSL's, for any name."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    come, gone = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(come, gone, server_hostname="placeholder.example")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return gone.read()[9:]


def _extensions(body: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """What stands before the extensions, and they."""
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack("!H", body[at : at + 2])[0]
    at += 1 + body[at]
    head, rest, found = body[:at], body[at + 2 :], []
    while rest:
        kind, length = struct.unpack("!HH", rest[:4])
        found.append((kind, rest[4 : 4 + length]))
        rest = rest[4 + length :]
    return head, found


def server_name(*names: bytes) -> bytes:
    """The extension with these names."""
    entries = b"".join(b"\0" + struct.pack("!H", len(name)) + name for name in names)
    return struct.pack("!H", len(entries)) + entries


def hello(*names: bytes, has_ech: bool = False, pieces: int = 1) -> bytes:
    """A greeting for these names, in as many records."""
    head, found = _extensions(_greeting())
    others = [(kind, data) for kind, data in found if kind not in (SNI, ECH)]
    first = [(SNI, server_name(*names))] if names else []
    # An outer greeting: suite, configuration, key and payload are for a server that has the key.
    ech = [(ECH, b"\0\0\x01\0\x01\x2a\0\x20" + bytes(32) + b"\0\x40" + bytes(64))]
    every = [*first, *others, *(ech if has_ech else [])]
    packed = b"".join(struct.pack("!HH", kind, len(data)) + data for kind, data in every)
    body = head + struct.pack("!H", len(packed)) + packed
    message = bytes([CLIENT_HELLO]) + len(body).to_bytes(3, "big") + body
    size = -(-len(message) // pieces)
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(part)) + part for part in parts)


def request(host: str, path: str = "/hello", *lines: str, method: str = "GET") -> bytes:
    """A request of HTTP/1.1; the path may be another target."""
    every = [f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]
    return "\r\n".join(every).encode("latin-1")
