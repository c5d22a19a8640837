"""Copies of directories: how the program is called, and what its end means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from barchan import AsyncSandbox, CopyFailed, Sandbox
from barchan._address import Address

ADDRESS = Address(host="localhost", port=8080, api_key="secret")
ID = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    """Makes a program that writes down how it was called, and ends with a code."""
    monkeypatch.setenv("BARCHAN_API_KEY", "another")

    def make(code: int) -> Path:
        path = tmp_path / "barchan"
        path.write_text(
            '#!/bin/sh\nprintf "%s\\n" "$BARCHAN_SERVER" "$BARCHAN_API_KEY" "$@" '
            f"> {tmp_path}/said\n"
            f"echo 'error: no such thing' >&2\nexit {code}\n"
        )
        path.chmod(0o755)
        monkeypatch.setenv("BARCHAN_PROGRAM", str(path))
        return tmp_path / "said"

    return make


def test_both_clients_call_the_program_alike(
    program: Callable[[int], Path], tmp_path: Path
) -> None:
    said = program(0)
    blocking, later = Sandbox(ID, ADDRESS).files, AsyncSandbox(ID, ADDRESS).files
    server = ["http://localhost:8080", "secret", "cp", "--recursive"]
    source, target = str(tmp_path), str(tmp_path / "new")
    ups: list[Callable[[], str]] = [
        lambda: blocking.upload_dir(source, "/data"),
        lambda: asyncio.run(later.upload_dir(source, "/data")),
    ]
    for up in ups:
        up()
        assert said.read_text().splitlines() == [*server, f"{source}/.", f"{ID}:/data"]
    downs: list[Callable[[], str]] = [
        lambda: blocking.download_dir("/data/", target, max_bytes=7),
        lambda: asyncio.run(later.download_dir("/data/", target, max_bytes=7)),
    ]
    for down in downs:
        assert down() == "error: no such thing"
        expected = [*server, "--max-bytes", "7", f"{ID}:/data/.", target]
        assert said.read_text().splitlines() == expected


def test_what_went_wrong_is_raised(program: Callable[[int], Path], tmp_path: Path) -> None:
    program(1)
    with pytest.raises(CopyFailed, match=r"^no such thing"):
        Sandbox(ID, ADDRESS).files.upload_dir(tmp_path, "/data")
    with pytest.raises(CopyFailed, match=r"^no such thing"):
        asyncio.run(AsyncSandbox(ID, ADDRESS).files.download_dir("/data", tmp_path))
    with pytest.raises(NotADirectoryError):
        Sandbox(ID, ADDRESS).files.upload_dir(tmp_path / "none", "/data")
