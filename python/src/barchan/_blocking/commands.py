"""Commands of one sandbox, blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from barchan import errors
from barchan._blocking.transport import Transport
from barchan._calls import commands as calls
from barchan._calls.commands import OUTPUT_BYTES_MAX, OnText, Transcript
from barchan._events import EventDecoder
from barchan.models import CommandLogs, CommandResult, CommandStatus


class Commands:
    """Runs commands and asks after them."""

    def __init__(self, transport: Transport, sandbox_id: str) -> None:
        self._transport = transport
        self._id = sandbox_id

    def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        background: bool = False,
        on_stdout: OnText | None = None,
        on_stderr: OnText | None = None,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> CommandResult:
        """Runs a shell script (a text) or a program (a list) and waits for its end.

        After `timeout_s` it is killed with all its children. A background command is only started:
        its id leads to `status` and `logs`. An exit code other than 0 is a result, not an error.
        Leaving early, by KeyboardInterrupt for example, ends the command as well.
        """
        request = calls.run(
            self._id, command, cwd=cwd, env=env, timeout_s=timeout_s, background=background
        )
        decoder = EventDecoder()
        transcript = Transcript(
            output_bytes_max, timeout_s, background, on_stdout=on_stdout, on_stderr=on_stderr
        )
        try:
            with self._transport.open(request) as stream:
                for piece in stream:
                    for event in decoder.feed(piece):
                        transcript.add(event)
                for event in decoder.finish():
                    transcript.add(event)
            return transcript.result()
        except BaseException:
            if transcript.id and not transcript.ended:
                with suppress(errors.BarchanError):
                    self.interrupt(transcript.id)
            raise

    def status(self, command_id: str) -> CommandStatus:
        """Whether a command still runs, and how it ended."""
        return self._transport.call(calls.status(self._id, command_id))

    def logs(self, command_id: str, cursor: int = 0) -> CommandLogs:
        """Output of a background command from a cursor on."""
        return self._transport.call(calls.logs(self._id, command_id, cursor))

    def interrupt(self, command_id: str) -> None:
        """Ends a command with all its children."""
        self._transport.call(calls.interrupt(self._id, command_id))
