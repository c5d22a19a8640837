"""The event stream, cut wherever a network may cut it."""

from __future__ import annotations

import json

import pytest

from barchan import _events
from barchan._events import Event, EventDecoder
from barchan.errors import ProtocolError

OBJECTS = [
    {"type": "init", "text": "c1", "timestamp": 1},
    {"type": "ping", "text": "pong", "timestamp": 1},
    {"type": "stdout", "text": "één\n", "timestamp": 2},
    {"type": "stderr", "text": "{}\r\n", "timestamp": 2},
    {"type": "stdout", "text": "data: x\n\n", "timestamp": 2},
    {"type": "error", "timestamp": 3,
     "error": {"ename": "E", "evalue": "3", "traceback": ["exit status 3"]}},
]  # fmt: skip
EXPECTED = [
    Event("init", "c1"),
    Event("ping", "pong"),
    Event("stdout", "één\n"),
    Event("stderr", "{}\r\n"),
    Event("stdout", "data: x\n\n"),
    Event("error", error_name="E", error_value="3", traceback=("exit status 3",)),
]
FORMS = {
    "bare": (b"", b"\n\n"),
    "bare, one newline": (b"", b"\n"),
    "bare, carriage returns": (b"", b"\r\n\r\n"),
    "data": (b"data: ", b"\n\n"),
    "data without a blank": (b"data:", b"\r\n\r\n"),
    "with ids and comments": (b": hello\nevent: message\nid: 7\nretry: 5\ndata: ", b"\n\n"),
}


def encoded(form: str) -> bytes:
    before, after = FORMS[form]
    lines = (json.dumps(one, ensure_ascii=False).encode() for one in OBJECTS)
    return b"".join(before + line + after for line in lines)


def decode(*pieces: bytes) -> list[Event]:
    decoder = EventDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.finish()


@pytest.mark.parametrize("form", FORMS)
def test_any_cut_gives_the_same_events(form: str) -> None:
    whole = encoded(form)
    assert decode(whole) == EXPECTED
    for at in range(len(whole) + 1):
        assert decode(whole[:at], whole[at:]) == EXPECTED, at
    assert decode(*(whole[at : at + 1] for at in range(len(whole)))) == EXPECTED


def test_a_last_event_may_lack_its_blank_line() -> None:
    assert decode(b'{"type":"init"}\n\n{"type":"stdout","text":"x"}')[-1] == Event("stdout", "x")
    assert decode(b'data: {"type":\ndata: "init"}') == [Event("init")]


def test_half_a_character_becomes_a_replacement() -> None:
    assert decode(rb'{"type":"stdout","text":"a\ud83d b"}') == [Event("stdout", "a� b")]
    assert decode(rb'{"type":"stdout","text":"\ud83d\ude00"}') == [Event("stdout", "😀")]


@pytest.mark.parametrize("broken", [b"<html>", b"[1]", b'{"type":7}', b"{", b"data: {", b"null"])
def test_what_is_no_event_is_an_error(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(broken + b"\n\n")


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_events, "EVENT_BYTES_MAX", 1000)
    decoder = EventDecoder()
    assert decoder.feed(b"x" * 1000) == []
    with pytest.raises(ProtocolError, match="1000"):
        decoder.feed(b"x")
