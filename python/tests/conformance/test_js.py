"""The unmodified JavaScript SDK, the newest on npm, against our server."""

from __future__ import annotations

import json

import pytest

from conformance.js_client import INSTALLED, run_script
from live_server import LiveServer

PACKAGE = "node_modules/@alibaba-group/opensandbox/package.json"


def test_it_is_the_published_package() -> None:
    assert json.loads((INSTALLED / PACKAGE).read_text())["version"] == "0.1.11"


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxied"])
def test_every_call(server: LiveServer, proxied: bool) -> None:
    more = {"PROXIED": str(proxied).lower()}
    run_script("client.test.mjs", server.domain, server.api_key, more)
