"""Where a server is, and which one is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from barchan import BarchanError, _config
from barchan._address import Address, parse


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("localhost:1234", Address("localhost", 1234), "http://localhost:1234"),
        ("http://h:80/", Address("h", 80), "http://h:80"),
        ("h", Address("h", 8080), "http://h:8080"),
        ("[::1]:9", Address("::1", 9), "http://[::1]:9"),
        ("unix:/a/b.sock", Address(socket_path="/a/b.sock"), "unix:/a/b.sock"),
        ("unix:///a/b.sock", Address(socket_path="/a/b.sock"), "unix:/a/b.sock"),
    ],
)
def test_addresses_are_read_as_people_write_them(
    text: str, expected: Address, written: str
) -> None:
    assert parse(text) == expected
    assert str(expected) == written


@pytest.mark.parametrize(
    "text", ["", "https://h", "ftp://h", "h:notaport", "h:99999", "unix:rel", "http://h/v1", ":80"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_the_key_is_never_shown() -> None:
    assert "hunter2" not in repr(parse("h", "hunter2")) + str(parse("h", "hunter2"))


def test_the_nearest_word_names_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("BARCHAN_SERVER", "BARCHAN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert _config.configured(None, None) is None
    (tmp_path / "barchan").mkdir()
    settings = tmp_path / "barchan" / "client.toml"
    settings.write_text('server = "a:1"\napi_key = "k1"\n')
    assert _config.configured(None, None) == parse("a:1", "k1")
    monkeypatch.setenv("BARCHAN_SERVER", "b:2")
    assert _config.configured(None, None) == parse("b:2")
    monkeypatch.setenv("BARCHAN_API_KEY", "k2")
    assert _config.configured(None, None) == parse("b:2", "k2")
    assert _config.configured("c:3", "k3") == parse("c:3", "k3")
    with pytest.raises(BarchanError, match="https"):
        _config.configured("https://c", None)
    monkeypatch.delenv("BARCHAN_SERVER")
    settings.write_text("server = ")
    with pytest.raises(BarchanError, match="client"):
        _config.configured(None, None)
