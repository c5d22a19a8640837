"""All that `osb` can ask of the lifecycle API, well and badly."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.osb_client import Osb
from conformance.world import until

NOBODY = "00000000-0000-4000-8000-000000000000"


def visit(osb: Osb, folder: Path) -> None:
    """What should work works, and is told as it should be."""
    made = osb.create("-m", "team=osb", "--resource", "cpu=1", "--resource", "memory=256Mi")
    filters = ("-m", "team=osb", "-s", "running", "-s", "Paused", "--page", "1")
    listed = osb.json("sandbox", "list", *filters, "--page-size", "200")
    assert made in json.dumps(listed)
    for verb, state in (("pause", "Paused"), ("resume", "Running")):
        osb("sandbox", verb, made)
        assert osb.json("sandbox", "get", made)["status"]["state"] == state
    osb.json("sandbox", "renew", made, "-t", "1h")
    assert "/proxy/80" in json.dumps(osb.json("sandbox", "endpoint", made, "-p", "80"))
    osb.json("diagnostics", "logs", made, "-s", "container")
    osb.json("diagnostics", "events", made, "-s", "runtime")
    osb("devops", "logs", made, "-n", "10", "-s", "10m")
    osb("devops", "events", made, "-l", "50")
    osb("devops", "inspect", made)
    osb("devops", "summary", made, "-n", "5", "--event-limit", "5")
    snapshot = osb.json("snapshot", "create", made, "--name", folder.name)["id"]
    show = ("snapshot", "get", snapshot)
    until("it is ready", lambda: osb.json(*show)["status"]["state"] == "Ready")
    filters = ("--sandbox-id", made, "--name", folder.name, "--state", "Ready", "--page", "1")
    assert snapshot in json.dumps(osb.json("snapshot", "list", *filters, "--page-size", "9"))
    restored = osb.json("sandbox", "create", "--snapshot-id", snapshot, "-t", "10m")["id"]
    osb.refused("SNAPSHOT::DELETE_CONFLICT", "snapshot", "delete", snapshot)
    osb("sandbox", "kill", restored, made)
    osb("snapshot", "delete", snapshot)


def refusals(osb: Osb, folder: Path, pool: str) -> None:
    """Commands that are refused. The pool has no sandbox to give."""
    paused, eternal = osb.create(), osb.create("-t", "none")
    osb("sandbox", "pause", paused)
    volumes, policy = folder / "volumes.json", folder / "policy.json"
    volumes.write_text('[{"name": "v", "host": {"path": "/etc"}, "mountPath": "/m"}]')
    policy.write_text('{"egress": [{"action": "allow", "target": "a b"}]}')
    create = ("sandbox", "create", *osb.HOST)
    template = ("template", "create", "-i", "x", "--publish", "s3://b/p")
    for code, words in [
        ("SANDBOX_IMAGE_PULL_FAILED", ("sandbox", "create", "-i", "no/such:image")),
        ("SANDBOX::INVALID_METADATA_LABEL", (*create, "-m", "-a=b")),
        ("SANDBOX::INVALID_PARAMETER", (*create, "--resource", "cpu=much")),
        ("SANDBOX::INVALID_PARAMETER", (*create, "--network-policy-file", str(policy))),
        ("VOLUME::HOST_PATH_NOT_ALLOWED", (*create, "--volumes-file", str(volumes))),
        ("SNAPSHOT::NOT_FOUND", ("sandbox", "create", "--snapshot-id", NOBODY)),
        ("KUBERNETES::POOL_NOT_FOUND", (*create, "--extension", "poolRef=none")),
        ("KUBERNETES::POOL_CAPACITY_EXHAUSTED", (*create, "--extension", f"poolRef={pool}")),
        ("SANDBOX_NOT_FOUND", ("sandbox", "get", NOBODY)),
        ("SANDBOX_NOT_FOUND", ("sandbox", "kill", NOBODY)),
        ("SANDBOX_NOT_FOUND", ("sandbox", "pause", NOBODY)),
        ("SANDBOX_NOT_FOUND", ("sandbox", "resume", NOBODY)),
        ("SANDBOX_NOT_FOUND", ("sandbox", "endpoint", NOBODY, "-p", "80")),
        ("SANDBOX_NOT_FOUND", ("diagnostics", "logs", NOBODY, "-s", "all")),
        ("not found", ("devops", "inspect", NOBODY)),
        ("not found", ("devops", "summary", NOBODY)),
        ("SANDBOX_NOT_FOUND", ("snapshot", "create", NOBODY)),
        ("SANDBOX_NOT_RUNNING", ("sandbox", "pause", paused)),
        ("SANDBOX_NOT_PAUSED", ("sandbox", "resume", eternal)),
        ("DOCKER::INVALID_EXPIRATION", ("sandbox", "renew", eternal, "-t", "1h")),
        ("SNAPSHOT::INVALID_SOURCE_STATE", ("snapshot", "create", paused)),
        ("DIAGNOSTICS_SCOPE_UNSUPPORTED", ("diagnostics", "events", eternal, "-s", "x")),
        ("tail", ("devops", "logs", eternal, "-n", "10001")),
        ("pageSize", ("sandbox", "list", "--page-size", "201")),
        ("pageSize", ("snapshot", "list", "--page-size", "201")),
        ("SNAPSHOT::NOT_FOUND", ("snapshot", "get", NOBODY)),
        ("SNAPSHOT::NOT_FOUND", ("snapshot", "delete", NOBODY)),
        ("FSB::API_NOT_SUPPORTED", template),
        ("FSB::API_NOT_SUPPORTED", ("template", "get", "tpl-x")),
        (
            "FSB::API_NOT_SUPPORTED",
            ("template", "list", "-m", "a=b", "--page", "1", "--page-size", "9"),
        ),
        ("FSB::API_NOT_SUPPORTED", ("template", "delete", "tpl-x")),
        ("DOCKER::INVALID_ENTRYPOINT", ("sandbox", "create", "--template", "tpl-x", "-t", "10m")),
        ("not ready", ("credential-vault", "get", eternal)),
    ]:
        osb.refused(code, *words)
    osb("sandbox", "kill", paused, eternal)
