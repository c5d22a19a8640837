"""What an attacker does, with nothing but the standard library: one attempt, one line of JSON.

Runs inside a sandbox, and for comparison beside the server, with the interpreter of the host. How
an attempt ended is in `outcome`: `answered`, or `refused` in whatever way, or `silent` when nothing
was heard for as long as it waited, which is as bad: a client would hang.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import ssl
import struct
import sys
from typing import Any

# How long an attempt waits for anything at all.
PATIENCE_S = 8.0
# How long one waits that needs to see that nothing comes.
SHORT_S = 2.0
TYPES = {"A": 1, "NS": 2, "CNAME": 5, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28}
TYPES |= {"SRV": 33, "ANY": 255, "HTTPS": 65}
ICMP_ECHO, ICMP6_ECHO = 8, 128

Found = dict[str, Any]


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def ended(error: OSError) -> Found:
    how = "silent" if isinstance(error, TimeoutError) else "refused"
    return {"outcome": how, "error": type(error).__name__, "errno": error.errno}


def heard(answer: bytes) -> Found:
    if not answer:
        return {"outcome": "refused", "error": "closed"}
    # No server of the internet says this: it is what guards us.
    if answer.startswith(b"HTTP/1.1 403 "):
        return {"outcome": "refused", "error": answer.decode("latin-1")}
    return {"outcome": "answered", "answer": answer.decode("latin-1")}


def tcp(address: str, port: str, said: str = "", patience: str = "") -> Found:
    """Says these bytes, given in hexadecimal, and hears what is answered first."""
    try:
        with socket.create_connection((address, int(port)), PATIENCE_S) as it:
            it.settimeout(float(patience) if patience else PATIENCE_S)
            it.sendall(bytes.fromhex(said))
            return heard(it.recv(65536))
    except OSError as error:
        return ended(error)


def late(address: str, port: str, said: str) -> Found:
    """Waits for the server to speak first; says something when it does not."""
    try:
        with socket.create_connection((address, int(port)), PATIENCE_S) as it:
            it.settimeout(SHORT_S)
            with contextlib.suppress(TimeoutError):
                return heard(it.recv(65536))
            it.settimeout(PATIENCE_S)
            it.sendall(bytes.fromhex(said))
            return heard(it.recv(65536))
    except OSError as error:
        return ended(error)


def hold(address: str, port: str) -> Found:
    """A connection that stays until it is cut."""
    try:
        with socket.create_connection((address, int(port)), PATIENCE_S) as it:
            it.sendall(b"\0")
            it.recv(16)
            it.settimeout(10 * PATIENCE_S)
            return heard(it.recv(16))
    except OSError as error:
        return ended(error)


def whole(it: socket.socket) -> str:
    """An answer of HTTP/1.1 with its body; what there is of it where it breaks off."""
    got = b""
    while b"\r\n\r\n" not in got:
        if not (more := it.recv(65536)):
            return got.decode("latin-1")
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    fields = [line.lower().partition(b":") for line in head.split(b"\r\n")]
    length = next((int(value) for name, _, value in fields if name == b"content-length"), 0)
    while len(body) < length and (more := it.recv(65536)):
        body += more
    return (head + b"\r\n\r\n" + body).decode("latin-1")


def two(address: str, port: str, first: str, second: str) -> Found:
    """Two requests on one connection; tells what is answered to each."""
    answers = []
    try:
        with socket.create_connection((address, int(port)), PATIENCE_S) as it:
            it.settimeout(PATIENCE_S)
            for said in (first, second):
                it.sendall(bytes.fromhex(said))
                answers.append(whole(it))
    except OSError as error:
        return {**ended(error), "answers": answers}
    is_refused = not answers[-1] or answers[-1].startswith("HTTP/1.1 403 ")
    return {"outcome": "refused" if is_refused else "answered", "answers": answers}


def tls(address: str, port: str, name: str, said: str, alpn: str = "http/1.1") -> Found:
    """TLS with this name in the greeting; `-` says none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    try:
        with (
            socket.create_connection((address, int(port)), PATIENCE_S) as raw,
            context.wrap_socket(raw, server_hostname=None if name == "-" else name) as it,
        ):
            it.sendall(bytes.fromhex(said))
            return heard(it.recv(65536))
    except OSError as error:
        return ended(error)


def udp(address: str, port: str, said: str, patience: str = "") -> Found:
    try:
        with socket.socket(family(address), socket.SOCK_DGRAM) as it:
            it.settimeout(float(patience) if patience else PATIENCE_S)
            it.connect((address, int(port)))
            it.send(bytes.fromhex(said))
            return heard(it.recv(65536))
    except OSError as error:
        return ended(error)


def ping(address: str) -> Found:
    """An echo request, as an ordinary user may send it or else by a raw socket."""
    six = ":" in address
    protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
    head = struct.pack("!BBHHH", ICMP6_ECHO if six else ICMP_ECHO, 0, 0, 1, 1)
    total = sum(struct.unpack("!4H", head)) & 0xFFFF
    if not six:
        head = struct.pack("!BBHHH", ICMP_ECHO, 0, ~total & 0xFFFF, 1, 1)
    last: Found = {}
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            with socket.socket(family(address), kind, protocol) as it:
                it.settimeout(PATIENCE_S)
                it.connect((address, 0))
                it.send(head)
                return heard(it.recv(65536))
        except PermissionError as error:
            last = ended(error)
        except OSError as error:
            return ended(error)
    return last


def question(name: str, kind: str) -> bytes:
    """A message with one question, as it goes to a resolver."""
    labels = [label.encode("latin-1") for label in name.split(".") if label]
    written = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return (
        struct.pack("!6H", 0x1234, 0x0100, 1, 0, 0, 0)
        + written
        + struct.pack("!2H", TYPES[kind], 1)
    )


def told(answer: bytes) -> Found:
    """The code of an answer, and the addresses and texts in it."""
    _, flags, questions, records = struct.unpack("!4H", answer[:8])
    at, values = 12, []

    def skip(at: int) -> int:
        while (length := answer[at]) and length < 0xC0:
            at += length + 1
        return at + (2 if length else 1)

    for _ in range(questions):
        at = skip(at) + 4
    for _ in range(records):
        at = skip(at)
        kind, _, _, length = struct.unpack("!HHIH", answer[at : at + 10])
        data = answer[at + 10 : at + 10 + length]
        at += 10 + length
        if kind in (1, 28):
            values.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data))
        elif kind == 16:
            values.append(data[1:].decode("latin-1"))
    return {"outcome": "answered", "code": flags & 15, "values": values}


def ask(name: str, kind: str, server: str, by: str = "udp") -> Found:
    """A question to a resolver, past the library's own."""
    said = question(name, kind)
    try:
        if by == "udp":
            with socket.socket(family(server), socket.SOCK_DGRAM) as it:
                it.settimeout(PATIENCE_S)
                it.connect((server, 53))
                it.send(said)
                return told(it.recv(65536))
        with socket.create_connection((server, 853 if by == "dot" else 53), PATIENCE_S) as raw:
            raw.settimeout(PATIENCE_S)
            it = raw
            if by == "dot":
                context = ssl.create_default_context()
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
                it = context.wrap_socket(raw, server_hostname="dns.example")
            with it:
                it.sendall(struct.pack("!H", len(said)) + said)
                answer = it.recv(65536)
                return told(answer[2:]) if answer else heard(answer)
    except OSError as error:
        return ended(error)


def look(name: str) -> Found:
    """What the library says about a name."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return {"outcome": "refused", "error": str(error)}
    return {"outcome": "answered", "values": sorted({str(it[4][0]) for it in found})}


def flood(address: str, port: str, number: str) -> Found:
    """As many connections at once, each of which says something and stays; how many are answered
    and how many refused."""
    made, opened, refused, answered = selectors.DefaultSelector(), [], 0, 0
    for _ in range(int(number)):
        try:
            one = socket.create_connection((address, int(port)), PATIENCE_S)
            one.sendall(b"\0")
            opened.append(one)
            made.register(one, selectors.EVENT_READ)
        except OSError:
            refused += 1
    while made.get_map() and (ready := made.select(PATIENCE_S)):
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            one = key.fileobj
            made.unregister(one)
            try:
                got = one.recv(16)
            except OSError:
                got = b""
            answered, refused = answered + bool(got), refused + (not got)
    silent = len(made.get_map())
    for one in opened:
        one.close()
    return {"outcome": "counted", "answered": answered, "refused": refused, "silent": silent}


def websocket(name: str, port: str, path: str) -> Found:
    """Asks a server for a WebSocket, says `hi` over it, and hears it again."""
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    try:
        with socket.create_connection((name, int(port)), PATIENCE_S) as it:
            it.settimeout(PATIENCE_S)
            it.sendall(head.encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                if not (more := it.recv(65536)):
                    return heard(b"")
                answer += more
            if b" 101 " not in answer.split(b"\r\n")[0]:
                return {"outcome": "refused", "error": answer.decode("latin-1")}
            it.sendall(b"\x81\x82\0\0\0\0hi")
            return heard(it.recv(65536))
    except OSError as error:
        return ended(error)


def events(name: str, word: str) -> Found:
    """Reads a stream of events whose second part comes once the first was acknowledged."""
    try:
        with socket.create_connection((name, 80), PATIENCE_S) as it:
            it.settimeout(PATIENCE_S)
            it.sendall(f"GET /events/{word} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            got = b""
            while b"first" not in got:
                if not (more := it.recv(65536)):
                    return heard(b"")
                got += more
            with socket.create_connection((name, 80), PATIENCE_S) as other:
                other.settimeout(PATIENCE_S)
                other.sendall(f"GET /seen/{word} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
                other.recv(65536)
            while b"second" not in got:
                if not (more := it.recv(65536)):
                    return heard(b"")
                got += more
            return heard(got)
    except OSError as error:
        return ended(error)


WAYS = (tcp, late, hold, two, tls, udp, ping, ask, look, flood, websocket, events)

if __name__ == "__main__":
    way = next(way for way in WAYS if way.__name__ == sys.argv[1])
    sys.stdout.write(json.dumps(way(*sys.argv[2:])) + "\n")
