"""Every way of using a sandbox, each from its begin to its end."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from socket import SHUT_RDWR

import httpx
from websockets.sync.client import ClientConnection, connect

from conformance.rows import ended_well, events, output
from conformance.world import DaemonWorld

# What the WebSocket client says itself.
TRANSPORT = {"host", "connection", "accept", "accept-encoding", "user-agent", "content-length"}


def command(daemon: httpx.Client) -> None:
    lines = random.randrange(2000)
    answer = daemon.post("/command", json={"command": f"seq {lines}; echo end >&2"})
    assert ended_well(answer)
    assert output(answer, "stderr") == "end"


def killed(daemon: httpx.Client) -> None:
    script = "(sleep 600 &) ; sleep 600 & wait"
    answer = daemon.post("/command", json={"command": script, "timeout": 100})
    assert answer.status_code == 200, answer.text


def orphans(daemon: httpx.Client) -> None:
    answer = daemon.post("/command", json={"command": "for i in 1 2 3 4; do (true &); done"})
    assert ended_well(answer)


def background(daemon: httpx.Client) -> None:
    made = DaemonWorld(daemon)["background"]
    assert daemon.get(f"/command/{made}/logs").status_code == 200


def dropped(daemon: httpx.Client) -> None:
    """A client that goes away in the middle of a stream."""
    with daemon.stream("POST", "/command", json={"command": "yes"}) as answer:
        next(answer.iter_raw())


def transfer(daemon: httpx.Client) -> None:
    path = f"/tmp/soak/{uuid.uuid4().hex}"
    content = random.randbytes(random.choice((0, 1000, 3_000_000)))
    head = 'form-data; name="{0}"; filename="{0}"\r\n\r\n'
    body = (
        f"--b0\r\nContent-Disposition: {head.format('metadata')}".encode()
        + b'{"path": "'
        + path.encode()
        + b'"}\r\n'
        + f"--b0\r\nContent-Disposition: {head.format('file')}".encode()
        + content
        + b"\r\n--b0--\r\n"
    )
    kind = {"Content-Type": "multipart/form-data; boundary=b0"}
    answer = daemon.post("/files/upload", content=body, headers=kind)
    assert answer.status_code == 200, answer.text
    assert daemon.get("/files/download", params={"path": path}).content == content
    assert daemon.delete("/files", params={"path": path}).status_code == 200


def files(daemon: httpx.Client) -> None:
    world = DaemonWorld(daemon)
    folder = world["dir"]
    for path, query in (
        ("/files/search", {"path": folder, "pattern": "**/*.py"}),
        ("/directories/list", {"path": folder, "depth": "3"}),
        ("/files/info", {"path": f"{folder}/file"}),
    ):
        assert daemon.get(path, params=query).status_code == 200
    change = {f"{folder}/file": {"old": "one", "new": "two"}}
    assert daemon.post("/files/replace", json=change).status_code == 200
    assert daemon.delete("/directories", params={"path": folder}).status_code == 200


def metrics(daemon: httpx.Client) -> None:
    assert daemon.get("/metrics").status_code == 200


def session(daemon: httpx.Client) -> None:
    made = DaemonWorld(daemon)["session"]
    for script, printed in (("cd /tmp; x=5; f() { echo $x; }", ""), ("f; pwd", "5/tmp")):
        answer = daemon.post(f"/session/{made}/run", json={"command": script})
        assert ended_well(answer)
        assert "".join(output(answer).split()) == printed
    assert daemon.delete(f"/session/{made}").status_code == 200


def attached(daemon: httpx.Client, terminal: str) -> ClientConnection:
    address = str(daemon.base_url.copy_with(scheme="ws")).rstrip("/")
    headers = {k: v for k, v in daemon.headers.items() if k.lower() not in TRANSPORT}
    return connect(f"{address}/pty/{terminal}/ws", additional_headers=headers)


def terminal(daemon: httpx.Client) -> None:
    made = DaemonWorld(daemon)["pty"]
    with attached(daemon, made) as socket:
        socket.send(json.dumps({"type": "resize", "cols": 100, "rows": 30}))
        socket.send(b"\0stty -echo; echo 4$((1+1)); exit 3\n")
        printed, code = b"", None
        for message in socket:
            if isinstance(message, bytes):
                printed += message[1:]
            elif (notice := json.loads(message))["type"] == "exit":
                code = notice["exit_code"]
    assert b"42\r\n" in printed, printed
    assert code == 3
    assert daemon.delete(f"/pty/{made}").status_code == 200


def abandoned(daemon: httpx.Client) -> None:
    """A terminal that floods a client who vanishes."""
    made = DaemonWorld(daemon)["pty"]
    with attached(daemon, made) as socket:
        socket.send(b"\0cat /dev/zero | tr '\\0' x\n")
        socket.recv()
        socket.socket.shutdown(SHUT_RDWR)
    # The library takes that for an error of its own, and may leave the socket to the collector.
    socket.socket.close()
    assert daemon.delete(f"/pty/{made}").status_code == 200


def cell(daemon: httpx.Client) -> None:
    """A cell in the context of a language, which all share: it may be busy."""
    language, code, wanted = random.choice((("python", "6 * 7", "42"), ("bash", "echo 42", "42")))
    answer = daemon.post("/code", json={"code": code, "context": {"language": language}})
    found = events(answer)
    if "session is busy" not in str(found[-1]):
        values = [one["results"]["text"] for one in found if one["type"] == "result"]
        assert wanted in [*values, output(answer).strip()], found


def context(daemon: httpx.Client) -> None:
    made = DaemonWorld(daemon)["context"]
    code = "import sys; print('x' * 100_000); sys.nothing"
    answer = daemon.post("/code", json={"code": code, "context": {"id": made}})
    raised = [one["error"] for one in events(answer) if one["type"] == "error"]
    assert [one["ename"] for one in raised] == ["AttributeError"], raised
    assert daemon.delete(f"/code/contexts/{made}").status_code == 200


def isolated(daemon: httpx.Client) -> None:
    made = DaemonWorld(daemon)["isolated"]
    run = {"code": "echo $$ && ls /proc | grep -c '^[0-9]'"}
    answer = daemon.post(f"/v1/isolated/session/{made}/run", json=run)
    assert ended_well(answer), answer.text
    assert daemon.delete(f"/v1/isolated/session/{made}").status_code < 300


def raw(daemon: httpx.Client) -> None:
    size = random.choice((0, 10, 500_000))
    answer = daemon.post("/x/exec", json={"command": f"head -c {size} /dev/zero"})
    assert answer.status_code == 200, answer.text
    assert len(answer.content) > size


def tools(daemon: httpx.Client) -> None:
    folder = f"/tmp/soak/{uuid.uuid4().hex}"
    for tool, asked in (
        ("write", {"path": f"{folder}/a.txt", "content": "one\ntwo\n"}),
        ("edit", {"path": f"{folder}/a.txt", "old": "two", "new": "three"}),
        ("read", {"path": f"{folder}/a.txt"}),
        ("ls", {"path": folder}),
        ("grep", {"pattern": "three", "path": folder}),
        ("glob", {"pattern": "*.txt", "path": folder}),
        ("delete", {"path": folder}),
    ):
        answer = daemon.post(f"/x/fs/{tool}", json=asked)
        assert answer.status_code == 200, (tool, answer.text)


def watch(daemon: httpx.Client) -> None:
    """A watcher that hears of one change and leaves."""
    folder = f"/tmp/soak/{uuid.uuid4().hex}"
    write = {"path": f"{folder}/a", "content": ""}
    assert daemon.post("/x/fs/write", json=write).status_code == 200
    with daemon.stream("GET", "/x/watch", params={"path": folder}) as answer:
        assert answer.status_code == 200, answer.read()
        pieces = answer.iter_text()
        next(pieces)
        assert daemon.post("/x/fs/write", json={**write, "content": "x"}).status_code == 200
        next(pieces)
    assert daemon.delete("/directories", params={"path": folder}).status_code == 200


WAYS: list[Callable[[httpx.Client], None]] = [
    command,
    killed,
    orphans,
    background,
    dropped,
    transfer,
    files,
    metrics,
    session,
    terminal,
    abandoned,
    cell,
    context,
    isolated,
    raw,
    tools,
    watch,
]
