"""Routes of the in-sandbox API about what goes on between requests: sessions, terminals, code."""

from __future__ import annotations

import base64

import httpx

from conformance.rows import Row, ended_well, ended_with, events, output
from conformance.shapes import BAD_BODY, HEX, NO_CONTEXT, nothing

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
}


def result(answer: httpx.Response) -> list[str]:
    """What the stream says the last expressions gave, under both names that clients read."""
    found = [one["results"] for one in events(answer) if one["type"] == "result"]
    assert all(one["text"] == one["text/plain"] for one in found)
    return [one["text"] for one in found]


SESSION = [
    Row("POST /session", "/session", 200, shape={"session_id": HEX}),
    Row(
        "POST /session",
        "/session",
        200,
        body={"cwd": "{dir}/made"},
        shape={"session_id": HEX},
    ),
    Row("POST /session", "/session", 400, BAD_BODY, raw=b"{"),
    Row(
        "POST /session/{id}/run",
        "/session/{session}/run",
        200,
        body={"command": "echo hi"},
        look=lambda it: ended_well(it) and output(it).strip() == "hi",
    ),
    Row(
        "POST /session/{id}/run",
        "/session/{session}/run",
        200,
        body={"command": "echo out; echo err >&2; (exit 7)", "cwd": "/tmp", "timeout": 20000},
        look=lambda it: ended_with(it, 7) and output(it, "stderr").strip() == "err",
    ),
    Row(
        "POST /session/{id}/run",
        "/session/{session}/run",
        200,
        body={"command": "sleep 60", "timeout": 300},
        look=lambda it: events(it)[-1]["type"] == "error",
    ),
    Row("POST /session/{id}/run", "/session/{session}/run", 400, BAD_BODY, body={}),
    Row(
        "POST /session/{id}/run",
        "/session/{nobody}/run",
        404,
        NO_CONTEXT,
        body={"command": "true"},
    ),
    Row("DELETE /session/{id}", "/session/{session}", 200, look=nothing),
    Row("DELETE /session/{id}", "/session/{nobody}", 404, NO_CONTEXT),
]

TERMINAL = [
    Row("POST /pty", "/pty", 201, body={"cwd": "/tmp"}, shape={"session_id": str}),
    Row("POST /pty", "/pty", 400, BAD_BODY, raw=b"{"),
    Row(
        "GET /pty/{id}",
        "/pty/{pty}",
        200,
        shape={"session_id": str, "running": bool, "output_offset": int},
    ),
    Row("GET /pty/{id}", "/pty/{nobody}", 404, NO_CONTEXT),
    Row("DELETE /pty/{id}", "/pty/{pty}", 200, look=nothing),
    Row("DELETE /pty/{id}", "/pty/{nobody}", 404, NO_CONTEXT),
    Row("GET /pty/{id}/ws", "/pty/{pty}/ws", 101, headers=UPGRADE),
    Row("GET /pty/{id}/ws", "/pty/{pty}/ws?pty=0&since=0", 101, headers=UPGRADE),
    Row("GET /pty/{id}/ws", "/pty/{nobody}/ws", 404, NO_CONTEXT, headers=UPGRADE),
]

CONTEXT = {"id": str, "language": "python"}
CODES = [
    Row(
        "POST /code",
        "/code",
        200,
        body={"code": "1 + 1", "context": {"language": "python"}},
        look=lambda it: result(it) == ["2"],
        kernel=True,
    ),
    Row(
        "POST /code",
        "/code",
        200,
        body={"code": "print('hi')", "context": {"id": "{context}"}},
        look=lambda it: output(it).strip() == "hi" and events(it)[0]["type"] == "init",
        kernel=True,
    ),
    Row(
        "POST /code",
        "/code",
        200,
        body={"code": "1 / 0", "context": {"language": "python"}},
        look=lambda it: (
            [one["error"]["ename"] for one in events(it) if one["type"] == "error"]
            == ["ZeroDivisionError"]
        ),
        kernel=True,
    ),
    Row(
        "POST /code",
        "/code",
        200,
        body={"code": "echo shell"},
        look=lambda it: output(it).strip() == "shell",
    ),
    Row("POST /code", "/code", 400, BAD_BODY, body={}),
    Row(
        "POST /code",
        "/code",
        404,
        NO_CONTEXT,
        body={"code": "1", "context": {"id": "{nobody}"}},
    ),
    Row("DELETE /code", "/code?id={context}", 200, look=nothing, kernel=True),
    Row("DELETE /code", "/code", 400, "MISSING_QUERY"),
    Row("DELETE /code", "/code?id={nobody}", 404, NO_CONTEXT),
    Row(
        "POST /code/context",
        "/code/context",
        200,
        body={"language": "python"},
        shape=CONTEXT,
        kernel=True,
    ),
    Row("POST /code/context", "/code/context", 400, BAD_BODY, raw=b"{"),
    Row(
        "GET /code/contexts",
        "/code/contexts?language=python",
        200,
        look=lambda it: isinstance(it.json(), list),
    ),
    Row("DELETE /code/contexts", "/code/contexts?language=python", 200),
    Row("DELETE /code/contexts", "/code/contexts", 400, "MISSING_QUERY"),
    Row("GET /code/contexts/{id}", "/code/contexts/{context}", 200, shape=CONTEXT, kernel=True),
    Row("GET /code/contexts/{id}", "/code/contexts/{nobody}", 404, NO_CONTEXT),
    Row("DELETE /code/contexts/{id}", "/code/contexts/{context}", 200, kernel=True),
    Row("DELETE /code/contexts/{id}", "/code/contexts/{nobody}", 404, NO_CONTEXT),
]

# Streams are the server's to open, for callers of its own route: its proxy offers the daemon no
# other protocol than WebSocket.
STREAM = {"Connection": "Upgrade", "Upgrade": "tcp"}
STREAMS = [
    Row("GET (unknown)", "/x/tcp/80", 400, BAD_BODY, headers=STREAM),
    Row("GET (unknown)", "/x/tcp/44772", 400, BAD_BODY, headers=STREAM),
    Row("POST (unknown)", "/x/tcp/80", 405, BAD_BODY),
]
