"""The binary stream of `/x/exec`: bytes in any pieces to frames.

A frame is one byte for its kind, eight for its offset, four for the length of its payload, and the
payload; numbers are big-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from barchan.errors import ProtocolError

HEAD = struct.Struct(">BQI")
PAYLOAD_BYTES_MAX = 1024 * 1024

STARTED, STDOUT, STDERR, GAP, ALIVE, USAGE, ENDED, LAYER, LAYER_ERROR = range(9)


@dataclass(frozen=True)
class Frame:
    """One frame; kinds that are not named here are passed over."""

    kind: int
    offset: int
    payload: bytes


@dataclass
class FrameDecoder:
    """Takes bytes as they arrive and gives the frames that are whole."""

    _buffer: bytearray = field(default_factory=bytearray)

    @property
    def is_whole(self) -> bool:
        """Whether no half frame is left."""
        return not self._buffer

    # BOUNDARY: sandbox → host. Test: test_a_frame_that_cannot_be_is_refused
    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        while len(self._buffer) - start >= HEAD.size:
            kind, offset, length = HEAD.unpack_from(self._buffer, start)
            if length > PAYLOAD_BYTES_MAX:
                raise ProtocolError(f"a frame of {length} bytes")
            payload_at = start + HEAD.size
            if len(self._buffer) - payload_at < length:
                break
            start = payload_at + length
            frames.append(Frame(kind, offset, bytes(self._buffer[payload_at:start])))
        del self._buffer[:start]
        return frames
