"""The unmodified SDK and `osb` save sandboxes and make others of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SnapshotFilter, SnapshotInfo
from opensandbox.sync import SandboxManagerSync, SandboxSync
from opensandbox_cli.main import cli

from conformance.world import until
from live_server import LiveServer

# `osb` leaves its connections to the end of its process, which is not the end of this one.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def config(server: LiveServer) -> ConnectionConfigSync:
    return ConnectionConfigSync(domain=server.domain, api_key=server.api_key, use_server_proxy=True)


@pytest.fixture(scope="module")
def manager(config: ConnectionConfigSync) -> Iterator[SandboxManagerSync]:
    made = SandboxManagerSync.create(config)
    yield made
    made.close()


@pytest.fixture
def sandbox(config: ConnectionConfigSync) -> Iterator[SandboxSync]:
    made = SandboxSync.create(
        "host", connection_config=config, timeout=timedelta(minutes=5), env={"GREETING": "hello"}
    )
    yield made
    # One that is gone already is refused.
    with contextlib.suppress(SandboxApiException):
        made.kill()
    made.close()


def printed(sandbox: SandboxSync, command: str) -> str:
    ran = sandbox.commands.run(command)
    assert ran.error is None, ran.error
    return "".join(line.text for line in ran.logs.stdout).strip()


def ready(manager: SandboxManagerSync, snapshot: str) -> SnapshotInfo:
    def look() -> SnapshotInfo | None:
        info = manager.get_snapshot(snapshot)
        assert info.status.state in ("Creating", "Ready"), info
        return info if info.status.state == "Ready" else None

    found = until("it is ready", look)
    assert found is not None
    return found


def test_a_snapshot_outlives_its_sandbox(
    config: ConnectionConfigSync, manager: SandboxManagerSync, sandbox: SandboxSync
) -> None:
    sandbox.files.write_file("/workspace/note", "kept")
    printed(sandbox, "mkdir -p /srv/deep && ln -s note /workspace/link && touch /srv/deep/x")
    taken = sandbox.create_snapshot(name="kept")
    assert (taken.status.state, taken.status.reason) == ("Creating", "snapshot_accepted")
    info = ready(manager, taken.id)
    assert (info.name, info.sandbox_id) == ("kept", sandbox.id)
    # It goes on, and what it does now is not in the snapshot.
    sandbox.files.write_file("/workspace/note", "later")
    found = manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id, states=["Ready"]))
    assert [one.id for one in found.snapshot_infos] == [taken.id]
    sandbox.kill()
    made = SandboxSync.create(
        snapshot_id=taken.id, connection_config=config, timeout=timedelta(minutes=5)
    )
    try:
        assert made.get_info().image is None
        assert made.get_info().snapshot_id == taken.id
        assert printed(made, "cat link") == "kept"
        assert printed(made, "ls /srv/deep") == "x"
        assert printed(made, "echo $GREETING") == "hello"
        with pytest.raises(SandboxApiException) as told:
            manager.delete_snapshot(taken.id)
        assert told.value.error.code == "SNAPSHOT::DELETE_CONFLICT"
    finally:
        made.kill()
        made.close()
    manager.delete_snapshot(taken.id)
    with pytest.raises(SandboxApiException) as told:
        manager.get_snapshot(taken.id)
    assert (told.value.status_code, told.value.error.code) == (404, "SNAPSHOT::NOT_FOUND")


def test_the_command_line(server: LiveServer, sandbox: SandboxSync, tmp_path: Path) -> None:
    env = {
        "HOME": str(tmp_path),
        "OPEN_SANDBOX_DOMAIN": server.domain,
        "OPEN_SANDBOX_API_KEY": server.api_key,
    }
    runner = CliRunner(env=env)

    def osb(*words: str, code: int = 0) -> Result:
        done = runner.invoke(cli, ["snapshot", *words])
        assert done.exit_code == code, f"{words}: {done.output}"
        return done

    def told(*words: str) -> Any:
        return json.loads(osb(*words, "-o", "json").stdout)

    made = told("create", sandbox.id, "--name", "by-hand")["id"]
    until("it is ready", lambda: told("get", made)["status"]["state"] == "Ready")
    assert made in osb("list", "--name", "by-hand", "--state", "Ready", "-o", "json").stdout
    osb("delete", made)
    osb("get", made, code=1)
