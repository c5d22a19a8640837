"""Everybody beyond the host: `python -m network.servers.world LOG AUTHORITY FILES`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from network import atlas
from network.servers import datagrams, names, plain, repository, web, wire
from network.servers.log import Log
from network.servers.secure import Authority


async def serve(log: Log, public: Path, files: Path) -> None:
    authority = Authority(public)
    secure = authority.server()
    pages = web.Web(log, files)
    await names.serve(log, authority.context("dns.example"))
    for address in atlas.WEB:
        await web.serve(pages, address, atlas.HTTP_PORT)
        await web.serve(pages, address, atlas.TLS_PORT, secure)
        await plain.websockets(log, address)
    for address in atlas.PUBLIC_DNS:
        await web.serve(pages, address, atlas.TLS_PORT, secure)
    for address in atlas.BLIND:
        for port in atlas.BLIND_PORTS:
            await plain.blind(log, address, port)
    for address in atlas.ECHO:
        await plain.echo(log, address, atlas.ECHO_PORT)
        await plain.echo(log, address, atlas.GREETING_PORT, atlas.GREETING)
        for port in atlas.ECHO_UDP_PORTS:
            datagrams.serve(address, port, bytes)
    for address in atlas.GIT:
        await repository.shells(log, address, files)
    # The wire is last: what the servers' own start sent over it is of no interest.
    wire.watch(log, "world0")


async def main() -> None:
    log, public, files = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    repository.fill(files)
    await serve(Log(log), public, files)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    # Until whoever started this closes its input, or is gone.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
