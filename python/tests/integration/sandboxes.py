"""A sandbox as the unmodified OpenSandbox SDK 1.1.1 sees it, directly and through the server."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from opensandbox.config import ConnectionConfigSync
from opensandbox.models.execd import Execution, OutputMessage, RunCommandOpts
from opensandbox.sync import SandboxSync

from conformance.world import until
from live_server import LiveServer


@dataclass(frozen=True)
class Told:
    """What a caller is told of a command."""

    stdout: str
    stderr: str
    code: int | None


def text(messages: list[OutputMessage]) -> str:
    return "".join(one.text for one in messages)


def told(execution: Execution) -> Told:
    return Told(text(execution.logs.stdout), text(execution.logs.stderr), execution.exit_code)


class Box:
    """One sandbox and one way to it."""

    def __init__(self, server: LiveServer, proxied: bool, image: str = "host") -> None:
        self.config = ConnectionConfigSync(
            domain=server.domain, api_key=server.api_key, use_server_proxy=proxied
        )
        self.sdk = SandboxSync.create(
            image,
            timeout=timedelta(minutes=15),
            resource={"cpu": "1", "memory": "512Mi"},
            connection_config=self.config,
        )
        self.files = self.sdk.files
        self.commands = self.sdk.commands

    def end(self) -> None:
        self.sdk.kill()
        self.sdk.close()

    def run(self, command: str | list[str], **opts: Any) -> Execution:
        return self.commands.run(command, opts=RunCommandOpts(**opts))

    def sh(self, script: str, **opts: Any) -> Told:
        return told(self.run(script, **opts))

    def folder(self) -> str:
        """A fresh directory."""
        made = f"/tmp/reports/{uuid.uuid4().hex}"
        assert self.sh(f"mkdir -p {made}").code == 0
        return made

    def start(self, script: str, **opts: Any) -> str:
        """Begins a background command and gives its id."""
        started = self.run(script, background=True, **opts).id
        assert started
        return started

    def ended(self, command: str) -> Any:
        """The status of a background command once it has ended."""

        def look() -> Any:
            status = self.commands.get_command_status(command)
            return None if status.running else status

        return until("the command ended", look)

    def log(self, command: str, cursor: int | None = None) -> Any:
        return self.commands.get_background_command_logs(command, cursor)

    def told_in_background(self, script: str) -> Told:
        """The log has both streams in one; it is told as the first."""
        command = self.start(script)
        code = self.ended(command).exit_code
        return Told(self.log(command).content, "", code)

    def told_in_session(self, script: str) -> Told:
        session = self.commands.create_session()
        found = told(self.commands.run_in_session(session, script))
        self.commands.delete_session(session)
        return found
