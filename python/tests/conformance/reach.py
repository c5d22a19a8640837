"""Which operations of the lifecycle API each client can ask for, with the parameters of queries
that it can send; and those that no client asks for."""

from __future__ import annotations

METHODS = ("get", "post", "put", "patch", "delete")
PROXY = "ANY /v1/sandboxes/{sandboxId}/proxy/{port}"
ONE = "/v1/sandboxes/{sandboxId}"
SIGNED = f"GET {ONE}/endpoints/{{port}} expires use_server_proxy"

# What all of them do.
COMMON = {
    "POST /v1/sandboxes",
    "GET /v1/sandboxes metadata page pageSize state",
    f"GET {ONE}",
    f"DELETE {ONE}",
    f"POST {ONE}/renew-expiration",
    "POST /v1/metrics/events",
}
VERBS = {f"POST {ONE}/pause", f"POST {ONE}/resume"}
SNAPSHOTS = {
    f"POST {ONE}/snapshots",
    "GET /v1/snapshots name page pageSize sandboxId state",
    "GET /v1/snapshots/{snapshotId}",
    "DELETE /v1/snapshots/{snapshotId}",
}
TEMPLATES = {
    "POST /v1/templates",
    "GET /v1/templates metadata page pageSize",
    "GET /v1/templates/{templateId}",
    "DELETE /v1/templates/{templateId}",
}
LABELS = f"PATCH {ONE}/metadata"
ENDPOINTS = f"GET {ONE}/endpoints/{{port}} use_server_proxy"

ASKED = {
    "sdk": {
        *COMMON,
        *VERBS,
        *SNAPSHOTS,
        *TEMPLATES,
        LABELS,
        SIGNED,
        f"GET {ONE}/diagnostics/logs scope",
        f"GET {ONE}/diagnostics/events scope",
    },
    "npm": {*COMMON, *VERBS, *SNAPSHOTS, LABELS, SIGNED},
    "osb": {
        *COMMON,
        *VERBS,
        *SNAPSHOTS,
        *TEMPLATES,
        ENDPOINTS,
        f"GET {ONE}/diagnostics/logs scope since tail",
        f"GET {ONE}/diagnostics/events limit scope",
        f"GET {ONE}/diagnostics/inspect",
        f"GET {ONE}/diagnostics/summary event_limit tail",
    },
    "mcp": {*COMMON, ENDPOINTS},
}

# Why: the clients of these versions have no call for it. The tables of rows ask for each.
BY_NO_CLIENT = {
    "GET /health": "for load balancers",
    "GET /version": "for people",
    "GET /openapi.json": "for tools that read descriptions",
    "GET /metrics": "for collectors of figures",
    "GET /v1/pools": "pools are an operator's",
    "POST /v1/pools": "pools are an operator's",
    "GET /v1/pools/{poolName}": "pools are an operator's",
    "PUT /v1/pools/{poolName}": "pools are an operator's",
    "DELETE /v1/pools/{poolName}": "pools are an operator's",
    f"GET {ONE}/networkpolicy": "clients ask the port 18080 of the sandbox",
    f"PUT {ONE}/networkpolicy": "clients ask the port 18080 of the sandbox",
    f"PATCH {ONE}/networkpolicy": "clients ask the port 18080 of the sandbox",
    f"DELETE {ONE}/networkpolicy": "clients ask the port 18080 of the sandbox",
}
