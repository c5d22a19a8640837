"""What users of other sandboxes reported about files, tried on this one with the unmodified
OpenSandbox SDK 1.1.1: directly and through the server's proxy."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    DirectoryListEntry,
    MoveEntry,
    SearchEntry,
    SetPermissionEntry,
    WriteEntry,
)

from integration.sandboxes import Box
from live_server import LiveServer

MIB = 1024 * 1024
GIB = 1024 * MIB


@pytest.fixture
def folder(box: Box) -> str:
    return box.folder()


def listed(box: Box, path: str, depth: int = 1) -> dict[str, str]:
    """The types of what is below, by the path from there."""
    entries = box.files.list_directory(DirectoryListEntry(path=path, depth=depth))
    return {it.path.removeprefix(f"{path}/"): str(it.entry_type) for it in entries}


def found(box: Box, path: str, pattern: str) -> list[str]:
    entries = box.files.search(SearchEntry(path=path, pattern=pattern))
    return sorted(it.path.removeprefix(f"{path}/") for it in entries)


def refused(status: int, call: Callable[..., Any], *arguments: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(SandboxApiException) as caught:
        call(*arguments)
    assert caught.value.status_code == status
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "name",
    [
        "naïve 🤣 文件.txt",
        "a b%41+c&d#e?.txt",
        "a bA c",
        "a=b;c,d'e\"f",
        "[a]{b,c}(d)!^",
        "-rf",
        "~",
        " leading and trailing ",
        "back\\slash",
        "two\nlines",
        "x" * 255,
        "文" * 85,
    ],
)
def test_a_file_of_any_name_is_written_found_moved_and_deleted(
    box: Box, folder: str, name: str
) -> None:
    path, content = f"{folder}/{name}", f"I am {name}".encode()
    other = f"{folder}/a bA c+%41"
    box.files.write_files([WriteEntry(path=path, data=content), WriteEntry(path=other, data=b"o")])
    assert box.files.read_bytes(path) == content
    assert b"".join(box.files.read_bytes_stream(path)) == content
    assert box.files.get_file_info([path])[path].size == len(content)
    assert set(listed(box, folder)) == {name, "a bA c+%41"}
    if len(name.encode()) < 255:
        assert box.sh(f'ls "{folder}" | wc -l').stdout == f"{2 + name.count(chr(10))}\n"
    box.files.move_files([MoveEntry(source=path, destination=f"{folder}/sub/{name}")])
    assert box.files.read_bytes(f"{folder}/sub/{name}") == content
    box.files.delete_files([f"{folder}/sub/{name}"])
    assert listed(box, f"{folder}/sub") == {}
    assert box.files.read_bytes(other) == b"o"


def test_names_that_are_no_text_spoil_nothing(box: Box, folder: str) -> None:
    box.sh(f"cd {folder}; mkdir d; touch d/ok \"$(printf 'd/bad_\\377')\"")
    assert listed(box, f"{folder}/d") == {"ok": "file", "bad_\\xff": "file"}
    assert found(box, f"{folder}/d", "*") == ["bad_\\xff", "ok"]
    assert box.files.get_file_info([f"{folder}/d/ok"])
    box.files.delete_directories([f"{folder}/d"])
    assert listed(box, folder) == {}


def test_an_empty_file_is_a_file(box: Box, folder: str) -> None:
    path = f"{folder}/empty"
    for data in (b"", "", io.BytesIO()):
        box.files.write_file(path, data)
        assert box.files.read_bytes(path) == b""
        assert list(box.files.read_bytes_stream(path)) == []
        entry = ContentReplaceEntry(path=path, old_content="x", new_content="y")
        assert [it.replaced_count for it in box.files.replace_contents_detailed([entry])] == [0]
        assert box.files.get_file_info([path])[path].size == 0
    box.sh(f"chmod 000 {path}")
    info = box.files.get_file_info([path])[path]
    assert (info.size, info.mode) == (0, 0)


class Made(io.RawIOBase):
    """So many bytes that nobody holds, each block with its number at its beginning."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.at = 0
        self.block = bytes(64 * 1024)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = min(len(self.block) if size < 0 else size, self.size - self.at, len(self.block))
        self.at += size
        return self.block[:size]


def resident_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


def test_gigabytes_pass_without_being_held(server: LiveServer, box: Box, folder: str) -> None:
    assert server.process is not None
    path = f"{folder}/big"
    marks = {2**31: b"two", 2**32: b"four", 5 * GIB - 4: b"last"}
    assert box.sh(f"truncate -s 5G {path}").code == 0
    for at, mark in marks.items():
        write = f"printf {mark.decode()} | dd of={path} bs=1 seek={at} conv=notrunc status=none"
        assert box.sh(write).code == 0
    assert box.files.get_file_info([path])[path].size == 5 * GIB
    for at, mark in marks.items():
        span = f"bytes={at - 2}-{at + len(mark) - 1}"
        assert box.files.read_bytes(path, range_header=span) == b"\0\0" + mark
    assert box.files.read_bytes(path, range_header="bytes=-4") == b"last"
    before = resident_mib(server.process.pid)
    begin = 3 * GIB + 1
    stream = box.files.read_bytes_stream(
        path, chunk_size=MIB, range_header=f"bytes={begin}-{begin + 512 * MIB - 1}"
    )
    assert sum(len(chunk) for chunk in stream) == 512 * MIB
    assert resident_mib(server.process.pid) - before < 100


def test_a_long_upload_is_not_held(server: LiveServer, box: Box) -> None:
    """The sandbox has less memory than what is sent, so its daemon cannot hold it either."""
    assert server.process is not None
    before = resident_mib(server.process.pid)
    box.files.write_file("/root/long", Made(700 * MIB))
    assert resident_mib(server.process.pid) - before < 100
    assert box.files.get_file_info(["/root/long"])["/root/long"].size == 700 * MIB
    box.files.delete_files(["/root/long"])


@pytest.mark.parametrize("content", ["a\nb", "a\nb\n", "x\r\ny\r\n", "\n", "a\n\n\nb"])
def test_line_ends_stay_as_they_are(box: Box, folder: str, content: str) -> None:
    path = f"{folder}/text"
    box.files.write_file(path, content)
    assert box.files.read_bytes(path).decode() == content
    lines = content.splitlines(keepends=True)
    assert [
        box.files.read_bytes(path, offset=at + 1, limit=1).decode() for at in range(len(lines))
    ] == lines
    entry = ContentReplaceEntry(path=path, old_content="b", new_content="c")
    box.files.replace_contents([entry])
    assert box.files.read_bytes(path).decode() == content.replace("b", "c")


def test_a_replacement_is_checked_and_all_or_nothing(box: Box, folder: str) -> None:
    def replace(old: str, *names: str) -> None:
        entries = [
            ContentReplaceEntry(path=f"{folder}/{name}", old_content=old, new_content="new")
            for name in names
        ]
        box.files.replace_contents(entries)

    box.files.write_file(f"{folder}/good", "old")
    refused(400, replace, "", "good")
    refused(404, replace, "old", "none")
    refused(404, replace, "old", "good", "none")
    assert box.files.read_file(f"{folder}/good") == "old"


def test_what_is_missing_is_not_found(box: Box, folder: str) -> None:
    files, none = box.files, f"{folder}/none"
    moved = MoveEntry(source=none, destination=f"{folder}/x")
    entry = ContentReplaceEntry(path=none, old_content="a", new_content="b")
    refused(404, files.get_file_info, [none])
    refused(404, files.move_files, [moved])
    refused(404, files.read_bytes, none)
    refused(404, files.read_bytes_stream, none)
    refused(404, files.replace_contents, [entry])
    refused(404, files.set_permissions, [SetPermissionEntry(path=none, mode=600)])
    refused(404, files.list_directory, DirectoryListEntry(path=none))
    refused(404, files.search, SearchEntry(path=none, pattern="*"))
    files.delete_files([none])
    files.delete_directories([none])


@pytest.mark.parametrize(
    "path", ["{folder}/pipe", "/dev/zero", "/dev/stdin", "/dev/tty", "{folder}/socket", "{folder}"]
)
def test_what_is_no_file_is_refused_and_hangs_nothing(box: Box, folder: str, path: str) -> None:
    make = "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
    box.sh(f'cd {folder}; mkfifo pipe; python3 -c "{make}"')
    path = path.format(folder=folder)
    entry = ContentReplaceEntry(path=path, old_content="a", new_content="b")
    refused(400, box.files.read_bytes, path)
    refused(400, box.files.replace_contents, [entry])
    refused(400, box.files.write_file, path, b"x")
    assert box.files.get_file_info([path])
    assert {"pipe": "other", "socket": "other"}.items() <= listed(box, folder).items()
    assert "pipe" not in found(box, folder, "*")


def test_files_that_the_kernel_makes_up_are_read_whole(box: Box) -> None:
    for path, begin in (("/proc/self/status", "Name:"), ("/proc/cpuinfo", "processor")):
        assert box.files.read_file(path).startswith(begin)
        assert box.files.read_file(path, range_header="bytes=0-3") == begin[:4]
        assert box.files.get_file_info([path])[path].size == 0
    shown = box.files.read_file("/proc/cpuinfo")
    assert shown.count("\n") == int(box.sh("wc -l < /proc/cpuinfo").stdout)


def test_new_parents_belong_to_the_owner_of_the_file(box: Box, folder: str) -> None:
    box.sh(f"chmod 777 {folder}; mkdir {folder}/old")
    for top in ("new", "old/new"):
        path = f"{folder}/{top}/b/c.txt"
        box.files.write_files([WriteEntry(path=path, data="x", owner="user", group="user")])
        for part in (path, f"{folder}/{top}/b", f"{folder}/{top}"):
            info = box.files.get_file_info([part])[part]
            assert (info.owner, info.group) == ("user", "user"), part
    assert box.files.get_file_info([f"{folder}/old"])[f"{folder}/old"].owner == "root"
    assert box.sh(f"rm -rf {folder}/new", uid=1000, gid=1000).code == 0


def test_a_change_keeps_mode_and_owner(box: Box, folder: str) -> None:
    path = f"{folder}/tool"
    box.sh(f"echo old > {path}; chmod 751 {path}; chown 1000:1000 {path}")

    def state() -> tuple[int, str, str]:
        info = box.files.get_file_info([path])[path]
        return info.mode, info.owner, info.group

    entry = ContentReplaceEntry(path=path, old_content="old", new_content="new")
    box.files.replace_contents([entry])
    assert state() == (751, "user", "user")
    box.files.write_files([WriteEntry(path=path, data="newer", mode=640)])
    assert state() == (640, "user", "user")


def test_links_are_shown_and_never_entered(box: Box, folder: str) -> None:
    box.sh(f"cd {folder}; ln -s b a; ln -s a b; mkdir d; touch d/x; ln -s d l; ln -s no g")
    box.sh(f"cd {folder}; ln -s /etc e; ln -s .. d/up")
    links = dict.fromkeys(["a", "b", "e", "g", "l", "d/up"], "symlink")
    assert listed(box, folder, 5) == {**links, "d": "directory", "d/x": "file"}
    refused(400, listed, box, f"{folder}/l")
    assert "passwd" not in found(box, folder, "passwd")
    assert found(box, folder, "x") == ["d/x"]
    refused(400, box.files.read_bytes, f"{folder}/a")


def test_a_search_bears_a_tree_that_changes(box: Box, folder: str) -> None:
    box.files.write_file(f"{folder}/kept/needle.txt", "x")
    script = f"cd {folder}; while :; do mkdir t; touch $(seq -f t/%g 500); rm -r t; done"
    change = box.start(script)
    for _ in range(20):
        assert found(box, folder, "needle.*") == ["kept/needle.txt"]
        assert "kept/needle.txt" in found(box, folder, "**/*.txt")
    begun = time.monotonic()
    assert box.files.search(SearchEntry(path="/", pattern="no such name")) == []
    assert time.monotonic() - begun < 25
    box.commands.interrupt(change)


def test_a_path_is_what_the_kernel_takes_it_for_and_never_code(box: Box, folder: str) -> None:
    box.files.write_file(f"{folder}/`touch pwn`/a;touch pwn", "x")
    assert found(box, folder, "*") == ["`touch pwn`/a;touch pwn"]
    box.sh(f"mkdir -p {folder}/in {folder}/out; ln -s {folder}/out {folder}/in/link")
    box.files.write_file(f"{folder}/in/../out/x", "up")
    box.files.write_file(f"{folder}/in/link/y", "through")
    assert box.files.read_file(f"{folder}/out/x") == "up"
    assert box.files.read_file(f"{folder}/out/y") == "through"
    # Somebody else gets no further by `..` or links than its own rights lead.
    box.sh(f"chmod 755 {folder} {folder}/in; chmod 700 {folder}/out")
    somebody: Any = box.files
    somebody = somebody.with_identity(1000, 1000)
    refused(403, somebody.read_bytes, f"{folder}/in/link/y")
    refused(403, somebody.write_file, f"{folder}/in/../out/z", "x")
    assert listed(box, f"{folder}/out") == {"x": "file", "y": "file"}


def test_a_read_only_place_says_so(box: Box) -> None:
    refused(403, box.files.write_file, "/usr/new", "x")
    refused(403, box.files.write_file, "/proc/version", "x")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_times_have_their_zone(server: LiveServer, box: Box, folder: str, zone: str) -> None:
    path = f"{folder}/dated"
    box.sh(f"TZ={zone} touch -d '2024-02-29T12:34:56Z' {path}")
    info = box.files.get_file_info([path])[path]
    assert info.modified_at == datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC)
    epoch = box.sh(f"stat -c %Y {path}", envs={"TZ": zone}).stdout
    assert info.modified_at.timestamp() == int(epoch)


def test_a_full_disk_leaves_the_old_content(box: Box) -> None:
    # /dev/shm is the smallest place to fill.
    box.sh("rm -f /dev/shm/*; printf kept > /dev/shm/file")
    refused(507, box.files.write_file, "/dev/shm/file", Made(80 * MIB))
    assert box.files.read_file("/dev/shm/file") == "kept"
    assert listed(box, "/dev/shm") == {"file": "file"}
    box.sh("rm /dev/shm/file")
