"""One client used from many threads, many loops and both sides of a fork."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barchan import AsyncSandbox, Sandbox
from barchan._async.transport import AsyncTransport
from barchan._blocking.transport import IDLE_MAX, Transport
from barchan._request import Call, Request
from fake_server import FakeServer, Seen, answer, event, stream


def echo(request: Seen) -> Iterable[bytes]:
    """Answers with the path, so that a mix-up between callers shows."""
    return [answer(body=request.path.encode())]


def slow(request: Seen) -> Iterable[bytes]:
    time.sleep(0.2)
    return [answer(body=request.path.encode())]


def ask(path: str) -> Call[bytes]:
    return Call(Request("GET", path), lambda got: got.content)


def open_files() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_64_threads_share_one_transport() -> None:
    with FakeServer(echo) as server, ThreadPoolExecutor(64) as pool:
        transport = Transport(server.address)
        paths = [f"/{at}" for at in range(640)]
        assert list(pool.map(lambda path: transport.call(ask(path)), paths)) == [
            path.encode() for path in paths
        ]
        assert server.connections <= 64 <= IDLE_MAX
        transport.close()


def test_64_calls_on_one_loop_run_at_once_and_without_threads() -> None:
    async def many(server: FakeServer) -> None:
        transport = AsyncTransport(server.address)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        before = threading.active_count()
        begun = time.monotonic()
        ticking = asyncio.create_task(tick())
        got = await asyncio.gather(*(transport.call(ask(f"/{at}")) for at in range(64)))
        took = time.monotonic() - begun
        ticking.cancel()
        assert got == [f"/{at}".encode() for at in range(64)]
        assert took < 3, "one after the other would take 12.8 s"
        assert ticks >= 5, "the loop stood still"
        # The fake server has a thread for each connection; the client adds none.
        assert threading.active_count() - before <= 64
        assert "asyncio_0" not in {thread.name for thread in threading.enumerate()}
        await transport.aclose()

    with FakeServer(slow) as server:
        asyncio.run(many(server))


def test_loop_after_loop_works_and_leaves_nothing_open() -> None:
    with FakeServer(echo) as server:
        transport = AsyncTransport(server.address)
        asyncio.run(transport.call(ask("/first")))
        before = open_files()
        for at in range(20):
            assert asyncio.run(transport.call(ask(f"/{at}"))) == f"/{at}".encode()
        # The server still holds its ends until it has noticed.
        assert open_files() - before <= 21
        assert server.connections == 21
    gc.collect()


def test_three_loops_in_three_threads_use_one_object() -> None:
    with FakeServer(echo) as server:
        transport = AsyncTransport(server.address)

        async def several(name: str) -> list[bytes]:
            return await asyncio.gather(*(transport.call(ask(f"/{name}/{at}")) for at in range(20)))

        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda name: asyncio.run(several(name)), "abc"))
        assert found == [[f"/{name}/{at}".encode() for at in range(20)] for name in "abc"]


def test_a_forked_child_has_connections_of_its_own() -> None:
    with FakeServer(echo) as server:
        transport, atransport = Transport(server.address), AsyncTransport(server.address)
        with asyncio.Runner() as runner:
            transport.call(ask("/parent"))
            runner.run(atransport.call(ask("/parent")))
            assert server.connections == 2
            locked = transport._lock
            locked.acquire()  # as another thread may hold it at the moment of the fork
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    good = transport.call(ask("/child")) == b"/child"
                    agood = asyncio.new_event_loop().run_until_complete(
                        atransport.call(ask("/achild"))
                    )
                    code = 0 if good and agood == b"/achild" else 2
                finally:
                    os._exit(code)
            locked.release()
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            # The parent's own connections still work: the child did not shut them.
            assert transport.call(ask("/again")) == b"/again"
            assert runner.run(atransport.call(ask("/again"))) == b"/again"
            used = {one.path: one.connection for one in server.seen}
            assert used["/again"] in (1, 2)
            assert used["/child"] == 3
            assert used["/achild"] == 4
        transport.close()


def test_sandbox_objects_share_connections() -> None:
    with FakeServer(lambda _: [stream(event("init", "c"), event("execution_complete"))]) as server:
        Sandbox("warm", server.address).commands.run("x")
        before = open_files()
        for at in range(200):
            Sandbox(f"s{at}", server.address).commands.run("x")
        assert abs(open_files() - before) <= 4

        async def many() -> None:
            for at in range(200):
                await AsyncSandbox(f"s{at}", server.address).commands.run("x")

        asyncio.run(many())
        assert abs(open_files() - before) <= 8
        assert server.connections == 2
