"""The article's own backend and agent, against our server under the image name that it uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from live_server import LiveServer
from paths import EXAMPLE


@pytest.mark.usefixtures("data_science")
def test_the_backend_of_the_article_does_its_job(server: LiveServer) -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("article.py"), server.domain],
        env={**os.environ, "SANDBOX_API_KEY": server.api_key, "PYTHONPATH": str(EXAMPLE)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["python"].strip() == "42"
    assert (said["entrypoint"], said["exit"]) == (0, 4)
    assert (said["upload_error"], said["same"]) == (None, True)
    assert said["missing"]
    assert "charts: 01-continents.png" in said["last_word"]
    assert said["chart"] == "89504e47"
