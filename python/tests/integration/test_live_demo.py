"""The example in a real sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import demo
import generate
from barchan.deepagents import BarchanBackend
from live_server import LiveServer
from test_report import check


def test_the_demo_runs_in_a_sandbox(
    server: LiveServer,
    data_science: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BARCHAN_STATE_DIR", str(server.state))
    monkeypatch.delenv("BARCHAN_SERVER", raising=False)

    def opened() -> BarchanBackend:
        return BarchanBackend.create(data_science, server=server.url, api_key=server.api_key)

    code = demo.run(None, tmp_path, data_science, False, opened)
    shown = capsys.readouterr().out
    assert code == 0, shown
    check((tmp_path / "report.md").read_text(encoding="utf-8"), generate.customers())
    account = json.loads((tmp_path / "run.json").read_text())
    assert account["outcome"] == "complete"
    assert account["image"]["digest"].startswith("sha256:")
    assert len(list(tmp_path.glob("*.png"))) == 8
