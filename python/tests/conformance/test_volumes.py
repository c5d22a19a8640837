"""The unmodified SDK mounts folders of the host and named volumes in our sandboxes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import PVC, Host, Volume
from opensandbox.sync import SandboxSync

from conformance.world import KEY, WAIT_S
from live_server import LiveServer

MARKER = "opensandbox-e2e-marker"


class Storage:
    """A server whose sandboxes may mount below one folder of the host."""

    def __init__(self, server: LiveServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.config = ConnectionConfigSync(
            domain=server.domain, api_key=server.api_key, use_server_proxy=True
        )

    @contextmanager
    def sandbox(self, *volumes: Volume) -> Iterator[SandboxSync]:
        made = SandboxSync.create(
            "host",
            connection_config=self.config,
            timeout=timedelta(minutes=5),
            volumes=list(volumes),
        )
        try:
            yield made
        finally:
            made.kill()
            made.close()

    def refusal(self, *volumes: Volume) -> str:
        with pytest.raises(SandboxApiException) as told, self.sandbox(*volumes):
            pass
        return f"{told.value.status_code} {told.value.error.code}"

    def call(self, method: str, path: str) -> httpx.Response:
        key = {KEY: self.server.api_key}
        return httpx.request(method, f"{self.server.url}{path}", headers=key, timeout=WAIT_S)

    def names(self) -> list[str]:
        return [volume["name"] for volume in self.call("GET", "/x/volumes").json()["volumes"]]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder = tmp_path_factory.mktemp("host-volumes").resolve()
    (folder / "marker.txt").write_text(f"{MARKER}\n")
    live = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    live.settings = f"[storage]\nallowed_host_paths = [{json.dumps(str(folder))}]\n"
    try:
        live.start()
        yield Storage(live, folder)
    finally:
        live.stop()


def run(sandbox: SandboxSync, command: str) -> Any:
    return sandbox.commands.run(command)


def printed(sandbox: SandboxSync, command: str) -> str:
    done = run(sandbox, command)
    assert done.error is None, done.error
    return "\n".join(message.text.rstrip("\n") for message in done.logs.stdout)


def refused(sandbox: SandboxSync, command: str) -> str:
    """What a command that fails says on its standard error."""
    done = run(sandbox, command)
    assert done.error is not None
    return " ".join(message.text for message in done.logs.stderr)


def host(path: Path, **more: Any) -> Volume:
    return Volume(name="host", host=Host(path=str(path)), mountPath="/mnt/host-data", **more)


def named(name: str, pvc: dict[str, Any] | None = None, **more: Any) -> Volume:
    claim = PVC(claimName=name, **(pvc or {}))
    return Volume(name="claim", pvc=claim, mountPath="/mnt/pvc-data", **more)


def test_a_folder_of_the_host_is_shared(storage: Storage) -> None:
    with storage.sandbox(host(storage.folder)) as sandbox:
        assert printed(sandbox, "cat /mnt/host-data/marker.txt") == MARKER
        printed(sandbox, "echo written-from-sandbox > /mnt/host-data/sandbox-output.txt")
        assert printed(sandbox, "test -d /mnt/host-data && echo OK") == "OK"
        sandbox.files.write_file("/mnt/host-data/through/the/api", "x")
    assert (storage.folder / "sandbox-output.txt").read_text() == "written-from-sandbox\n"
    assert (storage.folder / "through/the/api").read_text() == "x"


def test_a_read_only_folder_is_only_read(storage: Storage) -> None:
    with storage.sandbox(host(storage.folder, read_only=True)) as sandbox:
        assert printed(sandbox, "cat /mnt/host-data/marker.txt") == MARKER
        assert "Read-only file system" in refused(sandbox, "touch /mnt/host-data/no.txt")
        with pytest.raises(SandboxApiException) as told:
            sandbox.files.write_file("/mnt/host-data/no.txt", "x")
        assert told.value.status_code in range(400, 500)
        assert "read-only" in str(told.value)
        sandbox.files.write_file("/workspace/yes.txt", "x")
    assert not (storage.folder / "no.txt").exists()


def test_a_missing_folder_of_the_host_is_made(storage: Storage) -> None:
    with storage.sandbox(host(storage.folder, sub_path="made/for/it")) as sandbox:
        printed(sandbox, "echo x > /mnt/host-data/f")
    assert (storage.folder / "made/for/it/f").read_text() == "x\n"


def test_a_named_volume_outlives_its_sandboxes(storage: Storage) -> None:
    fill = (
        "echo pvc-marker-data > /mnt/pvc-data/marker.txt && "
        "mkdir -p /mnt/pvc-data/datasets/train && "
        "echo pvc-subpath-marker > /mnt/pvc-data/datasets/train/marker.txt"
    )
    with storage.sandbox(named("e2e-pvc-test")) as sandbox:
        printed(sandbox, fill)
    with storage.sandbox(named("e2e-pvc-test")) as sandbox:
        assert printed(sandbox, "cat /mnt/pvc-data/marker.txt") == "pvc-marker-data"
        printed(sandbox, "echo more >> /mnt/pvc-data/marker.txt")
    with storage.sandbox(named("e2e-pvc-test", read_only=True)) as sandbox:
        assert printed(sandbox, "cat /mnt/pvc-data/marker.txt") == "pvc-marker-data\nmore"
        assert "Read-only file system" in refused(sandbox, "touch /mnt/pvc-data/no.txt")
    with storage.sandbox(named("e2e-pvc-test", sub_path="datasets/train")) as sandbox:
        assert printed(sandbox, "cat /mnt/pvc-data/marker.txt") == "pvc-subpath-marker"
        assert printed(sandbox, "ls -A /mnt/pvc-data") == "marker.txt"
    assert storage.call("DELETE", "/x/volumes/e2e-pvc-test").status_code == 204


def test_a_volume_goes_with_its_sandbox_only_if_it_was_made_for_it(storage: Storage) -> None:
    goes = {"delete_on_sandbox_termination": True}
    with storage.sandbox(named("goes", goes)):
        assert "goes" in storage.names()
    assert "goes" not in storage.names()
    with storage.sandbox(named("stays")):
        pass
    with storage.sandbox(named("stays", goes)):
        in_use = storage.call("DELETE", "/x/volumes/stays")
        assert (in_use.status_code, in_use.json()["code"]) == (409, "VOLUME::IN_USE")
    listed = storage.server.command("volume", "list", "--server", storage.server.socket)
    assert "stays" in listed.stdout, listed.stderr
    removed = storage.server.command("volume", "rm", "stays", "--server", storage.server.socket)
    assert removed.returncode == 0, removed.stderr
    assert storage.names() == []


def test_volumes_survive_a_restarted_server(storage: Storage) -> None:
    with storage.sandbox(named("lasting")) as sandbox:
        printed(sandbox, "echo before > /mnt/pvc-data/f")
        storage.server.end()
        storage.server.start()
        assert printed(sandbox, "cat /mnt/pvc-data/f") == "before"
        assert storage.call("DELETE", "/x/volumes/lasting").status_code == 409
    assert storage.call("DELETE", "/x/volumes/lasting").status_code == 204


@pytest.mark.parametrize(
    ("volume", "code"),
    [
        (host(Path("/etc")), "400 VOLUME::HOST_PATH_NOT_ALLOWED"),
        (host(Path("/tmp/../etc")), "400 VOLUME::INVALID_HOST_PATH"),
        (named("absent", {"create_if_not_exists": False}), "400 VOLUME::PVC_NOT_FOUND"),
        (named("n", sub_path="a/../../b"), "400 VOLUME::INVALID_SUB_PATH"),
        (named("n", {"storage": "1Ki"}), "400 SANDBOX::INVALID_PARAMETER"),
    ],
    ids=["outside", "dots", "absent", "part", "small"],
)
def test_what_is_refused_says_why(storage: Storage, volume: Volume, code: str) -> None:
    assert storage.refusal(volume) == code
    assert storage.names() == []
