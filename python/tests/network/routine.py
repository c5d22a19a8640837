"""What programs in sandboxes do all day, as scripts that end well where they reach their server."""

from __future__ import annotations

from dataclasses import dataclass

from network import atlas
from network.servers.repository import READ_ME, WHEEL


@dataclass(frozen=True)
class Chore:
    """A script, what it prints, and the rules that it takes."""

    script: str
    expected: str
    rules: tuple[str, ...] = ("allow allowed.example",)


CURL = "curl -sSf --max-time 30"
PYTHON = "import urllib.request as r; print(r.urlopen('https://allowed.example/hello').read())"
NODE = "fetch('https://allowed.example/hello').then(a => a.text()).then(t => console.log(t))"
SSH = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
CLONE = 'cd "$(mktemp -d)" && {} git clone --quiet {} made && cat made/README'
PIP = "python3 -m pip --disable-pip-version-check download --no-cache-dir --no-deps"

ROUTINE = {
    "curl": Chore(f"{CURL} https://allowed.example/hello", '"sni": "allowed.example"'),
    "curl in the clear": Chore(f"{CURL} http://allowed.example/hello", '"sni": null'),
    "curl by IPv4": Chore(f"{CURL} -4 https://allowed.example/hello", atlas.SHARED[0]),
    "curl by IPv6": Chore(f"{CURL} -6 https://allowed.example/hello", atlas.SHARED[1]),
    "curl by HTTP/1.1": Chore(
        f"{CURL} --http1.1 https://allowed.example/hello", '"version": "1.1"'
    ),
    "curl by HTTP/2": Chore(f"{CURL} --http2 https://allowed.example/hello", '"version": "2"'),
    "curl by TLS 1.2": Chore(
        f"{CURL} --tls-max 1.2 https://allowed.example/hello", '"sni": "allowed.example"'
    ),
    "curl to a long name": Chore(
        f"{CURL} -o /dev/null -w '%{{http_code}}' https://ALLOWED.example/hello", "200"
    ),
    "curl to an alias": Chore(
        f"{CURL} https://alias.example/hello", '"sni": "alias.example"', ("allow alias.example",)
    ),
    "curl where only IPv6 is": Chore(
        f"{CURL} https://six.example/hello", atlas.ONLY_V6[0], ("allow six.example",)
    ),
    "python": Chore(f'/usr/bin/python3 -c "{PYTHON}"', "allowed.example"),
    "node": Chore(f'/usr/bin/node -e "{NODE}"', "allowed.example"),
    "git by HTTPS": Chore(
        CLONE.format("", "https://git.example/repository.git"), READ_ME, ("allow git.example",)
    ),
    "git by SSH": Chore(
        CLONE.format(f"GIT_SSH_COMMAND='{SSH}'", "ssh://git@git.example/repository.git"),
        READ_ME,
        ("allow git.example:22",),
    ),
    "pip": Chore(
        f'cd "$(mktemp -d)" && {PIP} --index-url https://packages.example/simple demo-of-barchan'
        " >&2 && ls",
        WHEEL,
        ("allow packages.example",),
    ),
    "websocket": Chore(
        f"/usr/bin/python3 $NET/probe.py websocket allowed.example {atlas.WS_PORT} /"
        " | grep answered",
        "hi",
    ),
}
