"""A page of a real sandbox, opened as a browser opens it: a signed address, then a cookie."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.cookies import SimpleCookie

import httpx
import pytest

from conformance.world import KEY, WAIT_S, Lifecycle

PORT = 8000
# Shows what reaches it, and sets a cookie of its own.
PROGRAM = f"""
from http.server import BaseHTTPRequestHandler, HTTPServer
class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        text = f"{{self.path}}|{{self.headers['Host']}}|{{self.headers['Cookie']}}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Set-Cookie", "own=1; Path=/")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
    do_HEAD = do_GET
HTTPServer(("127.0.0.1", {PORT}), Page).serve_forever()
"""
BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}


@pytest.fixture(scope="module")
def page(lifecycle: Lifecycle) -> Iterator[str]:
    """A sandbox that serves a page."""
    made = lifecycle.create(entrypoint=["python3", "-c", PROGRAM])
    yield made
    lifecycle.delete(made)


def signed(lifecycle: Lifecycle, sandbox: str, form: str) -> tuple[str, str]:
    """Host and path of a signed address."""
    expires = str(int(time.time()) + 120)
    found = lifecycle.endpoint(sandbox, PORT, expires=expires, form=form)
    assert not found.get("headers")
    host, _, path = found["endpoint"].partition("/")
    return host, f"/{path}"


def get(lifecycle: Lifecycle, host: str, path: str, headers: dict[str, str]) -> httpx.Response:
    """An answer of the server at this host name, which no name service is asked for."""
    url = f"{lifecycle.server.url}{path}"
    return httpx.get(url, headers={"Host": host, **headers}, timeout=WAIT_S)


def test_a_browser_opens_a_page_by_its_signed_address(lifecycle: Lifecycle, page: str) -> None:
    host, path = signed(lifecycle, page, "host")
    assert host.startswith(f"{PORT}-{page}.localhost:")
    led = get(lifecycle, host, f"{path}/deep?a=%2F", BROWSER)
    assert (led.status_code, led.headers["Location"]) == (303, "/deep?a=%2F")
    cookie = SimpleCookie(led.headers["Set-Cookie"])["barchan-port"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    cookies = {"Cookie": f"own=1; barchan-port={cookie.value}"}
    shown = get(lifecycle, host, led.headers["Location"], {**BROWSER, **cookies})
    assert shown.text == f"/deep?a=%2F|{host}|own=1"
    assert shown.headers["Set-Cookie"] == "own=1; Path=/"
    assert "Content-Security-Policy" not in shown.headers
    inside = get(lifecycle, host, "/v1/sandboxes", cookies)
    assert inside.text.startswith("/v1/sandboxes|"), "the host leads to the program alone"


def test_who_has_no_right_reads_why(lifecycle: Lifecycle, page: str) -> None:
    host, path = signed(lifecycle, page, "host")
    for asked_host, asked_path, code in [
        (host, "/", "MISSING_OR_INVALID_SECURE_ACCESS"),
        (host.replace(f"{PORT}-", "8001-"), path, "SIGNED_ADDRESS_INVALID"),
    ]:
        refused = get(lifecycle, asked_host, asked_path, BROWSER)
        assert (refused.status_code, code in refused.text) == (401, True)
        assert refused.headers["Content-Type"].startswith("text/html")
        assert get(lifecycle, asked_host, asked_path, {}).json()["code"] == code


def test_a_signed_path_works_without_names(lifecycle: Lifecycle, page: str) -> None:
    host, path = signed(lifecycle, page, "path")
    shown = get(lifecycle, host, f"{path}/deep", {})
    assert shown.text == f"/deep|127.0.0.1:{PORT}|None"
    assert shown.headers["Content-Security-Policy"].startswith("sandbox ")
    assert "Set-Cookie" not in shown.headers


def test_a_paused_sandbox_answers_at_once(lifecycle: Lifecycle) -> None:
    sandbox = lifecycle.create(entrypoint=["python3", "-c", PROGRAM])
    try:
        host, path = signed(lifecycle, sandbox, "path")
        assert get(lifecycle, host, path, {}).status_code == 200
        paused = lifecycle.client.post(f"/v1/sandboxes/{sandbox}/pause", headers=lifecycle.key)
        assert paused.status_code == 202, paused.text
        frozen = get(lifecycle, host, path, {})
        assert (frozen.status_code, frozen.json()["code"]) == (409, "DOCKER::SANDBOX_NOT_RUNNING")
        resumed = lifecycle.client.post(
            f"/v1/sandboxes/{sandbox}/resume", headers={**lifecycle.key}
        )
        assert resumed.status_code == 202, resumed.text
        assert get(lifecycle, host, path, {KEY: "x"}).status_code == 200
    finally:
        lifecycle.delete(sandbox)
