"""HTTP answers, cut wherever a network may cut them, and requests that must not break out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barchan._http1 import (
    HEAD_BYTES_MAX,
    LINE_BYTES_MAX,
    AnswerParser,
    Bytes,
    Piece,
    framed,
    request_head,
)
from barchan.errors import ProtocolError, Unreachable

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
    b"3;ext=1\r\nhel\r\n0002\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)
INFORMED = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + PLAIN
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nhello"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"

CASES = [
    (PLAIN, b"hello", True),
    (CHUNKED, b"hello", True),
    (INFORMED, b"hello", True),
    (UNTIL_CLOSED, b"hello", False),
    (CLOSING, b"hello", False),
    (OLD, b"hello", False),
    (EMPTY, b"", True),
]


def parse(*pieces: bytes) -> tuple[int, bytes, bool]:
    parser = AnswerParser()
    body = [part for piece in pieces if piece for part in parser.feed(piece)]
    if not parser.done:
        body += parser.feed(b"")
    assert parser.head is not None
    return parser.head.status, b"".join(body), parser.reusable


@pytest.mark.parametrize(("whole", "body", "reusable"), CASES)
def test_any_cut_gives_the_same_answer(whole: bytes, body: bytes, reusable: bool) -> None:
    expected = (204 if whole is EMPTY else 200, body, reusable)
    assert parse(whole) == expected
    for at in range(len(whole) + 1):
        assert parse(whole[:at], whole[at:]) == expected, at
    assert parse(*(whole[at : at + 1] for at in range(len(whole)))) == expected


@pytest.mark.parametrize("whole", [PLAIN, CHUNKED])
def test_a_connection_that_closes_early_is_no_answer(whole: bytes) -> None:
    for at in range(len(whole)):
        parser = AnswerParser()
        if at:
            parser.feed(whole[:at])
        with pytest.raises(Unreachable):
            parser.feed(b"")


def test_bytes_behind_an_answer_make_the_connection_unusable() -> None:
    assert parse(PLAIN + b"HTTP/1.1 200 OK") == (200, b"hello", False)


@pytest.mark.parametrize(
    "broken",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * (LINE_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * HEAD_BYTES_MAX,
    ],
)
def test_what_is_no_answer_is_an_error(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        AnswerParser().feed(broken)


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/a b\r\nX: y", {}), ("/é", {}), ("/", {"A": "b\r\nC: d"}), ("/", {"A": "b\0"})],
)
def test_a_request_cannot_break_out_of_its_head(path: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not fit"):
        request_head("GET", path, "host", headers)


class Unsized:
    length = None
    waits = False

    def pieces(self) -> Iterator[Piece]:
        yield from (b"ab", b"", memoryview(b"c"))


def test_bodies_are_framed_by_length_or_in_chunks() -> None:
    assert b"".join(framed(Bytes(b"abc"))) == b"abc"
    assert b"".join(framed(Unsized())) == b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
