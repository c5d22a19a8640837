"""Rows of the routes about snapshots."""

from __future__ import annotations

from conformance.rows import Row
from conformance.sandbox_rows import nothing
from conformance.world import CREATE

NO_SNAPSHOT = "SNAPSHOT::NOT_FOUND"
TAKE = "POST /sandboxes/{id}/snapshots"
STATUS = {
    "state": "Creating",
    "reason": "snapshot_accepted",
    "message": "Snapshot creation accepted.",
    "lastTransitionAt": str,
}
SNAPSHOT = {"id": str, "sandboxId": str, "status": STATUS, "createdAt": str}
READY = {**SNAPSHOT, "status": {**STATUS, "state": "Ready", "reason": str, "message": str}}
RESTORE = {**{key: CREATE[key] for key in ("resourceLimits", "timeout")}}

SNAPSHOTS = [
    Row(
        TAKE,
        "/sandboxes/{sandbox}/snapshots",
        202,
        body={"name": "kept"},
        shape={**SNAPSHOT, "name": "kept"},
        look=lambda it: it.headers["location"] == f"/v1/snapshots/{it.json()['id']}",
    ),
    Row(
        TAKE,
        "/sandboxes/{sandbox}/snapshots",
        202,
        shape=SNAPSHOT,
        look=lambda it: "name" not in it.json(),
    ),
    Row(TAKE, "/sandboxes/{sandbox}/snapshots", 422, body={"name": ""}),
    Row(TAKE, "/sandboxes/{sandbox}/snapshots", 422, body={"name": "a\nb"}),
    Row(TAKE, "/sandboxes/{nobody}/snapshots", 404, "DOCKER::SANDBOX_NOT_FOUND", body={}),
    Row(TAKE, "/sandboxes/{paused}/snapshots", 409, "SNAPSHOT::INVALID_SOURCE_STATE", body={}),
    Row(TAKE, "/sandboxes/{ended}/snapshots", 409, "SNAPSHOT::INVALID_SOURCE_STATE", body={}),
    Row(
        "GET /snapshots",
        "/snapshots?state=Ready&state=Creating&page=1&pageSize=200",
        200,
        shape={"items": list, "pagination": dict},
    ),
    Row(
        "GET /snapshots",
        "/snapshots?sandboxId={nobody}&state=ready&name=none",
        200,
        look=lambda it: it.json()["items"] == [],
    ),
    Row("GET /snapshots", "/snapshots?pageSize=0", 422),
    Row("GET /snapshots/{id}", "/snapshots/{snapshot}", 200, shape=READY),
    Row("GET /snapshots/{id}", "/snapshots/{nobody}", 404, NO_SNAPSHOT),
    Row("DELETE /snapshots/{id}", "/snapshots/{snapshot}", 204, look=nothing),
    Row("DELETE /snapshots/{id}", "/snapshots/x", 404, NO_SNAPSHOT),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={**RESTORE, "snapshotId": "{snapshot}"},
        shape={"id": str, "entrypoint": ["tail", "-f", "/dev/null"]},
    ),
    Row("POST /sandboxes", "/sandboxes", 404, NO_SNAPSHOT, body={**RESTORE, "snapshotId": "x"}),
]
