"""What a program does with a network: connect and hear a byte, read much, hold connections.

`client.py HOST PORT ROUNDS STREAMS STREAM_BYTES HELD` tells the server what it measured, so that it
is started in the same way wherever it runs.
"""

import json
import resource
import socket
import sys
import time
from typing import Any

# What a connection is for, as its first eight bytes: so many bytes are wanted, or one of these.
RESULTS, HELD = 2**64 - 1, 2**64 - 2
PIECE = bytearray(1 << 20)


def connect(wanted: int) -> socket.socket:
    """A connection that says what it is for."""
    made = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
    made.sendall(wanted.to_bytes(8, "big"))
    return made


def read(wanted: int) -> float:
    """Seconds from the connect to the last byte."""
    started = time.perf_counter()
    with connect(wanted) as made:
        left = wanted
        while left:
            took = made.recv_into(PIECE, min(left, len(PIECE)))
            if not took:
                raise ConnectionError("the stream ended early")
            left -= took
    return time.perf_counter() - started


def main() -> None:
    """Measures, tells, and holds what it is to hold until it was looked at."""
    rounds, streams, stream_bytes, held = (int(word) for word in sys.argv[3:])
    found: dict[str, Any] = {
        "ms": [read(1) * 1000 for _ in range(rounds)],
        "mib_s": [stream_bytes / (1 << 20) / read(stream_bytes) for _ in range(streams)],
    }
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kept = [connect(HELD) for _ in range(held)]
    with connect(RESULTS) as told:
        told.sendall(json.dumps(found).encode())
        told.shutdown(socket.SHUT_WR)
        # Until the server has looked at what is held.
        told.recv(1)
    for one in kept:
        one.close()


main()
