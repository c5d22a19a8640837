"""Routes of the lifecycle API about sandboxes themselves, with answers and refusals."""

from __future__ import annotations

import re
from typing import Any

import httpx

from conformance.rows import Row
from conformance.world import CREATE

NO_SANDBOX = "DOCKER::SANDBOX_NOT_FOUND"
BAD_VALUE = "SANDBOX::INVALID_PARAMETER"
BAD_LABEL = "SANDBOX::INVALID_METADATA_LABEL"
BAD_TIME = "DOCKER::INVALID_EXPIRATION"

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z").fullmatch
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch

STATUS = {"state": "Running", "reason": str, "message": str, "lastTransitionAt": TIME}
CREATED = {
    "id": UUID,
    "status": {"state": "Running"},
    "createdAt": TIME,
    "expiresAt": TIME,
    "entrypoint": ["tail", "-f", "/dev/null"],
}
SANDBOX = {**CREATED, "status": STATUS, "image": {"uri": "host"}, "metadata": {"team": "a"}}
PAGE = {"page": int, "pageSize": int, "totalItems": int, "totalPages": int, "hasNextPage": bool}


def create(status: int, code: str = "", **fields: Any) -> Row:
    """A create with some fields different; `None` leaves one out."""
    body = {name: value for name, value in {**CREATE, **fields}.items() if value is not ...}
    return Row("POST /sandboxes", "/sandboxes", status, code, body=body)


def nothing(answer: httpx.Response) -> bool:
    return answer.content == b""


def without(*names: str) -> Any:
    return lambda answer: not any(name in answer.json() for name in names)


SANDBOXES = [
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body=CREATE,
        shape=CREATED,
        look=without("image", "snapshotId", "platform"),
    ),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={**CREATE, "timeout": None},
        shape={"id": UUID},
        look=without("expiresAt"),
    ),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={
            **CREATE,
            "timeout": "60",
            "unknown": 1,
            "metadata": {"a.b/c": "d"},
            "env": {"A": "", "B": None},
        },
        shape={"metadata": {"a.b/c": "d"}},
    ),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={
            "image": {"uri": "host"},
            "timeout": 60,
            "entrypoint": ["sleep", "60"],
            "resource_limits": {},
        },
        shape={"entrypoint": ["sleep", "60"]},
    ),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={
            **CREATE,
            "lifecycle": {
                "preStart": {"command": ["true"]},
                "periodic": [{"name": "a", "schedule": "*/5 * * * *", "command": ["true"]}],
            },
            "extensions": {
                "access.renew.extend.seconds": "300",
                "barchan.idle.timeout.seconds": "600",
            },
        },
        shape={"extensions": {"barchan.idle.timeout.seconds": "600"}},
    ),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={"timeout": 600, "extensions": {"poolRef": "{pool}"}},
        shape={**CREATED, "entrypoint": ["tail", "-f", "/dev/null"]},
    ),
    create(422, timeout=59),
    create(422, timeout=60.5),
    create(422, image=...),
    create(422, image={"uri": " "}),
    create(422, image={}),
    create(422, entrypoint=...),
    create(422, entrypoint=[]),
    create(422, resourceLimits=...),
    create(422, resourceLimits={"cpu": 1}),
    create(422, snapshotId="x"),
    create(422, env={"OPENSANDBOX_LIFECYCLE": "x"}),
    create(422, templateId="tpl-x"),
    create(422, credentialProxy={"enabled": True}),
    create(422, lifecycle={"unknown": 1}),
    create(422, lifecycle={"preStart": {"command": ["a"], "timeoutSeconds": 10801}}),
    Row(
        "POST /sandboxes", "/sandboxes", 422, raw=b"{", headers={"Content-Type": "application/json"}
    ),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        422,
        raw=b"NaN",
        headers={"Content-Type": "application/json"},
    ),
    Row("POST /sandboxes", "/sandboxes", 422, raw=b"{}", headers={"Content-Type": "text/plain"}),
    Row("POST /sandboxes", "/sandboxes", 422),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        413,
        "BODY_TOO_LARGE",
        raw=b" " * (8 * 1024 * 1024 + 1),
        headers={"Content-Type": "application/json"},
    ),
    create(400, BAD_LABEL, metadata={"-a": "b"}),
    create(400, BAD_LABEL, metadata={"a": "x" * 64}),
    create(400, BAD_LABEL, metadata={"opensandbox.io/x": "b"}),
    create(400, BAD_LABEL, metadata={f"k{number}": "v" for number in range(65)}),
    create(400, BAD_VALUE, resourceLimits={"cpu": "abc"}),
    create(400, BAD_VALUE, resourceLimits={"memory": "-1Gi"}),
    create(400, BAD_VALUE, timeout=10**18),
    create(400, BAD_VALUE, platform={"os": "plan9", "arch": "amd64"}),
    create(400, BAD_VALUE, extensions={"access.renew.extend.seconds": "299"}),
    create(400, BAD_VALUE, env={"OPENSANDBOX_EGRESS_NOPE": "x"}),
    create(400, BAD_VALUE, env={"A=B": "x"}),
    create(400, BAD_VALUE, secureAccess=True),
    create(400, BAD_VALUE, lifecycle={"preStart": {"command": [""]}}),
    create(422, lifecycle={"periodic": [{"name": "a", "schedule": "x", "command": ["true"]}]}),
    create(400, BAD_VALUE, extensions={"barchan.idle.timeout.seconds": "59"}),
    create(202, networkPolicy={"egress": []}),
    create(202, networkPolicy={"egress": [{"action": "allow", "target": "*.example.com"}]}),
    create(400, BAD_VALUE, networkPolicy={"egress": [{"action": "allow", "target": "a b"}]}),
    create(400, BAD_VALUE, networkPolicy={"egress": [{"action": "may", "target": "a.example"}]}),
    create(400, BAD_VALUE, networkPolicy={"defaultAction": "may", "egress": []}),
    create(404, "KUBERNETES::POOL_NOT_FOUND", extensions={"poolRef": "no-such"}),
    create(400, BAD_VALUE, extensions={"poolRef": "{pool}"}, env={"A": "1"}),
    *[
        create(
            400,
            "VOLUME::HOST_PATH_NOT_ALLOWED",
            volumes=[{"name": "a", "host": {"path": path}, "mountPath": "/a", "readOnly": True}],
        )
        for path in ("/", "/var/run/docker.sock", "/tmp", "/tmp-other")
    ],
    create(
        400,
        "VOLUME::INVALID_HOST_PATH",
        volumes=[{"name": "a", "host": {"path": "/tmp/../etc"}, "mountPath": "/a"}],
    ),
    create(422, volumes=[{"name": "a", "host": {"path": "relative"}, "mountPath": "/a"}]),
    create(422, volumes=[{"name": "a", "mountPath": "/a"}]),
    create(400, BAD_VALUE, platform={"os": "windows", "arch": "amd64"}),
    create(400, BAD_VALUE, platform={"os": "linux", "arch": "s390x"}),
    create(
        400,
        "VOLUME::UNSUPPORTED_BACKEND",
        volumes=[{"name": "a", "ossfs": {"bucket": "abc"}, "mountPath": "/a"}],
    ),
    create(400, "DOCKER::INVALID_ENTRYPOINT", entrypoint=[""]),
    create(404, "SNAPSHOT::NOT_FOUND", image=..., snapshotId="nothing"),
    create(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", image={"uri": "no/such:image"}),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        400,
        "DOCKER::INVALID_ENTRYPOINT",
        body={"templateId": "tpl-x", "timeout": 60},
    ),
    Row("GET /sandboxes", "/sandboxes", 200, shape={"items": list, "pagination": PAGE}),
    Row(
        "GET /sandboxes",
        "/sandboxes?metadata=team%3Dnobody",
        200,
        shape={
            "items": [],
            "pagination": {
                "page": 1,
                "pageSize": 20,
                "totalItems": 0,
                "totalPages": 0,
                "hasNextPage": False,
            },
        },
    ),
    Row("GET /sandboxes", "/sandboxes?state=running&state=PAUSED&pageSize=200&page=1", 200),
    Row("GET /sandboxes", "/sandboxes?state=nonsense", 200, shape={"items": []}),
    Row("GET /sandboxes", "/sandboxes?page=0", 422),
    Row("GET /sandboxes", "/sandboxes?pageSize=201", 422),
    Row("GET /sandboxes", "/sandboxes?page=1_0", 422),
    Row("GET /sandboxes", "/sandboxes?metadata=a", 400, "INVALID_METADATA_FORMAT"),
    Row("GET /sandboxes/{id}", "/sandboxes/{sandbox}", 200, shape=SANDBOX),
    Row("GET /sandboxes/{id}", "/sandboxes/{eternal}", 200, look=without("expiresAt")),
    Row(
        "GET /sandboxes/{id}", "/sandboxes/{ended}", 200, shape={"status": {"state": "Terminated"}}
    ),
    Row("GET /sandboxes/{id}", "/sandboxes/{nobody}", 404, NO_SANDBOX),
    Row("GET /sandboxes/{id}", "/sandboxes/..%2f..%2fetc", 404, NO_SANDBOX),
    Row("DELETE /sandboxes/{id}", "/sandboxes/{sandbox}", 204, look=nothing),
    Row("DELETE /sandboxes/{id}", "/sandboxes/{paused}", 204, look=nothing),
    Row("DELETE /sandboxes/{id}", "/sandboxes/{nobody}", 404, NO_SANDBOX),
    Row(
        "PATCH /sandboxes/{id}/metadata",
        "/sandboxes/{sandbox}/metadata",
        200,
        body={"team": None, "b": "c"},
        shape={"metadata": {"b": "c"}},
    ),
    Row(
        "PATCH /sandboxes/{id}/metadata",
        "/sandboxes/{sandbox}/metadata",
        200,
        body={},
        shape=SANDBOX,
    ),
    Row(
        "PATCH /sandboxes/{id}/metadata",
        "/sandboxes/{sandbox}/metadata",
        400,
        BAD_LABEL,
        body={"-b": "c"},
    ),
    Row(
        "PATCH /sandboxes/{id}/metadata",
        "/sandboxes/{sandbox}/metadata",
        400,
        "INVALID_METADATA_LABEL",
        body={"opensandbox.io/x": None},
    ),
    Row("PATCH /sandboxes/{id}/metadata", "/sandboxes/{sandbox}/metadata", 422, body={"b": 1}),
    Row(
        "PATCH /sandboxes/{id}/metadata",
        "/sandboxes/{nobody}/metadata",
        404,
        NO_SANDBOX,
        body={"-b": "c"},
    ),
    Row("POST /sandboxes/{id}/pause", "/sandboxes/{sandbox}/pause", 202, look=nothing),
    Row("POST /sandboxes/{id}/pause", "/sandboxes/{sandbox}/pause?to=disk", 202, look=nothing),
    Row(
        "POST /sandboxes/{id}/pause",
        "/sandboxes/{paused}/pause",
        409,
        "DOCKER::SANDBOX_NOT_RUNNING",
    ),
    Row("POST /sandboxes/{id}/pause", "/sandboxes/{nobody}/pause", 404, NO_SANDBOX),
    Row(
        "POST /sandboxes/{id}/pause",
        "/sandboxes/{sandbox}/pause?to=memory",
        400,
        "SANDBOX::INVALID_PARAMETER",
    ),
    Row("POST /sandboxes/{id}/pause", "/sandboxes/{nobody}/pause?to=disk", 404, NO_SANDBOX),
    Row("POST /sandboxes/{id}/resume", "/sandboxes/{paused}/resume", 202, look=nothing),
    Row(
        "POST /sandboxes/{id}/resume",
        "/sandboxes/{sandbox}/resume",
        409,
        "DOCKER::SANDBOX_NOT_PAUSED",
    ),
    Row("POST /sandboxes/{id}/resume", "/sandboxes/{nobody}/resume", 404, NO_SANDBOX),
    Row(
        "POST /sandboxes/{id}/renew-expiration",
        "/sandboxes/{sandbox}/renew-expiration",
        200,
        body={"expiresAt": "2099-01-02 03:04:05"},
        shape={"expiresAt": "2099-01-02T03:04:05Z"},
    ),
    Row(
        "POST /sandboxes/{id}/renew-expiration",
        "/sandboxes/{sandbox}/renew-expiration",
        400,
        BAD_TIME,
        body={"expiresAt": "2020-01-01T00:00:00Z"},
    ),
    Row(
        "POST /sandboxes/{id}/renew-expiration",
        "/sandboxes/{eternal}/renew-expiration",
        409,
        BAD_TIME,
        body={"expiresAt": "2099-01-01T00:00:00Z"},
    ),
    Row(
        "POST /sandboxes/{id}/renew-expiration",
        "/sandboxes/{sandbox}/renew-expiration",
        422,
        body={"expiresAt": "tomorrow"},
    ),
    Row(
        "POST /sandboxes/{id}/renew-expiration",
        "/sandboxes/{nobody}/renew-expiration",
        404,
        NO_SANDBOX,
        body={"expiresAt": "2020-01-01T00:00:00Z"},
    ),
]
