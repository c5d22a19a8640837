"""The unmodified SDK saves sandboxes and makes others of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta

import pytest
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SnapshotFilter, SnapshotInfo
from opensandbox.sync import SandboxManagerSync, SandboxSync

from conformance.world import until
from live_server import LiveServer


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
