"""Isolated sessions through the unmodified OpenSandbox SDK 1.1.1, blocking and async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    DirectoryListEntry,
    MoveEntry,
    SearchEntry,
    SetPermissionEntry,
    WriteEntry,
)
from opensandbox.models.isolated import (
    BindMount,
    CreateIsolatedSessionRequest,
    EnvPassthroughSpec,
    IsolatedOverlaySpec,
    IsolatedRunOpts,
    IsolatedWorkspaceSpec,
)
from opensandbox.sync import SandboxSync

from live_server import LiveServer

Create = Callable[..., Any]
PATIENCE_S = 30.0


class Sdk:
    """One flavour of the SDK with a sandbox of its own; `wait` makes a value of its answers."""

    def __init__(self, flavour: str, server: LiveServer) -> None:
        self.runner = asyncio.Runner()
        options: dict[str, Any] = {"domain": server.domain, "api_key": server.api_key}
        self.is_async = flavour == "async"
        kind: Any = Sandbox if self.is_async else SandboxSync
        config: Any = ConnectionConfig if self.is_async else ConnectionConfigSync
        self.sandbox: Any = self.wait(kind.create("host", connection_config=config(**options)))
        self.isolation: Any = self.sandbox.isolation

    def wait(self, value: Any) -> Any:
        return self.runner.run(value) if asyncio.iscoroutine(value) else value

    def sh(self, command: str) -> str:
        return str(self.wait(self.sandbox.commands.run(command)).text)

    def end(self) -> None:
        self.wait(self.sandbox.kill())
        self.wait(self.sandbox.close())
        self.runner.close()


@pytest.fixture(params=["sync", "async"], scope="module")
def sdk(request: pytest.FixtureRequest, server: LiveServer) -> Iterator[Sdk]:
    made = Sdk(request.param, server)
    made.sh("mkdir -p /workspace /data /mnt")
    yield made
    made.end()


@pytest.fixture
def create(sdk: Sdk) -> Iterator[Create]:
    """Creates sessions that are deleted with the test."""
    made = []

    def create(path: str = "/workspace", mode: str | None = "rw", **more: Any) -> Any:
        workspace = IsolatedWorkspaceSpec(path=path, mode=mode)
        request = CreateIsolatedSessionRequest(workspace=workspace, **more)
        session = sdk.wait(sdk.isolation.create(request))
        made.append(session)
        return session

    yield create
    listed = {it.session_id for it in sdk.wait(sdk.isolation.list())}
    for session in made:
        if session.session_id in listed:
            sdk.wait(session.delete())


def run(sdk: Sdk, session: Any, code: str, **opts: Any) -> str:
    return str(sdk.wait(session.run(code, opts=IsolatedRunOpts(**opts))).text)


def test_what_can_be_had_is_told(sdk: Sdk) -> None:
    told = sdk.wait(sdk.isolation.capabilities())
    assert (told.available, told.message) == (True, "")
    assert (told.commit_supported, told.diff_supported) == (True, True)
    assert (told.setpriv_available, told.userns_available) == (True, False)
    assert (told.hardening.init_mode, told.hardening.signal_shield) == ("pid1", True)
    assert told.hardening.cap_drop.state == told.hardening.seccomp.state == "active"


def test_a_session_is_listed_found_again_and_deleted_once(sdk: Sdk, create: Create) -> None:
    one, other = create(), create(path="/tmp")
    listed = {it.session_id: it for it in sdk.wait(sdk.isolation.list())}
    assert listed.keys() == {one.session_id, other.session_id}
    assert {it.status for it in listed.values()} == {"active"}
    assert int(run(sdk, one, "echo $$")) <= 2
    found = sdk.wait(sdk.isolation.attach(other.session_id))
    assert (found.info.workspace.path, found.info.workspace.mode) == ("/tmp", "rw")
    assert (found.info.profile, found.info.share_net) == ("strict", False)
    assert sdk.wait(found.get()).status == "active"
    sdk.wait(found.delete())
    with pytest.raises(SandboxApiException) as caught:
        sdk.wait(other.delete())
    assert caught.value.status_code == 404
    with pytest.raises(SandboxApiException):
        sdk.wait(sdk.isolation.attach("00000000-0000-0000-0000-000000000000"))


def test_runs_have_output_variables_codes_and_time(sdk: Sdk, create: Create) -> None:
    session = create()
    ran = sdk.wait(session.run("echo out; echo err >&2; exit 7"))
    assert (ran.text.strip(), ran.exit_code) == ("out", 7)
    assert [it.text.strip() for it in ran.logs.stderr] == ["err"]
    assert run(sdk, session, "echo $A", envs={"A": "it's $1"}).strip() == "it's $1"
    begun = time.monotonic()
    ran = sdk.wait(session.run("sleep 60", opts=IsolatedRunOpts(timeout_seconds=1)))
    assert ran.exit_code == 137
    assert time.monotonic() - begun < PATIENCE_S
    run(sdk, session, "export KEPT=1; mkdir -p sub; cd sub")
    assert run(sdk, session, "echo $KEPT; pwd").split() == ["1", "/workspace/sub"]
    once = sdk.isolation.run_once(
        "echo $B; pwd", workspace="/workspace", opts=IsolatedRunOpts(envs={"B": "1"})
    )
    assert sdk.wait(once).text.split() == ["1", "/workspace"]
    assert len(sdk.wait(sdk.isolation.list())) == 1


def test_the_context_manager_cleans_up(sdk: Sdk) -> None:
    workspace = IsolatedWorkspaceSpec(path="/workspace", mode="rw")
    request = CreateIsolatedSessionRequest(workspace=workspace)

    async def later() -> str:
        async with sdk.isolation.session(request) as session:
            return str((await session.run("echo inside")).text)

    if sdk.is_async:
        assert sdk.wait(later()).strip() == "inside"
    else:
        with sdk.isolation.session(request) as session:
            assert session.run("echo inside").text.strip() == "inside"
    assert sdk.wait(sdk.isolation.list()) == []


def test_sessions_share_only_what_they_were_given(sdk: Sdk, create: Create) -> None:
    one, other = create(), create()
    run(sdk, one, "echo mine > /tmp/mine; echo ours > ours; echo x > /dev/shm/x")
    assert "No such file" in run(sdk, other, "cat /tmp/mine 2>&1; true")
    assert "No such file" in run(sdk, other, "cat /dev/shm/x 2>&1; true")
    assert "No such file" in sdk.sh("cat /tmp/mine 2>&1; true")
    assert run(sdk, other, "cat ours").strip() == "ours"
    assert sdk.sh("cat /workspace/ours").strip() == "ours"
    sdk.wait(one.run_background("sleep 4321"))
    look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    assert "sleep 4321" in run(sdk, one, look)
    assert "sleep 4321" not in run(sdk, other, look)


@pytest.mark.parametrize(
    ("mode", "inside", "outside"),
    [("ro", "before", "before"), (None, "after", "before"), ("rw", "after", "after")],
)
def test_a_mode_decides_who_sees_a_write(
    sdk: Sdk, create: Create, mode: str | None, inside: str, outside: str
) -> None:
    sdk.sh("echo before > /workspace/file")
    session = create(mode=mode)
    run(sdk, session, "echo after > file")
    assert run(sdk, session, "cat file").strip() == inside
    assert sdk.sh("cat /workspace/file").strip() == outside


def test_binds_are_where_they_belong_and_the_system_is_not_for_writing(
    sdk: Sdk, create: Create
) -> None:
    sdk.sh("mkdir -p /data/a /data/b /mnt/a /mnt/b && echo -n there > /data/b/file")
    binds = [
        BindMount(source="/data/a", dest="/mnt/a"),
        BindMount(source="/data/b", dest="/mnt/b", readonly=True),
    ]
    session = create(binds=binds, extra_writable=["/data/a"])
    said = run(sdk, session, "echo -n new > /mnt/a/file; cat /mnt/b/file; echo > /mnt/b/x; echo $?")
    assert said.split() == ["there1"]
    assert sdk.sh("cat /data/a/file") == "new"
    with pytest.raises(SandboxApiException) as caught:
        create(binds=[BindMount(source="/etc", dest="/mnt/a")])
    assert caught.value.status_code == 400


def test_what_a_session_sees_of_the_environment(sdk: Sdk, create: Create) -> None:
    sdk.sh("mkdir -p /opt/opensandbox; echo MY_TOKEN=secret >> ${EXECD_ENVS}")
    sdk.sh("echo PLAIN=1 >> ${EXECD_ENVS}")
    show = "echo [$MY_TOKEN$PLAIN]"
    passed = EnvPassthroughSpec(mode="allow", keys=["MY_TOKEN"])
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "[1]"),
        ({"profile": "balanced"}, "[secret1]"),
        ({"env_passthrough": passed}, "[secret]"),
    ]
    for more, seen in cases:
        assert run(sdk, create(**more), show).strip() == seen


def test_background_runs(sdk: Sdk, create: Create) -> None:
    session = create()
    opts = IsolatedRunOpts(envs={"WHO": "background"})
    started = sdk.wait(session.run_background("echo $WHO; sleep 0.2; exit 7", opts=opts))
    assert started.session_id == session.session_id
    deadline = time.monotonic() + PATIENCE_S
    while (state := sdk.wait(session.run_status(started.run_id))).running:
        assert time.monotonic() < deadline
    assert (state.exit_code, state.error) == (7, None)
    assert state.finished_at is not None
    logs = sdk.wait(session.run_logs(started.run_id))
    assert (logs.text, logs.cursor) == ("background\n", 11)
    assert sdk.wait(session.run_logs(started.run_id, cursor=11)).text == ""
    assert run(sdk, session, "echo fg").strip() == "fg"
    with pytest.raises(SandboxApiException) as caught:
        sdk.wait(session.run_status("no-such-run"))
    assert caught.value.status_code == 404


@pytest.mark.parametrize("mode", ["rw", "overlay"])
def test_files(sdk: Sdk, create: Create, mode: str) -> None:
    sdk.sh("rm -rf /workspace/*; echo lower > /workspace/lower.txt")
    session = create(mode=mode)
    files, wait = session.files, sdk.wait
    path = "/workspace/new.txt"
    wait(files.write_files([WriteEntry(path=path, data=b"\0old\xff", mode=644)]))
    assert wait(files.read_bytes(path)) == b"\0old\xff"
    entry = ContentReplaceEntry(path=path, old_content="old", new_content="new")
    wait(files.replace_contents([entry]))
    assert wait(files.read_bytes(path)) == b"\0new\xff"
    wait(files.set_permissions([SetPermissionEntry(path=path, mode=751)]))
    info = wait(files.get_file_info([path]))[path]
    assert (info.size, info.mode) == (5, 751)
    found = wait(files.search(SearchEntry(path="/workspace", pattern="*.txt")))
    assert {it.path for it in found} == {path, "/workspace/lower.txt"}
    wait(files.create_directories([WriteEntry(path="/workspace/deep/er", mode=755)]))
    wait(files.move_files([MoveEntry(source=path, destination="/workspace/deep/moved")]))
    entries = wait(files.list_directory(DirectoryListEntry(path="/workspace", depth=2)))
    names = {it.path.removeprefix("/workspace/") for it in entries}
    assert names == {"deep", "deep/er", "deep/moved", "lower.txt"}
    wait(files.delete_files(["/workspace/lower.txt"]))
    wait(files.delete_directories(["/workspace/deep"]))
    with pytest.raises(SandboxApiException):
        wait(files.get_file_info(["/workspace/lower.txt"]))
    left = "lower.txt" if mode == "overlay" else ""
    assert sdk.sh("ls /workspace").strip() == left


def test_overlays_inside_each_other(sdk: Sdk) -> None:
    sdk.sh("rm -rf /workspace/*; mkdir /workspace/deep; echo 1 > /workspace/deep/file")
    overlays = [
        IsolatedOverlaySpec(path="/", mode="overlay"),
        IsolatedOverlaySpec(path="/workspace/deep", mode="ro"),
    ]
    session = sdk.wait(sdk.isolation.create(CreateIsolatedSessionRequest(overlays=overlays)))
    try:
        run(sdk, session, "touch /etc/mine /workspace/mine; touch /workspace/deep/mine")
        seen = run(sdk, session, "ls -d /etc/m[i]ne /workspace/* /workspace/deep/*").split()
        assert seen == ["/etc/mine", "/workspace/deep", "/workspace/deep/file", "/workspace/mine"]
        assert sdk.sh("ls /workspace /workspace/deep; ls /etc").count("mine") == 0
    finally:
        sdk.wait(session.delete())
