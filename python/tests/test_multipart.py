"""Uploads, read back by another parser."""

from __future__ import annotations

import email
import json
from pathlib import Path

import pytest

from barchan._multipart import Multipart, Upload, mode_bits, octal_digits

CONTENT = bytes(range(256)) * 3 + b"\r\n--barchan_\r\n"


def read(body: Multipart) -> list[tuple[dict[str, object], bytes]]:
    raw = b"".join(body.pieces())
    assert len(raw) == body.length
    head = f"Content-Type: {body.content_type}\r\n\r\n".encode()
    parts = email.message_from_bytes(head + raw).get_payload()
    assert isinstance(parts, list)
    pairs = []
    for about, file in zip(parts[::2], parts[1::2], strict=True):
        names = [part.get_param("name", header="content-disposition") for part in (about, file)]
        assert names == ["metadata", "file"]
        content = raw.split(b"\r\n\r\n")
        assert content
        pairs.append((json.loads(about.get_payload()), file.get_payload(decode=True)))
    return pairs


def test_files_travel_with_their_metadata(tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.write_bytes(b"from disk")
    names = ["/a", '/we "ird\n.txt', "/ünï/x"]
    body = Multipart(
        [Upload(names[0], b"plain", 0o755), Upload(names[1], local), Upload(names[2], b"")]
    )
    assert read(body) == [
        ({"path": names[0], "mode": 755}, b"plain"),
        ({"path": names[1]}, b"from disk"),
        ({"path": names[2]}, b""),
    ]
    assert body.waits
    assert not Multipart([Upload("/a", b"x")]).waits


def test_any_bytes_stay_as_they_are() -> None:
    body = Multipart([Upload("/a", CONTENT)])
    assert CONTENT + b"\r\n--" + body.boundary.encode() + b"--" in b"".join(body.pieces())


def test_a_file_that_shrinks_meanwhile_is_an_error(tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.write_bytes(b"12345")
    body = Multipart([Upload("/a", local)])
    local.write_bytes(b"123")
    with pytest.raises(OSError, match="shorter"):
        b"".join(body.pieces())
    local.write_bytes(b"1234567")
    assert len(b"".join(body.pieces())) == body.length


@pytest.mark.parametrize(
    ("bits", "digits"), [(0o644, 644), (0o755, 755), (0, 0), (0o4711, 4711), (0o1777, 1777)]
)
def test_modes_are_octal_digits_on_the_wire(bits: int, digits: int) -> None:
    assert octal_digits(bits) == digits
    assert mode_bits(digits) == bits


@pytest.mark.parametrize("strange", [None, "abc", 888, -1, 1.5])
def test_a_strange_mode_lets_nobody_in(strange: object) -> None:
    assert mode_bits(strange) == 0
