"""Answers to datagrams, one for each, from the address that was asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

READ_BYTES = 65536

_tasks: set[asyncio.Task[None]] = set()


def serve(address: str, port: int, answer: Callable[[bytes], bytes]) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_DGRAM)
    bound.setblocking(False)
    bound.bind((address, port))
    _tasks.add(asyncio.create_task(_answer(bound, answer)))


async def _answer(bound: socket.socket, answer: Callable[[bytes], bytes]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        data, who = await loop.sock_recvfrom(bound, READ_BYTES)
        await loop.sock_sendto(bound, answer(data), who)
