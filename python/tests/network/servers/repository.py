"""What git and pip fetch: a repository by HTTPS and SSH, and an index of packages."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import subprocess
import zipfile
from pathlib import Path

import asyncssh

from network import atlas
from network.servers.log import Log

READ_ME = "a file of the repository\n"
WHEEL = "demo_of_barchan-1.0-py3-none-any.whl"


def fill(files: Path) -> None:
    """Writes what the hosts `git.example` and `packages.example` serve."""
    _repository(files / "git.example")
    index = files / "packages.example" / "simple" / "demo-of-barchan"
    index.mkdir(parents=True)
    wheel = _wheel()
    (index / WHEEL).write_bytes(wheel)
    digest = hashlib.sha256(wheel).hexdigest()
    (index / "index.html").write_text(f'<a href="{WHEEL}#sha256={digest}">{WHEEL}</a>')


def _repository(top: Path) -> None:
    work = top / "work"
    work.mkdir(parents=True)
    (work / "README").write_text(READ_ME)
    parts = [(who, what) for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    named = {f"GIT_{who}_{what}": "a@b.example" for who, what in parts}
    own = {"HOME": str(top), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "README"],
        ["commit", "--quiet", "-m", "First"],
        ["clone", "--quiet", "--bare", ".", str(top / "repository.git")],
        ["--git-dir", str(top / "repository.git"), "update-server-info"],
    ):
        subprocess.run(["git", *words], cwd=work, env={**os.environ, **named, **own}, check=True)


def _wheel() -> bytes:
    made = io.BytesIO()
    about = "demo_of_barchan-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("demo_of_barchan.py", "ANSWER = 42\n")
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: demo-of-barchan\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        names = ("demo_of_barchan.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD")
        archive.writestr(names[-1], "".join(f"{name},,\n" for name in names))
    return made.getvalue()


class _Anybody(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        """Nobody needs to show who they are."""
        return False


async def shells(log: Log, address: str, files: Path) -> None:
    """SSH for `git-upload-pack` and nothing else."""
    top = files / "git.example"

    async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
        log("ssh", local=address, command=process.command)
        if not (process.command or "").startswith("git-upload-pack"):
            process.exit(1)
            return
        pipe = asyncio.subprocess.PIPE
        words = ("git", "upload-pack", str(top / "repository.git"))
        child = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
        await process.redirect(stdin=child.stdin, stdout=child.stdout)
        await process.stdout.drain()
        process.exit(await child.wait())

    key = asyncssh.generate_private_key("ssh-ed25519")
    await asyncssh.listen(
        address,
        atlas.SSH_PORT,
        server_factory=_Anybody,
        server_host_keys=[key],
        process_factory=run,
        encoding=None,
    )
