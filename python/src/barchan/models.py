"""What the server and a sandbox tell, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the server knows it.

    `state` is one of Pending, Running, Pausing, Paused, Resuming, Stopping, Terminated and Failed,
    or a word that a newer server knows; `reason` and `message` say why. `expires_at` is None for
    one that never expires.
    """

    id: str
    state: str
    reason: str = ""
    message: str = ""
    image: str = ""
    entrypoint: tuple[str, ...] = ()
    created_at: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """One page of the list of sandboxes."""

    items: tuple[SandboxInfo, ...]
    number: int
    total_items: int
    has_next: bool


@dataclass(frozen=True)
class Layer:
    """What a sandbox wrote, sealed: it never changes again.

    `number` counts from 1 in each sandbox; `parent` is the layer it stands on, 0 if that is how the
    sandbox was made. `copied` tells that processes used the files, `still_ms` how long the sandbox
    stood still. `size_bytes` and `entries` are by how much its disk holds more than at the layer
    sealed before.
    """

    number: int
    parent: int
    label: str | None = None
    sealed_at: datetime | None = None
    copied: bool = False
    still_ms: float = 0.0
    size_bytes: int = 0
    entries: int = 0


@dataclass(frozen=True)
class LayerChange:
    """A path that is not the same in two layers.

    `change` is added, changed or deleted, `differs` in what of type, content, target, mode, owner
    and xattr. `diff` has the lines of a text that differ, `diff_cut` why not all of them. `old` and
    `new` say what the path was and is, as the server tells it.
    """

    path: str
    change: str
    differs: tuple[str, ...] = ()
    diff: str | None = None
    diff_cut: str | None = None
    binary: bool = False
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class LayerDiff:
    """What differs between two layers; `cut` says which limit kept the rest from being told."""

    changes: list[LayerChange]
    cut: str | None = None


@dataclass(frozen=True)
class SnapshotInfo:
    """A snapshot as the server knows it.

    `state` is one of Creating, Ready, Failed and Deleting, or a word that a newer server knows;
    `reason` and `message` say why. `sandbox_id` is the sandbox it was taken of, which may be gone.
    """

    id: str
    state: str
    sandbox_id: str = ""
    name: str | None = None
    reason: str = ""
    message: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True)
class LayerFailure:
    """Why what a command wrote is not sealed; the command itself is none the worse for it."""

    code: str
    message: str


@dataclass(frozen=True)
class CommandResult:
    """How a command ended and what it printed.

    `output` holds both streams in the order of arrival, `stdout` and `stderr` each alone.
    `exit_code` is 128 + n after signal n, and None if the command runs in the background or could
    not be started; `error` then says why. `truncated` means that there was more output than asked
    for. Where what it wrote was to be sealed, either `layer` or `layer_error` is there.
    """

    id: str
    exit_code: int | None
    output: str
    stdout: str
    stderr: str
    error: str = ""
    truncated: bool = False
    timed_out: bool = False
    duration_ms: int | None = None
    layer: Layer | None = None
    layer_error: LayerFailure | None = None


@dataclass(frozen=True)
class Usage:
    """What a command used, its waited-for descendants included; times in microseconds.

    `max_rss_bytes` is the most that any one of its processes held.
    """

    user_us: int
    system_us: int
    max_rss_bytes: int
    wall_us: int


@dataclass(frozen=True)
class ExecResult:
    """How a command ended and what it printed, as bytes.

    `output` holds both streams in the order of arrival. `exit_code` is 128 + n after signal n.
    `truncated` means that there was more output than asked for; its middle is left out. Where what
    it wrote was to be sealed, either `layer` or `layer_error` is there.
    """

    id: str
    exit_code: int
    output: bytes
    stdout: bytes
    stderr: bytes
    error: str = ""
    truncated: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    usage: Usage | None = None
    duration_ms: int | None = None
    layer: Layer | None = None
    layer_error: LayerFailure | None = None


@dataclass(frozen=True)
class CommandStatus:
    """A command that was started earlier."""

    id: str
    running: bool
    exit_code: int | None = None
    error: str = ""
    content: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class CommandLogs:
    """Output of a background command; `cursor` asks for what comes after it."""

    text: str
    cursor: int


Kind = Literal["file", "directory", "symlink", "other"]


@dataclass(frozen=True)
class FileInfo:
    """What is known of a path; links are not followed. `mode` are the permission bits."""

    path: str
    kind: str
    size_bytes: int
    mode: int
    owner: str
    group: str
    modified_at: datetime | None = None
    created_at: datetime | None = None


FileInfos = list[FileInfo]


@dataclass(frozen=True)
class Entry:
    """One entry of a directory; links are not followed. Size and time only if asked for."""

    path: str
    kind: str
    size_bytes: int | None = None
    modified_at: datetime | None = None


@dataclass(frozen=True)
class Content:
    """A page of a text file, or a whole binary one in base64.

    Lines count from 1; their ends are "\\n" and the last one has none. `next_offset` is where to
    go on, None at the end. `total_lines` is None where counting them would take long; of an empty
    file it is 0. `truncated` means that a line was cut. `final_newline` is None unless the end of
    the file was seen.
    """

    content: str
    encoding: str = "utf-8"
    start_line: int | None = None
    end_line: int | None = None
    total_lines: int | None = None
    next_offset: int | None = None
    truncated: bool = False
    final_newline: bool | None = None


@dataclass(frozen=True)
class Match:
    """A line that holds what was looked for; of a very long one only a part, then `cut`."""

    path: str
    line: int
    text: str
    cut: bool = False


@dataclass(frozen=True)
class Found:
    """What a search found: lines, files or counts, as asked.

    `truncated` says why it is not all: "count", "size", "time", "unreadable", or None. `skipped`
    are the first paths that could not be searched, with the reason.
    """

    matches: tuple[Match, ...] = ()
    files: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    truncated: str | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Paths:
    """Regular files whose names match, sorted; for `truncated` and `skipped` see `Found`."""

    paths: tuple[str, ...] = ()
    truncated: str | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
