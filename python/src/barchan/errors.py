"""What can go wrong, as one small tree: catch BarchanError for all of it."""

from __future__ import annotations

from collections.abc import Mapping


class BarchanError(Exception):
    """Base of everything this package raises for a call that failed."""

    def __init__(
        self, message: str, *, code: str = "", request_id: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.request_id = request_id
        self.hint = hint

    def __str__(self) -> str:
        """Message, code, what to do and the id to look for in the server's log, as far as known."""
        code = f" [{self.code}]" if self.code else ""
        hint = f" {self.hint}" if self.hint else ""
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.message}{code}{hint}{request}"


class Unreachable(BarchanError):
    """No connection to the server could be made, or it broke; the outcome of the call is unknown
    if `sent` is true."""

    def __init__(self, message: str, *, sent: bool = False, hint: str = "") -> None:
        super().__init__(message, code="UNREACHABLE", hint=hint)
        self.sent = sent


class DeadlineExceeded(BarchanError):
    """The server did not answer in the time set for the call."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, code="DEADLINE_EXCEEDED", hint=hint)


class ProtocolError(BarchanError):
    """The other side does not speak as agreed: broken HTTP, JSON or events, or too much of them."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, code="PROTOCOL", hint="Is this the address of a Barchan or OpenSandbox server?"
        )


class ServerNotStarted(BarchanError):
    """No server is configured, and a private one could not be started."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, code="SERVER_NOT_STARTED", hint=hint)


class CopyFailed(BarchanError):
    """A directory could not be copied; what had arrived by then stays."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="COPY_FAILED")


class ApiError(BarchanError):
    """The server refused a call; `status` is the HTTP status of its answer, `told` its fields."""

    default_hint = ""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "",
        request_id: str = "",
        told: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, code=code, request_id=request_id, hint=self.default_hint)
        self.status = status
        self.told: Mapping[str, object] = told or {}


class InvalidRequest(ApiError):
    """400, 413, 416, 422: the request is not acceptable as it is."""


class Unauthorized(ApiError):
    """401, 403: the key is missing, wrong, or not allowed to do this."""

    default_hint = "Set BARCHAN_API_KEY or pass api_key=."


class NotFound(ApiError):
    """404: there is no such sandbox, file or command; a sandbox may have expired."""


class Conflict(ApiError):
    """409: not possible in the present state."""


class TooManyRequests(ApiError):
    """429: the server is at its limit; `retry_after_s` says when to try again, if it said so."""

    default_hint = "Wait and try again."
    retry_after_s: float | None = None


class ServerFault(ApiError):
    """5xx: the server or the sandbox failed."""

    default_hint = "The server's log has more under this request's id."


def for_status(status: int) -> type[ApiError]:
    """The class that stands for an HTTP status."""
    known: dict[int, type[ApiError]] = {
        401: Unauthorized,
        403: Unauthorized,
        404: NotFound,
        409: Conflict,
        429: TooManyRequests,
    }
    return known.get(status, ServerFault if status >= 500 else InvalidRequest)
