"""What one call asks for, and what its answer means, for the blocking and the async client."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Generic, TypeVar

from barchan import errors
from barchan._http1 import Body, Bytes, Head

Result = TypeVar("Result")

try:
    __version__ = metadata.version("barchan")
except metadata.PackageNotFoundError:
    __version__ = "0"

USER_AGENT = f"Barchan-Python/{__version__}"
ANSWER_BYTES_MAX = 256 * 1024 * 1024
ERROR_BYTES_MAX = 64 * 1024

CONNECT_S = 10.0
ANSWER_S = 60.0
SILENCE_S = 30.0


@dataclass(frozen=True)
class Request:
    """An HTTP request with its limits.

    `answer_s` is the wait for the head of the answer, `silence_s` the longest pause inside its
    body, `total_s` the limit of the whole call. A `repeatable` one is sent again when a kept
    connection turns out to be dead; `only_reads` says so of one whose method does not.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = field(default_factory=lambda: Bytes(b""))
    answer_s: float = ANSWER_S
    silence_s: float = SILENCE_S
    total_s: float | None = None
    only_reads: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether doing it twice is the same as doing it once."""
        return self.only_reads or self.method in ("GET", "DELETE")


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    head: Head
    content: bytes

    def json(self) -> Any:
        """The content as JSON."""
        try:
            return json.loads(self.content)
        except ValueError as error:
            raise errors.ProtocolError(f"an answer that is no JSON: {error}") from None


@dataclass(frozen=True)
class Call(Generic[Result]):
    """A request together with the meaning of its answer."""

    request: Request
    read: Callable[[Answer], Result]


def headers_of(request: Request, api_key: str | None) -> dict[str, str]:
    """All headers of a request: ours, the key, the framing of its body, its own."""
    headers = {"User-Agent": USER_AGENT, "Accept": "*/*"}
    if api_key:
        headers["OPEN-SANDBOX-API-KEY"] = api_key
    length = request.body.length
    if length is None:
        headers["Transfer-Encoding"] = "chunked"
    elif length or request.method not in ("GET", "DELETE"):
        headers["Content-Length"] = str(length)
    return headers | dict(request.headers)


def json_body(value: object) -> tuple[Mapping[str, str], Bytes]:
    """Headers and body for a JSON request; what is None in a top-level object is left out."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if item is not None}
    content = json.dumps(value, separators=(",", ":")).encode("utf-8")
    return {"Content-Type": "application/json"}, Bytes(content)


def refusal(request: Request, head: Head, content: bytes) -> errors.ApiError:
    """The error that an answer other than 2xx stands for."""
    code, message = "", ""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if isinstance(body, dict):
        code = str(body.get("code") or "")
        message = str(body.get("message") or "")
        if not message and (detail := body.get("detail")):
            message = "; ".join(map(_fault, detail)) if isinstance(detail, list) else str(detail)
    if not message:
        message = content[:200].decode("utf-8", "replace").strip() or "no explanation given"
    path = request.path.partition("?")[0]
    error = errors.for_status(head.status)(
        f"{request.method} {path} was refused with {head.status}: {message}",
        status=head.status,
        code=code,
        request_id=head.headers.get("x-request-id", ""),
        told=body if isinstance(body, dict) else {},
    )
    if isinstance(error, errors.TooManyRequests):
        wait = head.headers.get("retry-after", "")
        error.retry_after_s = float(wait) if wait.isdecimal() else None
    return error


def _fault(detail: object) -> str:
    """One fault of a validation answer: where and what."""
    if not isinstance(detail, dict):
        return str(detail)
    where = ".".join(str(part) for part in detail.get("loc") or ())
    return f"{where}: {detail.get('msg', '')}" if where else str(detail.get("msg", ""))
