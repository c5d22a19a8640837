"""What a run leaves behind: which files belong together, and whether they are sound."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

CHARTS_MIN = 5
CHART_BYTES_MIN = 2_000
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Each topic the report must cover, by words of which one must stand in a heading.
TOPICS = {
    "summary": ["summary", "takeaway"],
    "structure and integrity": ["structure", "integrity", "quality"],
    "geography": ["geograph", "countr", "continent"],
    "time": ["time", "temporal", "trend"],
    "domains": ["domain", "e-mail", "email"],
}
OURS = ["report.md", "figures.json", "run.json", "transcript.json"]


@dataclass(frozen=True)
class Artifacts:
    """The report and its charts, as brought back from the sandbox."""

    report: str
    charts: dict[str, bytes]
    extra: dict[str, bytes]


def charts_of(report: str) -> list[str]:
    """The picture files that a Markdown text shows, in order, each once."""
    return list(
        dict.fromkeys(re.findall(r"!\[[^\]]*\]\(\s*<?([^)\s>]+\.png)", report, flags=re.IGNORECASE))
    )


def problem(found: Artifacts) -> str | None:
    """What keeps the artifacts from being a complete report, or None."""
    headings = [line.lower() for line in found.report.splitlines() if line.startswith("#")]
    for topic, words in TOPICS.items():
        if not any(word in heading for word in words for heading in headings):
            return f"the report has no section about {topic}"
    if len(found.charts) < CHARTS_MIN:
        return f"the report shows {len(found.charts)} charts, at least {CHARTS_MIN} are asked for"
    for name, content in found.charts.items():
        if not content.startswith(PNG_SIGNATURE) or len(content) < CHART_BYTES_MIN:
            return f"{name} is no usable PNG picture ({len(content)} bytes)"
    return None


def clear(directory: Path) -> None:
    """Removes what an earlier run left: nothing old may pass for a result of this one."""
    for path in [*(directory / name for name in OURS), *directory.glob("*.png")]:
        path.unlink(missing_ok=True)


def store(found: Artifacts, directory: Path) -> list[dict[str, object]]:
    """Writes everything into a directory and lists it with sizes and checksums."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {"report.md": found.report.encode("utf-8"), **found.charts, **found.extra}
    listed: list[dict[str, object]] = []
    for name, content in sorted(files.items()):
        (directory / name).write_bytes(content)
        listed.append(
            {"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        )
    return listed
