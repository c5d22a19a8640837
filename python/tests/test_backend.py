"""The Deep Agents backend against scripted servers: whatever happens is a result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from deepagents.backends.protocol import ExecuteResponse, execute_accepts_timeout

from barchan import BarchanError, Sandbox
from barchan import _backend_rules as rules
from barchan.deepagents import BarchanBackend
from fake_server import (
    HANG_UP,
    FakeServer,
    Handler,
    Seen,
    answer,
    event,
    failure,
    json_answer,
    stream,
)

DONE = event("execution_complete", execution_time=1)
GONE = json_answer({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "Sandbox s not found"}, 404)
Execute = Callable[..., ExecuteResponse]


def file_info(path: str, kind: str = "file", mode: int = 644) -> dict[str, Any]:
    return {
        "path": path, "type": kind, "mode": mode, "size": 1, "owner": "root", "group": "root",
        "modified_at": "2025-01-01T00:00:00Z", "created_at": "2025-01-01T00:00:00Z",
    }  # fmt: skip


def backend(server: FakeServer, **options: Any) -> BarchanBackend:
    return BarchanBackend(Sandbox("s", server.address), **options)


@pytest.fixture(params=["blocking", "async"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a method of a backend, or its async twin."""

    def run(target: BarchanBackend, method: str, *args: Any, **options: Any) -> Any:
        if request.param == "blocking":
            return getattr(target, method)(*args, **options)
        return asyncio.run(getattr(target, f"a{method}")(*args, **options))

    return run


Call = Callable[..., Any]


def always(reply: bytes) -> Handler:
    return lambda _: [reply]


@pytest.mark.parametrize(
    ("end", "code", "note"),
    [
        (DONE, 0, ""),
        (failure("3", "exit status 3"), 3, ""),
        (failure("137", "signal: killed"), 137, ""),
        (failure("-1", "signal: killed"), 137, ""),
        (failure("137", "timeout: killed after 5000 ms"), 124, "did not end within 5 s"),
        (failure("no such shell", "fork/exec"), 126, "could not be started: no such shell"),
    ],
)
def test_the_end_of_a_command_is_a_result(call: Call, end: bytes, code: int, note: str) -> None:
    reply = stream(event("init", "c"), event("stdout", "a\n"), event("stderr", "b"), end)
    with FakeServer(always(reply)) as server:
        found = call(backend(server, workdir="/w"), "execute", "x", timeout=5)
    assert found.exit_code == code
    assert found.output.startswith("a\nb")
    assert note in found.output
    assert not found.truncated
    assert json.loads(server.seen[0].body) == {"command": "x", "cwd": "/w", "timeout": 5000}


@pytest.mark.parametrize(
    ("timeout", "default", "sent"), [(None, 7.0, 7000), (0, 7.0, None), (3, 7.0, 3000)]
)
def test_the_time_limit_is_the_agents_or_the_default(
    call: Call, timeout: int | None, default: float, sent: int | None
) -> None:
    with FakeServer(always(stream(event("init", "c"), DONE))) as server:
        call(backend(server, command_timeout_s=default), "execute", "x", timeout=timeout)
    assert json.loads(server.seen[0].body).get("timeout") == sent


def test_long_output_is_cut_and_says_so(call: Call) -> None:
    reply = stream(event("init", "c"), event("stdout", "x" * 3_000_000), DONE)
    with FakeServer(always(reply)) as server:
        found = call(backend(server), "execute", "x")
    assert found.truncated
    assert 2_000_000 < len(found.output) < 2_200_000


def state(name: str, message: str = "") -> bytes:
    return json_answer({"id": "s", "status": {"state": name, "message": message}})


def failing(reply: bytes, sandbox: bytes) -> Handler:
    """Commands get one answer, questions about the sandbox another; files fail in any case."""

    def serve(request: Seen) -> Iterable[bytes]:
        if request.path == "/v1/sandboxes/s":
            return [sandbox]
        of_files = "/command" not in request.path
        return [answer(502) if of_files and b" 200 " in reply else reply, HANG_UP]

    return serve


@pytest.mark.parametrize(
    ("reply", "sandbox", "words"),
    [
        (GONE, GONE, "A new sandbox is needed"),
        (json_answer({"code": "C", "message": "m"}, 409), state("Paused"), "Resume it"),
        (answer(502), state("Failed", "out of memory"), "It is Failed (out of memory)"),
        (json_answer({"code": "C", "message": "bad cwd"}, 400), state("Running"), "bad cwd"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + event("init", "c"), state("Running"), "unknown how far"),
        (b"SSH-2.0\r\n\r\n", state("Running"), "PROTOCOL"),
        (HANG_UP, state("Terminated", "exited"), "It is Terminated (exited)"),
    ],
)
def test_no_failure_leaves_the_backend(
    call: Call, reply: bytes, sandbox: bytes, words: str
) -> None:
    with FakeServer(failing(reply, sandbox)) as server:
        target = backend(server)
        found = call(target, "execute", "x")
        assert found.exit_code is None
        assert words in found.output
        assert call(target, "ls", "/x").error
        uploaded = call(target, "upload_files", [("/a", b"1"), ("b", b"2"), ("/c", b"3")])
        assert [one.path for one in uploaded] == ["/a", "b", "/c"]
        assert uploaded[1].error == "invalid_path"
        assert uploaded[0].error
        assert uploaded[2].error
        downloaded = call(target, "download_files", ["/a", "b"])
        assert downloaded[0].content is None
        assert downloaded[0].error
        assert downloaded[1].error == "invalid_path"


def test_no_server_is_a_result(call: Call) -> None:
    with FakeServer(always(answer())) as server:
        target = backend(server)
    found = call(target, "execute", "x")
    assert found.exit_code is None
    assert "Nothing was done" in found.output
    assert call(target, "upload_files", [("/a", b"")])[0].error
    assert call(target, "download_files", ["/a"])[0].error
    assert call(target, "ls", "/").error
    call(target, "kill")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/a", None),
        ("/a b/ü\n", None),
        ("a", "invalid_path"),
        ("", "invalid_path"),
        ("./a", "invalid_path"),
        ("/a\0b", "invalid_path"),
        ("/" + "x" * 255, None),
        ("/" + "x" * 256, "invalid_path"),
        ("/" + "é" * 128, "invalid_path"),
        ("/" + "x/" * 2048, "invalid_path"),
        ("/\ud800", "invalid_path"),
        ("/a/$HOME", "invalid_path"),
        ("/a/${X}", "invalid_path"),
        ("/a$/$1/$(b)", None),
    ],
)
def test_impossible_paths_are_told_before_anything_is_sent(path: str, code: str | None) -> None:
    assert rules.path_problem(path) == code


TREE = {
    "/file": file_info("/file"),
    "/secret": file_info("/secret", mode=0),
    "/write-only": file_info("/write-only", mode=200),
    "/dir": file_info("/dir", "directory", 755),
    "/link": file_info("/link", "symlink", 777),
}
NO_FILE = json_answer({"code": "FILE_NOT_FOUND", "message": "no such file"}, 404)


def files(request: Seen) -> Iterable[bytes]:
    parts = urlsplit(request.path)
    paths = parse_qs(parts.query)["path"]
    if any(path not in TREE for path in paths):
        return [NO_FILE]
    if parts.path.endswith("/files/info"):
        return [json_answer({path: TREE[path] for path in paths})]
    return [answer(body=f"content of {paths[0]}".encode())]


def test_downloads_answer_for_each_file_in_order(call: Call) -> None:
    expected = [
        ("/file", b"content of /file", None),
        ("/missing", None, "file_not_found"),
        ("/secret", None, "permission_denied"),
        ("/write-only", None, "permission_denied"),
        ("/dir", None, "is_directory"),
        ("relative", None, "invalid_path"),
        ("/link", b"content of /link", None),
    ]
    with FakeServer(files) as server:
        found = call(backend(server), "download_files", [path for path, _, _ in expected])
    assert [(one.path, one.content, one.error) for one in found] == expected


def picky(request: Seen) -> Iterable[bytes]:
    """Refuses an upload that holds the file /dir or /locked, in the words of the daemon."""
    for path, words in (("/dir", "is a directory"), ("/locked", "permission denied")):
        if f'"path": "{path}"'.encode() in request.body:
            message = f"cannot write {path}: {words}"
            return [json_answer({"code": "RUNTIME_ERROR", "message": message}, 500)]
    return [answer()]


def test_uploads_answer_for_each_file_in_order(call: Call) -> None:
    sent = [("/a", b"1"), ("/dir", b"2"), ("rel", b"3"), ("/locked", b"4"), ("/b", b"5")]
    with FakeServer(picky) as server:
        found = call(backend(server), "upload_files", sent)
        assert [(one.path, one.error) for one in found] == [
            ("/a", None),
            ("/dir", "is_directory"),
            ("rel", "invalid_path"),
            ("/locked", "permission_denied"),
            ("/b", None),
        ]
        server.seen.clear()
        good = call(backend(server), "upload_files", [("/a", b"1"), ("/b", b"2")])
        assert [one.error for one in good] == [None, None]
        assert len(server.seen) == 1, "one request for all"
        assert call(backend(server), "upload_files", []) == []


def lifecycle(request: Seen) -> Iterable[bytes]:
    if request.path == "/v1/sandboxes":
        return [json_answer({"id": "s", "status": {"state": "Running"}}, 202)]
    if request.path.endswith("/renew-expiration"):
        return [json_answer({"expiresAt": "2030-01-01T00:00:00Z"})]
    if request.path.endswith("/command"):
        return [stream(event("init", "c"), DONE)]
    return [answer()]


def test_create_makes_the_folders_that_the_middleware_needs() -> None:
    with FakeServer(lifecycle) as server:
        with BarchanBackend.create(server=str(server.address), lifetime_s=600) as target:
            assert target.id == "s"
            assert execute_accepts_timeout(type(target))
        made, folders, killed = server.seen
        assert json.loads(made.body)["image"] == {"uri": "data-science"}
        assert json.loads(made.body)["timeout"] == 600
        assert folders.path.endswith("/directories")
        assert json.loads(folders.body) == {
            path: {"mode": 777}
            for path in ("/workspace", "/large_tool_results", "/conversation_history", "/blobs")
        }
        assert (killed.method, killed.path) == ("DELETE", "/v1/sandboxes/s")


def test_a_sandbox_that_cannot_be_prepared_is_removed() -> None:
    def refuse(request: Seen) -> Iterable[bytes]:
        if request.path.endswith("/directories"):
            return [json_answer({"code": "C", "message": "read-only"}, 500)]
        return lifecycle(request)

    with FakeServer(refuse) as server:
        with pytest.raises(BarchanError, match="read-only"):
            BarchanBackend.create(server=str(server.address))
        assert server.seen[-1].method == "DELETE"


def test_when_a_sandbox_is_due_for_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("barchan.deepagents.time.monotonic", lambda: now)
    with FakeServer(lifecycle) as server:
        target = backend(server, lifetime_s=1000)
    for now, limit_s, due_s in [
        (10, 10, None),
        (499, 10, None),
        (600, 10, 1000),
        (610, 10, None),
        (620, 5000, 5060),
        (630, 10, None),
    ]:
        assert target._due(limit_s) == due_s, now
    assert backend(server, lifetime_s=None)._due(10_000) is None


def test_a_sandbox_in_use_is_renewed(call: Call) -> None:
    with FakeServer(lifecycle) as server:
        target = backend(server, lifetime_s=1000, command_timeout_s=5000)
        assert call(target, "execute", "x").exit_code == 0
        assert call(target, "execute", "y", timeout=7).exit_code == 0
        verbs = [one.path.rpartition("/")[2] for one in server.seen]
        assert verbs == ["renew-expiration", "command", "command"]


def test_the_object_does_no_io_when_it_is_made(tmp_path: Path) -> None:
    target = BarchanBackend.attach("s", server=f"unix:{tmp_path}/none")
    assert target.id == "s"
