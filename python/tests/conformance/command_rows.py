"""Routes of the in-sandbox API about commands, metrics and other ports."""

from __future__ import annotations

import httpx

from conformance.rows import Row, ended_well, ended_with, events, output
from conformance.shapes import (
    BAD_BODY,
    INFO,
    KEEPS_ENDS,
    MISSING,
    NO_CONTEXT,
    STATUS,
    TIME,
    is_number,
    nothing,
)

COMMANDS = [
    Row("GET /ping", "/ping", 200, look=nothing),
    Row("POST /command", "/command", 200, body={"command": "echo hi"}, look=ended_well),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "printf 'a\\n\\nb'; echo e >&2"},
        look=lambda it: (output(it), output(it, "stderr")) == ("a\n\nb", "e\n"),
        headers=KEEPS_ENDS,
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "echo hi"},
        look=lambda it: output(it) == "hi",
        headers={"User-Agent": "OpenSandbox-JS-SDK/0.1.8"},
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"argv": ["printf", "%s", "$A b"]},
        look=lambda it: output(it).strip() == "$A b",
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "exit 7"},
        look=lambda it: ended_with(it, 7),
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "kill -9 $$"},
        look=lambda it: ended_with(it, 137),
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "no_such_program_x"},
        look=lambda it: ended_with(it, 127),
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "sleep 60", "timeout": 300},
        look=lambda it: ended_with(it, 137),
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "pwd; echo $A", "cwd": "/usr", "envs": {"A": "b c"}},
        look=lambda it: output(it) == "/usr\nb c\n",
        headers=KEEPS_ENDS,
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "id -u; id -g", "uid": 1000, "gid": 7},
        look=lambda it: output(it) == "1000\n7\n",
        headers=KEEPS_ENDS,
    ),
    Row(
        "POST /command",
        "/command",
        200,
        body={"command": "sleep 60", "background": True},
        look=lambda it: [one["type"] for one in events(it)] == ["init", "execution_complete"],
    ),
    Row("POST /command", "/command", 400, BAD_BODY, body={"command": "true", "cwd": "/no/such"}),
    Row("POST /command", "/command", 400, BAD_BODY, body={"command": "true", "gid": 7}),
    Row("POST /command", "/command", 400, BAD_BODY, body={"command": "true", "timeout": -1}),
    Row("POST /command", "/command", 400, BAD_BODY, body={"command": "true", "argv": ["true"]}),
    Row("POST /command", "/command", 400, BAD_BODY, body={}),
    Row("POST /command", "/command", 400, BAD_BODY, body={"argv": [""]}),
    Row("POST /command", "/command", 400, BAD_BODY, body={"command": "true", "envs": {"A;b": "c"}}),
    Row("POST /command", "/command", 400, BAD_BODY, raw=b"{"),
    Row("POST /command", "/command", 413, BAD_BODY, raw=b" " * (16 * 1024 * 1024 + 1)),
    Row("DELETE /command", "/command?id={sleeping}", 200, look=nothing),
    Row("DELETE /command", "/command", 400, MISSING),
    Row("DELETE /command", "/command?id={nobody}", 404, NO_CONTEXT),
    Row("DELETE /command", "/command?id={background}", 500, "RUNTIME_ERROR"),
    Row(
        "GET /command/status/{id}",
        "/command/status/{background}",
        200,
        shape={**STATUS, "running": False, "exit_code": 5, "finished_at": TIME},
    ),
    Row(
        "GET /command/status/{id}",
        "/command/status/{sleeping}",
        200,
        shape={**STATUS, "running": True},
    ),
    Row(
        "GET /command/status/{id}",
        "/command/status/{foreground}",
        200,
        shape={**STATUS, "exit_code": 0, "content": "echo x"},
    ),
    Row("GET /command/status/{id}", "/command/status/{nobody}", 404, NO_CONTEXT),
    Row(
        "GET /command/{id}/logs",
        "/command/{background}/logs",
        200,
        look=lambda it: (
            sorted(it.text.split()) == ["one", "two"]
            and it.headers["EXECD-COMMANDS-TAIL-CURSOR"] == "8"
        ),
    ),
    Row(
        "GET /command/{id}/logs",
        "/command/{background}/logs?cursor=8",
        200,
        look=lambda it: it.text == "" and it.headers["EXECD-COMMANDS-TAIL-CURSOR"] == "8",
    ),
    Row(
        "GET /command/{id}/logs",
        "/command/{background}/logs?cursor=10000000",
        200,
        look=lambda it: it.text == "" and it.headers["EXECD-COMMANDS-TAIL-CURSOR"] == "8",
    ),
    Row("GET /command/{id}/logs", "/command/{background}/logs?cursor=-1", 400, BAD_BODY),
    Row("GET /command/{id}/logs", "/command/{background}/logs?cursor=abc", 400, BAD_BODY),
    Row(
        "GET /command/{id}/logs",
        "/command/{foreground}/logs",
        200,
        look=lambda it: it.text == "x\n",
    ),
    Row("GET /command/{id}/logs", "/command/{nobody}/logs", 404, NO_CONTEXT),
]


def is_bad_gateway(answer: httpx.Response) -> bool:
    return answer.text.startswith("Bad Gateway")


METRICS = [
    Row(
        "GET /metrics",
        "/metrics",
        200,
        shape={
            "cpu_count": is_number,
            "cpu_used_pct": lambda it: 0 <= it <= 100,
            "mem_total_mib": is_number,
            "mem_used_mib": is_number,
            "timestamp": int,
        },
    ),
]

PROXY = [
    Row("ANY /proxy/{port}", "/proxy/44772/ping", 200, look=nothing),
    Row("ANY /proxy/{port}", "/proxy/44772/proxy/44772/ping", 200, look=nothing),
    Row("ANY /proxy/{port}", "/proxy/44772/files/info?path=/", 200, shape={"/": INFO}),
    # In text, as clients of this proxy know it.
    Row("ANY /proxy/{port}", "/proxy/x/ping", 502, look=is_bad_gateway),
    Row("ANY /proxy/{port}", "/proxy/70000/ping", 502, look=is_bad_gateway),
]


OTHERS = [
    Row("GET (unknown)", "/nothing", 404, "UNKNOWN"),
    Row("GET (unknown)", "/files", 405, BAD_BODY),
    Row(
        "PUT (unknown)", "/files/info", 405, BAD_BODY, look=lambda it: it.headers["allow"] == "GET"
    ),
    Row("GET (unknown)", "/command", 405, BAD_BODY),
    Row("GET (unknown)", "/files/info?path=%zz", 400, BAD_BODY),
]
