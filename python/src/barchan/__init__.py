"""Sandboxes for AI agents: a blocking client and an asyncio client.

from barchan import Sandbox

with Sandbox.create() as sandbox:
    print(sandbox.commands.run("python3 -c 'print(6 * 7)'").output)
"""

from barchan._async.sandbox import AsyncSandbox
from barchan._blocking.sandbox import Sandbox
from barchan._multipart import Upload
from barchan._request import __version__
from barchan.errors import (
    ApiError,
    BarchanError,
    Conflict,
    DeadlineExceeded,
    InvalidRequest,
    NotFound,
    ProtocolError,
    ServerFault,
    ServerNotStarted,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from barchan.models import (
    CommandLogs,
    CommandResult,
    CommandStatus,
    FileInfo,
    Page,
    SandboxInfo,
)

__all__ = [
    "ApiError",
    "AsyncSandbox",
    "BarchanError",
    "CommandLogs",
    "CommandResult",
    "CommandStatus",
    "Conflict",
    "DeadlineExceeded",
    "FileInfo",
    "InvalidRequest",
    "NotFound",
    "Page",
    "ProtocolError",
    "Sandbox",
    "SandboxInfo",
    "ServerFault",
    "ServerNotStarted",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Upload",
    "__version__",
]
