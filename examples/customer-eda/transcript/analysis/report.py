"""Writes report.md from figures.json: every number in it comes from there.

Usage: python report.py DIRECTORY
"""

import json
import sys
from pathlib import Path

import sections
import takeaways
from wording import month_name


def compose(figures: dict) -> str:
    """The whole report as Markdown."""
    time = figures["seasons"]
    period = f"{month_name(time['first'])} – {month_name(time['last'])}"
    parts = [
        "# Customer analysis: who they are, where they are, when they came",
        f"**Dataset:** `{figures['source']}` · **Period:** {period}",
        "## 1. Summary",
        takeaways.summary(figures),
        "## 2. Structure and integrity",
        sections.structure(figures),
        "## 3. Geography",
        sections.geography(figures),
        "## 4. Time",
        sections.time(figures),
        "## 5. Domains, companies and people",
        sections.domains(figures),
        "## 6. How to read this report",
        sections.method(figures),
    ]
    return "\n\n".join(parts) + "\n"


def main(directory: Path) -> None:
    """Reads the figures in a directory and puts the report beside them."""
    figures = json.loads((directory / "figures.json").read_text(encoding="utf-8"))
    text = compose(figures)
    (directory / "report.md").write_text(text, encoding="utf-8")
    print(
        f"wrote {directory / 'report.md'}: {len(text.splitlines())} lines, "
        f"{len(figures['charts'])} charts"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
