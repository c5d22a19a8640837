"""The unmodified command line `osb`, in this process: its start would take most of the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from click.testing import CliRunner, Result
from opensandbox_cli.main import cli


class Osb:
    """Runs commands against one server; the word `ID` in them stands for `sandbox`."""

    HOST: ClassVar = (
        *("-i", "host", "-t", "10m", "--entrypoint", "tail"),
        *("--entrypoint", "-f", "--entrypoint", "/dev/null"),
    )

    def __init__(self, domain: str, key: str, home: Path, *, proxied: bool = False) -> None:
        self.runner = CliRunner(
            env={
                "HOME": str(home),
                "OPEN_SANDBOX_DOMAIN": domain,
                "OPEN_SANDBOX_API_KEY": key,
                "OPEN_SANDBOX_USE_SERVER_PROXY": "true" if proxied else "false",
            }
        )
        self.sandbox = ""

    def __call__(self, *words: str, code: int = 0, stdin: str | None = None) -> Result:
        filled = [self.sandbox if word == "ID" else word for word in words]
        done = self.runner.invoke(cli, filled, input=stdin)
        assert done.exit_code == code, f"{filled}: {done.output}"
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json").stdout)

    def create(self, *more: str) -> str:
        return str(self.json("sandbox", "create", *self.HOST, *more)["id"])

    def refused(self, code: str, *words: str) -> None:
        """A command ends as it should not, and says so in the words of the server."""
        done = self(*words, code=1)
        assert "Traceback" not in done.output, done.output
        assert code in done.output.replace("\n", ""), f"{words}: {done.output}"
