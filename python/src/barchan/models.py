"""What the server and a sandbox tell, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


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
class CommandResult:
    """How a command ended and what it printed.

    `output` holds both streams in the order of arrival, `stdout` and `stderr` each alone.
    `exit_code` is 128 + n after signal n, and None if the command runs in the background or could
    not be started; `error` then says why. `truncated` means that there was more output than asked
    for.
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
