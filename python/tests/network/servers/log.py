"""What happened, as lines of JSON."""

from __future__ import annotations

import json
import os
from typing import Any


class Log:
    def __init__(self, path: str) -> None:
        # Each line is one write to the end of the file, since several programs have it open.
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def __call__(self, kind: str, **fields: Any) -> None:
        os.write(self.file, json.dumps({"kind": kind, **fields}).encode() + b"\n")
