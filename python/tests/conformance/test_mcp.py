"""The unmodified MCP server `opensandbox-mcp` 1.1.1 offers our sandboxes as tools."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from conformance.world import WAIT_S
from live_server import LiveServer


class Tools:
    """Calls tools and gives what they answer."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.sandbox = ""

    async def __call__(self, name: str, **arguments: Any) -> Any:
        if self.sandbox:
            arguments.setdefault("sandbox_id", self.sandbox)
        answer = await self.session.call_tool(name, arguments)
        text = "".join(getattr(one, "text", "") for one in answer.content)
        assert not failed(answer), f"{name}: {text}"
        return json.loads(text) if text else None

    async def refusal(self, name: str, **arguments: Any) -> None:
        """A tool that does not do what it is asked for."""
        if self.sandbox and name not in ("sandbox_create", "sandbox_list"):
            arguments.setdefault("sandbox_id", self.sandbox)
        async with asyncio.timeout(ANSWER_S):
            answer = await self.session.call_tool(name, arguments)
        assert failed(answer), (name, arguments, answer)


def failed(answer: Any) -> bool:
    """Whether a tool says that it failed; the field has had two spellings."""
    return bool(getattr(answer, "isError", getattr(answer, "is_error", False)))


@asynccontextmanager
async def tools(server: LiveServer, **more: str) -> AsyncIterator[Tools]:
    program = Path(sys.executable).with_name("opensandbox-mcp")
    env = {
        **os.environ,
        "OPEN_SANDBOX_DOMAIN": server.domain,
        "OPEN_SANDBOX_API_KEY": server.api_key,
        **more,
    }
    # Left alone it fills the machine's memory: it must not outlive a test run that was killed.
    guarded = ["--pdeathsig", "KILL", str(program)]
    parameters = StdioServerParameters(command="setpriv", args=guarded, env=env)
    async with (
        asyncio.timeout(2 * WAIT_S),
        stdio_client(parameters) as (reader, writer),
        ClientSession(reader, writer) as one,
    ):
        await one.initialize()
        yield Tools(one)


def test_it_is_the_published_program() -> None:
    assert metadata.version("opensandbox-mcp") == "1.1.1"


async def test_every_tool(server: LiveServer) -> None:
    used: set[str] = set()
    async with tools(server) as call:
        made = await call(
            "sandbox_create",
            image="host",
            entrypoint=["tail", "-f", "/dev/null"],
            env={"A": "b"},
            metadata={"team": "mcp"},
            timeout_seconds=300,
        )
        call.sandbox = made["sandbox_id"]

        async def tool(name: str, **arguments: Any) -> Any:
            used.add(name)
            return await call(name, **arguments)

        assert (await tool("sandbox_get_info"))["status"]["state"] == "Running"
        assert (await tool("sandbox_healthcheck"))["healthy"]
        assert await tool("sandbox_get_metrics")
        assert "44772" in json.dumps(await tool("sandbox_get_endpoint", port=44772))
        await tool("sandbox_renew", timeout_seconds=600)
        ran = await tool("command_run", command="echo $A; echo e >&2; exit 3")
        assert '"b' in json.dumps(ran)
        assert "3" in json.dumps(ran["error"])
        await tool("file_create_directories", entries=[{"path": "/tmp/mcp/sub"}])
        await tool("file_write", path="/tmp/mcp/a.txt", content="one two")
        assert (await tool("file_read", path="/tmp/mcp/a.txt"))["content"] == "one two"
        found = await tool("file_search", path="/tmp/mcp", pattern="*.txt")
        assert "/tmp/mcp/a.txt" in json.dumps(found)
        entry = {"path": "/tmp/mcp/a.txt", "old_content": "two", "new_content": "three"}
        await tool("file_replace_contents", entries=[entry])
        moves = [{"src": "/tmp/mcp/a.txt", "dest": "/tmp/mcp/b.txt"}]
        await tool("file_move", entries=moves)
        assert (await tool("file_read", path="/tmp/mcp/b.txt"))["content"] == "one three"
        await tool("file_delete", paths=["/tmp/mcp/b.txt"])
        await tool("file_delete_directories", paths=["/tmp/mcp"])
        started = await tool("command_run", command="sleep 600", background=True)
        await tool("command_interrupt", execution_id=started["id"])
        await tool("sandbox_connect")
        await tool("sandbox_kill")
        offered = {one.name for one in (await call.session.list_tools()).tools}
        assert offered - used == {"sandbox_create", "sandbox_list"}


async def test_sandboxes_are_listed(server: LiveServer) -> None:
    async with tools(server) as call:
        listed = await call.session.call_tool("sandbox_list", {})
        assert not failed(listed)


NOBODY = {"sandbox_id": "00000000-0000-0000-0000-000000000000"}
# Tools that fail, before and behind the start of a sandbox.
STRAY: list[tuple[str, dict[str, Any]]] = [
    ("sandbox_get_info", NOBODY),
    ("sandbox_connect", NOBODY),
    ("sandbox_kill", NOBODY),
    ("command_run", {**NOBODY, "command": "true"}),
    ("command_run", {**NOBODY, "command": "true", "connect_if_missing": True}),
    ("file_read", {**NOBODY, "path": "/x", "connect_if_missing": True}),
    ("sandbox_create", {"image": "no/such:image"}),
    ("sandbox_create", {"image": "host", "timeout_seconds": 1}),
    ("sandbox_create", {"image": "host", "resource": {"cpu": "much"}}),
]
MOVE = {"src": "/none", "dest": "/x"}
REPLACE = {"path": "/none", "old_content": "a", "new_content": "b"}
INSIDE: list[tuple[str, dict[str, Any]]] = [
    ("command_run", {"command": "true", "working_directory": "/none"}),
    ("command_interrupt", {"execution_id": "0" * 32}),
    ("file_read", {"path": "/none"}),
    ("file_read", {"path": "/tmp"}),
    ("file_write", {"path": "/usr/x", "content": ""}),
    ("file_search", {"path": "/none", "pattern": "*"}),
    ("file_move", {"entries": [MOVE]}),
    ("file_replace_contents", {"entries": [REPLACE]}),
    ("sandbox_get_endpoint", {"port": 0}),
    ("sandbox_renew", {"timeout_seconds": -1}),
]
ANSWER_S = 10.0


async def test_refusals_are_answers(server: LiveServer, plain_logs: dict[str, str]) -> None:
    async with tools(server, **plain_logs) as call:
        for name, arguments in STRAY:
            await call.refusal(name, **arguments)
        made = await call("sandbox_create", image="host", entrypoint=["tail", "-f", "/dev/null"])
        call.sandbox = made["sandbox_id"]
        for name, arguments in INSIDE:
            await call.refusal(name, **arguments)
        # The program goes on, and so does the sandbox.
        assert (await call("file_write", path="/tmp/on", content="on"))["status"] == "written"
        await call("sandbox_kill")


@pytest.mark.parametrize(
    ("command", "code", "stderr"),
    [("exit 3", "3", ""), ("no_such_x", "127", "no_such_x"), ("kill -9 $$", "137", "")],
)
async def test_a_command_that_fails_is_a_result(
    server: LiveServer, command: str, code: str, stderr: str
) -> None:
    async with tools(server) as call:
        made = await call("sandbox_create", image="host", entrypoint=["tail", "-f", "/dev/null"])
        call.sandbox = made["sandbox_id"]
        async with asyncio.timeout(ANSWER_S):
            ran = await call("command_run", command=command)
        assert (ran["error"]["value"], ran["exit_code"]) == (code, int(code))
        assert stderr in json.dumps(ran["logs"]["stderr"])
        await call("sandbox_kill")
