"""Fields of a create: how each is read, what it excludes, and what a refusal is called."""

from __future__ import annotations

from typing import Any

from conformance.rows import Row
from conformance.sandbox_rows import BAD_VALUE, create, without
from conformance.world import CREATE

NO_POOL_REF = {"extensions": {"poolRef": " "}}
# A create from a template or a pool says little else.
FROM_TEMPLATE: dict[str, Any] = {"templateId": "tpl-x", "timeout": 60}
ENTRYPOINT, STARTED = "DOCKER::INVALID_ENTRYPOINT", "DOCKER::SANDBOX_START_FAILED"
NO_SNAPSHOT = "SNAPSHOT::NOT_FOUND"


def made(fields: dict[str, Any], shape: Any = None, look: Any = None) -> Row:
    """A create that comes about; `...` leaves a field out."""
    body = {name: value for name, value in {**CREATE, **fields}.items() if value is not ...}
    return Row("POST /sandboxes", "/sandboxes", 202, body=body, shape=shape, look=look)


def field(name: str, value: Any) -> dict[str, Any]:
    return {name: value}


def from_template(status: int, code: str = "", **fields: Any) -> Row:
    body = {name: value for name, value in {**FROM_TEMPLATE, **fields}.items() if value is not ...}
    return Row("POST /sandboxes", "/sandboxes", status, code, body=body)


def from_pool(status: int, code: str = "", **fields: Any) -> Row:
    body = {"timeout": 600, "extensions": {"poolRef": "{pool}"}, **fields}
    return Row("POST /sandboxes", "/sandboxes", status, code, body=body)


def from_snapshot(status: int, code: str = "", **fields: Any) -> Row:
    body = {"timeout": 600, "resourceLimits": CREATE["resourceLimits"], **fields}
    return Row("POST /sandboxes", "/sandboxes", status, code, body=body)


TIMES = [
    create(422, timeout=0),
    create(422, timeout=-1),
    create(422, timeout=""),
    create(422, timeout="60s"),
    create(422, timeout=[60]),
    create(422, timeout=10**30),
    made({"timeout": 60}),
    made({"timeout": 60.0}),
    made({"timeout": 315_360_000}),
    made({"timeout": ...}, look=without("expiresAt")),
]
# An empty word stands for nothing, so something is missing.
MISSING = [
    create(422, image={"uri": ""}),
    create(422, image=None),
    create(422, image="host"),
    create(422, image=..., snapshotId=" "),
    create(422, resourceLimits=None),
    create(422, entrypoint=None),
    create(422, entrypoint="sleep"),
    create(422, entrypoint=[1]),
    create(422, metadata={"a": 1}),
    create(422, env={"A": 1}),
    create(422, env=["A=1"]),
    create(422, templateId=""),
    made({"snapshotId": ""}),
    made(NO_POOL_REF),
    made({"env": None, "metadata": None, "volumes": None, "extensions": None, "platform": None}),
    made({"credentialProxy": {"enabled": False}, "secureAccess": False}),
]
TEMPLATES = [
    from_template(422, timeout=...),
    *[
        from_template(422, **field(name, value))
        for name, value in (
            ("image", {"uri": "host"}),
            ("snapshotId", "x"),
            ("entrypoint", ["a"]),
            ("env", {"A": "b"}),
            ("resourceLimits", {"cpu": "1"}),
            ("resourceRequests", {"cpu": "1"}),
            ("volumes", [{"name": "a", "pvc": {"claimName": "a"}, "mountPath": "/a"}]),
            ("platform", {"os": "linux", "arch": "amd64"}),
            ("credentialProxy", {"enabled": True}),
            ("secureAccess", True),
            ("lifecycle", {"preStart": {"command": ["true"]}}),
        )
    ],
    from_template(400, ENTRYPOINT, metadata={"a": "b"}),
]
POOLS = [
    from_pool(202, metadata={"a": "b"}),
    from_pool(202, image={"uri": " "}),
    from_pool(422, lifecycle={"preStart": {"command": ["true"]}}),
    from_pool(422, snapshotId="x"),
    from_pool(422, credentialProxy={"enabled": True}, networkPolicy={"egress": []}),
    from_pool(
        400, BAD_VALUE, volumes=[{"name": "a", "pvc": {"claimName": "a"}, "mountPath": "/a"}]
    ),
]
SNAPSHOTS = [
    from_snapshot(404, NO_SNAPSHOT, snapshotId="nothing", image={"uri": " "}),
    from_snapshot(404, NO_SNAPSHOT, snapshotId="nothing", entrypoint=["sleep", "600"]),
    from_snapshot(422, snapshotId="x", resourceLimits=None),
    from_snapshot(422, snapshotId="x", entrypoint=[]),
    Row(
        "POST /sandboxes",
        "/sandboxes",
        202,
        body={
            "timeout": 600,
            "resourceLimits": CREATE["resourceLimits"],
            "snapshotId": "{snapshot}",
            "entrypoint": ["sleep", "600"],
        },
        shape={"entrypoint": ["sleep", "600"]},
        look=without("image"),
    ),
]
LABELS = [
    *[
        create(400, "SANDBOX::INVALID_METADATA_LABEL", metadata={key: value})
        for key, value in (
            ("", "b"),
            ("a/", "b"),
            ("/a", "b"),
            ("a/b/c", "d"),
            ("x" * 64, "b"),
            (f"{'x' * 254}/a", "b"),
            ("a", "-b"),
            ("a", "b c"),
            ("A.b/c", "d"),
        )
    ],
    made({"metadata": {"x" * 63: "y" * 63, f"{'x.' * 100}y/a": ""}}),
]
EXTENSIONS = [
    *[
        create(400, BAD_VALUE, extensions={"access.renew.extend.seconds": text})
        for text in ("", "86401", "3e2", "-300", "300.0")
    ],
    made({"extensions": {"access.renew.extend.seconds": "86400"}}),
    made(
        {"extensions": {"opensandbox.extensions.kept": "x", "dropped": "y"}},
        look=lambda it: it.json()["extensions"] == {"opensandbox.extensions.kept": "x"},
    ),
]
OTHERS = [
    # The camel case counts where both are there.
    made({"resource_limits": {"cpu": "nonsense"}}),
    *[
        create(400, BAD_VALUE, resourceLimits={name: value})
        for name, value in (
            ("cpu", "0"),
            ("cpu", ""),
            ("cpu", "1m1"),
            ("memory", "0"),
            ("memory", "1X"),
            ("gpu", "0"),
            ("gpu", "many"),
        )
    ],
    create(422, volumes=[{"name": "A", "pvc": {"claimName": "a"}, "mountPath": "/a"}]),
    create(422, volumes=[{"name": "a", "pvc": {"claimName": "a.b"}, "mountPath": "/a"}]),
    create(422, volumes=[{"name": "a", "pvc": {"claimName": "a"}, "mountPath": "a"}]),
    create(
        422,
        volumes=[
            {"name": "a", "pvc": {"claimName": "a"}, "host": {"path": "/a"}, "mountPath": "/a"}
        ],
    ),
    create(400, BAD_VALUE, platform={"os": "linux", "arch": "mips"}),
    create(422, platform={"os": "linux"}),
    create(400, BAD_VALUE, env={"OPENSANDBOX_EGRESS_X": "1"}),
    create(422, networkPolicy={"egress": [{"action": "allow"}]}),
    create(422, networkPolicy={"egress": [{"action": "allow", "target": ""}]}),
    create(422, lifecycle={"preStart": {"command": []}}),
    create(422, lifecycle={"preStart": {"command": ["a"], "timeoutSeconds": 0}}),
    create(
        422,
        lifecycle={
            "periodic": [
                {"name": "a", "schedule": "* * * * *", "command": ["true"]},
                {"name": "a", "schedule": "* * * * *", "command": ["true"]},
            ]
        },
    ),
]
CREATE_ROWS = [*TIMES, *MISSING, *TEMPLATES, *POOLS, *SNAPSHOTS, *LABELS, *EXTENSIONS, *OTHERS]
