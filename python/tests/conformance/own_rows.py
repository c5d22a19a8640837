"""Barchan's own routes of the in-sandbox API, below `/x`, and what it adds to others."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
from typing import Any

import httpx

from conformance.later_rows import UPGRADE
from conformance.rows import Row, events
from conformance.shapes import BAD_BODY, BAD_FILE, MISSING, NO_CONTEXT, NO_FILE, nothing

BAD_CONTENT = "INVALID_FILE_CONTENT"
FAILED = "RUNTIME_ERROR"
STARTED, STDOUT, STDERR, GAP, ALIVE, USAGE, ENDED = range(7)


def frames(answer: httpx.Response) -> list[tuple[int, int, bytes]]:
    """Kind, offset and payload of each frame."""
    assert answer.headers["content-type"] == "application/vnd.barchan.exec"
    found, rest = [], answer.content
    while rest:
        kind, offset, length = struct.unpack_from(">BQI", rest)
        found.append((kind, offset, rest[13 : 13 + length]))
        rest = rest[13 + length :]
    return found


def printed(answer: httpx.Response, kind: int = STDOUT) -> bytes:
    return b"".join(payload for it, _, payload in frames(answer) if it == kind)


def ended(answer: httpx.Response, code: int) -> bool:
    """The stream has its first and its last frame, and the last one has this exit code."""
    found = frames(answer)
    kinds = [kind for kind, _, _ in found]
    end = json.loads(found[-1][2])
    return kinds[0] == STARTED and kinds[-1] == ENDED and end["exit_code"] == code


EXEC = [
    Row(
        "POST /x/exec",
        "/x/exec",
        200,
        body={"command": "printf 'a\\0\\377'; sleep 0.1; echo e >&2; exit 7"},
        look=lambda it: ended(it, 7) and (printed(it), printed(it, STDERR)) == (b"a\0\xff", b"e\n"),
    ),
    Row(
        "POST /x/exec",
        "/x/exec",
        200,
        body={"argv": ["no_such_program_x"]},
        look=lambda it: ended(it, 127),
    ),
    Row("POST /x/exec", "/x/exec", 400, BAD_BODY, body={}),
    Row("POST /x/exec", "/x/exec", 400, BAD_BODY, body={"command": "true", "background": True}),
    Row("POST /x/exec", "/x/exec", 400, BAD_BODY, body={"command": "true", "cwd": "/no/such"}),
    Row("POST /x/exec", "/x/exec", 400, BAD_BODY, body={"command": "true", "envs": {"A=": ""}}),
    Row("POST /x/exec", "/x/exec", 413, BAD_BODY, raw=b" " * (16 * 1024 * 1024 + 1)),
    Row(
        "GET /x/exec/{id}",
        "/x/exec/{background}",
        200,
        look=lambda it: ended(it, 5) and len(printed(it) + printed(it, STDERR)) == 8,
    ),
    Row(
        "GET /x/exec/{id}",
        "/x/exec/{background}?since=8&hold=true",
        200,
        look=lambda it: ended(it, 5) and printed(it) == printed(it, STDERR) == b"",
    ),
    Row("GET /x/exec/{id}", "/x/exec/{background}?since=-1", 400, BAD_BODY),
    Row("GET /x/exec/{id}", "/x/exec/{nobody}", 404, NO_CONTEXT),
    Row("DELETE /x/exec/{id}", "/x/exec/{sleeping}", 200, look=nothing),
    Row("DELETE /x/exec/{id}", "/x/exec/{nobody}", 404, NO_CONTEXT),
    Row(
        "POST /x/exec/{id}/stdin",
        "/x/exec/{reading}/stdin",
        200,
        raw=b"12345",
        shape={"accepted_bytes": 5, "open": False},
    ),
    Row(
        "POST /x/exec/{id}/stdin",
        "/x/exec/{reading}/stdin?close=false&offset=0",
        200,
        raw=b"12345",
        shape={"accepted_bytes": 5, "open": True},
    ),
    Row("POST /x/exec/{id}/stdin", "/x/exec/{reading}/stdin?offset=9", 409, FAILED, raw=b"1"),
    Row("POST /x/exec/{id}/stdin", "/x/exec/{reading}/stdin?offset=x", 400, BAD_BODY, raw=b"1"),
    Row("POST /x/exec/{id}/stdin", "/x/exec/{sleeping}/stdin", 409, FAILED, raw=b"1"),
    Row("POST /x/exec/{id}/stdin", "/x/exec/{nobody}/stdin", 404, NO_CONTEXT, raw=b"1"),
    Row(
        "GET /x/exec/{id}/stdin",
        "/x/exec/{reading}/stdin",
        200,
        shape={"accepted_bytes": 0, "open": True},
    ),
    Row("GET /x/exec/{id}/stdin", "/x/exec/{nobody}/stdin", 404, NO_CONTEXT),
    Row("GET (unknown)", "/x/exec", 405, BAD_BODY),
    Row("GET (unknown)", "/x/nothing", 404, "UNKNOWN"),
]

# What is added to routes that others have too.
ADDED = [
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "echo hi"},
        headers={"X-Barchan-Line-Ends": "strip", "User-Agent": "OpenSandbox-Python-SDK/1.1.1"},
        look=lambda it: [one["text"] for one in events(it) if one["type"] == "stdout"] == ["hi"],
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "echo hi"},
        headers={"X-Barchan-Line-Ends": "keep", "User-Agent": "x"},
        look=lambda it: [one["text"] for one in events(it) if one["type"] == "stdout"] == ["hi\n"],
    ),
    Row(
        "POST /command",
        "/command",
        400,
        "INVALID_IDEMPOTENCY_KEY",
        body={"command": "true"},
        headers={"Idempotency-Key": "x" * 256},
    ),
    Row(
        "GET /command/status/{id}",
        "/command/status/{background}",
        200,
        shape={"usage": {"user_us": int, "system_us": int, "max_rss_bytes": int, "wall_us": int}},
    ),
    Row(
        "GET /command/{id}/logs",
        "/command/{foreground}/logs?offset=0&limit=1",
        200,
        look=lambda it: it.text == "x" and it.headers["EXECD-COMMANDS-TAIL-CURSOR"] == "1",
    ),
    Row(
        "POST /session/{id}/run",
        "/session/{session}/run",
        400,
        BAD_BODY,
        body={"command": "true", "cwd": "/no/such"},
    ),
    Row("GET /pty/{id}/ws", "/pty/{pty}/ws?viewer=1", 101, headers=UPGRADE),
    Row(
        "GET /files/info",
        "/files/info?paths=exact&path={dir}/d%5Cx69gits",
        200,
        look=lambda it: (
            [(one["size"], one["path"][-7:]) for one in it.json().values()] == [(10, "/digits")]
        ),
    ),
    Row("GET /files/info", "/files/info?paths=exact&path=%5Cx00", 400, BAD_FILE),
]

DIGITS = hashlib.sha256(b"0123456789").hexdigest()


def archive(**content: str) -> bytes:
    """Files of these names."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def names(answer: httpx.Response) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        return sorted(tar.getnames())


FILES = [
    Row(
        "GET /x/files",
        "/x/files?path={dir}/digits&sha256=true",
        200,
        look=lambda it: (
            it.content == b"0123456789"
            and it.headers["x-file-mode"] == "640"
            and it.headers["x-file-modified"].endswith("Z")
            and it.headers["repr-digest"].startswith("sha-256=:")
        ),
    ),
    Row(
        "GET /x/files",
        "/x/files?path={dir}/digits",
        206,
        headers={"Range": "bytes=-3"},
        look=lambda it: it.content == b"789",
    ),
    Row(
        "GET /x/files", "/x/files?path={dir}/digits", 416, BAD_BODY, headers={"Range": "bytes=10-"}
    ),
    Row("GET /x/files", "/x/files", 400, MISSING),
    Row("GET /x/files", "/x/files?path={dir}/none", 404, NO_FILE),
    Row("GET /x/files", "/x/files?path={dir}/sub", 400, BAD_FILE),
    Row("GET /x/files", "/x/files?path={dir}/pipe", 400, BAD_FILE),
    Row("GET /x/files", "/x/files?path={dir}/digits&uid=1000&gid=1000", 403, BAD_FILE),
    Row(
        "PUT /x/files",
        "/x/files?path={dir}/new/put&sha256=true&mode=600",
        200,
        raw=b"0123456789",
        shape={"path": "{dir}/new/put", "size": 10, "mode": 600, "sha256": DIGITS},
    ),
    Row(
        "PUT /x/files",
        "/x/files?path={dir}/part&total=10",
        202,
        raw=b"01234",
        shape={"offset": 5, "total": 10},
        look=lambda it: it.headers["upload-offset"] == "5",
    ),
    Row(
        "PUT /x/files",
        "/x/files?path={partial}&total=10&offset=7",
        409,
        BAD_FILE,
        raw=b"789",
    ),
    Row("PUT /x/files", "/x/files?path={dir}/part&total=10&offset=5", 404, NO_FILE, raw=b"56789"),
    Row(
        "PUT /x/files",
        f"/x/files?path={{dir}}/put&sha256={'0' * 64}",
        400,
        BAD_CONTENT,
        raw=b"0123456789",
    ),
    Row("PUT /x/files", "/x/files?path={dir}/put&offset=5", 400, BAD_BODY, raw=b"x"),
    Row("PUT /x/files", "/x/files?path={dir}/put&mode=888", 400, BAD_BODY, raw=b"x"),
    Row("PUT /x/files", "/x/files?path={dir}/sub", 400, BAD_FILE, raw=b"x"),
    Row("PUT /x/files", "/x/files", 400, MISSING, raw=b"x"),
    Row(
        "GET /x/uploads",
        "/x/uploads?path={partial}",
        200,
        shape={"offset": 5, "total": 10},
    ),
    Row("GET /x/uploads", "/x/uploads?path={dir}/none", 404, NO_FILE),
    Row("GET /x/uploads", "/x/uploads", 400, MISSING),
    Row("DELETE /x/uploads", "/x/uploads?path={partial}", 200, look=nothing),
    Row("DELETE /x/uploads", "/x/uploads", 400, MISSING),
    Row(
        "GET /x/tar",
        "/x/tar?path={dir}",
        200,
        look=lambda it: {"digits", "file", "link", "sub/x.py"} <= set(names(it)),
    ),
    Row("GET /x/tar", "/x/tar", 400, MISSING),
    Row("GET /x/tar", "/x/tar?path={dir}/none", 404, NO_FILE),
    Row("GET /x/tar", "/x/tar?path={dir}/file", 400, BAD_FILE),
    Row(
        "PUT /x/tar",
        "/x/tar?path={dir}/unpacked",
        200,
        raw=archive(a="one", b="two"),
        shape={"entries": 2, "bytes": 6, "skipped": 0},
        look=lambda it: it.json()["skipped_names"] == [],
    ),
    Row("PUT /x/tar", "/x/tar?path={dir}/u", 400, BAD_CONTENT, raw=archive(**{"../a": ""})),
    Row("PUT /x/tar", "/x/tar?path={dir}/u", 400, BAD_CONTENT, raw=b"x" * 1024),
    Row("PUT /x/tar", "/x/tar?path={dir}/u&max_bytes=2", 413, BAD_BODY, raw=archive(a="one")),
    Row("PUT /x/tar", "/x/tar?path={dir}/u&max_entries=1", 413, BAD_BODY, raw=archive(a="", b="")),
    Row("PUT /x/tar", "/x/tar?path={dir}/u&links=maybe", 400, BAD_BODY, raw=archive(a="")),
    Row(
        "GET /x/watch",
        "/x/watch?path={dir}&recursive=true",
        200,
        look=lambda it: json.loads(it.text.removeprefix("data: "))["type"] == "ready",
        endless=True,
    ),
    Row("GET /x/watch", "/x/watch", 400, MISSING),
    Row("GET /x/watch", "/x/watch?path={dir}/none", 404, NO_FILE),
    Row("PUT (unknown)", "/x/watch?path={dir}", 405, BAD_BODY),
]


def tool(name: str, status: int, code: str = "", look: Any = None, **body: Any) -> Row:
    """A call of a file tool; `look` is the answer's shape."""
    shape = look if isinstance(look, dict) else None
    other = None if shape is not None else look
    path = f"/x/fs/{name}"
    return Row(f"POST {path}", path, status, code, shape=shape, look=other, body=body)


DIR = "{dir}"
TOOLS = [
    tool(
        "ls",
        200,
        look=lambda it: (
            [(one["path"].rpartition("/")[2], one["type"]) for one in it.json()["entries"]]
            == [
                ("digits", "file"),
                ("file", "file"),
                ("link", "symlink"),
                ("pipe", "other"),
                ("sub", "directory"),
            ]
        ),
        path=DIR,
    ),
    tool("ls", 200, look={"entries": [{"size": int, "modified_at": str}]}, path=DIR, details=True),
    tool("ls", 404, "path_not_found", path="{dir}/none"),
    tool("ls", 404, "path_not_found", path="/sub/x.py", workdir=DIR),
    tool("ls", 400, "not_a_directory", path="{dir}/file"),
    tool("ls", 400, "invalid_path", path=""),
    tool("ls", 400, "invalid_request", path=DIR, nothing=1),
    tool("ls", 400, "invalid_request"),
    tool(
        "read",
        200,
        look={
            "content": "two",
            "encoding": "utf-8",
            "start_line": 2,
            "end_line": 2,
            "total_lines": 3,
            "truncated": False,
        },
        path="{dir}/file",
        offset=1,
        limit=1,
    ),
    tool("read", 200, look={"content": "one\ntwo\nthree"}, path="file", workdir=DIR),
    tool("read", 404, "path_not_found", path="{dir}/none"),
    tool("read", 400, "is_a_directory", path="{dir}/sub"),
    tool("read", 400, "not_a_file", path="{dir}/pipe"),
    tool("read", 400, "offset_beyond_end", path="{dir}/file", offset=9),
    tool("write", 200, look={"size": 3}, path="{dir}/new/a", content="abc"),
    tool("write", 200, look={"size": 2}, path="{dir}/b", content="AP8=", encoding="base64"),
    tool("write", 409, "already_exists", path="{dir}/file", content="", create=True),
    tool("write", 400, "is_a_directory", path="{dir}/sub", content=""),
    tool("write", 400, "not_a_file", path="{dir}/pipe", content=""),
    tool("write", 403, "permission_denied", path="/usr/new", content=""),
    tool("write", 400, "invalid_request", path="{dir}/b", content="?", encoding="base64"),
    tool("edit", 200, look={"occurrences": 1}, path="{dir}/file", old="two", new="2"),
    tool(
        "edit",
        200,
        look={"occurrences": 3},
        path="{dir}/file",
        old="e",
        new="E",
        replace_all=True,
    ),
    tool("edit", 400, "multiple_occurrences", path="{dir}/file", old="e", new="E"),
    tool("edit", 400, "string_not_found", path="{dir}/file", old="four", new="4"),
    tool("edit", 400, "empty_old", path="{dir}/file", old="", new="4"),
    tool("edit", 400, "not_text", path="{binary}", old="a", new="b"),
    tool("edit", 404, "path_not_found", path="{dir}/none", old="a", new="b"),
    tool("delete", 200, look={"path": "{dir}/sub"}, path="{dir}/sub"),
    tool("delete", 403, "protected", path=DIR, workdir="{dir}/sub"),
    tool("delete", 404, "path_not_found", path="{dir}/none"),
    tool(
        "grep",
        200,
        look={"matches": [{"path": "{dir}/file", "line": 2, "text": "two"}]},
        path=DIR,
        pattern="tw",
    ),
    tool(
        "grep",
        200,
        look={"files": ["{dir}/file"]},
        path=DIR,
        pattern="^t",
        regex=True,
        mode="files",
    ),
    tool("grep", 400, "invalid_pattern", path=DIR, pattern="(", regex=True),
    tool("grep", 404, "path_not_found", path="{dir}/none", pattern="x"),
    tool("grep", 400, "invalid_request", path=DIR, pattern="x", mode="all"),
    tool("glob", 200, look={"paths": ["{dir}/sub/x.py"]}, path=DIR, pattern="*.py"),
    tool("glob", 400, "invalid_pattern", path=DIR, pattern="../*"),
    tool("glob", 400, "pattern_too_broad", path=DIR, pattern="{{a,b}}" * 11),
    tool("glob", 400, "not_a_directory", path="{dir}/file", pattern="*"),
    Row("POST (unknown)", "/x/fs/nothing", 404, "UNKNOWN", body={}),
    Row("GET (unknown)", "/x/fs/ls", 405, BAD_BODY),
]

OWN = [*EXEC, *ADDED, *FILES, *TOOLS]
