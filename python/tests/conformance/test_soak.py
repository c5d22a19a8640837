"""Many clients use one sandbox in every way at once; nothing may grow with how long they do.

`BARCHAN_SOAK_S` says for how many seconds, `BARCHAN_SOAK_CLIENTS` how many use it at once;
`make soak-execd` has 50 of them for half an hour.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from conformance.rows import output
from conformance.ways import WAYS
from conformance.world import DaemonWorld, Lifecycle, until

# Long enough for pools to fill and caches to be warm before the first look.
WARM_UP_S = 5.0
# Busy machines answer late, but not never.
PATIENCE_S = 120.0
# How often sizes are looked at while they work.
LOOKS = 10
# What one look may differ from another by chance. In a short run the daemon still fills what it
# remembers of ended commands, a bounded number of them.
GROWTH_KIB_MAX = {"server": 4 * 1024, "launcher": 256, "daemon": 8 * 1024}
GROWTH_DESCRIPTORS_MAX = 4
ZOMBIES_MAX = 2


@dataclass(frozen=True)
class Size:
    """What a process holds."""

    descriptors: int
    private_kib: int

    def __str__(self) -> str:
        return f"{self.private_kib} KiB/{self.descriptors}"

    @classmethod
    def of(cls, pid: int) -> Size:
        proc = Path(f"/proc/{pid}")
        lines = (proc / "smaps_rollup").read_text().splitlines()
        dirty = [int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")]
        # What commands printed is kept in memory files, a bounded number of bytes in all.
        kept = [fd for fd in (proc / "fd").iterdir() if "memfd:output" not in target(fd)]
        return cls(len(kept), sum(dirty))


def target(descriptor: Path) -> str:
    """What a descriptor is open on; it may be closed by now."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def zombies(daemon: httpx.Client) -> int:
    script = "cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | grep -c '^Z' || true"
    return int(output(daemon.post("/command", json={"command": script})))


def processes_of(lifecycle: Lifecycle) -> dict[str, int]:
    """The server, its launcher, and the daemon of the one sandbox that has a command running."""
    server = lifecycle.server
    assert server.process is not None
    launchers = [pid for pid in server.launchers() if pid != server.process.pid]
    return {"server": server.process.pid, "launcher": min(launchers)}


def daemon_of(daemon: httpx.Client) -> int:
    """The host's number of the daemon: the parent of a process with a name of its own."""
    mark = f"soak-{uuid.uuid4().hex}"
    made = DaemonWorld(daemon).run(f"sleep 600; : {mark}", background=True)

    def parent() -> int:
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and mark.encode() in cmdline(entry):
                return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        return 0

    found = until("the daemon is found", parent)
    assert daemon.delete("/command", params={"id": made}).status_code == 200
    return found


def cmdline(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def use(client: httpx.Client, clients: int, seconds: float) -> Counter[str]:
    """Uses the sandbox in every way, some clients at once."""
    ends = time.monotonic() + seconds

    def work(seed: int) -> Counter[str]:
        chance = random.Random(seed)
        done: Counter[str] = Counter()
        while time.monotonic() < ends:
            way = chance.choice(WAYS)
            way(client)
            done[way.__name__] += 1
        return done

    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(work, [random.randrange(1 << 30) for _ in range(clients)]), Counter())


def test_nothing_grows_with_use(lifecycle: Lifecycle) -> None:
    seconds = float(os.environ.get("BARCHAN_SOAK_S", "10"))
    clients = int(os.environ.get("BARCHAN_SOAK_CLIENTS", "8"))
    lifecycle.server.build_image("data-science")
    made = lifecycle.create(
        image={"uri": "data-science"},
        resourceLimits={"cpu": "2", "memory": "6Gi"},
        timeout=int(seconds) + 3600,
    )
    found = lifecycle.endpoint(made, 44772)
    url = f"http://{found['endpoint']}"
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(
        base_url=url, headers=found["headers"], timeout=PATIENCE_S, limits=limits
    ) as client:
        pids = {**processes_of(lifecycle), "daemon": daemon_of(client)}
        looks: list[dict[str, Size]] = []
        done: Counter[str] = Counter()
        use(client, clients, WARM_UP_S)
        for _ in range(LOOKS):
            looks.append({who: Size.of(pid) for who, pid in pids.items()})
            done += use(client, clients, seconds / LOOKS)
        until("orphans are reaped", lambda: zombies(client) <= ZOMBIES_MAX)
        looks.append({who: Size.of(pid) for who, pid in pids.items()})
    lifecycle.delete(made)
    print(f"\n{clients} clients, {seconds:.0f} s: {dict(sorted(done.items()))}")
    for who in pids:
        print(f"{who}: " + ", ".join(str(look[who]) for look in looks))
    # What grows for ever is always larger in the second half than it ever was in the first.
    early, late = looks[: LOOKS // 2 + 1], looks[LOOKS // 2 + 1 :]
    for who, most in GROWTH_KIB_MAX.items():
        assert min(it[who].private_kib for it in late) <= most + max(
            it[who].private_kib for it in early
        ), who
        assert min(it[who].descriptors for it in late) <= GROWTH_DESCRIPTORS_MAX + max(
            it[who].descriptors for it in early
        ), who
