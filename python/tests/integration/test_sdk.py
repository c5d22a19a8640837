"""The unmodified OpenSandbox SDK 1.1.1, blocking and async, makes its calls against our server."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any

import pytest
from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import OutputMessage, RunCommandOpts
from opensandbox.models.filesystem import WriteEntry
from opensandbox.models.sandboxes import SandboxFilter
from opensandbox.sync import SandboxManagerSync, SandboxSync

from live_server import LiveServer

IMAGE = "host"


class Loop:
    """Runs the async SDK's coroutines on one loop, so that one test reads the same for both."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    def __call__(self, value: Any) -> Any:
        return self.runner.run(value) if asyncio.iscoroutine(value) else value


class Sdk:
    """One flavour of the SDK: its classes, its configuration, and how to wait for its answers."""

    def __init__(self, flavour: str, server: LiveServer, proxied: bool) -> None:
        self.wait = Loop()
        options: dict[str, Any] = {
            "domain": server.domain,
            "api_key": server.api_key,
            "use_server_proxy": proxied,
        }
        self.is_async = flavour == "async"
        self.config: Any = (
            ConnectionConfig(**options) if self.is_async else ConnectionConfigSync(**options)
        )
        self.sandbox: Any = Sandbox if self.is_async else SandboxSync
        self.manager: Any = SandboxManager if self.is_async else SandboxManagerSync

    def create(self, image: str = IMAGE, **options: Any) -> Any:
        options.setdefault("timeout", timedelta(minutes=5))
        return self.wait(self.sandbox.create(image, connection_config=self.config, **options))

    def end(self, sandbox: Any) -> None:
        self.wait(sandbox.kill())
        self.wait(sandbox.close())


@pytest.fixture(
    params=[("sync", False), ("sync", True), ("async", False), ("async", True)],
    ids=["sync", "sync-proxied", "async", "async-proxied"],
    scope="module",
)
def sdk(request: pytest.FixtureRequest, server: LiveServer) -> Iterator[Sdk]:
    made = Sdk(request.param[0], server, request.param[1])
    yield made
    made.wait.runner.close()


@pytest.fixture(scope="module")
def sandbox(sdk: Sdk) -> Iterator[Any]:
    made = sdk.create()
    yield made
    sdk.end(made)


def texts(messages: list[OutputMessage]) -> str:
    return "".join(one.text for one in messages)


def test_it_is_the_published_package() -> None:
    assert metadata.version("opensandbox") == "1.1.1"


def test_create_is_ready_without_a_wait(sdk: Sdk) -> None:
    begun = time.monotonic()
    made = sdk.create(env={"GREETING": "hello"}, metadata={"team": "a"})
    took = time.monotonic() - begun
    try:
        # A first answer other than 200 to the SDK's ready check costs it 0.5 s of sleep.
        assert took < 0.5, f"create took {took:.3f} s: the SDK slept"
        assert str(uuid.UUID(made.id)) == made.id
        assert sdk.wait(made.is_healthy())
        assert texts(sdk.wait(made.commands.run("echo $GREETING")).logs.stdout) == "hello\n"
    finally:
        sdk.end(made)


@pytest.mark.parametrize(
    ("command", "stdout", "stderr", "code"),
    [
        ("echo hi", "hi\n", "", 0),
        ("printf 'a\\n\\nb'", "a\n\nb", "", 0),
        ("echo out; echo err >&2; exit 3", "out\n", "err\n", 3),
        ("kill -9 $$", "", "", 137),
        ("printf 'h\\xc3\\xa9llo w\\xf6rld\\n'", "héllo w�rld\n", "", 0),
        ("true", "", "", 0),
        ("cat", "", "", 0),
    ],
)
def test_run(sdk: Sdk, sandbox: Any, command: str, stdout: str, stderr: str, code: int) -> None:
    execution = sdk.wait(sandbox.commands.run(command))
    assert texts(execution.logs.stdout) == stdout
    assert texts(execution.logs.stderr) == stderr
    assert execution.exit_code == code
    assert (execution.error is None) == (code == 0)
    assert (execution.complete is None) == (code != 0)


def test_run_with_options(sdk: Sdk, sandbox: Any) -> None:
    options = RunCommandOpts(working_directory="/tmp", envs={"A": "b c"})
    execution = sdk.wait(sandbox.commands.run('pwd; echo "$A"', opts=options))
    assert texts(execution.logs.stdout) == "/tmp\nb c\n"
    late = RunCommandOpts(timeout=timedelta(milliseconds=300))
    begun = time.monotonic()
    execution = sdk.wait(sandbox.commands.run("sleep 30", opts=late))
    assert time.monotonic() - begun < 5
    assert execution.exit_code not in (0, None)
    assert execution.error is not None


def test_a_bad_working_directory_is_an_api_error(sdk: Sdk, sandbox: Any) -> None:
    options = RunCommandOpts(working_directory="/does/not/exist")
    with pytest.raises(SandboxApiException) as caught:
        sdk.wait(sandbox.commands.run("true", opts=options))
    assert caught.value.status_code == 400


def test_background_run_with_status_and_logs(sdk: Sdk, sandbox: Any) -> None:
    script = "echo one; sleep 0.4; echo two; exit 5"
    started = sdk.wait(sandbox.commands.run(script, opts=RunCommandOpts(background=True)))
    assert started.id
    assert started.exit_code is None
    assert sdk.wait(sandbox.commands.get_command_status(started.id)).running
    text, cursor = "", None
    deadline = time.monotonic() + 20
    while True:
        running = sdk.wait(sandbox.commands.get_command_status(started.id)).running
        logs = sdk.wait(sandbox.commands.get_background_command_logs(started.id, cursor))
        text, cursor = text + logs.content, logs.cursor
        if not running:
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert text == "one\ntwo\n"
    status = sdk.wait(sandbox.commands.get_command_status(started.id))
    assert status.exit_code == 5
    assert status.content == script
    assert status.finished_at >= status.started_at


def test_interrupt_ends_a_background_command(sdk: Sdk, sandbox: Any) -> None:
    background = RunCommandOpts(background=True)
    started = sdk.wait(sandbox.commands.run("sleep 1000", opts=background))
    sdk.wait(sandbox.commands.interrupt(started.id))
    deadline = time.monotonic() + 10
    while sdk.wait(sandbox.commands.get_command_status(started.id)).running:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert sdk.wait(sandbox.commands.get_command_status(started.id)).exit_code != 0


def test_files_are_written_read_and_looked_at(sdk: Sdk, sandbox: Any) -> None:
    files = sandbox.files
    binary = bytes(range(256)) * 1000
    sdk.wait(files.write_file("/tmp/sdk/a.txt", "héllo\n"))
    entries = [
        WriteEntry(path="/tmp/sdk/b.bin", data=binary, mode=600),
        WriteEntry(path='/tmp/sdk/sub/ü "x".txt', data="x"),
    ]
    sdk.wait(files.write_files(entries))
    assert sdk.wait(files.read_file("/tmp/sdk/a.txt")) == "héllo\n"
    assert sdk.wait(files.read_bytes("/tmp/sdk/b.bin")) == binary
    assert sdk.wait(files.read_file('/tmp/sdk/sub/ü "x".txt')) == "x"
    found = sdk.wait(files.get_file_info(["/tmp/sdk/a.txt", "/tmp/sdk/b.bin"]))
    assert (found["/tmp/sdk/a.txt"].size, found["/tmp/sdk/a.txt"].mode) == (7, 755)
    assert (found["/tmp/sdk/b.bin"].size, found["/tmp/sdk/b.bin"].mode) == (256_000, 600)
    assert found["/tmp/sdk/a.txt"].owner == "root"
    with pytest.raises(SandboxApiException) as caught:
        sdk.wait(files.read_file("/tmp/sdk/none"))
    assert caught.value.status_code == 404
    sdk.wait(files.delete_files(["/tmp/sdk/a.txt", "/tmp/sdk/gone"]))
    with pytest.raises(SandboxApiException):
        sdk.wait(files.get_file_info(["/tmp/sdk/a.txt"]))


def test_get_info_and_renew(sdk: Sdk, sandbox: Any) -> None:
    info = sdk.wait(sandbox.get_info())
    assert info.id == sandbox.id
    assert info.status.state == "Running"
    assert info.image.image == IMAGE
    assert info.entrypoint == ["tail", "-f", "/dev/null"]
    before = info.expires_at
    sdk.wait(sandbox.renew(timedelta(minutes=30)))
    after = sdk.wait(sandbox.get_info()).expires_at
    assert after > before
    assert abs(after - (datetime.now(UTC) + timedelta(minutes=30))) < timedelta(minutes=1)


def test_sandboxes_are_listed_and_filtered(sdk: Sdk) -> None:
    mark = uuid.uuid4().hex
    made = sdk.create(metadata={"mark": mark})
    manager: Any = sdk.wait(sdk.manager.create(sdk.config))
    try:
        found = sdk.wait(
            manager.list_sandbox_infos(SandboxFilter(states=["Running"], metadata={"mark": mark}))
        )
        assert [one.id for one in found.sandbox_infos] == [made.id]
        none = sdk.wait(
            manager.list_sandbox_infos(SandboxFilter(states=["Paused"], metadata={"mark": mark}))
        )
        assert none.sandbox_infos == []
        assert sdk.wait(manager.get_sandbox_info(made.id)).metadata["mark"] == mark
        sdk.wait(manager.kill_sandbox(made.id))
        with pytest.raises(SandboxApiException) as caught:
            sdk.wait(manager.get_sandbox_info(made.id))
        assert caught.value.status_code == 404
    finally:
        sdk.wait(manager.close())
        sdk.wait(made.close())


def test_pause_and_resume(sdk: Sdk) -> None:
    made = sdk.create()
    try:
        background = RunCommandOpts(background=True)
        counting = "while true; do echo x >> /tmp/ticks; sleep 0.05; done"
        sdk.wait(made.commands.run(counting, opts=background))
        sdk.wait(made.pause())
        assert sdk.wait(made.get_info()).status.state == "Paused"
        with pytest.raises(SandboxApiException) as caught:
            sdk.wait(made.pause())
        assert caught.value.status_code == 409
        resumed = sdk.wait(sdk.sandbox.resume(made.id, connection_config=sdk.config))
        assert sdk.wait(resumed.get_info()).status.state == "Running"
        deadline = time.monotonic() + 10
        first = texts(sdk.wait(resumed.commands.run("wc -l < /tmp/ticks")).logs.stdout)
        while texts(sdk.wait(resumed.commands.run("wc -l < /tmp/ticks")).logs.stdout) == first:
            assert time.monotonic() < deadline, "nothing runs after the resume"
        sdk.wait(resumed.close())
    finally:
        sdk.end(made)


def test_connect_finds_a_running_sandbox(sdk: Sdk, sandbox: Any) -> None:
    again = sdk.wait(sdk.sandbox.connect(sandbox.id, connection_config=sdk.config))
    assert texts(sdk.wait(again.commands.run("echo again")).logs.stdout) == "again\n"
    sdk.wait(again.close())


def test_a_wrong_key_is_refused(sdk: Sdk, server: LiveServer) -> None:
    wrong: Any = type(sdk.config)(domain=server.domain, api_key="wrong")
    with pytest.raises(SandboxApiException) as caught:
        sdk.wait(sdk.sandbox.create(IMAGE, connection_config=wrong))
    assert caught.value.status_code == 401
    assert caught.value.request_id


def test_an_unknown_image_is_told_at_once(sdk: Sdk) -> None:
    begun = time.monotonic()
    with pytest.raises(SandboxApiException) as caught:
        sdk.create("no/such-image:v1")
    assert "no/such-image:v1" in str(caught.value)
    assert time.monotonic() - begun < 5
