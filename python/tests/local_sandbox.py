"""A stand-in for a sandbox: a folder of this host and its shell. For tests of what runs above."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox


class LocalSandbox(BaseSandbox):
    """Runs everything right here, with the interpreter of the tests in front of PATH."""

    def __init__(self, matplotlib_cache: Path) -> None:
        self.killed = False
        own = Path(sys.executable).parent
        self.env = {
            **os.environ,
            "PATH": f"{own}:{os.environ['PATH']}",
            "MPLCONFIGDIR": str(matplotlib_cache),
        }

    @property
    def id(self) -> str:
        return "local"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=self.env,
            timeout=timeout or 120,
            check=False,
        )
        return ExecuteResponse(done.stdout.decode("utf-8", "replace"), done.returncode)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        for path, content in files:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        return [FileUploadResponse(path) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._read(path) for path in paths]

    def _read(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, Path(path).read_bytes())
        except FileNotFoundError:
            return FileDownloadResponse(path, error="file_not_found")

    def kill(self) -> None:
        self.killed = True
