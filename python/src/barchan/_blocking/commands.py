"""Commands of one sandbox, blocking."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from barchan import errors
from barchan._blocking.transport import Transport
from barchan._calls import commands as calls
from barchan._calls import exec as exec_calls
from barchan._calls.commands import OUTPUT_BYTES_MAX, OnText, Transcript
from barchan._calls.exec import ExecTranscript, OnBytes, Stdin
from barchan._calls.layers import Seal, Told
from barchan._events import EventDecoder
from barchan._request import Request
from barchan.models import CommandLogs, CommandResult, CommandStatus, ExecResult


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
        seal: Seal = False,
    ) -> CommandResult:
        """Runs a shell script (a text) or a program (a list) and waits for its end.

        After `timeout_s` it is killed with all its children. A background command is only started:
        its id leads to `status` and `logs`. An exit code other than 0 is a result, not an error.
        Leaving early, by KeyboardInterrupt for example, ends the command as well. With `seal` what
        it wrote is sealed at its end, whatever its exit code: a text is the layer's label, with
        True that is the command.
        """
        request = calls.run(
            self._id,
            command,
            cwd=cwd,
            env=env,
            timeout_s=timeout_s,
            background=background,
            seal=seal,
        )
        transcript = Transcript(
            output_bytes_max,
            timeout_s,
            background,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            layer=Told(seal is not False),
        )
        try:
            self._listen(request, transcript)
            return transcript.result()
        except BaseException:
            if transcript.id and not transcript.ended:
                with suppress(errors.BarchanError):
                    self.interrupt(transcript.id)
            raise

    def _listen(self, request: Request, transcript: Transcript) -> None:
        """Reads a command's events to their end."""
        decoder = EventDecoder()
        try:
            with self._transport.open(request) as stream:
                for piece in stream:
                    for event in decoder.feed(piece):
                        transcript.add(event)
                for event in decoder.finish():
                    transcript.add(event)
        except errors.BarchanError:
            if not transcript.outlives():
                raise

    def exec(
        self,
        command: str | Sequence[str],
        *,
        stdin: Stdin | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        on_stdout: OnBytes | None = None,
        on_stderr: OnBytes | None = None,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
        idempotency_key: str | None = None,
        seal: Seal = False,
    ) -> ExecResult:
        """Runs a command as bytes: `stdin` goes in, both streams come out unchanged.

        A text is a shell script, a list is a program. The command survives a broken connection: the
        rest of its output is asked for again. With `idempotency_key` it is run once, however often
        it is asked for, and then goes on when this call is left early; without, it is ended. For
        `seal` see `run`; it goes with no key.
        """
        request = exec_calls.start(
            self._id,
            command,
            cwd=cwd,
            env=env,
            timeout_s=timeout_s,
            stdin=stdin is not None,
            key=idempotency_key,
            seal=seal,
        )
        transcript = ExecTranscript(
            output_bytes_max,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            layer=Told(seal is not False),
        )
        feeder = Feeder(self._transport, self._id, stdin)
        try:
            self._follow(request, transcript, feeder)
            feeder.check()
            return transcript.result()
        except BaseException:
            if transcript.id and not transcript.ended and idempotency_key is None:
                with suppress(errors.BarchanError):
                    self.interrupt(transcript.id)
            raise
        finally:
            feeder.stop()

    def _follow(self, request: Request, transcript: ExecTranscript, feeder: Feeder) -> None:
        """Reads a command's stream to its end, over as many connections as it takes."""
        pauses, reached = iter(exec_calls.PAUSES_S), 0
        while not transcript.ended:
            try:
                with self._transport.open(request) as stream:
                    for piece in stream:
                        transcript.feed(piece)
                        feeder.begin(transcript.id)
                        if transcript.offset > reached:
                            pauses, reached = iter(exec_calls.PAUSES_S), transcript.offset
                if not transcript.ended:
                    # The stream came to an end before the command did.
                    transcript.result()
            except errors.BarchanError as error:
                if transcript.outlives():
                    return
                pause = next(pauses, None)
                if not transcript.id or not exec_calls.may_pass(error) or pause is None:
                    raise
                time.sleep(pause)
                transcript.reconnect()
                request = exec_calls.again(self._id, transcript.id, transcript.offset)

    def status(self, command_id: str) -> CommandStatus:
        """Whether a command still runs, and how it ended."""
        return self._transport.call(calls.status(self._id, command_id))

    def logs(self, command_id: str, cursor: int = 0) -> CommandLogs:
        """Output of a background command from a cursor on."""
        return self._transport.call(calls.logs(self._id, command_id, cursor))

    def interrupt(self, command_id: str) -> None:
        """Ends a command with all its children."""
        self._transport.call(calls.interrupt(self._id, command_id))


class Feeder:
    """Sends a command its input while its output is read: each may wait for the other."""

    def __init__(self, transport: Transport, sandbox_id: str, stdin: Stdin | None) -> None:
        self._transport = transport
        self._sandbox_id = sandbox_id
        self._stdin = stdin
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._error: BaseException | None = None

    def begin(self, command_id: str) -> None:
        """Begins once the command has an id."""
        if self._stdin is not None and command_id and self._thread is None:
            self._thread = threading.Thread(target=self._work, args=(command_id,), daemon=True)
            self._thread.start()

    def _work(self, command_id: str) -> None:
        try:
            self._send(command_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told
            self._error = error

    def _send(self, command_id: str) -> None:
        offset = 0
        for piece in exec_calls.pieces(self._stdin or b""):
            if self._stopped or not self._piece(command_id, offset, piece):
                return
            offset += len(piece)
        self._piece(command_id, offset, b"")

    def _piece(self, command_id: str, offset: int, piece: bytes) -> bool:
        call = exec_calls.feed(self._sandbox_id, command_id, offset, piece)
        for pause in exec_calls.PAUSES_S:
            try:
                return self._transport.call(call)
            except errors.BarchanError as error:
                late = isinstance(error, errors.DeadlineExceeded)
                if self._stopped or not (late or exec_calls.may_pass(error)):
                    raise
                time.sleep(pause)
        return self._transport.call(call)

    def check(self) -> None:
        """Raises what went wrong with the input of a command that waited for it."""
        if self._thread is not None:
            self._thread.join(1)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """No more input is sent."""
        self._stopped = True
