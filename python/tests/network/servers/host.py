"""A service of the host itself, on all of its addresses: `python -m network.servers.host LOG`."""

from __future__ import annotations

import asyncio
import sys

from network import atlas
from network.servers import plain
from network.servers.log import Log


async def main() -> None:
    log = Log(sys.argv[1])
    await plain.blind(log, "0.0.0.0", atlas.HOST_PORT)
    await plain.blind(log, "::", atlas.HOST_PORT)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    # Until whoever started this closes its input, or is gone.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
