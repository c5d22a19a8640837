"""An agent explores a customer file in a sandbox and brings back a report with charts.

Usage: python examples/customer-eda [--csv FILE] [--out DIRECTORY] [--image NAME] [--live]
"""

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from deepagents.backends.sandbox import BaseSandbox
from langchain_core.messages import BaseMessage, messages_to_dict

import artifacts
import models
import pipeline
from barchan import BarchanError, private
from barchan.deepagents import BarchanBackend
from progress import Progress
from stages import Record, StageFailed

PACKAGES = ["barchan", "deepagents", "langchain", "langchain-core", "langgraph"]
ROOT = "/workspace"
IMAGES_S = 30


def versions() -> dict[str, str]:
    """Versions of what ran on this side."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def run(
    csv: Path | None,
    out: Path,
    image: str,
    live: bool,
    open_backend: Callable[[], BaseSandbox],
    root: str = ROOT,
) -> int:
    """The whole job: all stages in order, then an account of them. Returns the exit code."""
    progress, record = Progress(), Record()
    artifacts.clear(out)
    record.facts |= {"outcome": "failed", "versions": versions(), "image": describe(image)}
    backend: BaseSandbox | None = None
    said: list[BaseMessage] = []
    try:
        progress.stage("customer file")
        source = record.perform(pipeline.SOURCE, csv)
        record.facts["input"] = {
            "origin": source.origin,
            "bytes": len(source.content),
            "sha256": source.sha256,
        }
        work = pipeline.Work.under(root, source)
        choice = models.live() if live else models.recorded(work.names())
        record.facts["model"] = {"mode": choice.mode, "name": choice.name}
        progress.stage(f"sandbox from image {image}")
        backend = record.perform(pipeline.sandbox(image), open_backend)
        progress.line(f"sandbox {backend.id}")
        progress.stage(f"upload to {work.csv}")
        record.perform(pipeline.upload(work), (backend, source))
        progress.stage(f"analysis by {choice.name}")
        conversation = record.perform(pipeline.analyse(work, choice, progress, said), backend)
        record.facts["tokens"] = conversation.tokens
        progress.stage(f"report and charts to {out}")
        found = record.perform(pipeline.fetch(work), backend)
        record.facts["artifacts"] = artifacts.store(found, out)
        record.facts["outcome"] = "complete"
    except StageFailed as failed:
        progress.failed(f"stage {failed.stage!r} failed ({failed.error_class}): {failed}")
    except models.NoModel as missing:
        progress.failed(str(missing))
        record.facts["error"] = str(missing)
    finally:
        close(backend)
        record.write(out / "run.json")
        if said:
            talk = json.dumps(messages_to_dict(said), indent=1, ensure_ascii=False)
            (out / "transcript.json").write_text(talk + "\n", encoding="utf-8")
    tell(record, out, time.monotonic() - progress.begun)
    return 0 if record.facts["outcome"] == "complete" else 1


def describe(image: str) -> dict[str, str]:
    """The image's name and digest, as the local store has them; a server elsewhere tells none."""
    facts = {"name": image, "digest": "unknown"}
    if os.environ.get("BARCHAN_SERVER"):
        return facts
    try:
        command = [str(private.program()), "--json", "image", "list"]
        listed = subprocess.run(command, capture_output=True, check=True, timeout=IMAGES_S).stdout
        found = [one for one in json.loads(listed) if one["name"] == image]
    except (BarchanError, OSError, subprocess.SubprocessError, ValueError):
        return facts
    return facts | {"digest": found[0]["digest"]} if found else facts


def close(backend: BaseSandbox | None) -> None:
    """Ends the sandbox, whatever happened before."""
    kill = getattr(backend, "kill", None)
    if callable(kill):
        kill()


def tell(record: Record, out: Path, seconds: float) -> None:
    """The account at the end: stages with their times, tokens, and where things are."""
    print()
    for entry in record.stages:
        mark = "✓" if entry["outcome"] == "done" else "✗"
        print(f"  {mark} {entry['stage']:<20} {entry['seconds']:8.2f} s")
    print(f"    {'total':<20} {seconds:8.2f} s")
    for name, counts in record.facts.get("tokens", {}).items():
        note = (
            ", as the transcript records them; nothing was billed"
            if record.facts["model"]["mode"] != "live"
            else ""
        )
        print(
            f"\n  tokens ({name}): {counts['input_tokens']:,} in, {counts['output_tokens']:,} "
            f"out{note}"
        )
    if record.facts["outcome"] == "complete":
        print(f"\n  report: {out / 'report.md'}")
    print(f"  account: {out / 'run.json'}")


def main() -> int:
    """Reads the arguments; CSV and LIVE may also come from the environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--csv", type=Path, default=Path(os.environ["CSV"]) if os.environ.get("CSV") else None
    )
    parser.add_argument("--out", type=Path, default=Path("out/customer-eda"))
    parser.add_argument("--image", default="data-science")
    parser.add_argument("--live", action="store_true", default=os.environ.get("LIVE") == "1")
    given = parser.parse_args()

    def open_backend() -> BaseSandbox:
        return BarchanBackend.create(image=given.image)

    return run(given.csv, given.out, given.image, given.live, open_backend)
