"""Commands of one sandbox, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from barchan import errors
from barchan._async.transport import AsyncTransport
from barchan._calls import commands as calls
from barchan._calls import exec as exec_calls
from barchan._calls.commands import OUTPUT_BYTES_MAX, OnText, Transcript
from barchan._calls.exec import ExecTranscript, OnBytes, Stdin
from barchan._calls.layers import Seal, Told
from barchan._events import EventDecoder
from barchan._request import Request
from barchan.models import CommandLogs, CommandResult, CommandStatus, ExecResult


class AsyncCommands:
    """Runs commands and asks after them."""

    def __init__(self, transport: AsyncTransport, sandbox_id: str) -> None:
        self._transport = transport
        self._id = sandbox_id

    async def run(
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
        Cancelling it ends the command as well. With `seal` what it wrote is sealed at its end,
        whatever its exit code: a text is the layer's label, with True that is the command.
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
            await self._listen(request, transcript)
            return transcript.result()
        except BaseException:
            if transcript.id and not transcript.ended:
                await asyncio.shield(self._interrupt_quietly(transcript.id))
            raise

    async def _listen(self, request: Request, transcript: Transcript) -> None:
        """Reads a command's events to their end."""
        decoder = EventDecoder()
        try:
            async with await self._transport.open(request) as stream:
                async for piece in stream.pieces():
                    for event in decoder.feed(piece):
                        transcript.add(event)
                for event in decoder.finish():
                    transcript.add(event)
        except errors.BarchanError:
            if not transcript.outlives():
                raise

    async def exec(
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
        started: asyncio.Event = asyncio.Event()
        feeding = asyncio.create_task(self._feed(transcript, started, stdin))
        try:
            await self._follow(request, transcript, started)
            if feeding.done():
                feeding.result()
            return transcript.result()
        except BaseException:
            if transcript.id and not transcript.ended and idempotency_key is None:
                await asyncio.shield(self._interrupt_quietly(transcript.id))
            raise
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)

    async def _follow(
        self, request: Request, transcript: ExecTranscript, started: asyncio.Event
    ) -> None:
        """Reads a command's stream to its end, over as many connections as it takes."""
        pauses, reached = iter(exec_calls.PAUSES_S), 0
        while not transcript.ended:
            try:
                async with await self._transport.open(request) as stream:
                    async for piece in stream.pieces():
                        transcript.feed(piece)
                        if transcript.id:
                            started.set()
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
                await asyncio.sleep(pause)
                transcript.reconnect()
                request = exec_calls.again(self._id, transcript.id, transcript.offset)

    async def _feed(
        self, transcript: ExecTranscript, started: asyncio.Event, stdin: Stdin | None
    ) -> None:
        """Sends a command its input while its output is read: each may wait for the other."""
        if stdin is None:
            return
        await started.wait()
        offset = 0
        for piece in exec_calls.pieces(stdin):
            if not await self._feed_piece(transcript.id, offset, piece):
                return
            offset += len(piece)
        await self._feed_piece(transcript.id, offset, b"")

    async def _feed_piece(self, command_id: str, offset: int, piece: bytes) -> bool:
        call = exec_calls.feed(self._id, command_id, offset, piece)
        for pause in exec_calls.PAUSES_S:
            try:
                return await self._transport.call(call)
            except errors.BarchanError as error:
                late = isinstance(error, errors.DeadlineExceeded)
                if not (late or exec_calls.may_pass(error)):
                    raise
                await asyncio.sleep(pause)
        return await self._transport.call(call)

    async def _interrupt_quietly(self, command_id: str) -> None:
        with suppress(errors.BarchanError):
            await self.interrupt(command_id)

    async def status(self, command_id: str) -> CommandStatus:
        """Whether a command still runs, and how it ended."""
        return await self._transport.call(calls.status(self._id, command_id))

    async def logs(self, command_id: str, cursor: int = 0) -> CommandLogs:
        """Output of a background command from a cursor on."""
        return await self._transport.call(calls.logs(self._id, command_id, cursor))

    async def interrupt(self, command_id: str) -> None:
        """Ends a command with all its children."""
        await self._transport.call(calls.interrupt(self._id, command_id))
