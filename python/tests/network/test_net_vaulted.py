"""Credentials that never enter the sandbox: programs of all kinds use them and none has them."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.world import Lifecycle, until
from network.claims import policy
from network.guarded import Cells, guarded, guards
from network.internet import Internet
from network.places import Cell
from network.routine import CURL, NODE, PYTHON
from network.servers.repository import READ_ME

HOST = "allowed.example"
RULES = policy(f"allow {HOST}", "allow neighbour.example", "allow git.example")
PLACEHOLDER = "barchan-placeholder-0001"
HELLO = f"{CURL} https://{HOST}/hello"

Vaulted = Callable[..., Cell]

# Looks for a text that is told backwards, so that the search does not find itself.
SEARCH = """
import pathlib, sys
needle = sys.argv[1][::-1].encode()
places = [pathlib.Path(it) for it in ("/etc", "/opt", "/run", "/tmp", "/root", "/home", "/var")]
files = [it for place in places for it in place.rglob("*")]
for it in pathlib.Path("/proc").glob("[0-9]*"):
    files += [it / "environ", it / "cmdline"]
def holds(path):
    try:
        return path.is_file() and needle in path.read_bytes()
    except OSError:
        return False
print([str(it) for it in files if holds(it)])
"""


@pytest.fixture(scope="module")
def lifecycle(net: Internet) -> Iterator[Lifecycle]:
    """A server that believes the small internet's authority where it opens TLS."""
    with guarded(net, f'extra_ca_file = "{net.authority}"') as made:
        yield made


@pytest.fixture
def value() -> str:
    return f"canary-{secrets.token_hex(16)}"


def bound(auth: dict[str, Any], host: str = HOST, **more: Any) -> dict[str, Any]:
    return {"name": host, "match": {"hosts": [host]}, "auth": auth, **more}


def bearer(host: str = HOST, **more: Any) -> dict[str, Any]:
    return bound({"type": "bearer", "credential": "key"}, host, **more)


def replacing(*places: str) -> dict[str, Any]:
    one = {"credential": "key", "placeholder": PLACEHOLDER, "in": list(places)}
    return bound({"type": "passthrough", "substitutions": [one]})


def fill(cell: Cell, value: str, *bindings: dict[str, Any], method: str = "POST") -> None:
    """Sets the vault of a sandbox."""
    credential = {"name": "key", "source": {"type": "inline", "value": value}}
    body = {"credentials": [credential], "bindings": list(bindings)}
    cell.ask(method, "/v1/sandboxes/{id}/proxy/18080/credential-vault", json=body)


@pytest.fixture
def vaulted(cells: Cells, value: str) -> Vaulted:
    """Makes a sandbox with a vault that has one credential."""

    def make(*bindings: dict[str, Any], **more: Any) -> Cell:
        cell = cells(RULES, credentialProxy={"enabled": True}, **more)
        fill(cell, value, *bindings)
        return cell

    return make


def test_programs_of_every_day_use_it(vaulted: Vaulted, value: str) -> None:
    cell = vaulted(bearer())
    for script in (
        f"{HELLO} --http1.1",
        f"{HELLO} --http2",
        f"{HELLO} --tls-max 1.2",
        f"{HELLO} -4 -H 'Authorization: Bearer forged'",
        f'/usr/bin/python3 -c "{PYTHON}"',
        f'/usr/bin/node -e "{NODE}"',
    ):
        done = cell.plain(script)
        assert done.code == 0, (script, done.stderr)
        assert f"Bearer {value}" in done.stdout, (script, done.stdout)
        assert "forged" not in done.stdout


def test_git_uses_it(net: Internet, vaulted: Vaulted, value: str) -> None:
    mark = net.mark()
    cell = vaulted(bearer("git.example"))
    done = cell.plain(
        'cd "$(mktemp -d)" && git clone --quiet https://git.example/repository.git made '
        "&& cat made/README"
    )
    assert (done.code, done.stdout) == (0, READ_ME), done.stderr
    net.settle()
    seen = [dict(event["headers"]) for event in net.events(mark, "http", host="git.example")]
    assert seen
    assert all(it["authorization"] == f"Bearer {value}" for it in seen)


def test_a_placeholder_of_the_environment_becomes_the_value(vaulted: Vaulted, value: str) -> None:
    cell = vaulted(replacing("header", "query"), env={"OPENAI_API_KEY": PLACEHOLDER})
    asked = '-H "Authorization: Bearer $OPENAI_API_KEY" -H "X-Key: $OPENAI_API_KEY"'
    done = cell.plain(f"{HELLO}/?key=$OPENAI_API_KEY {asked}")
    assert done.stdout.count(value) == 3, (done.stdout, done.stderr)
    # Elsewhere it is a word like any other.
    other = cell.plain(f"{CURL} -k https://neighbour.example/hello {asked}")
    assert value not in other.stdout
    assert other.stdout.count(PLACEHOLDER) == 2, (other.stdout, other.stderr)


def test_what_is_echoed_comes_back_without_it(vaulted: Vaulted, value: str) -> None:
    cell = vaulted(bearer(scrubResponses=True))
    for version in ("--http1.1", "--http2"):
        done = cell.plain(f"{HELLO} {version} --compressed")
        assert "Bearer [secret]" in done.stdout, done.stderr
        assert value not in done.stdout


def test_another_host_on_the_same_address_is_not_opened(
    net: Internet, vaulted: Vaulted, value: str
) -> None:
    cell = vaulted(bearer())
    # The certificate there is the internet's own, which this sandbox has no reason to believe.
    refused = cell.plain(f"{CURL} https://neighbour.example/hello")
    assert refused.code != 0
    seen = cell.sh(f"{CURL} https://neighbour.example/hello")
    assert seen.code == 0, seen.stderr
    assert value not in seen.stdout
    smuggled = cell.plain(f"{HELLO} -H 'Host: neighbour.example' -o /dev/null -w '%{{http_code}}'")
    assert "421" in smuggled.stdout + smuggled.stderr


def test_a_server_that_is_not_believed_is_told_of(
    net: Internet, cells: Cells, vaulted: Vaulted, lifecycle: Lifecycle, value: str
) -> None:
    with guarded(net) as distrusting:
        cell = Cell(distrusting, net, networkPolicy=RULES, credentialProxy={"enabled": True})
        try:
            fill(cell, value, bearer())
            done = cell.plain(f"curl -sS https://{HOST}/hello")
            assert "extra_ca_file" in done.stdout, (done.stdout, done.stderr)
            assert cell.connections()[0]["reason"] == "tls_untrusted"
        finally:
            cell.end()


def test_it_outlives_the_server_and_the_program_between(
    vaulted: Vaulted, lifecycle: Lifecycle, value: str
) -> None:
    cell = vaulted(bearer())
    (guard,) = guards(lifecycle)
    os.kill(guard, signal.SIGKILL)
    until("it is told again", lambda: value in cell.plain(HELLO).stdout)
    lifecycle.server.end(signal.SIGKILL)
    lifecycle.server.start()
    until("it is told again", lambda: value in cell.plain(HELLO).stdout)


def test_a_fork_believes_itself_and_has_nothing(
    cells: Cells, vaulted: Vaulted, lifecycle: Lifecycle, net: Internet, value: str
) -> None:
    cell = vaulted(bearer())
    made = cell.ask("POST", "/x/layers/{id}/fork")["items"][0]["id"]
    fork = Cell(lifecycle, net, known=made)
    try:
        assert fork.plain(HELLO).code != 0
        assert value not in fork.plain(f"{HELLO} -k").stdout
        fill(fork, value, bearer())
        assert value in fork.plain(HELLO).stdout
        show = "cat /opt/opensandbox/mitmproxy-ca-cert.pem"
        own = fork.plain(show).stdout
        assert own != cell.plain(show).stdout
        bundle = fork.plain("cat $SSL_CERT_FILE").stdout
        assert own.strip() in bundle
        assert cell.plain(show).stdout.strip() not in bundle
    finally:
        fork.end()


def test_nobody_finds_it(vaulted: Vaulted, lifecycle: Lifecycle, value: str) -> None:
    """The canary: it was used, replaced, refused, and is nowhere to be read."""
    cell = vaulted(replacing("header", "path", "query", "body"), env={"KEY": PLACEHOLDER})
    cell.plain(f'{HELLO} -H "X-Key: $KEY" -o /dev/null')
    cell.plain(f'{CURL} -k https://neighbour.example/hello -H "X-Key: $KEY"')
    fill_again = "/v1/sandboxes/{id}/proxy/18080/credential-vault"
    server = lifecycle.server
    for body in ({"credentials": value}, {"credentials": [{"name": value, "source": {}}]}):
        path = fill_again.format(id=cell.id)
        refused = lifecycle.client.patch(path, headers=lifecycle.key, json=body)
        assert refused.status_code == 400
        assert value not in refused.text
    for path in (
        "/v1/sandboxes/{id}",
        "/x/sandboxes/{id}",
        "/x/sandboxes/{id}/connections",
        fill_again,
        "/v1/sandboxes/{id}/proxy/18080/policy",
    ):
        answer = lifecycle.client.get(path.format(id=cell.id), headers=lifecycle.key)
        assert value not in answer.text, path
    cell.put("search.py", SEARCH)
    inside = cell.plain(f"/usr/bin/python3 {cell.FOLDER}/search.py {value[::-1]}")
    assert (inside.code, inside.stdout) == (0, "[]\n"), inside.stderr
    assert [path for path in server.state.rglob("*") if holds(path, value)] == []
    for pid in (*server.launchers(), *guards(lifecycle)):
        for name in ("environ", "cmdline"):
            assert value.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()


def holds(path: Path, value: str) -> bool:
    try:
        return path.is_file() and value.encode() in path.read_bytes()
    except OSError:
        # What is mounted there for sandboxes alone.
        return False
