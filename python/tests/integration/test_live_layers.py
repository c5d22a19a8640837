"""Sealed layers of real sandboxes, through our own client, blocking and async."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from barchan import (
    AsyncSandbox,
    Conflict,
    InvalidRequest,
    NotFound,
    Sandbox,
    ServerFault,
    SnapshotInfo,
)
from live_server import LiveServer


@pytest.fixture
def box(server: LiveServer) -> Iterator[Sandbox]:
    with Sandbox.create("host", server=server.url, api_key=server.api_key) as made:
        yield made


def seals(box: Sandbox) -> bool:
    """Whether this host seals layers. Where it does not, nothing that is to be sealed may run."""
    try:
        box.layers.list()
    except ServerFault as error:
        if error.code != "LAYER::NOT_SUPPORTED":
            raise
    else:
        return True
    with pytest.raises(ServerFault, match="seals no layers"):
        box.commands.run("touch /ran", seal=True)
    assert box.commands.run("test -e /ran").exit_code == 1
    return False


def test_commands_are_sealed_and_gone_back_to(box: Sandbox) -> None:
    if not seals(box):
        return
    first = box.commands.run("echo one > /file; exit 3", seal=True)
    assert (first.exit_code, first.layer_error) == (3, None)
    assert first.layer is not None
    assert (first.layer.number, first.layer.label) == (1, "echo one > /file; exit 3")
    second = box.commands.exec(["tee", "/file"], stdin=b"two", seal="zwei: ü")
    assert (second.output, second.layer_error) == (b"two", None)
    assert second.layer is not None
    assert (second.layer.number, second.layer.parent, second.layer.label) == (2, 1, "zwei: ü")
    assert box.commands.run("rm /file").layer is None
    assert box.layers.list() == [first.layer, second.layer]
    (changed,) = box.layers.diff().changes
    assert (changed.path, changed.change, changed.differs) == ("/file", "changed", ("content",))
    assert changed.diff is not None
    assert "-one\n+two" in changed.diff
    assert box.layers.undo(1).id == box.id
    assert box.commands.run("cat /file").output == "one\n"
    forks = box.layers.fork(2, count=2, lifetime_s=60)
    for fork in forks:
        with fork:
            assert fork.commands.run("cat /file").output == "two"
    box.layers.forget(2)
    assert [layer.number for layer in box.layers.list()] == [1]
    with pytest.raises(NotFound):
        box.layers.undo(2)


def test_a_snapshot_is_made_of_a_layer(server: LiveServer, box: Sandbox) -> None:
    if not seals(box):
        with pytest.raises(ServerFault, match="seals no layers"):
            box.layers.commit()
        return
    box.commands.run("echo one > /file", seal=True)
    box.commands.run("echo two > /file", seal=True)

    async def commit() -> SnapshotInfo:
        return await AsyncSandbox(box.id, box.address).layers.commit(2)

    line = ["--server", server.url, "--api-key", server.api_key]
    for made, name, expected in (
        (box.layers.commit(1, name="first"), "first", "one\n"),
        (asyncio.run(commit()), None, "two\n"),
        (box.layers.commit(), None, "two\n"),
    ):
        assert (made.sandbox_id, made.name) == (box.id, name)
        deadline = time.monotonic() + 60
        while (state := shown(server, made.id)) != "Ready":
            assert state == "Creating"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        ran = server.command(*line, "run", "--snapshot", made.id, "--", "cat", "/file")
        assert (ran.returncode, ran.stdout) == (0, expected), ran.stderr
    assert len(box.layers.list()) == 3, "without a number one is sealed"
    with pytest.raises(NotFound):
        box.layers.commit(9)


def shown(server: LiveServer, snapshot: str) -> str:
    """Where a snapshot stands."""
    line = ["--server", server.url, "--api-key", server.api_key]
    told = server.command(*line, "snapshot", "inspect", snapshot)
    return str(json.loads(told.stdout)["status"]["state"])


def test_a_layer_is_sealed_whatever_the_command_leaves_behind(box: Sandbox) -> None:
    if not seals(box):
        return
    left = box.commands.run("exec 9> /held; sleep 300 >/dev/null 2>&1 & echo $!", seal=True)
    assert left.layer is not None
    assert (left.layer.copied, left.exit_code) == (True, 0)
    assert box.commands.run(f"kill {left.output}").exit_code == 0
    late = box.commands.run("echo x > /late; sleep 300", timeout_s=0.3, seal=True)
    assert late.timed_out
    assert late.layer is not None
    with pytest.raises(InvalidRequest, match="background"):
        box.commands.run("touch /ran", background=True, seal=True)
    with pytest.raises(InvalidRequest, match="Idempotency-Key"):
        box.commands.exec("touch /ran", idempotency_key="k", seal=True)
    assert box.commands.run("test -e /ran").exit_code == 1
    assert len(box.layers.list()) == 2


def test_a_command_that_is_left_early_is_not_sealed(box: Sandbox) -> None:
    if not seals(box):
        return

    async def leave() -> None:
        other = AsyncSandbox(box.id, box.address)
        running = asyncio.Event()
        task = asyncio.create_task(
            other.commands.run("echo; sleep 300", on_stdout=lambda _: running.set(), seal=True)
        )
        await asyncio.wait_for(running.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done = await other.commands.exec("true", seal="the next")
        assert done.layer is not None
        assert [layer.label for layer in await other.layers.list()] == ["the next"]

    asyncio.run(leave())


def test_the_command_line_seals(server: LiveServer, box: Sandbox) -> None:
    line = ["--server", server.url, "--api-key", server.api_key, "exec"]
    if not seals(box):
        refused = server.command(*line, "--seal", box.id, "--", "true")
        assert "LAYER::NOT_SUPPORTED" in refused.stderr
        assert refused.returncode != 0
        return
    done = server.command(*line, "--seal", box.id, "--", "sh", "-c", "echo hi; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "hi\n", "sealed as layer 1\n")
    named = server.command(*line, "--seal=a name", box.id, "--", "true")
    assert (named.returncode, named.stderr) == (0, "sealed as layer 2\n")
    assert [layer.label for layer in box.layers.list()] == ["sh -c echo hi; exit 7", "a name"]


def test_a_sandbox_is_paused_to_disk_and_begins_anew(server: LiveServer, box: Sandbox) -> None:
    if not seals(box):
        with pytest.raises(ServerFault, match="seals no layers"):
            box.pause(to_disk=True)
        assert box.info().state == "Running"
        return
    assert box.commands.run("echo kept > /kept; echo lost > /tmp/lost").exit_code == 0
    box.pause(to_disk=True)
    assert box.info().state == "Paused"
    with pytest.raises(Conflict, match="paused to disk"):
        box.commands.run("true")
    box.resume()
    found = box.commands.run("cat /kept; ls /tmp/lost")
    assert (found.stdout, found.exit_code) == ("kept\n", 2)

    async def again() -> None:
        other = AsyncSandbox(box.id, box.address)
        await other.pause(to_disk=True)
        await other.resume()

    asyncio.run(again())
    line = ["--server", server.url, "--api-key", server.api_key]
    for words in (["pause", "--to-disk"], ["resume"]):
        done = server.command(*line, *words, box.id)
        assert (done.returncode, done.stdout) == (0, f"{box.id}\n"), done.stderr
    assert box.commands.run("cat /kept").output == "kept\n"
    assert [layer.label for layer in box.layers.list()] == ["pause"] * 3
