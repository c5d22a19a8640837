"""All that the Python SDK can ask of the lifecycle API, well and badly, blocking or async."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import (
    Host,
    NetworkPolicy,
    NetworkRule,
    SandboxFilter,
    SnapshotFilter,
    Volume,
)
from opensandbox.models.templates import CreateTemplateRequest, TemplateFilter
from opensandbox.sync import SandboxManagerSync, SandboxSync

from conformance.world import until

LIFE = timedelta(minutes=5)
NOBODY = "00000000-0000-4000-8000-000000000000"


class Client:
    """One flavour of the SDK with one key."""

    def __init__(self, flavour: str, domain: str, key: str) -> None:
        self.runner = asyncio.Runner()
        is_async = flavour == "async"
        options: dict[str, Any] = {"domain": domain, "api_key": key, "use_server_proxy": False}
        self.config: Any = (
            ConnectionConfig(**options) if is_async else ConnectionConfigSync(**options)
        )
        self.kind: Any = Sandbox if is_async else SandboxSync
        manager: Any = SandboxManager if is_async else SandboxManagerSync
        self.manager: Any = self(manager.create(self.config))
        self.made: list[Any] = []

    def __call__(self, value: Any) -> Any:
        """What a call gives, whether it has to be waited for or not."""
        return self.runner.run(value) if inspect.iscoroutine(value) else value

    def create(self, image: str | None = "host", **options: Any) -> Any:
        options.setdefault("timeout", LIFE)
        made = self(self.kind.create(image, connection_config=self.config, **options))
        self.made.append(made)
        return made

    def snapshot(self, sandbox: Any, name: str) -> str:
        """A snapshot that is ready."""
        taken = self(sandbox.create_snapshot(name=name))
        look = self.manager.get_snapshot
        until("it is ready", lambda: self(look(taken.id)).status.state == "Ready")
        return str(taken.id)

    def code(self, call: Callable[[], Any]) -> str:
        """How a call is refused: status and code. Of statuses that the client does not expect from
        an operation it keeps the answer as it came."""
        with pytest.raises(SandboxApiException) as told:
            self(call())
        code = told.value.error.code
        if code == "UNEXPECTED_RESPONSE":
            code = json.loads(told.value.response_body or "{}").get("code", "")
        return f"{told.value.status_code} {code}".strip()

    def end(self) -> None:
        for sandbox in self.made:
            # One that is gone already is refused.
            with contextlib.suppress(SandboxApiException):
                self(sandbox.kill())
            self(sandbox.close())
        self(self.manager.close())
        self.runner.close()


def visit(client: Client) -> None:
    """What should work works, and is told as it should be."""
    sandbox = client.create(metadata={"team": "tour", "blank": ""}, env={"A": "b"})
    info = client(sandbox.get_info())
    assert (info.status.state, info.metadata) == ("Running", {"team": "tour", "blank": ""})
    manager = client.manager
    wanted = SandboxFilter(
        states=["Running", "Paused"], metadata={"team": "tour", "blank": ""}, page=1, page_size=200
    )
    listed = client(manager.list_sandbox_infos(wanted))
    assert sandbox.id in [one.id for one in listed.sandbox_infos]
    assert listed.pagination.page_size == 200
    patched = client(sandbox.patch_metadata({"blank": None, "more": "x"}))
    assert patched.metadata == {"team": "tour", "more": "x"}
    for verb, state in (("pause_sandbox", "Paused"), ("resume_sandbox", "Running")):
        client(getattr(manager, verb)(sandbox.id))
        assert client(manager.get_sandbox_info(sandbox.id)).status.state == state
    renewed = client(manager.renew_sandbox(sandbox.id, timedelta(hours=1)))
    assert renewed.expires_at > info.expires_at
    assert "/proxy/8080" in client(sandbox.get_endpoint(8080)).endpoint
    signed = client(sandbox.get_signed_endpoint(8080, int(time.time()) + 60))
    assert not signed.headers
    told = client(sandbox.get_diagnostic_events("runtime"))
    assert (told.sandbox_id, told.kind) == (sandbox.id, "events")
    assert client(sandbox.get_diagnostic_logs("container")).kind == "logs"
    snapshots(client, sandbox)
    client(manager.kill_sandbox(sandbox.id))
    assert client.code(lambda: manager.get_sandbox_info(sandbox.id)).startswith("404 ")


def snapshots(client: Client, sandbox: Any) -> None:
    manager = client.manager
    name = f"tour-{uuid.uuid4().hex}"
    snapshot = client.snapshot(sandbox, name)
    wanted = SnapshotFilter(
        sandbox_id=sandbox.id, name=name, states=["Ready"], page=1, page_size=200
    )
    listed = client(manager.list_snapshots(wanted))
    assert [one.id for one in listed.snapshot_infos] == [snapshot]
    made = client.create(None, snapshot_id=snapshot)
    in_use = client.code(lambda: manager.delete_snapshot(snapshot))
    assert in_use == "409 SNAPSHOT::DELETE_CONFLICT"
    client(manager.kill_sandbox(made.id))
    client(manager.delete_snapshot(snapshot))


def refusals(client: Client, pool: str) -> list[tuple[str, Callable[[], Any], str]]:
    """Calls that are refused, with status and code. The pool has no sandbox to give."""
    manager = client.manager
    paused, eternal = client.create(), client.create(timeout=None)
    client(paused.pause())
    past = int(time.time()) - 60
    host = Volume(name="v", host=Host(path="/etc"), mountPath="/m")
    template = CreateTemplateRequest(image="x", publish="s3://b/p")
    no_sandbox, bad = "404 DOCKER::SANDBOX_NOT_FOUND", "400 SANDBOX::INVALID_PARAMETER"
    no_template = "501 FSB::API_NOT_SUPPORTED"
    short = timedelta(seconds=30)
    strange = NetworkRule(action="allow", target="a b")

    def create(image: str | None = "host", **more: Any) -> Callable[[], Any]:
        return lambda: client.create(image, **more)

    return [
        ("image", create("no/such:image"), "500 DOCKER::SANDBOX_IMAGE_PULL_FAILED"),
        ("label", create(metadata={"-a": "b"}), "400 SANDBOX::INVALID_METADATA_LABEL"),
        ("cpu", create(resource={"cpu": "much"}), bad),
        ("timeout", create(timeout=short), "422"),
        ("entrypoint", create(entrypoint=[""]), "400 DOCKER::INVALID_ENTRYPOINT"),
        ("policy", create(network_policy=NetworkPolicy(egress=[strange])), bad),
        ("secure", create(secure_access=True), bad),
        ("volume", create(volumes=[host]), "400 VOLUME::HOST_PATH_NOT_ALLOWED"),
        ("snapshot", create(None, snapshot_id=NOBODY), "404 SNAPSHOT::NOT_FOUND"),
        ("pool", create(extensions={"poolRef": "none"}), "404 KUBERNETES::POOL_NOT_FOUND"),
        (
            "full pool",
            create(extensions={"poolRef": pool}),
            "429 KUBERNETES::POOL_CAPACITY_EXHAUSTED",
        ),
        (
            "template",
            lambda: client.kind.create_from_template(
                "tpl-x", timeout=LIFE, connection_config=client.config
            ),
            "400 DOCKER::INVALID_ENTRYPOINT",
        ),
        ("get", lambda: manager.get_sandbox_info(NOBODY), no_sandbox),
        ("kill", lambda: manager.kill_sandbox(NOBODY), no_sandbox),
        ("pause", lambda: manager.pause_sandbox(NOBODY), no_sandbox),
        ("resume", lambda: manager.resume_sandbox(NOBODY), no_sandbox),
        ("renew", lambda: manager.renew_sandbox(NOBODY, LIFE), no_sandbox),
        ("patch", lambda: manager.patch_sandbox_metadata(NOBODY, {}), no_sandbox),
        ("snap", lambda: manager.create_snapshot(NOBODY), no_sandbox),
        ("logs", lambda: manager.get_diagnostic_logs(NOBODY, "all"), no_sandbox),
        ("events", lambda: manager.get_diagnostic_events(NOBODY, "all"), no_sandbox),
        (
            "connect",
            lambda: client.kind.connect(NOBODY, connection_config=client.config),
            no_sandbox,
        ),
        ("pause twice", paused.pause, "409 DOCKER::SANDBOX_NOT_RUNNING"),
        (
            "resume running",
            lambda: manager.resume_sandbox(eternal.id),
            "409 DOCKER::SANDBOX_NOT_PAUSED",
        ),
        ("renew eternal", lambda: eternal.renew(LIFE), "409 DOCKER::INVALID_EXPIRATION"),
        ("renew into the past", lambda: paused.renew(-LIFE), "400 DOCKER::INVALID_EXPIRATION"),
        (
            "reserved",
            lambda: paused.patch_metadata({"opensandbox.io/a": None}),
            "400 INVALID_METADATA_LABEL",
        ),
        ("snap paused", paused.create_snapshot, "409 SNAPSHOT::INVALID_SOURCE_STATE"),
        ("port", lambda: paused.get_endpoint(0), "400 DOCKER::INVALID_PORT"),
        ("expired", lambda: eternal.get_signed_endpoint(80, past), bad),
        ("scope", lambda: eternal.get_diagnostic_logs("x"), "400 DIAGNOSTICS_SCOPE_UNSUPPORTED"),
        (
            "page",
            lambda: manager.list_sandbox_infos(SandboxFilter(page_size=201)),
            "422",
        ),
        (
            "snapshots' page",
            lambda: manager.list_snapshots(SnapshotFilter(page_size=201)),
            "422",
        ),
        ("get snapshot", lambda: manager.get_snapshot(NOBODY), "404 SNAPSHOT::NOT_FOUND"),
        ("delete snapshot", lambda: manager.delete_snapshot(NOBODY), "404 SNAPSHOT::NOT_FOUND"),
        ("create template", lambda: manager.create_template(template), no_template),
        ("get template", lambda: manager.get_template("tpl-x"), no_template),
        (
            "list templates",
            lambda: manager.list_templates(TemplateFilter(metadata={"a": "b"}, page=1, pageSize=9)),
            no_template,
        ),
        ("delete template", lambda: manager.delete_template("tpl-x"), no_template),
    ]


def tenants_refusals(client: Client, foreign: str) -> list[tuple[str, Callable[[], Any], str]]:
    """What a tenant that may have one sandbox of half a processor, and no snapshot, is refused.
    The other sandbox and its snapshot are somebody else's."""
    manager = client.manager
    own = client.create(resource={"cpu": "500m", "memory": "256Mi"})
    no_sandbox = "404 DOCKER::SANDBOX_NOT_FOUND"
    return [
        ("one more", client.create, "403 QUOTA::SANDBOXES"),
        ("snapshot", own.create_snapshot, "403 QUOTA::SNAPSHOTS"),
        ("pool", lambda: client.create(extensions={"poolRef": "any"}), "403 ADMIN_ONLY"),
        ("get", lambda: manager.get_sandbox_info(foreign), no_sandbox),
        ("kill", lambda: manager.kill_sandbox(foreign), no_sandbox),
        ("snap", lambda: manager.create_snapshot(foreign), no_sandbox),
        ("logs", lambda: manager.get_diagnostic_logs(foreign, "all"), no_sandbox),
    ]
