"""How answers of a sandbox's file tools become those of a Deep Agents backend. No input or output.

The texts are those of deepagents' own sandboxes: its middleware, and models that learned them,
decide by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    FileData,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from barchan import _backend_rules as rules
from barchan import errors, models

Value = TypeVar("Value")

EMPTY = "System reminder: File exists but has empty contents"
EMPTY_OLD = "Error: old_string cannot be empty. Provide the exact text to replace."
CUT = (
    "\n\n[Output was truncated due to size limits. "
    "This paginated read result exceeded the sandbox stdout limit. "
    "Continue reading with a larger offset or smaller limit to inspect the rest of the file.]"
)
BYTES_MAX = 500 * 1024
# What fits on a page together with the notice that it was cut.
PAGE_BYTES_MAX = BYTES_MAX - len(CUT.encode())
LINE_CUT = " […the line goes on; only a part around the match is shown]"

# The codes of reading and finding; whatever has none keeps the daemon's own.
_READ = {
    "path_not_found": "file_not_found",
    "is_a_directory": "not_a_file",
    "too_large": f"Binary file exceeds maximum preview size of {BYTES_MAX} bytes",
}
_WRITE = {
    "is_a_directory": "is_directory",
    "not_a_directory": "invalid_path",
    "path_not_found": "file_not_found",
}
_HAS_REASON = "truncation_reason" in {one.name for one in fields(GlobResult)}


@dataclass(frozen=True)
class Trouble:
    """A call that failed, and the state of its sandbox where that says more."""

    error: errors.BarchanError
    state: models.SandboxInfo | None = None

    @property
    def code(self) -> str:
        """The tool's code; empty when it was not the tool that refused."""
        return self.error.code if is_refusal(self.error) else ""

    @property
    def text(self) -> str:
        """What to tell where no code does."""
        if isinstance(self.error, errors.ApiError) and self.code:
            return str(self.error.told.get("message") or self.error)
        return rules.trouble(self.error, self.state)

    @property
    def advice(self) -> str:
        """The path that was probably meant."""
        told = self.error.told if isinstance(self.error, errors.ApiError) else {}
        meant = told.get("suggestion")
        return f". Did you mean '{meant}'? File tools take absolute paths" if meant else ""

    @property
    def count(self) -> object:
        """The number that comes with the code."""
        told = self.error.told if isinstance(self.error, errors.ApiError) else {}
        return told.get("count", "?")


def is_refusal(error: errors.BarchanError) -> bool:
    """Whether a tool refused; its codes are in lower case, unlike all others."""
    return isinstance(error, errors.ApiError) and error.code.islower()


def _reason(trouble: Trouble, codes: dict[str, str]) -> str:
    code = trouble.code
    if not code or code in ("failed", "invalid_request"):
        return trouble.text
    return codes.get(code, code) + trouble.advice


def ls_result(path: str, found: Sequence[models.Entry] | Trouble) -> LsResult:
    """A directory."""
    if isinstance(found, Trouble):
        return LsResult(error=f"Path '{path}': {_reason(found, {})}")
    entries: list[FileInfo] = [
        {"path": one.path, "is_dir": one.kind == "directory"} for one in found
    ]
    return LsResult(entries=entries)


def read_result(path: str, offset: int, found: models.Content | Trouble) -> ReadResult:
    """A page of a file."""
    if isinstance(found, Trouble):
        reason = _reason(found, _READ)
        if found.code == "offset_beyond_end":
            reason = f"Line offset {offset} exceeds file length ({found.count} lines)"
        return ReadResult(error=f"File '{path}': {reason}")
    if found.encoding != "utf-8":
        return ReadResult(file_data=FileData(content=found.content, encoding=found.encoding))
    if found.start_line is None:
        if found.total_lines == 0:
            return ReadResult(file_data=FileData(content=EMPTY, encoding="utf-8"))
        return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
    try:
        return ReadResult(
            file_data=FileData(
                content=found.content + (CUT if found.truncated else ""), encoding="utf-8"
            ),
            total_lines=found.total_lines,
            start_line=found.start_line,
            end_line=found.end_line,
            next_offset=found.next_offset,
        )
    except ValueError as error:
        return ReadResult(error=f"File '{path}': unexpected answer: {error}")


def write_result(path: str, found: int | Trouble) -> WriteResult:
    """A file that was written."""
    if isinstance(found, Trouble):
        return WriteResult(error=f"Failed to write file '{path}': {_reason(found, _WRITE)}")
    return WriteResult(path=path)


def edit_result(path: str, old: str, found: int | Trouble) -> EditResult:
    """A file that was edited."""
    if not isinstance(found, Trouble):
        return EditResult(path=path, occurrences=found)
    known = {
        "path_not_found": f"Error: File '{path}' not found{found.advice}",
        "permission_denied": f"Error: Permission denied editing file '{path}'",
        "not_a_file": f"Error: '{path}' is not a regular file",
        "is_a_directory": f"Error: '{path}' is not a regular file",
        "not_text": f"Error: File '{path}' is not a text file",
        "string_not_found": f"Error: String not found in file: '{old}'",
        "multiple_occurrences": (
            f"Error: String '{old}' appears multiple times. "
            "Use replace_all=True to replace all occurrences."
        ),
        "empty_old": EMPTY_OLD,
    }
    return EditResult(
        error=known.get(found.code, f"Error editing file '{path}': {_reason(found, {})}")
    )


def delete_result(path: str, found: str | Trouble) -> DeleteResult:
    """Something that was removed."""
    if not isinstance(found, Trouble):
        return DeleteResult(path=path)
    if found.code == "path_not_found":
        return DeleteResult(error=f"Error: '{path}' not found{found.advice}")
    return DeleteResult(error=f"Error deleting file '{path}': {found.text}")


def grep_result(path: str | None, found: models.Found | Trouble) -> GrepResult:
    """Lines that were found."""
    if isinstance(found, Trouble):
        return GrepResult(error=f"Path '{path or '.'}': {_reason(found, {})}")
    matches: list[GrepMatch] = [
        {"path": one.path, "line": one.line, "text": one.text + (LINE_CUT if one.cut else "")}
        for one in found.matches
    ]
    return GrepResult(matches=matches, truncated=found.truncated is not None)


def glob_root(path: str | None) -> str:
    """Where a search for names starts: always an absolute path."""
    if not path:
        return "/"
    return path if path.startswith("/") else f"/{path}"


def glob_result(path: str, found: models.Paths | Trouble) -> GlobResult:
    """Files that were found."""
    if isinstance(found, Trouble):
        return GlobResult(error=f"Path '{path}': {_reason(found, {})}")
    matches: list[FileInfo] = [{"path": one, "is_dir": False} for one in found.paths]
    more: dict[str, Any] = {}
    if _HAS_REASON and found.truncated is not None:
        unreadable = found.truncated == "unreadable"
        more["truncation_reason"] = "unreadable" if unreadable else "budget"
    return GlobResult(matches=matches, truncated=found.truncated is not None, **more)
