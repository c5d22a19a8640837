"""Calls that make, find, change and end sandboxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from barchan._request import Answer, Call, Request, json_body
from barchan.errors import ProtocolError
from barchan.models import Page, SandboxInfo

CREATE_S = 120.0
KEEP_ALIVE = ("tail", "-f", "/dev/null")
LIMITS = {"cpu": "1", "memory": "2Gi"}


def when(value: object) -> datetime | None:
    """A point in time as the wire writes it; None when there is none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def info(found: Any) -> SandboxInfo:
    """A sandbox from its JSON."""
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        raise ProtocolError("a sandbox without an id")
    status = found.get("status") or {}
    image = found.get("image") or {}
    return SandboxInfo(
        id=found["id"],
        state=str(status.get("state", "Unknown")),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        image=str(image.get("uri") or ""),
        entrypoint=tuple(found.get("entrypoint") or ()),
        created_at=when(found.get("createdAt")),
        expires_at=when(found.get("expiresAt")),
        metadata=found.get("metadata") or {},
        extensions=found.get("extensions") or {},
    )


def create(
    image: str,
    *,
    timeout_s: int | None,
    entrypoint: Sequence[str] | None,
    env: Mapping[str, str] | None,
    metadata: Mapping[str, str] | None,
    resources: Mapping[str, str] | None,
    extensions: Mapping[str, str] | None,
) -> Call[SandboxInfo]:
    """Makes a sandbox; it accepts commands when the answer comes."""
    headers, body = json_body(
        {
            "image": {"uri": image},
            "timeout": timeout_s,
            "entrypoint": list(entrypoint or KEEP_ALIVE),
            "env": dict(env) if env else None,
            "metadata": dict(metadata) if metadata else None,
            "resourceLimits": dict(resources or LIMITS),
            "extensions": dict(extensions) if extensions else None,
        }
    )
    request = Request("POST", "/v1/sandboxes", headers, body, answer_s=CREATE_S)
    return Call(request, lambda answer: info(answer.json()))


def _path(sandbox_id: str, verb: str = "") -> str:
    return f"/v1/sandboxes/{quote(sandbox_id, safe='')}{verb}"


def get(sandbox_id: str) -> Call[SandboxInfo]:
    """What the server knows of a sandbox."""
    return Call(Request("GET", _path(sandbox_id)), lambda answer: info(answer.json()))


def sandboxes(
    states: Sequence[str], metadata: Mapping[str, str], page: int, page_size: int
) -> Call[Page]:
    """One page of sandboxes, newest first."""
    query = [("page", str(page)), ("pageSize", str(page_size))]
    query += [("state", state) for state in states]
    if metadata:
        query.append(("metadata", urlencode(metadata)))
    request = Request("GET", f"/v1/sandboxes?{urlencode(query)}")

    def read(answer: Answer) -> Page:
        found = answer.json()
        if not isinstance(found, dict) or not isinstance(found.get("items"), list):
            raise ProtocolError("a list of sandboxes without items")
        paging = found.get("pagination") or {}
        return Page(
            items=tuple(map(info, found["items"])),
            number=int(paging.get("page", page)),
            total_items=int(paging.get("totalItems", len(found["items"]))),
            has_next=bool(paging.get("hasNextPage", False)),
        )

    return Call(request, read)


def renew(sandbox_id: str, lifetime: timedelta, now: datetime) -> Call[datetime | None]:
    """Lets a sandbox live for this long from now on; answers when it will end."""
    at = (now + lifetime).astimezone(UTC).isoformat().replace("+00:00", "Z")
    headers, body = json_body({"expiresAt": at})
    request = Request("POST", _path(sandbox_id, "/renew-expiration"), headers, body)

    def read(answer: Answer) -> datetime | None:
        found = answer.json()
        return when(found.get("expiresAt")) if isinstance(found, dict) else None

    return Call(request, read)


def _done(_: Answer) -> None:
    return None


def pause(sandbox_id: str, to_disk: bool) -> Call[None]:
    """Stops all processes of a sandbox, or ends them and keeps its files alone."""
    path = _path(sandbox_id, "/pause")
    return Call(Request("POST", f"{path}?to=disk" if to_disk else path), _done)


def resume(sandbox_id: str) -> Call[None]:
    """Lets a paused sandbox run on, or start anew with the files that it was paused with."""
    return Call(Request("POST", _path(sandbox_id, "/resume")), _done)


def kill(sandbox_id: str) -> Call[None]:
    """Ends a sandbox and removes what belongs to it."""
    return Call(Request("DELETE", _path(sandbox_id)), _done)


def health() -> Call[bool]:
    """Whether a server answers at all."""
    request = Request("GET", "/health", answer_s=5.0, total_s=5.0)
    return Call(request, lambda answer: answer.head.status == 200)


def version() -> Call[str]:
    """The version of the API that a server speaks."""
    return Call(Request("GET", "/version"), lambda answer: str(answer.json().get("version", "")))
