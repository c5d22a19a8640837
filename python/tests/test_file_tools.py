"""The backend's file operations against a scripted daemon: exact texts, one call each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from deepagents.backends import sandbox as stock
from deepagents.backends import utils
from deepagents.backends.protocol import BackendProtocol

from barchan import Sandbox
from barchan import _tool_rules as tools
from barchan.deepagents import BarchanBackend
from fake_server import FakeServer, Seen, json_answer

Call = Callable[..., Any]
OPERATIONS: list[tuple[str, tuple[Any, ...]]] = [
    ("ls", ("/d",)),
    ("read", ("/f",)),
    ("write", ("/f", "x")),
    ("edit", ("/f", "old", "new")),
    ("delete", ("/f",)),
    ("grep", ("x", "/d")),
    ("glob", ("*", "/d")),
]


@pytest.fixture(params=["blocking", "async"])
def call(request: pytest.FixtureRequest) -> Call:
    """Calls a method of a backend, or its async twin."""

    def run(target: BarchanBackend, method: str, *args: Any, **options: Any) -> Any:
        if request.param == "blocking":
            return getattr(target, method)(*args, **options)
        return asyncio.run(getattr(target, f"a{method}")(*args, **options))

    return run


def backend(server: FakeServer, **options: Any) -> BarchanBackend:
    return BarchanBackend(Sandbox("s", server.address), **options)


def answering(call: Call, method: str, args: tuple[Any, ...], reply: bytes, **options: Any) -> Any:
    """The result of one operation, its error dropped of what is None; and what was asked."""
    with FakeServer(lambda _: [reply]) as server:
        found = call(backend(server, workdir="/w"), method, *args, **options)
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("POST", f"/v1/sandboxes/s/proxy/44772/x/fs/{method}")
    asked = json.loads(seen.body)
    assert asked.pop("workdir") == "/w"
    return asdict(found), asked


def test_the_texts_are_those_of_the_installed_sdk() -> None:
    assert tools.EMPTY == utils.EMPTY_CONTENT_WARNING
    assert tools.EMPTY_OLD == utils.EMPTY_OLD_STRING_ERROR
    assert tools.CUT == stock.TRUNCATION_MSG
    assert tools.BYTES_MAX == stock.MAX_OUTPUT_BYTES == stock.MAX_BINARY_BYTES
    # Without an own `delete` the middleware hides the tool.
    assert BarchanBackend.delete is not BackendProtocol.delete


PAGE = {
    "encoding": "utf-8", "content": "a\nb", "start_line": 3, "end_line": 4, "total_lines": 9,
    "next_offset": 4, "truncated": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "args", "answer", "asked", "result"),
    [
        (
            "ls",
            ("/d",),
            {
                "entries": [
                    {"path": "/d/a", "type": "directory"},
                    {"path": "/d/ü", "type": "symlink"},
                ]
            },
            {"path": "/d", "details": False},
            {"entries": [{"path": "/d/a", "is_dir": True}, {"path": "/d/ü", "is_dir": False}]},
        ),
        ("ls", ("/d",), {"entries": []}, None, {"entries": []}),
        (
            "read",
            ("/f", 2, 2),
            PAGE,
            {"path": "/f", "offset": 2, "limit": 2, "bytes_max": tools.PAGE_BYTES_MAX},
            {
                "file_data": {"content": "a\nb", "encoding": "utf-8"},
                "start_line": 3,
                "end_line": 4,
                "total_lines": 9,
                "next_offset": 4,
            },
        ),
        (
            "read",
            ("/f",),
            {**PAGE, "truncated": True, "total_lines": None},
            None,
            {
                "file_data": {"content": "a\nb" + tools.CUT, "encoding": "utf-8"},
                "start_line": 3,
                "end_line": 4,
                "next_offset": 4,
            },
        ),
        (
            "read",
            ("/f",),
            {"encoding": "utf-8", "content": "", "total_lines": 0},
            None,
            {"file_data": {"content": tools.EMPTY, "encoding": "utf-8"}},
        ),
        (
            "read",
            ("/f", 0, 0),
            {"encoding": "utf-8", "content": ""},
            None,
            {"file_data": {"content": "", "encoding": "utf-8"}, "no_lines_requested": True},
        ),
        (
            "read",
            ("/f.png", -(2**70), 2**70),
            {"encoding": "base64", "content": "eA=="},
            {
                "path": "/f.png",
                "offset": -(2**63) + 1,
                "limit": 2**63 - 1,
                "bytes_max": tools.PAGE_BYTES_MAX,
            },
            {"file_data": {"content": "eA==", "encoding": "base64"}},
        ),
        (
            "write",
            ("/f", "ü\r\n"),
            {"size": 4},
            {"path": "/f", "content": "ü\r\n", "create": False},
            {"path": "/f"},
        ),
        (
            "edit",
            ("/f", "a", "", True),
            {"occurrences": 3},
            {"path": "/f", "old": "a", "new": "", "replace_all": True},
            {"path": "/f", "occurrences": 3},
        ),
        ("delete", ("/d/",), {"path": "/d"}, {"path": "/d/"}, {"path": "/d/"}),
        (
            "grep",
            ("x",),
            {
                "matches": [
                    {"path": "/w/a", "line": 1, "text": "x"},
                    {"path": "/w/b", "line": 2, "text": "y", "cut": True},
                ],
                "truncated": "count",
            },
            {
                "pattern": "x",
                "regex": False,
                "ignore_case": False,
                "mode": "matches",
                "max_count": 10_000,
                "exclude_dirs": [".git"],
            },
            {
                "matches": [
                    {"path": "/w/a", "line": 1, "text": "x"},
                    {"path": "/w/b", "line": 2, "text": "y" + tools.LINE_CUT},
                ],
                "truncated": True,
            },
        ),
        ("grep", ("x", "/d"), {}, None, {"matches": []}),
        (
            "glob",
            ("*.py", "d"),
            {"paths": ["/d/a.py"], "truncated": "time"},
            {"pattern": "*.py", "path": "/d"},
            {
                "matches": [{"path": "/d/a.py", "is_dir": False}],
                "truncated": True,
                "truncation_reason": "budget",
            },
        ),
        (
            "glob",
            ("*",),
            {"paths": [], "truncated": "unreadable"},
            {"pattern": "*", "path": "/"},
            {"matches": [], "truncated": True, "truncation_reason": "unreadable"},
        ),
    ],
)
def test_answers_become_results(
    call: Call, method: str, args: tuple[Any, ...], answer: Any, asked: Any, result: Any
) -> None:
    found, sent = answering(call, method, args, json_answer(answer))
    assert {name: value for name, value in found.items() if value not in (None, False)} == result
    assert asked is None or sent == asked


@pytest.mark.parametrize(
    ("method", "args", "code", "text"),
    [
        ("ls", ("/d",), "path_not_found", "Path '/d': path_not_found"),
        ("ls", ("/d",), "not_a_directory", "Path '/d': not_a_directory"),
        ("ls", ("/d",), "permission_denied", "Path '/d': permission_denied"),
        ("read", ("/f",), "path_not_found", "File '/f': file_not_found"),
        ("read", ("/f",), "permission_denied", "File '/f': permission_denied"),
        ("read", ("/f",), "is_a_directory", "File '/f': not_a_file"),
        ("read", ("/f",), "not_a_file", "File '/f': not_a_file"),
        (
            "read",
            ("/f", 9),
            "offset_beyond_end",
            "File '/f': Line offset 9 exceeds file length (7 lines)",
        ),
        (
            "read",
            ("/f",),
            "too_large",
            "File '/f': Binary file exceeds maximum preview size of 512000 bytes",
        ),
        ("write", ("/f", "x"), "is_a_directory", "Failed to write file '/f': is_directory"),
        ("write", ("/f", "x"), "no_space", "Failed to write file '/f': no_space"),
        ("edit", ("/f", "o", "n"), "path_not_found", "Error: File '/f' not found"),
        ("edit", ("/f", "o", "n"), "not_a_file", "Error: '/f' is not a regular file"),
        ("edit", ("/f", "o", "n"), "is_a_directory", "Error: '/f' is not a regular file"),
        ("edit", ("/f", "o", "n"), "not_text", "Error: File '/f' is not a text file"),
        (
            "edit",
            ("/f", "o", "n"),
            "permission_denied",
            "Error: Permission denied editing file '/f'",
        ),
        ("edit", ("/f", "o", "n"), "string_not_found", "Error: String not found in file: 'o'"),
        (
            "edit",
            ("/f", "o", "n"),
            "multiple_occurrences",
            (
                "Error: String 'o' appears multiple times. "
                "Use replace_all=True to replace all occurrences."
            ),
        ),
        ("edit", ("/f", "", "n"), "empty_old", tools.EMPTY_OLD),
        ("edit", ("/f", "o", "n"), "failed", "Error editing file '/f': words of the daemon"),
        ("delete", ("/f",), "path_not_found", "Error: '/f' not found"),
        ("delete", ("/f",), "protected", "Error deleting file '/f': words of the daemon"),
        ("grep", ("x", "/d"), "path_not_found", "Path '/d': path_not_found"),
        ("grep", ("x",), "failed", "Path '.': words of the daemon"),
        ("glob", ("*", "/d"), "path_not_found", "Path '/d': path_not_found"),
        ("glob", ("*", "/d"), "not_a_directory", "Path '/d': not_a_directory"),
        ("glob", ("../*",), "invalid_pattern", "Path '/': invalid_pattern"),
        ("glob", ("{a,b}",), "pattern_too_broad", "Path '/': pattern_too_broad"),
    ],
)
def test_refusals_have_the_texts_that_agents_know(
    call: Call, method: str, args: tuple[Any, ...], code: str, text: str
) -> None:
    refusal = {"code": code, "message": "words of the daemon", "count": 7}
    found, _ = answering(call, method, args, json_answer(refusal, 400))
    assert {name: value for name, value in found.items() if value not in (None, False)} == {
        "error": text
    }


@pytest.mark.parametrize(("method", "args"), OPERATIONS)
def test_a_path_below_the_working_directory_is_named(
    call: Call, method: str, args: tuple[Any, ...]
) -> None:
    refusal = {"code": "path_not_found", "message": "m", "suggestion": "/w/f"}
    found, _ = answering(call, method, args, json_answer(refusal, 404))
    assert "Did you mean '/w/f'?" in found["error"]


@pytest.mark.parametrize(("method", "args"), OPERATIONS)
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (json_answer({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "m"}, 404), "new sandbox"),
        (json_answer({"code": "C", "message": "m"}, 502), "unknown how far"),
        (json_answer({"matches": [{"line": "x"}], "paths": 1, "entries": {}}), "no sense"),
        (json_answer([]), "no sense"),
        (b"SSH-2.0\r\n\r\n", "PROTOCOL"),
    ],
)
def test_no_failure_leaves_an_operation(
    call: Call, method: str, args: tuple[Any, ...], reply: bytes, words: str
) -> None:
    def serve(request: Seen) -> list[bytes]:
        if request.path == "/v1/sandboxes/s":
            return [json_answer({"id": "s", "status": {"state": "Running"}})]
        return [reply]

    with FakeServer(serve) as server:
        found = call(backend(server), method, *args)
    assert words in found.error


@pytest.mark.parametrize("method", ["ls", "read", "delete"])
def test_what_is_no_text_is_sent_and_refused(call: Call, method: str) -> None:
    refusal = json_answer({"code": "invalid_request", "message": "no JSON"}, 400)
    with FakeServer(lambda _: [refusal]) as server:
        found = call(backend(server), method, "/\ud800")
    assert "no JSON" in found.error


def test_a_sandbox_in_use_is_renewed(call: Call) -> None:
    def serve(request: Seen) -> list[bytes]:
        if request.path.endswith("/renew-expiration"):
            return [json_answer({"expiresAt": "2030-01-01T00:00:00Z"})]
        return [json_answer({"entries": []})]

    with FakeServer(serve) as server:
        target = backend(server, lifetime_s=1000)
        target._ends_at = 0
        for _ in range(2):
            assert call(target, "ls", "/").entries == []
    assert [one.path.rpartition("/")[2] for one in server.seen] == ["renew-expiration", "ls", "ls"]
