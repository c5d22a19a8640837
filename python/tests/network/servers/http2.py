"""HTTP/2 on a connection that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, WindowUpdated

if TYPE_CHECKING:
    from network.servers.web import Asked, Connection

READ_BYTES = 65536
FRAME_BYTES_MAX = 16384


class Streams:
    """The answers that are on their way, each as far as the client has room."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.left: dict[int, bytes] = {}

    def answer(self, stream: int, asked: Asked) -> None:
        answer = self.connection.web.answer(asked)
        named = [(name.lower(), value) for name, value in answer.headers]
        head = [(":status", str(answer.status)), ("content-length", str(len(answer.body)))]
        self.h2.send_headers(stream, [*head, *named])
        self.left[stream] = answer.body
        self.send(stream)

    def send(self, stream: int) -> None:
        body = self.left[stream]
        while body:
            room = min(self.h2.local_flow_control_window(stream), FRAME_BYTES_MAX)
            if room <= 0:
                self.left[stream] = body
                return
            self.h2.send_data(stream, body[:room])
            body = body[room:]
        self.h2.end_stream(stream)
        del self.left[stream]

    def asked(self, pairs: list[tuple[str, str]]) -> Asked:
        known = dict(pairs)
        headers = [(name, value) for name, value in pairs if not name.startswith(":")]
        host = known.get(":authority", known.get("host", ""))
        return self.connection.asked(known[":method"], known[":path"], headers, "2", host)

    def take(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            if isinstance(event, RequestReceived):
                assert event.headers is not None
                assert event.stream_id is not None
                pairs = [(str(name), str(value)) for name, value in event.headers]
                self.answer(event.stream_id, self.asked(pairs))
            elif isinstance(event, WindowUpdated):
                for stream in list(self.left):
                    self.send(stream)
            elif isinstance(event, DataReceived) and event.flow_controlled_length:
                assert event.stream_id is not None
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    async def run(self) -> None:
        connection = self.connection
        while True:
            connection.writer.write(self.h2.data_to_send())
            await connection.writer.drain()
            if not (data := await connection.reader.read(READ_BYTES)):
                return
            self.take(data)


async def serve(connection: Connection, begun: bytes) -> None:
    """Serves from the preface on, some of which may have been read."""
    streams = Streams(connection)
    streams.h2.initiate_connection()
    if begun:
        streams.take(begun)
    await streams.run()


async def upgraded(connection: Connection, settings: str, first: Asked) -> None:
    """Answers a request of HTTP/1.1 by HTTP/2, and goes on so."""
    connection.writer.write(
        b"HTTP/1.1 101 That\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    )
    streams = Streams(connection)
    streams.h2.initiate_upgrade_connection(settings.encode())
    streams.answer(1, first)
    await streams.run()
