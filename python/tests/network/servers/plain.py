"""Servers without HTTP: such as answer whatever they hear, echo, or speak first."""

from __future__ import annotations

import asyncio
import ssl

from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websockets

from network import atlas
from network.servers.log import Log

HEARD = b"heard\n"
READ_BYTES = 16 * 1024


async def blind(log: Log, address: str, port: int) -> None:
    """Answers the first bytes of a connection, whatever they are, and ends it."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            said = await reader.read(READ_BYTES)
            log("blind", local=address, port=port, said=said.decode("latin-1"))
            writer.write(HEARD)
            await writer.drain()
            await reader.read(READ_BYTES)
        except OSError:
            pass
        finally:
            writer.close()

    await asyncio.start_server(one, address, port)


async def echo(log: Log, address: str, port: int, greeting: bytes = b"") -> None:
    """Sends back what comes, until it ends."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        log("echo", local=address, port=port)
        try:
            writer.write(greeting)
            while data := await reader.read(READ_BYTES):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            log("echo ended", local=address, port=port)
            writer.close()

    await asyncio.start_server(one, address, port)


async def websockets(log: Log, address: str, secure: ssl.SSLContext | None = None) -> None:
    """A WebSocket that sends back what comes."""

    async def one(connection: ServerConnection) -> None:
        assert connection.request
        host, path = connection.request.headers.get("Host"), connection.request.path
        log("websocket", local=address, host=host, path=path)
        async for message in connection:
            await connection.send(message)

    await serve_websockets(one, address, atlas.WS_PORT, ssl=secure, compression=None)
