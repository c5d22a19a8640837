"""Routes of the in-sandbox API about isolated sessions, their runs and their files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance import file_rows
from conformance.rows import Row, ended_with, output
from conformance.shapes import BAD_BODY, BAD_FILE, KEEPS_ENDS, NO_CONTEXT, TIME, UUID, is_number

V1 = "/v1/isolated"
LAYER = {"state": str, "message": str}
BAD_SPECS: list[dict[str, Any]] = [
    {},
    {"workspace": {}},
    {"workspace": {"path": "relative"}},
    {"workspace": {"path": "{dir}/none"}},
    {"workspace": {"path": "{dir}", "mode": "wo"}},
    {"workspace": {"path": "/usr", "mode": "rw"}},
    {"workspace": {"path": "{dir}"}, "profile": "lax"},
    {"workspace": {"path": "{dir}"}, "binds": [{"source": "/etc", "dest": "/mnt"}]},
    {"workspace": {"path": "{dir}"}, "extra_writable": ["/proc"]},
    {"overlays": [{"path": "{dir}"}, {"path": "{dir}"}]},
    {"overlays": [{"path": f"{{dir}}/{at}"} for at in range(17)]},
]
ISOLATION = [
    Row(
        f"GET {V1}/capabilities",
        f"{V1}/capabilities",
        200,
        shape={
            "available": bool,
            "isolator": str,
            "version": str,
            "message": str,
            "setpriv_available": bool,
            "userns_available": bool,
            "commit_supported": bool,
            "diff_supported": bool,
            "hardening": {
                "init_mode": str,
                "signal_shield": bool,
                "cap_drop": LAYER,
                "seccomp": LAYER,
                "landlock": LAYER,
                "ebpf": LAYER,
            },
        },
    ),
    Row(
        f"POST {V1}/session",
        f"{V1}/session",
        201,
        body={"workspace": {"path": "{dir}", "mode": "rw"}},
        shape={"session_id": UUID, "created_at": TIME},
    ),
    *[
        Row(f"POST {V1}/session", f"{V1}/session", 201, body=body, shape=shape)
        for body, shape in (
            (
                {"overlays": [{"path": "{dir}"}, {"path": "/srv", "persist": False}]},
                {"session_id": UUID},
            ),
            (
                {
                    "workspace": {"path": "{dir}", "mode": "ro"},
                    "profile": "balanced",
                    "share_net": True,
                    "idle_timeout_seconds": 60,
                    "uid": 1000,
                    "gid": 1000,
                    "env_passthrough": {"mode": "deny", "keys": ["A"]},
                    "extra_writable": ["{dir}/sub"],
                    "binds": [{"source": "{dir}/sub", "dest": "/mnt", "readonly": True}],
                },
                {
                    "workspace": {"path": "{dir}", "mode": "ro"},
                    "profile": "balanced",
                    "share_net": True,
                    "idle_timeout_seconds": 60,
                    "uid": 1000,
                },
            ),
        )
    ],
    *[Row(f"POST {V1}/session", f"{V1}/session", 400, BAD_BODY, body=it) for it in BAD_SPECS],
    Row(f"POST {V1}/session", f"{V1}/session", 400, BAD_BODY, raw=b"{"),
    Row(
        f"POST {V1}/session",
        f"{V1}/session",
        503,
        "NOT_SUPPORTED",
        body={"workspace": {"path": "{dir}"}, "uid_mode": "userns"},
    ),
    Row(f"GET {V1}/sessions", f"{V1}/sessions", 200, shape={"sessions": list}),
    Row(
        f"GET {V1}/session/{{id}}",
        f"{V1}/session/{{isolated}}",
        200,
        shape={"status": "active", "created_at": TIME},
    ),
    Row(f"GET {V1}/session/{{id}}", f"{V1}/session/{{nobody}}", 404, NO_CONTEXT),
    Row(f"DELETE {V1}/session/{{id}}", f"{V1}/session/{{isolated}}", 200),
    Row(f"DELETE {V1}/session/{{id}}", f"{V1}/session/{{nobody}}", 404, NO_CONTEXT),
    Row(
        f"POST {V1}/session/{{id}}/run",
        f"{V1}/session/{{isolated}}/run",
        200,
        body={"code": "echo hi"},
        look=lambda it: output(it).strip() == "hi",
    ),
    Row(
        f"POST {V1}/session/{{id}}/run",
        f"{V1}/session/{{isolated}}/run",
        200,
        body={"code": "exit 7"},
        look=lambda it: ended_with(it, 7),
    ),
    Row(
        f"POST {V1}/session/{{id}}/run",
        f"{V1}/session/{{nobody}}/run",
        404,
        NO_CONTEXT,
        body={"code": "true"},
    ),
    Row(
        f"GET {V1}/session/{{id}}/files/info",
        f"{V1}/session/{{isolated}}/files/info?path=/",
        200,
        shape={"/": {"size": is_number}},
    ),
    Row(
        f"GET {V1}/session/{{id}}/diff",
        f"{V1}/session/{{isolated}}/diff",
        200,
        shape={"session_id": UUID, "changes": list},
    ),
    Row(
        f"POST {V1}/session/{{id}}/commit",
        f"{V1}/session/{{isolated}}/commit",
        200,
        shape={"session_id": UUID, "applied": is_number, "skipped": list},
    ),
    Row(
        f"GET {V1}/session/{{id}}/diff",
        f"{V1}/session/{{overlaid}}/diff",
        200,
        shape={
            "changes": lambda it: (
                {(one["path"].rpartition("/")[2], one["change"], one["type"]) for one in it}
                == {("file", "deleted", "file"), ("more", "added", "file")}
            )
        },
    ),
    Row(f"GET {V1}/session/{{id}}/diff", f"{V1}/session/{{nobody}}/diff", 404, NO_CONTEXT),
    Row(
        f"POST {V1}/session/{{id}}/commit",
        f"{V1}/session/{{overlaid}}/commit",
        200,
        shape={"applied": 2, "skipped": lambda it: it == []},
    ),
    Row(f"POST {V1}/session/{{id}}/commit", f"{V1}/session/{{nobody}}/commit", 404, NO_CONTEXT),
    Row(
        f"POST {V1}/session/{{id}}/commit",
        f"{V1}/session/{{busy}}/commit",
        409,
        BAD_FILE,
    ),
    *[
        Row(f"POST {V1}/session/{{id}}/run", f"{V1}/session/{{inside}}/run", 400, BAD_BODY, body=it)
        for it in (
            {},
            {"code": ""},
            {"code": 1},
            {"code": "true", "timeout_seconds": -1},
            {"code": "true", "envs": {"A=B": "x"}},
        )
    ],
    Row(
        f"POST {V1}/session/{{id}}/run",
        f"{V1}/session/{{inside}}/run",
        200,
        body={"code": "echo $A; pwd; echo e >&2", "envs": {"A": "b c"}},
        headers=KEEPS_ENDS,
        look=lambda it: (
            output(it).startswith("b c\n/tmp/conformance/") and output(it, "stderr") == "e\n"
        ),
    ),
    Row(
        f"POST {V1}/session/{{id}}/run",
        f"{V1}/session/{{inside}}/run",
        200,
        body={"code": "sleep 60", "timeout_seconds": 0.3},
        look=lambda it: ended_with(it, 137),
    ),
    Row(
        f"POST {V1}/session/{{id}}/run",
        f"{V1}/session/{{inside}}/run",
        202,
        body={"code": "true", "background": True},
        shape={"session_id": UUID, "run_id": UUID, "started_at": TIME},
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}",
        f"{V1}/session/{{inside}}/runs/{{ran}}",
        200,
        shape={
            "session_id": UUID,
            "run_id": UUID,
            "running": False,
            "exit_code": 5,
            "started_at": TIME,
            "finished_at": TIME,
        },
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}",
        f"{V1}/session/{{inside}}/runs/{{nobody}}",
        404,
        NO_CONTEXT,
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}",
        f"{V1}/session/{{nobody}}/runs/{{nobody}}",
        404,
        NO_CONTEXT,
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}/logs",
        f"{V1}/session/{{inside}}/runs/{{ran}}/logs",
        200,
        look=lambda it: it.text == "one\n" and it.headers["EXECD-ISOLATED-TAIL-CURSOR"] == "4",
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}/logs",
        f"{V1}/session/{{inside}}/runs/{{ran}}/logs?cursor=4",
        200,
        look=lambda it: it.text == "" and it.headers["EXECD-ISOLATED-TAIL-CURSOR"] == "4",
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}/logs",
        f"{V1}/session/{{inside}}/runs/{{ran}}/logs?cursor=-1",
        400,
        BAD_BODY,
    ),
    Row(
        f"GET {V1}/session/{{id}}/runs/{{run}}/logs",
        f"{V1}/session/{{inside}}/runs/{{nobody}}/logs",
        404,
        NO_CONTEXT,
    ),
    Row("PUT (unknown)", f"{V1}/sessions", 405, BAD_BODY),
    Row("GET (unknown)", f"{V1}/nothing", 404, "UNKNOWN"),
]


def as_isolated(row: Row) -> Row:
    """The same route on what a session sees, which has the row's folder as its workspace."""
    inside = f"{V1}/session/{{id}}"
    return replace(
        row,
        route=row.route.replace(" /", f" {inside}/", 1),
        path=f"{V1}/session/{{inside}}{row.path}",
    )


ISOLATED_FILES = [
    *[as_isolated(row) for row in file_rows.FILES],
    *[
        Row(f"GET {route}", route.format(id="{nobody}") + "?path=/", 404, NO_CONTEXT)
        for route in (f"{V1}/session/{{id}}/files/info", f"{V1}/session/{{id}}/directories/list")
    ],
]
