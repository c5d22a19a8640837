"""A backend as an article about sandboxes builds it around the OpenSandbox SDK, and its agent.

Its faults are its own and stay: output joined by newlines, exit code None taken for 0. A program of
its own, because like the article it changes asyncio for the whole process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import nest_asyncio
from deepagents import create_deep_agent
from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from opensandbox.models import WriteEntry

import generate
from models import recorded

IMAGE = "opensandbox/code-interpreter:v1.1.0"
ENTRYPOINT = ["/opt/code-interpreter/code-interpreter.sh"]
T = TypeVar("T")


class AsyncRunner:
    """A loop in a thread of its own, on which the async SDK lives."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def shutdown(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class MinimalOpenSandboxBackend(BaseSandbox):
    def __init__(self, sandbox: Sandbox, runner: AsyncRunner) -> None:
        self._sandbox = sandbox
        self._runner = runner

    @classmethod
    def create(cls, domain: str, api_key: str | None = None) -> MinimalOpenSandboxBackend:
        runner = AsyncRunner()
        config = ConnectionConfig(domain=domain, api_key=api_key)
        sandbox = runner.run(
            Sandbox.create(
                IMAGE,
                entrypoint=ENTRYPOINT,
                connection_config=config,
                timeout=timedelta(minutes=30),
            )
        )
        return cls(sandbox, runner)

    @property
    def id(self) -> str:
        return self._sandbox.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        execution = self._runner.run(self._sandbox.commands.run(command))
        stdout = "\n".join(c.text for c in execution.logs.stdout)
        stderr = "\n".join(c.text for c in execution.logs.stderr)
        output = "\n".join(p for p in (stdout, stderr) if p)
        return ExecuteResponse(output=output, exit_code=execution.exit_code or 0)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        entries = [WriteEntry(path=path, data=data, mode=644) for path, data in files]
        try:
            self._runner.run(self._sandbox.files.write_files(entries))
            return [FileUploadResponse(path=p) for p, _ in files]
        except Exception as exc:
            return [FileUploadResponse(path=p, error=str(exc)) for p, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        results = []
        for path in paths:
            try:
                content = self._runner.run(self._sandbox.files.read_bytes(path))
                results.append(FileDownloadResponse(path=path, content=content))
            except Exception as exc:
                results.append(FileDownloadResponse(path=path, error=str(exc)))
        return results

    def kill(self) -> None:
        self._runner.run(self._sandbox.kill())
        self._runner.run(self._sandbox.close())
        self._runner.shutdown()


def look(backend: MinimalOpenSandboxBackend) -> dict[str, object]:
    """What single calls give."""
    entrypoint = ENTRYPOINT[0]
    return {
        "python": backend.execute("python3 -c 'import pandas, seaborn; print(6 * 7)'").output,
        "entrypoint": backend.execute(f"test -x {entrypoint}").exit_code,
        "exit": backend.execute("exit 4").exit_code,
    }


def work(backend: MinimalOpenSandboxBackend) -> dict[str, object]:
    """Uploads the file, lets the agent analyse it, and fetches a chart."""
    csv = generate.customers(200).encode()
    uploaded = backend.upload_files([("/workspace/customers-1000.csv", csv)])
    back, missing = backend.download_files(["/workspace/customers-1000.csv", "/workspace/none"])
    names = {"work": "/workspace", "csv": "/workspace/customers-1000.csv", "out": "/workspace/out"}
    agent = create_deep_agent(
        model=recorded(names).model, backend=backend, system_prompt="You analyse data."
    )
    result = agent.invoke({"messages": [{"role": "user", "content": "Analyse the customers."}]})
    chart = backend.download_files(["/workspace/out/01-continents.png"])[0].content
    return {
        "upload_error": uploaded[0].error,
        "same": back.content == csv,
        "missing": missing.error,
        "last_word": result["messages"][-1].text,
        "chart": (chart or b"")[:4].hex(),
    }


def main(domain: str) -> None:
    nest_asyncio.apply()
    backend = MinimalOpenSandboxBackend.create(domain, os.environ["SANDBOX_API_KEY"])
    try:
        print(json.dumps(look(backend) | work(backend)))
    finally:
        backend.kill()


if __name__ == "__main__":
    main(sys.argv[1])
