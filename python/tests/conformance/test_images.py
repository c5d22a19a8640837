"""Snapshots go out as OCI images that other programs read, and images of others come in."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from opensandbox.config import ConnectionConfigSync
from opensandbox.sync import SandboxManagerSync, SandboxSync

from conformance.world import KEY, until
from live_server import LiveServer, program

MAKE = """
cd /srv && mkdir deep && echo content >deep/file && ln deep/file twin && ln -s deep/file link
chmod 4711 twin && chown 1000:1001 deep && rm -r /etc/ssl && touch -d 2001-02-03 deep/file
truncate -s 50M holes
"""
SHOW = "cd /srv && find . -printf '%p %y %m %U %G %s %l %n %T@\\n' | sort; ls -d /etc/ssl 2>&1"


@pytest.fixture(scope="module")
def config(server: LiveServer) -> ConnectionConfigSync:
    return ConnectionConfigSync(domain=server.domain, api_key=server.api_key, use_server_proxy=True)


def printed(sandbox: SandboxSync, command: str) -> str:
    ran = sandbox.commands.run(command)
    return "".join(line.text for line in ran.logs.stdout).strip()


class Saved:
    """A snapshot, and what was in its sandbox."""

    def __init__(self, config: ConnectionConfigSync) -> None:
        made = SandboxSync.create(
            "host",
            connection_config=config,
            timeout=timedelta(minutes=5),
            env={"GREETING": "hello"},
        )
        try:
            printed(made, MAKE)
            self.shown = printed(made, SHOW)
            self.id = made.create_snapshot(name="image").id
        finally:
            manager = SandboxManagerSync.create(config)
            until("it is ready", lambda: manager.get_snapshot(self.id).status.state == "Ready")
            manager.close()
            made.kill()
            made.close()


@pytest.fixture(scope="module")
def saved(config: ConnectionConfigSync) -> Saved:
    return Saved(config)


@pytest.fixture
def image(server: LiveServer, saved: Saved, tmp_path: Path) -> Path:
    """The snapshot, exported without the host."""
    path = tmp_path / "image.tar"
    ran(server, "export", saved.id, "--without-host", "-o", str(path))
    return path


def words_of(server: LiveServer, *words: str) -> list[str]:
    return [str(program()), "--server", server.socket, "snapshot", *words]


def ran(server: LiveServer, *words: str, code: int = 0, given: bytes = b"") -> str:
    """What `barchan snapshot` prints."""
    command = words_of(server, *words)
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=120)
    assert done.returncode == code, f"{words}: {done}"
    return (done.stdout if code == 0 else done.stderr).decode()


def restored(config: ConnectionConfigSync, snapshot: str) -> Iterator[SandboxSync]:
    made = SandboxSync.create(
        snapshot_id=snapshot, connection_config=config, timeout=timedelta(minutes=5)
    )
    try:
        yield made
    finally:
        made.kill()
        made.close()


def test_an_export_is_an_image_layout_whose_digests_are_right(image: Path) -> None:
    with tarfile.open(image) as archive:
        files = {
            it.name: archive.extractfile(it).read()  # type: ignore[union-attr]
            for it in archive
            if it.isfile()
        }
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(content).hexdigest() == Path(name).name

    def blob(descriptor: dict[str, object]) -> bytes:
        found = files["blobs/" + str(descriptor["digest"]).replace(":", "/")]
        assert len(found) == descriptor["size"]
        return found

    (top,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(top))
    image_config = json.loads(blob(manifest["config"]))
    assert "GREETING=hello" in image_config["config"]["Env"]
    assert image_config["config"]["WorkingDir"] == "/workspace"
    (layer,) = manifest["layers"]
    assert image_config["rootfs"]["diff_ids"] == [layer["digest"]]
    with tarfile.open(fileobj=io.BytesIO(blob(layer))) as tree:
        members = {it.name.removeprefix("./"): it for it in tree}
    assert "etc/.wh.ssl" in members
    assert "etc/ssl" not in members
    assert members["srv/twin"].mode == 0o4711 or members["srv/deep/file"].mode == 0o4711
    assert (members["srv/deep"].uid, members["srv/deep"].gid) == (1000, 1001)
    assert {members["srv/twin"].islnk(), members["srv/deep/file"].islnk()} == {True, False}
    assert members["srv/holes"].size == 50 << 20
    assert image.stat().st_size < 10 << 20
    (docker,) = json.loads(files["manifest.json"])
    assert docker["Layers"] == ["blobs/sha256/" + layer["digest"].removeprefix("sha256:")]


def test_other_programs_read_it_and_what_they_write_is_read(
    server: LiveServer, config: ConnectionConfigSync, saved: Saved, image: Path, tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        done = subprocess.run(words, capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done
        return done.stdout.decode()

    here = f"oci-archive:{image}"
    told = json.loads(run("skopeo", "inspect", "--config", here))
    assert "GREETING=hello" in told["config"]["Env"]
    layout = tmp_path / "layout"
    run("skopeo", "copy", here, f"oci:{layout}:one")
    run("umoci", "unpack", "--image", f"{layout}:one", str(tmp_path / "bundle"))
    root = tmp_path / "bundle/rootfs"
    assert (root / "srv/link").resolve().read_text() == "content\n"
    assert (root / "srv/twin").stat().st_mode & 0o7777 == 0o4711
    assert (root / "srv/twin").samefile(root / "srv/deep/file")
    assert (root / "srv/deep").stat().st_uid == 1000
    assert (root / "srv/holes").stat().st_size == 50 << 20
    shutil.rmtree(tmp_path / "bundle")
    # Theirs: repacked with gzip, and with zstd.
    for form in ("gzip", "zstd"):
        other = tmp_path / f"{form}.tar"
        compress = ("--dest-compress", "--dest-compress-format", form)
        run("skopeo", "copy", *compress, f"oci:{layout}:one", f"oci-archive:{other}:x")
        made = ran(server, "import", str(other), "--name", form).strip()
        for sandbox in restored(config, made):
            assert printed(sandbox, SHOW) == saved.shown
            assert printed(sandbox, "echo $GREETING") == "hello"
        ran(server, "rm", made)


def test_the_command_line(
    server: LiveServer, config: ConnectionConfigSync, saved: Saved, image: Path, tmp_path: Path
) -> None:
    assert "--without-host" in ran(server, "export", saved.id, "-o", "-", code=1)
    again = ("export", saved.id, "--without-host", "-o")
    assert "--force" in ran(server, *again, str(image), code=1)
    before = image.read_bytes()
    said = ran(server, *again, str(image), "--force")
    assert f"{image}: {len(before)} bytes, sha256:" in said
    # The same snapshot, the same bytes; to its owner alone, as there may be secrets in it.
    assert image.read_bytes() == before
    assert image.stat().st_mode & 0o777 == 0o600
    piped = subprocess.run(
        words_of(server, *again, "-"), capture_output=True, check=True, timeout=120
    ).stdout
    assert piped == before
    made = ran(server, "import", "-", "--name", "piped", given=piped).strip()
    for sandbox in restored(config, made):
        assert printed(sandbox, SHOW) == saved.shown
    told = json.loads(ran(server, "inspect", made))
    assert (told["name"], told["status"]["state"]) == ("piped", "Ready")
    ran(server, "rm", made)
    assert "SNAPSHOT::IMAGE_INVALID" in ran(server, "import", "-", code=1, given=piped[:-9000])
    assert "cannot open" in ran(server, "import", str(tmp_path / "nothing"), code=1)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["image.tar"]


@pytest.fixture
def own_server() -> Iterator[LiveServer]:
    made = LiveServer(Path(tempfile.mkdtemp(prefix="barchan-test-")))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_an_import_that_is_killed_leaves_nothing(own_server: LiveServer, image: Path) -> None:
    """Half of an archive, whose sender goes away; then the server, while another is sent."""
    server = own_server
    client = httpx.Client(base_url=server.url, headers={KEY: server.api_key}, timeout=30)
    half = image.read_bytes()[:-20_000]

    def snapshots() -> list[str]:
        return [it["id"] for it in client.get("/snapshots").json()["items"]]

    def shelved() -> set[str]:
        return {it.name for it in (server.state / "images/snapshots").iterdir()}

    def left() -> list[str]:
        names = (it.name for it in (server.state / "images/tmp").iterdir())
        return [it for it in names if it.startswith("import")]

    before = (snapshots(), shelved())
    for is_killed in (False, True):
        sender = subprocess.Popen(words_of(server, "import", "-"), stdin=subprocess.PIPE)
        assert sender.stdin is not None
        sender.stdin.write(half)
        sender.stdin.flush()
        until("it is being received", lambda: len(snapshots()) == len(before[0]) + 1)
        if is_killed:
            own_server.end(signal.SIGKILL)
        sender.send_signal(signal.SIGKILL)
        sender.stdin.close()
        sender.wait()
        if is_killed:
            own_server.start()
        until("nothing is left of it", lambda: (snapshots(), shelved()) == before)
        assert left() == []
    client.close()
