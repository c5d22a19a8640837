"""The Deep Agents backend against a real server: fidelity, limits, deaths, and whole agents."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from deepagents import create_deep_agent

from barchan.deepagents import BarchanBackend
from live_server import LiveServer
from scripted import ScriptedModel, ToolCall, answers

GO: Any = {"messages": [{"role": "user", "content": "go"}]}


@pytest.fixture(scope="module")
def backend(server: LiveServer) -> Iterator[BarchanBackend]:
    with BarchanBackend.create("host", server=server.url, api_key=server.api_key) as made:
        yield made


@pytest.fixture
def mortal(server: LiveServer) -> Iterator[BarchanBackend]:
    """A sandbox of its own, for tests that end it."""
    with BarchanBackend.create("host", server=server.url, api_key=server.api_key) as made:
        yield made


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("printf 'a\\n\\n\\nb'", "a\n\n\nb", 0),
        ("echo out; echo err >&2; echo out", None, 0),
        ("pwd", "/workspace\n", 0),
        ("exit 9", "", 9),
        ("kill -9 $$", "", 137),
        ("printf '\\xff\\xfe'", "��", 0),
        ("seq 3\nfor i in a b; do\n  echo $i\ndone", "1\n2\n3\na\nb\n", 0),
    ],
)
def test_execute_is_faithful(
    backend: BarchanBackend, command: str, output: str | None, code: int
) -> None:
    found = backend.execute(command)
    assert found.exit_code == code
    assert output is None or found.output == output
    assert asyncio.run(backend.aexecute(command)).exit_code == code


def test_a_time_limit_is_a_result_and_ends_the_tree(backend: BarchanBackend) -> None:
    begun = time.monotonic()
    found = backend.execute("echo begun; sleep 2718 & sleep 2718", timeout=1)
    assert 0.9 < time.monotonic() - begun < 6
    assert found.exit_code == 124
    assert found.output.startswith("begun\n")
    assert "within 1 s" in found.output
    assert backend.execute("pgrep -fx 'sleep 2718'").exit_code == 1


def test_half_a_megabyte_is_whole_and_more_is_cut(backend: BarchanBackend) -> None:
    whole = backend.execute("head -c 512000 /dev/zero | tr '\\0' x")
    assert (len(whole.output), whole.truncated) == (512_000, False)
    cut = backend.execute("seq 1 400000", timeout=120)
    assert cut.truncated
    assert len(cut.output) < 2_200_000
    assert cut.output.startswith("1\n2\n")
    assert cut.output.endswith("399999\n400000\n")


def test_files_answer_one_by_one(backend: BarchanBackend) -> None:
    backend.execute("mkdir -p /tmp/f/dir; ln -s /tmp/f/dir /tmp/f/l")
    backend.execute("echo x > /tmp/f/none; chmod 000 /tmp/f/none")
    uploaded = backend.upload_files(
        [
            ("/tmp/f/new/deep/a", b"1"),
            ("relative", b"2"),
            ("/tmp/f/dir", b"3"),
            ("/proc/version", b"4"),
            ("/tmp/f/new/deep/a/below", b"5"),
            ("/tmp/f/" + "n" * 300, b"6"),
            ("/tmp/f/b", b"7"),
        ]
    )
    assert [one.error for one in uploaded] == [
        None, "invalid_path", "is_directory", "permission_denied", "invalid_path", "invalid_path",
        None,
    ]  # fmt: skip
    paths = ["/tmp/f/b", "/tmp/f/none", "/tmp/f/dir", "/tmp/f/l", "/tmp/f/no", "b", "/tmp/f/b/x"]
    downloaded = backend.download_files(paths)
    assert [one.path for one in downloaded] == paths
    assert [one.error for one in downloaded] == [
        None, "permission_denied", "is_directory", "is_directory", "file_not_found",
        "invalid_path", "file_not_found",
    ]  # fmt: skip
    assert downloaded[0].content == b"7"
    assert asyncio.run(backend.adownload_files(paths)) == downloaded


def test_listings_tell_errors_from_emptiness(backend: BarchanBackend) -> None:
    backend.execute("mkdir -p /tmp/ls/empty /tmp/ls/d; echo x > /tmp/ls/f; ln -s d /tmp/ls/l")
    listed = backend.ls("/tmp/ls/").entries
    assert listed is not None
    assert sorted((one["path"], one.get("is_dir")) for one in listed) == [
        ("/tmp/ls/d", True),
        ("/tmp/ls/empty", True),
        ("/tmp/ls/f", False),
        ("/tmp/ls/l", False),
    ]
    assert backend.ls("/tmp/ls/empty").entries == []
    assert backend.ls("/tmp/ls/none").error == "Path '/tmp/ls/none': path_not_found"
    assert backend.ls("/tmp/ls/f").error == "Path '/tmp/ls/f': not_a_directory"


def test_the_middlewares_folders_can_be_written(backend: BarchanBackend) -> None:
    for folder in ("/large_tool_results", "/conversation_history", "/blobs", "/workspace"):
        assert backend.write(f"{folder}/x", "y").error is None
        assert backend.delete(f"{folder}/x").error is None


def test_64_commands_at_once_on_one_loop(backend: BarchanBackend) -> None:
    async def many() -> list[Any]:
        return await asyncio.gather(
            *(backend.aexecute(f"sleep 0.5; echo {at}") for at in range(64))
        )

    begun = time.monotonic()
    found = asyncio.run(many())
    assert [one.output for one in found] == [f"{at}\n" for at in range(64)]
    assert time.monotonic() - begun < 10, "one after the other would take 32 s"


def test_cancelling_ends_the_command_in_the_sandbox(backend: BarchanBackend) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(backend.aexecute("sleep 3141 & sleep 3141"))
        both = "until [ $(pgrep -fxc 'sleep 3141') = 2 ]; do sleep 0.02; done"
        assert (await backend.aexecute(both, timeout=10)).exit_code == 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancel(), 20))
    deadline = time.monotonic() + 1
    while backend.execute("pgrep -fx 'sleep 3141'").exit_code == 0:
        assert time.monotonic() < deadline, "the command outlives its caller"


def test_a_killed_sandbox_is_a_result(mortal: BarchanBackend) -> None:
    mortal.sandbox.kill()
    found = mortal.execute("true")
    assert found.exit_code is None
    assert "A new sandbox is needed" in found.output
    assert mortal.ls("/").error
    assert mortal.read("/x").error
    assert mortal.write("/x", "y").error
    assert mortal.edit("/x", "a", "b").error
    assert mortal.grep("x", "/").error
    assert mortal.glob("*").error
    assert mortal.delete("/x").error
    assert mortal.upload_files([("/x", b"")])[0].error
    assert mortal.download_files(["/x"])[0].error


def test_a_sandbox_that_ends_itself_says_why(mortal: BarchanBackend) -> None:
    # Its entrypoint is the main process: with it the sandbox ends.
    found = mortal.execute("pkill -x tail; sleep 30", timeout=40)
    assert found.exit_code is None or found.exit_code != 0
    deadline = time.monotonic() + 10
    while mortal.execute("true").exit_code == 0:
        assert time.monotonic() < deadline
    assert "A new sandbox is needed" in mortal.execute("true").output


def test_a_paused_sandbox_says_so(mortal: BarchanBackend) -> None:
    mortal.sandbox.pause()
    begun = time.monotonic()
    found = mortal.execute("true", timeout=1)
    assert time.monotonic() - begun < 40
    assert found.exit_code is None
    assert "paused" in found.output.lower()
    mortal.sandbox.resume()
    assert mortal.execute("echo back").output == "back\n"


def test_a_server_that_is_killed_and_comes_back(own_server: LiveServer) -> None:
    backend = BarchanBackend.create("host", server=own_server.url, api_key=own_server.api_key)
    assert backend.execute("echo one > /tmp/kept").exit_code == 0
    own_server.end(signal.SIGKILL)
    gone = backend.execute("true")
    assert gone.exit_code is None
    assert "cannot connect" in gone.output
    own_server.start()
    assert backend.execute("cat /tmp/kept").output == "one\n"
    backend.kill()


def test_an_agent_uses_every_tool(backend: BarchanBackend) -> None:
    work = "/workspace/agent"
    turns: list[list[ToolCall]] = [
        [("write_file", {"file_path": f"{work}/a.py", "content": "print(6 * 7)\n"})],
        [("edit_file", {"file_path": f"{work}/a.py", "old_string": "7", "new_string": "70"})],
        [("execute", {"command": f"python3 {work}/a.py"})],
        [("ls", {"path": work}), ("read_file", {"file_path": f"{work}/a.py"})],
        [("grep", {"pattern": "print", "path": work}), ("glob", {"pattern": "*.py", "path": work})],
        [("execute", {"command": "exit 3"}), ("execute", {"command": "sleep 9", "timeout": 1})],
        [("delete", {"file_path": f"{work}/a.py"})],
    ]
    agent = create_deep_agent(model=ScriptedModel(turns=turns), backend=backend)
    for invoke in (agent.invoke, lambda given: asyncio.run(agent.ainvoke(given))):
        said = answers(invoke(GO)["messages"])
        assert "420" in said["t2c0"].text
        assert "a.py" in said["t3c0"].text
        assert "print(6 * 70)" in said["t3c1"].text
        assert "a.py" in said["t4c0"].text + said["t4c1"].text
        assert said["t5c0"].artifact["exit_code"] == 3
        assert said["t5c1"].artifact["exit_code"] == 124
        assert backend.ls(work).entries == []


def test_an_agent_whose_sandbox_dies_goes_on(mortal: BarchanBackend) -> None:
    turns: list[list[ToolCall]] = [
        [("execute", {"command": "echo alive"})],
        [("execute", {"command": "echo dead"}), ("ls", {"path": "/"})],
        [("write_file", {"file_path": "/x", "content": "y"})],
    ]

    def kill_it(turn: int) -> None:
        if turn == 1:
            mortal.sandbox.kill()

    model = ScriptedModel(turns=turns, before=kill_it)
    agent = create_deep_agent(model=model, backend=mortal)
    messages = agent.invoke(GO)["messages"]
    said = answers(messages)
    assert "alive" in said["t0c0"].text
    assert "A new sandbox is needed" in said["t1c0"].text
    assert "A new sandbox is needed" in said["t1c1"].text
    assert "A new sandbox is needed" in said["t2c0"].text
    assert messages[-1].text == "done"


def test_both_sides_of_a_fork_use_the_backend(backend: BarchanBackend) -> None:
    assert backend.execute("echo parent").output == "parent\n"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            blocking = backend.execute("echo child").output
            native = asyncio.run(backend.aexecute("echo child")).output
            code = 0 if blocking == native == "child\n" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend.execute("echo again").output == "again\n"
