"""What users of Deep Agents reported about sandboxes, tried with our backend: in an image with
everything, and in one with next to nothing."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends.utils import EMPTY_CONTENT_WARNING

from barchan.deepagents import BarchanBackend
from conformance.world import until
from live_server import LiveServer

BARE = Path(__file__).with_name("bare.toml")


@pytest.fixture(scope="session")
def bare(server: LiveServer) -> str:
    """The name of the image without tools; built when it is first needed."""
    server.build_image(str(BARE))
    return "bare"


@pytest.fixture(params=["host", "bare"], scope="module")
def backend(request: pytest.FixtureRequest, server: LiveServer) -> Iterator[BarchanBackend]:
    image = request.getfixturevalue("bare") if request.param == "bare" else request.param
    made = BarchanBackend.create(
        image, entrypoint=["tail", "-f", "/dev/null"], server=server.url, api_key=server.api_key
    )
    with made:
        yield made


@pytest.fixture
def folder(backend: BarchanBackend) -> str:
    return backend.execute("mktemp -d").output.strip()


def put(backend: BarchanBackend, path: str, content: bytes) -> None:
    assert backend.upload_files([(path, content)])[0].error is None


def content(backend: BarchanBackend, path: str) -> bytes:
    found = backend.download_files([path])[0]
    assert found.error is None
    assert found.content is not None
    return found.content


def test_the_bare_image_is_bare(server: LiveServer, bare: str) -> None:
    made = BarchanBackend.create(bare, server=server.url, api_key=server.api_key)
    with made:
        script = "for it in bash python3 perl apt; do command -v $it && exit 9; done; grep --help"
        done = made.execute(script)
        assert (done.exit_code, "BusyBox" in done.output) == (0, True), done.output


def test_every_tool_does_its_work(backend: BarchanBackend, folder: str) -> None:
    assert backend.write(f"{folder}/a/b.py", "import os\nprint('it''s $HOME')\n").error is None
    assert backend.write(f"{folder}/a/.hidden", "import hidden\n").error is None
    read = backend.read(f"{folder}/a/b.py", offset=1, limit=1)
    assert read.file_data is not None
    assert read.file_data["content"] == "print('it''s $HOME')"
    edited = backend.edit(f"{folder}/a/b.py", "os", "sys")
    assert (edited.error, edited.occurrences) == (None, 1)
    assert content(backend, f"{folder}/a/b.py") == b"import sys\nprint('it''s $HOME')\n"
    listed = backend.ls(f"{folder}/a").entries
    assert listed is not None
    assert sorted(it["path"] for it in listed) == [f"{folder}/a/.hidden", f"{folder}/a/b.py"]
    matches = backend.grep("import", folder).matches
    assert matches is not None
    assert {(it["path"], it["line"], it["text"]) for it in matches} == {
        (f"{folder}/a/.hidden", 1, "import hidden"),
        (f"{folder}/a/b.py", 1, "import sys"),
    }
    assert [it["text"] for it in backend.grep("it''s $", folder, "*.py").matches or []] == [
        "print('it''s $HOME')"
    ]
    assert [it["path"] for it in backend.glob("**/*.py", folder).matches or []] == [
        f"{folder}/a/b.py"
    ]
    assert backend.delete(f"{folder}/a").error is None
    assert backend.ls(folder).entries == []
    assert backend.grep("import", folder).matches == []
    done = backend.execute("printf 'a b\\n'; printf err >&2; exit 3")
    assert (done.output, done.exit_code) == ("a b\nerr", 3)
    assert backend.execute("pwd").output == "/workspace\n"


def test_an_error_is_never_an_empty_list(backend: BarchanBackend, folder: str) -> None:
    put(backend, f"{folder}/file", b"x")
    backend.execute(f"mkdir {folder}/empty")
    assert (backend.ls(f"{folder}/empty").entries, backend.ls(f"{folder}/empty").error) == (
        [],
        None,
    )
    for path in (f"{folder}/none", f"{folder}/file", f"{folder}/file/below", "/proc/tty/driver"):
        found = backend.ls(path)
        assert found.entries is None, path
        assert path in (found.error or "")
    assert backend.grep("x", f"{folder}/none").error
    assert backend.glob("*", f"{folder}/none").error


@pytest.mark.parametrize("text", ["a\nb", "a\nb\n", "a\r\nb\r\n", "b", "\n\nb"])
def test_edits_keep_the_end_of_a_file(backend: BarchanBackend, folder: str, text: str) -> None:
    path = f"{folder}/text"
    put(backend, path, text.encode())
    read = backend.read(path)
    assert read.file_data is not None
    assert read.file_data["content"].split() == text.split()
    assert backend.edit(path, "b", "c").error is None
    assert content(backend, path) == text.replace("b", "c").encode()
    put(backend, path, text.encode())
    if "a" in text:
        assert backend.edit(path, "a\nb", "1\n2\n3").error is None
        end = "\r\n" if "\r" in text else "\n"
        wanted = text.replace(f"a{end}b", f"1{end}2{end}3")
        assert content(backend, path) == wanted.encode()


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("empty.txt", b"", EMPTY_CONTENT_WARNING),
        ("empty.pdf", b"", EMPTY_CONTENT_WARNING),
        ("blank.txt", b" \n", " "),
        ("words.docx", b"PK\x03\x04\x14\0\x06\0\x08\0\xff\xfe", None),
        ("text.docx", b"only text", "only text"),
        ("gbk.txt", "中文内容".encode("gbk"), None),
        ("dot.png", PNG, None),
        ("nul.bin", b"a\0b\xff", None),
        ("straddling.txt", b"a" * 8190 + "가나다".encode(), "a" * 8190 + "가나다"),
        ("cut.txt", b"a" * 8191 + "é".encode(), "a" * 8191 + "é"),
    ],
)
def test_what_is_no_text_comes_as_it_is(
    backend: BarchanBackend, folder: str, name: str, given: bytes, told: str | None
) -> None:
    put(backend, f"{folder}/{name}", given)
    for found in (
        backend.read(f"{folder}/{name}"),
        asyncio.run(backend.aread(f"{folder}/{name}")),
    ):
        assert found.error is None
        assert found.file_data is not None
        if told is None:
            assert found.file_data["encoding"] == "base64"
            assert base64.b64decode(found.file_data["content"]) == given
        else:
            assert found.file_data["encoding"] == "utf-8"
            assert found.file_data["content"] == told


def test_megabytes_are_written_and_edited(backend: BarchanBackend, folder: str) -> None:
    path = f"{folder}/large"
    text = "".join(f"{at:08} {'x' * 90}\n" for at in range(50_000)) + "the end"
    assert backend.write(path, text).error is None
    assert content(backend, path) == text.encode()
    long = "y" * 300_000
    assert backend.edit(path, "the end", long).error is None
    assert backend.edit(path, long, "the END").error is None
    assert content(backend, path) == (text[:-3] + "END").encode()
    read = backend.read(path, offset=49_999, limit=1)
    assert read.file_data is not None
    assert read.file_data["content"].startswith("00049999 ")


def test_commands_at_once_do_not_wait_for_each_other(backend: BarchanBackend) -> None:
    late: list[float] = []

    async def tick(stop: asyncio.Event) -> None:
        while not stop.is_set():
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late.append(time.monotonic() - before)

    async def many() -> list[Any]:
        stop = asyncio.Event()
        ticks = asyncio.create_task(tick(stop))
        found = await asyncio.gather(*(backend.aexecute("sleep 1; echo x") for _ in range(10)))
        stop.set()
        await ticks
        return found

    begun = time.monotonic()
    assert [it.output for it in asyncio.run(many())] == ["x\n"] * 10
    assert time.monotonic() - begun < 5, "one after the other would take 10 s"
    assert sorted(late)[len(late) // 2] < 0.1, "the loop stands still"


def test_one_backend_serves_loops_and_threads(backend: BarchanBackend) -> None:
    for at in range(5):
        assert asyncio.run(backend.aexecute(f"echo {at}")).output == f"{at}\n"

    def in_a_loop(command: str) -> Any:
        return asyncio.run(backend.aexecute(command))

    with ThreadPoolExecutor(4) as threads:
        commands = [f"echo {at}" for at in range(8)]
        for call in (backend.execute, in_a_loop):
            found = list(threads.map(call, commands))
            assert [it.output for it in found] == [f"{at}\n" for at in range(8)]


def test_sockets_go_with_the_work(server: LiveServer, backend: BarchanBackend) -> None:
    assert server.process is not None

    def sockets(pid: int | str) -> int:
        links = Path(f"/proc/{pid}/fd").iterdir()
        return sum(it.is_symlink() and "socket" in str(it.readlink()) for it in links)

    def once() -> None:
        again = BarchanBackend.attach(backend.id, server=server.url, api_key=server.api_key)
        assert again.execute("true").exit_code == 0
        assert asyncio.run(again.aexecute("true")).exit_code == 0

    once()
    here, there = sockets("self"), sockets(server.process.pid)
    for _ in range(100):
        once()
    assert sockets("self") <= here + 10
    pid = server.process.pid
    until("the server has closed them as well", lambda: sockets(pid) <= there + 10)


def test_a_search_of_everything_holds_its_time_and_holds_up_nobody(
    backend: BarchanBackend, folder: str
) -> None:
    put(backend, f"{folder}/needle.txt", b"x")
    begun = time.monotonic()
    running = threading.Thread(target=backend.glob, args=("**/*", "/"))
    running.start()
    small = time.monotonic()
    assert [it["path"] for it in backend.glob("needle.*", folder).matches or []] == [
        f"{folder}/needle.txt"
    ]
    assert time.monotonic() - small < 2
    running.join()
    assert time.monotonic() - begun < 10
