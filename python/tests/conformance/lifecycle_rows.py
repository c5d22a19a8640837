"""All other routes of the lifecycle API, with answers and refusals."""

from __future__ import annotations

from typing import Any

from conformance.rows import Row
from conformance.sandbox_rows import BAD_VALUE, NO_SANDBOX, UUID, nothing
from conformance.world import KEY

BAD_PORT = "DOCKER::INVALID_PORT"
NO_POOL = "KUBERNETES::POOL_NOT_FOUND"
NO_TEMPLATES = "FSB::API_NOT_SUPPORTED"

ENDPOINTS = [
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{sandbox}/endpoints/08080",
        200,
        shape={
            "endpoint": lambda it: it.endswith("/proxy/8080") and "://" not in it,
            "headers": dict,
        },
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{sandbox}/endpoints/18080?use_server_proxy=TRUE",
        200,
        shape={"endpoint": lambda it: it.endswith("/18080")},
    ),
    Row("GET /sandboxes/{id}/endpoints/{port}", "/sandboxes/{nobody}/endpoints/0", 400, BAD_PORT),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}", "/sandboxes/{nobody}/endpoints/65536", 400, BAD_PORT
    ),
    Row("GET /sandboxes/{id}/endpoints/{port}", "/sandboxes/{nobody}/endpoints/x", 422),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{nobody}/endpoints/80?use_server_proxy=",
        422,
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{nobody}/endpoints/80?use_server_proxy=1&expires=99",
        400,
        BAD_VALUE,
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{sandbox}/endpoints/80?expires=9999999999&form=path",
        200,
        shape={"endpoint": lambda it: "/signed/80/" in it and "://" not in it},
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{sandbox}/endpoints/80?expires=1",
        400,
        BAD_VALUE,
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{nobody}/endpoints/80?expires=9999999999",
        404,
        NO_SANDBOX,
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}", "/sandboxes/{nobody}/endpoints/80", 404, NO_SANDBOX
    ),
    Row(
        "GET /sandboxes/{id}/endpoints/{port}",
        "/sandboxes/{ended}/endpoints/80",
        404,
        "DOCKER::SANDBOX_NOT_RUNNING",
    ),
    Row(
        "ANY /sandboxes/{id}/proxy/{port}",
        "/sandboxes/{sandbox}/proxy/44772/ping",
        200,
        look=nothing,
    ),
    Row("ANY /sandboxes/{id}/proxy/{port}", "/sandboxes/{sandbox}/proxy/0/", 400, BAD_PORT),
    Row("ANY /sandboxes/{id}/proxy/{port}", "/sandboxes/{sandbox}/proxy/x/", 422),
    Row("ANY /sandboxes/{id}/proxy/{port}", "/sandboxes/{nobody}/proxy/80/", 404, NO_SANDBOX),
    Row(
        "ANY /sandboxes/{id}/proxy/{port}",
        "/sandboxes/{ended}/proxy/44772/ping",
        409,
        "DOCKER::SANDBOX_NOT_RUNNING",
    ),
    Row("HEAD /sandboxes/{id}/proxy/{port}", "/sandboxes/{sandbox}/proxy/44772/ping", 405),
    Row(
        "OPTIONS /sandboxes/{id}/proxy/{port}",
        "/sandboxes/{sandbox}/proxy/44772/ping",
        405,
        "METHOD_NOT_ALLOWED",
    ),
]

LOGS = "/sandboxes/{sandbox}/diagnostics/logs"
HISTORY = "/sandboxes/{sandbox}/diagnostics/events"
DIAGNOSTICS = [
    Row(
        "GET /sandboxes/{id}/diagnostics/logs",
        f"{LOGS}?scope=Container",
        200,
        shape={
            "sandboxId": UUID,
            "kind": "logs",
            "scope": "container",
            "delivery": "inline",
            "contentType": "text/plain; charset=utf-8",
            "content": str,
            "contentLength": int,
            "truncated": bool,
        },
    ),
    Row(
        "GET /sandboxes/{id}/diagnostics/logs",
        LOGS,
        200,
        look=lambda it: it.headers["deprecation"] == "true",
    ),
    Row(
        "GET /sandboxes/{id}/diagnostics/logs",
        f"{LOGS}?scope=",
        400,
        "DIAGNOSTICS_SCOPE_UNSUPPORTED",
    ),
    Row("GET /sandboxes/{id}/diagnostics/logs", f"{LOGS}?tail=0", 422),
    Row(
        "GET /sandboxes/{id}/diagnostics/logs",
        "/sandboxes/{nobody}/diagnostics/logs",
        404,
        NO_SANDBOX,
    ),
    Row(
        "GET /sandboxes/{id}/diagnostics/events",
        f"{HISTORY}?scope=Runtime",
        200,
        shape={
            "sandboxId": UUID,
            "kind": "events",
            "scope": "runtime",
            "delivery": "inline",
            "contentType": "text/plain; charset=utf-8",
            "content": str,
            "contentLength": int,
            "truncated": bool,
        },
    ),
    Row(
        "GET /sandboxes/{id}/diagnostics/events",
        HISTORY,
        200,
        look=lambda it: it.headers["deprecation"] == "true",
    ),
    Row(
        "GET /sandboxes/{id}/diagnostics/events",
        f"{HISTORY}?scope=container",
        400,
        "DIAGNOSTICS_SCOPE_UNSUPPORTED",
    ),
    Row("GET /sandboxes/{id}/diagnostics/events", f"{HISTORY}?limit=501", 422),
    *[
        Row(
            f"GET /sandboxes/{{id}}/diagnostics/{what}",
            f"/sandboxes/{{sandbox}}/diagnostics/{what}",
            200,
            look=lambda it: "deprecation" not in it.headers and "Sandbox:" in it.text,
        )
        for what in ("inspect", "summary")
    ],
    *[
        Row(
            f"GET /sandboxes/{{id}}/diagnostics/{what}",
            f"/sandboxes/{{nobody}}/diagnostics/{what}",
            404,
            NO_SANDBOX,
        )
        for what in ("events", "inspect", "summary")
    ],
]

RULE = {"action": "allow", "target": "a.example"}
STRANGE = {"action": "allow", "target": "a b"}


def policy(method: str, status: int, code: str = "", body: Any = None, **more: Any) -> Row:
    """A request about the outbound policy of a sandbox."""
    route, who = f"{method} /sandboxes/{{id}}/networkpolicy", more.pop("who", "sandbox")
    return Row(route, f"/sandboxes/{{{who}}}/networkpolicy", status, code, body=body, **more)


def holds(*targets: str) -> dict[str, Any]:
    """The answer about a policy that has rules for these targets."""
    return {
        "status": "ok",
        "mode": str,
        "enforcementMode": "dns+nft",
        "policy": lambda it: [rule["target"] for rule in it["egress"]] == list(targets),
    }


POLICIES = [
    policy("GET", 200, shape={"status": "ok", "mode": str, "policy": dict}),
    policy("GET", 404, NO_SANDBOX, who="nobody"),
    policy("PUT", 200, body={"defaultAction": "deny", "egress": [RULE]}, shape=holds("a.example")),
    policy("PUT", 400, BAD_VALUE, body={"egress": [STRANGE]}),
    policy("PUT", 422, body=[RULE]),
    policy("PUT", 404, NO_SANDBOX, body={"egress": []}, who="nobody"),
    policy("PATCH", 200, body=[RULE], shape={"status": "ok", "policy": dict}),
    policy("PATCH", 400, BAD_VALUE, body=[STRANGE]),
    policy("PATCH", 422, body=[]),
    policy("PATCH", 422, body={"egress": [RULE]}),
    policy("PATCH", 404, NO_SANDBOX, body=[RULE], who="nobody"),
    policy("DELETE", 200, body=["a.example", "b.example"], shape={"status": "ok", "policy": dict}),
    policy("DELETE", 422, body=[]),
    policy("DELETE", 422, body=[1]),
    policy("DELETE", 404, NO_SANDBOX, body=["a.example"], who="nobody"),
]

# What this server does not do is refused in the words that clients know.
REFUSED = [
    *[
        Row(f"{method} {route}", route.replace("{name}", "x").replace("{id}", "x"), 501, code)
        for method, route, code in (
            ("POST", "/templates", NO_TEMPLATES),
            ("GET", "/templates", NO_TEMPLATES),
            ("GET", "/templates/{id}", NO_TEMPLATES),
            ("DELETE", "/templates/{id}", NO_TEMPLATES),
        )
    ],
]

CAPACITY = {"bufferMin": 0, "bufferMax": 0, "poolMin": 0, "poolMax": 2}
TEMPLATE = {"spec": {"containers": [{"image": "host", "command": ["sleep", "600"]}]}}
POOL = {
    "name": str,
    "capacitySpec": CAPACITY,
    "status": {"total": int, "allocated": int, "available": int, "revision": str},
    "createdAt": str,
}


def pool(status: int, code: str = "", **fields: Any) -> Row:
    body = {"name": "{new_pool}", "template": TEMPLATE, "capacitySpec": CAPACITY, **fields}
    shape = POOL if status == 201 else None
    return Row("POST /pools", "/pools", status, code, shape=shape, body=body)


POOLS = [
    pool(201),
    pool(409, "KUBERNETES::POOL_ALREADY_EXISTS", name="{pool}"),
    pool(422, name="P"),
    pool(422, capacitySpec={"bufferMin": 0}),
    pool(422, template="x"),
    pool(400, BAD_VALUE, template={}),
    pool(400, BAD_VALUE, capacitySpec={**CAPACITY, "bufferMin": 1}),
    pool(400, BAD_VALUE, capacitySpec={**CAPACITY, "poolMin": 3}),
    Row("GET /pools", "/pools", 200, shape={"items": list}),
    Row("PATCH (pools)", "/pools", 405, "METHOD_NOT_ALLOWED"),
    Row("GET /pools/{name}", "/pools/{pool}", 200, shape=POOL),
    Row("GET /pools/{name}", "/pools/no-such", 404, NO_POOL),
    Row(
        "PUT /pools/{name}",
        "/pools/{pool}",
        200,
        shape={"capacitySpec": {**CAPACITY, "poolMax": 9}},
        body={"capacitySpec": {**CAPACITY, "poolMax": 9}},
    ),
    Row("PUT /pools/{name}", "/pools/{pool}", 422, body={}),
    Row("PUT /pools/{name}", "/pools/no-such", 404, NO_POOL, body={"capacitySpec": CAPACITY}),
    Row("DELETE /pools/{name}", "/pools/{pool}", 204, look=nothing),
    Row("DELETE /pools/{name}", "/pools/no-such", 404, NO_POOL),
]

# Without a key, at the root only, or under /v1 only.
OPEN = [
    Row("GET /health", "/health", 200, shape={"status": "healthy"}),
    Row("GET /version", "/version", 200, shape={"version": "1.1.1"}),
    Row("GET /openapi.json", "/openapi.json", 200, shape={"paths": dict}),
]
EVENT = {"eventType": "sandbox.create", "createDurationMs": 12, "success": True}
EVENTS = [
    Row("GET /metrics", "/metrics", 200, look=lambda it: "# TYPE barchan_" in it.text),
    Row("GET /metrics", "/metrics", 401, "INVALID_API_KEY", headers={KEY: "wrong"}),
    Row("POST /v1/metrics/events", "/v1/metrics/events", 204, body=EVENT, look=nothing),
    Row("POST /v1/metrics/events", "/v1/metrics/events", 422, body={}),
    Row("POST /v1/metrics/events", "/metrics/events", 404, "NOT_FOUND", body=EVENT),
]
OTHERS = [
    Row("GET (unknown)", "/v1/nothing", 404, "NOT_FOUND"),
    Row("GET (unknown)", "/v1/health", 404, "NOT_FOUND"),
    Row("HEAD (unknown)", "/health", 405),
    Row(
        "PUT (unknown)",
        "/v1/sandboxes",
        405,
        "METHOD_NOT_ALLOWED",
        look=lambda it: it.headers["allow"] == "POST, GET",
    ),
    Row(
        "POST (unknown)",
        "/v1/sandboxes/",
        307,
        look=lambda it: it.headers["location"].endswith("/v1/sandboxes"),
    ),
    Row("GET (unknown)", "/v1/sandboxes", 400, "BAD_REQUEST", headers={"Host": "a b"}),
    Row(
        "GET (unknown)", "/v1/sandboxes", 403, "HOST_NOT_ALLOWED", headers={"Host": "evil.example"}
    ),
    Row(
        "POST (unknown)",
        "/v1/sandboxes",
        403,
        "ORIGIN_NOT_ALLOWED",
        headers={"Origin": "http://evil.example"},
    ),
    Row("GET (unknown)", "/v1/sandboxes", 401, "INVALID_API_KEY", headers={KEY: "wrong"}),
]
