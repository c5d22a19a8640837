"""Copies of whole directories, made by the `barchan` program: what a sandbox sends may be made to
harm this machine, and one place guards against that."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from barchan import errors, private
from barchan._address import Address

ERROR_BYTES_MAX = 64 * 1024


@dataclass(frozen=True)
class Copy:
    """A run of the program, and what its end means."""

    arguments: tuple[str, ...]
    environment: dict[str, str]

    def check(self, code: int, said: bytes) -> str:
        """What the program said about entries that were left out; raises when it failed."""
        text = said[:ERROR_BYTES_MAX].decode("utf-8", "replace").strip()
        if code:
            message = text.removeprefix("error: ") or f"the copy ended with code {code}"
            raise errors.CopyFailed(message)
        return text


def into(address: Address, sandbox_id: str, local: str | Path, path: str) -> Copy:
    """What is in a local directory to a directory of the sandbox."""
    source = Path(local).absolute()
    if not source.is_dir():
        raise NotADirectoryError(f"{source} is no directory")
    return _copy(address, (f"{source}/.", f"{sandbox_id}:{path}"))


def out_of(
    address: Address, sandbox_id: str, path: str, local: str | Path, max_bytes: int | None
) -> Copy:
    """What is in a directory of the sandbox to a local one."""
    limit = () if max_bytes is None else ("--max-bytes", str(max_bytes))
    source = f"{sandbox_id}:{path.rstrip('/')}/."
    return _copy(address, (*limit, source, str(Path(local).absolute())))


def _copy(address: Address, rest: tuple[str, ...]) -> Copy:
    environment = {**os.environ, "BARCHAN_SERVER": str(address), "NO_COLOR": "1"}
    environment.pop("BARCHAN_API_KEY", None)
    if address.api_key:
        environment["BARCHAN_API_KEY"] = address.api_key
    return Copy((str(private.program()), "cp", "--recursive", *rest), environment)
