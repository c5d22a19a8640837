"""What answers of the in-sandbox API look like."""

from __future__ import annotations

import re
from typing import Any

import httpx

BAD_BODY = "INVALID_REQUEST_BODY"
NO_FILE = "FILE_NOT_FOUND"
NO_CONTEXT = "CONTEXT_NOT_FOUND"
MISSING = "MISSING_QUERY"
BAD_FILE = "INVALID_FILE"

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").fullmatch
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
HEX = re.compile(r"[0-9a-f]{32}").fullmatch
NUMBER = (int, float)
# Newer clients take texts with their line ends, and say so by their name.
KEEPS_ENDS = {"User-Agent": "OpenSandbox-Python-SDK/1.1.1"}

INFO = {
    "path": str,
    "size": int,
    "modified_at": TIME,
    "created_at": TIME,
    "owner": "root",
    "group": "root",
    "mode": int,
    "type": str,
}
STATUS = {"id": HEX, "content": str, "running": bool, "started_at": TIME}


def is_number(value: Any) -> bool:
    return isinstance(value, NUMBER) and not isinstance(value, bool)


def nothing(answer: httpx.Response) -> bool:
    return answer.content == b""
