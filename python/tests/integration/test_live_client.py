"""Our own client against a real server, blocking and async."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from barchan import (
    AsyncSandbox,
    BarchanError,
    InvalidRequest,
    NotFound,
    Sandbox,
    Unauthorized,
    Upload,
)
from live_server import LiveServer


def test_a_sandbox_from_its_beginning_to_its_end(server: LiveServer) -> None:
    mark = uuid.uuid4().hex
    access: Any = {"server": server.url, "api_key": server.api_key}
    made = Sandbox.create("host", lifetime_s=120, metadata={"mark": mark}, **access)
    info = made.info()
    assert (info.state, info.image, info.metadata["mark"]) == ("Running", "host", mark)
    assert info.expires_at is not None
    assert abs(info.expires_at - datetime.now(UTC) - timedelta(seconds=120)) < timedelta(seconds=20)
    renewed = made.renew(3600)
    assert renewed is not None
    assert renewed > info.expires_at
    assert [one.id for one in Sandbox.list(metadata={"mark": mark}, **access)] == [made.id]
    made.pause()
    assert Sandbox.get(made.id, **access).state == "Paused"
    made.resume()
    assert Sandbox.attach(made.id, **access).commands.run("echo back").output == "back\n"
    made.kill()
    made.kill()
    with pytest.raises(NotFound):
        made.info()
    with pytest.raises(NotFound):
        made.commands.run("true")


def test_the_unix_socket_needs_no_key(server: LiveServer) -> None:
    with Sandbox.create("host", server=server.socket) as made:
        assert made.commands.run("echo hi").output == "hi\n"


def test_a_wrong_key_is_told(server: LiveServer) -> None:
    with pytest.raises(Unauthorized, match="BARCHAN_API_KEY"):
        Sandbox.create("host", server=server.url, api_key="wrong")


def test_an_unknown_image_is_told(server: LiveServer) -> None:
    with pytest.raises(BarchanError, match="no-such-image") as caught:
        Sandbox.create("no-such-image", server=server.url, api_key=server.api_key)
    assert caught.value.request_id


COMMANDS = [
    ("echo hi", 0, "hi\n"),
    ("printf 'a\\n\\nb'", 0, "a\n\nb"),
    ("exit 7", 7, ""),
    ("kill -TERM $$", 143, ""),
    ("kill -9 $$", 137, ""),
    ("no-such-program-here", 127, ""),
    ("echo 'quotes \" and $HOME `x` \\\\'", 0, 'quotes " and $HOME `x` \\\\\n'),
    ("cat <<'E'\nhere ' \" $x\nE", 0, "here ' \" $x\n"),
    ("printf '\\303\\251\\377\\n'", 0, "é�\n"),
    ("printf 'progress\\rdone\\n'", 0, "progress\rdone\n"),
    ("sleep 100 & echo started", 0, "started\n"),
]


@pytest.mark.parametrize(("command", "code", "stdout"), COMMANDS)
def test_commands(sandbox: Sandbox, command: str, code: int, stdout: str) -> None:
    begun = time.monotonic()
    result = sandbox.commands.run(command, timeout_s=20)
    assert (result.exit_code, result.stdout) == (code, stdout)
    assert time.monotonic() - begun < 10


def test_commands_as_bytes(sandbox: Sandbox) -> None:
    content = bytes(range(256)) * 10_000
    result = sandbox.commands.exec(["cat"], stdin=content, timeout_s=30)
    assert (result.exit_code, result.stdout == content, result.stderr) == (0, True, b"")
    result = sandbox.commands.exec("printf '\\377\\000' >&2; exit 7")
    assert (result.exit_code, result.output, result.error) == (7, b"\xff\0", "exit status 7")
    assert result.usage is not None
    assert result.usage.wall_us > 0
    script = "echo x >> /tmp/once; wc -l < /tmp/once"
    for _ in range(3):
        once = sandbox.commands.exec(script, idempotency_key="k")
        assert once.stdout.strip() == b"1"

    async def work() -> bytes:
        attached = AsyncSandbox(sandbox.id, sandbox.address)
        told = await attached.commands.exec("wc -c", stdin=[content, content], timeout_s=30)
        return told.stdout

    assert asyncio.run(work()).strip() == str(2 * len(content)).encode()


def test_options_of_commands(sandbox: Sandbox) -> None:
    result = sandbox.commands.run('pwd; echo "$A"', cwd="/tmp", env={"A": "b  c"})
    assert result.output == "/tmp\nb  c\n"
    assert sandbox.commands.run(["printf", "%s|", "a b", "$x", "'"]).output == "a b|$x|'|"
    with pytest.raises(InvalidRequest, match="/does/not/exist"):
        sandbox.commands.run("true", cwd="/does/not/exist")


def test_both_streams_come_in_the_order_of_arrival(sandbox: Sandbox) -> None:
    script = "for i in 1 2 3; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done"
    result = sandbox.commands.run(script)
    assert result.output == "".join(f"out{i}\nerr{i}\n" for i in (1, 2, 3))
    assert result.stderr == "err1\nerr2\nerr3\n"


def test_a_time_limit_ends_the_whole_tree(sandbox: Sandbox) -> None:
    mark = f"10{time.monotonic_ns() % 10**9}"
    begun = time.monotonic()
    result = sandbox.commands.run(f"echo begun; sleep {mark} & sleep {mark}", timeout_s=0.5)
    assert time.monotonic() - begun < 5
    assert (result.timed_out, result.output) == (True, "begun\n")
    assert sandbox.commands.run(f"pgrep -f 'sleep {mark[:4]}.*{mark[4:]}$'").exit_code == 1


def test_large_output_arrives_whole(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("seq 1 400000", timeout_s=60)
    assert result.stdout == "".join(f"{n}\n" for n in range(1, 400_001))
    line = sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
    assert line.stdout == "x" * 3_000_000


def test_background_commands(sandbox: Sandbox) -> None:
    started = sandbox.commands.run("echo one; sleep 0.3; echo two; exit 3", background=True)
    text, cursor = "", 0
    deadline = time.monotonic() + 10
    while sandbox.commands.status(started.id).running:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    logs = sandbox.commands.logs(started.id)
    text, cursor = logs.text, logs.cursor
    assert text == "one\ntwo\n"
    assert sandbox.commands.logs(started.id, cursor).text == ""
    assert sandbox.commands.status(started.id).exit_code == 3
    endless = sandbox.commands.run("sleep 1000", background=True)
    sandbox.commands.interrupt(endless.id)
    assert sandbox.commands.status(endless.id).exit_code in (137, 143)
    with pytest.raises(NotFound):
        sandbox.commands.status("0" * 32)


NAMES = ["plain", "with space", "ünïcödé", 'quo"te', "semi;colon&x", "new\nline", "-dash", "%41"]


def test_files_of_any_name_and_content(sandbox: Sandbox) -> None:
    contents = {f"/tmp/names/{name}": os.urandom(1000) + name.encode() for name in NAMES}
    sandbox.files.write_many([Upload(path, data) for path, data in contents.items()])
    for path, data in contents.items():
        assert sandbox.files.read(path) == data, path
    found = {one.path.rpartition("/")[2] for one in sandbox.files.list("/tmp/names")}
    assert found == set(NAMES)


def test_file_operations(sandbox: Sandbox) -> None:
    files = sandbox.files
    files.write("/tmp/ops/a/b.txt", "one two one\n", mode=0o640)
    info = files.info("/tmp/ops/a/b.txt")
    assert (info.kind, info.size_bytes, info.mode, info.owner) == ("file", 12, 0o640, "root")
    files.write("/tmp/ops/a/b.txt", "one two one!\n")
    assert files.info("/tmp/ops/a/b.txt").mode == 0o640, "overwriting keeps the mode"
    assert files.replace("/tmp/ops/a/b.txt", "one", "1") == 2
    assert files.read_text("/tmp/ops/a/b.txt") == "1 two 1!\n"
    assert b"".join(files.stream("/tmp/ops/a/b.txt", first=2, last=4)) == b"two"
    files.make_directories("/tmp/ops/d/e", mode=0o700)
    files.move({"/tmp/ops/a/b.txt": "/tmp/ops/d/e/c.txt"})
    assert [one.path for one in files.search("/tmp/ops", "*.txt")] == ["/tmp/ops/d/e/c.txt"]
    assert {one.path for one in files.list("/tmp/ops", depth=3)} == {
        "/tmp/ops/a", "/tmp/ops/d", "/tmp/ops/d/e", "/tmp/ops/d/e/c.txt",
    }  # fmt: skip
    files.set_mode("/tmp/ops/d/e/c.txt", 0o400)
    assert files.info("/tmp/ops/d/e/c.txt").mode == 0o400
    files.delete("/tmp/ops/d/e/c.txt", "/tmp/ops/gone")
    files.delete_directories("/tmp/ops")
    with pytest.raises(NotFound):
        files.info("/tmp/ops")
    with pytest.raises(NotFound):
        files.read("/tmp/none")


def test_a_large_file_goes_both_ways_without_being_held(sandbox: Sandbox, tmp_path: Path) -> None:
    local, back = tmp_path / "large", tmp_path / "back"
    block = os.urandom(1024 * 1024)
    with local.open("wb") as file:
        for _ in range(64):
            file.write(block)
    sandbox.files.upload(local, "/tmp/large")
    assert sandbox.files.info("/tmp/large").size_bytes == 64 * 1024 * 1024
    assert sandbox.files.download("/tmp/large", back) == 64 * 1024 * 1024
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (local, back)]
    assert digests[0] == digests[1]
    sandbox.files.delete("/tmp/large")


def test_many_threads_use_one_sandbox(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(64) as pool:
        runs = pool.map(lambda n: sandbox.commands.run(f"echo {n}; exit {n}"), range(64))
    assert [(one.exit_code, one.output) for one in runs] == [(n, f"{n}\n") for n in range(64)]


def test_the_async_client_does_the_same(server: LiveServer, tmp_path: Path) -> None:
    async def use() -> None:
        access: Any = {"server": server.url, "api_key": server.api_key}
        async with await AsyncSandbox.create("host", **access) as made:
            assert (await made.commands.run("echo hi; exit 3")).exit_code == 3
            await made.files.write("/tmp/a", b"abc")
            assert await made.files.read("/tmp/a") == b"abc"
            (tmp_path / "x").write_bytes(b"y" * 3_000_000)
            await made.files.upload(tmp_path / "x", "/tmp/x")
            assert await made.files.download("/tmp/x", tmp_path / "z") == 3_000_000
            assert (await made.info()).state == "Running"
            ids = [one.id async for one in AsyncSandbox.list(**access)]
            assert made.id in ids
            begun = time.monotonic()
            runs = await asyncio.gather(*(made.commands.run("sleep 1") for _ in range(10)))
            assert all(one.exit_code == 0 for one in runs)
            assert time.monotonic() - begun < 3
            await made.pause()
            await made.resume()
            assert (await made.renew(600)) is not None
        with pytest.raises(NotFound):
            await made.info()

    for _ in range(2):
        asyncio.run(use())


def test_directories_go_in_and_come_out(server: LiveServer, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "deep" / "run.sh").chmod(0o755)
    (source / "link").symlink_to("deep/run.sh")
    os.utime(source / "deep", (1_000_000_000, 1_000_000_000))
    with Sandbox.create("host", server=server.url, api_key=server.api_key) as made:
        assert made.files.upload_dir(source, "/tmp/tree") == ""
        assert made.commands.run("/tmp/tree/link").output == "ran\n"
        made.commands.run("cd /tmp/tree; ln -s /etc/passwd out; mkfifo pipe")
        said = made.files.download_dir("/tmp/tree", tmp_path / "back")
        assert "out: it is a link that leads out" in said
        assert "pipe: it is a pipe" in said
        other = AsyncSandbox(made.id, made.address)
        asyncio.run(other.files.download_dir("/tmp/tree/deep", tmp_path / "back2"))
    assert (tmp_path / "back" / "link").read_text() == "#!/bin/sh\necho ran\n"
    assert not (tmp_path / "back" / "out").is_symlink()
    assert (tmp_path / "back" / "deep").stat().st_mtime == 1_000_000_000
    assert (tmp_path / "back2" / "run.sh").stat().st_mode & 0o777 == 0o755
