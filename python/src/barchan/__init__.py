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
    CopyFailed,
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
    Content,
    Entry,
    ExecResult,
    FileInfo,
    Found,
    Layer,
    LayerChange,
    LayerDiff,
    LayerFailure,
    Match,
    Page,
    Paths,
    SandboxInfo,
    SnapshotInfo,
    Usage,
)

__all__ = [
    "ApiError",
    "AsyncSandbox",
    "BarchanError",
    "CommandLogs",
    "CommandResult",
    "CommandStatus",
    "Conflict",
    "Content",
    "CopyFailed",
    "DeadlineExceeded",
    "Entry",
    "ExecResult",
    "FileInfo",
    "Found",
    "InvalidRequest",
    "Layer",
    "LayerChange",
    "LayerDiff",
    "LayerFailure",
    "Match",
    "NotFound",
    "Page",
    "Paths",
    "ProtocolError",
    "Sandbox",
    "SandboxInfo",
    "ServerFault",
    "ServerNotStarted",
    "SnapshotInfo",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Upload",
    "Usage",
    "__version__",
]
