"""How a sandbox's answers become those of a Deep Agents backend. No input or output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from deepagents.backends.protocol import ExecuteResponse, FileUploadResponse

from barchan import errors, models
from barchan._multipart import Upload

PATH_BYTES_MAX = 4095
NAME_BYTES_MAX = 255
TIMED_OUT = 124
NOT_STARTED = 126

INVALID_PATH = "invalid_path"
FILE_NOT_FOUND = "file_not_found"
IS_DIRECTORY = "is_directory"
PERMISSION_DENIED = "permission_denied"

# The daemon puts a variable's value here: the file would be another than the one asked for.
_EXPANDED = re.compile(r"\$(?:[A-Za-z_]|\{)")

# The daemon's classes are fewer than an agent's codes; its words, the kernel's, tell the rest.
_SIGNS = [
    (IS_DIRECTORY, ("is a directory", "names a directory", "but a directory")),
    (PERMISSION_DENIED, ("permission denied", "not permitted", "read-only file system")),
    (INVALID_PATH, ("name too long", "symbolic links", "a file is in the way")),
]


def path_problem(path: str) -> str | None:
    """The code for a path that no file can have here, or None."""
    try:
        raw = path.encode("utf-8")
    except UnicodeEncodeError:
        return INVALID_PATH
    names = raw.split(b"/")
    usable = raw.startswith(b"/") and b"\0" not in raw and len(raw) <= PATH_BYTES_MAX
    if _EXPANDED.search(path):
        return INVALID_PATH
    return None if usable and all(len(name) <= NAME_BYTES_MAX for name in names) else INVALID_PATH


def refused_read(info: models.FileInfo) -> str | None:
    """Why a path cannot be downloaded, from what is known of it, or None.

    A file whose bits let nobody read it counts as denied, although the daemon, which is root in the
    sandbox, could read it: an agent asked for the file as its users see it.
    """
    if info.kind == "directory":
        return IS_DIRECTORY
    if info.kind != "symlink" and not info.mode & 0o444:
        return PERMISSION_DENIED
    return None


def file_error(error: errors.BarchanError, *, writing: bool = False) -> str:
    """The code for a failed file call, or its text where no code fits."""
    if isinstance(error, errors.ApiError):
        text = error.message.lower()
        for code, signs in _SIGNS:
            if any(sign in text for sign in signs):
                return code
        if "not a directory" in text and writing:
            return INVALID_PATH
        if error.code == "FILE_NOT_FOUND":
            return FILE_NOT_FOUND
    return f"{error} {advice(error)}"


def sort_uploads(files: Sequence[tuple[str, bytes]]) -> tuple[list[int], list[Upload]]:
    """Which of these files can be written, by position, and how."""
    good = [at for at, (path, _) in enumerate(files) if path_problem(path) is None]
    return good, [Upload(files[at][0], bytes(files[at][1])) for at in good]


def uploaded(
    files: Sequence[tuple[str, bytes]], good: Sequence[int], faults: Mapping[int, str | None]
) -> list[FileUploadResponse]:
    """One answer for each file: those that were not even sent have an impossible path."""
    return [
        FileUploadResponse(path=path, error=faults.get(at) if at in good else INVALID_PATH)
        for at, (path, _) in enumerate(files)
    ]


def response(result: models.CommandResult, timeout_s: float | None) -> ExecuteResponse:
    """What a command's end looks like to an agent."""
    if result.timed_out:
        note = (
            f"[The command did not end within {timeout_s:g} s and was killed with all its children."
            " Give it more time, less work, or run it in the background.]"
        )
        separator = "\n" if result.output and not result.output.endswith("\n") else ""
        output, code = f"{result.output}{separator}{note}", TIMED_OUT
        return ExecuteResponse(output=output, exit_code=code, truncated=result.truncated)
    if result.exit_code is None:
        note = f"[The command could not be started: {result.error or 'no reason given'}]"
        return ExecuteResponse(output=result.output + note, exit_code=NOT_STARTED)
    code = 137 if result.exit_code == -1 else result.exit_code
    return ExecuteResponse(output=result.output, exit_code=code, truncated=result.truncated)


def advice(error: errors.BarchanError, state: models.SandboxInfo | None = None) -> str:
    """What can be done about a failed call."""
    if isinstance(error, errors.NotFound):
        return "It has expired or was killed, and its files are gone. A new sandbox is needed."
    if state is not None and state.state == "Paused":
        return "It is paused. Resume it, then try again."
    if state is not None and state.state not in ("Running", "Pending", "Resuming"):
        why = state.message or state.reason or "no reason given"
        return f"It is {state.state} ({why}). A new sandbox is needed."
    if isinstance(error, errors.Unreachable) and not error.sent:
        return "Nothing was done. Try again when the server is back."
    if isinstance(error, errors.InvalidRequest):
        return "Nothing was done. Correct the request."
    return "It is unknown how far this got. Look at the state of things before trying again."


def trouble(error: errors.BarchanError, state: models.SandboxInfo | None) -> str:
    """What to tell an agent when a call failed: what happened, and what can be done."""
    return f"[The sandbox could not do this: {error} {advice(error, state)}]"
