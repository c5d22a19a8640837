"""Reads the file, computes every figure of the report and draws its charts.

Usage: python main.py CSV DIRECTORY
"""

import json
import sys
from pathlib import Path

import domains
import geography
import seasons
from charts import draw_all
from load import features, integrity, read
from places import locate


def main(source: Path, out: Path) -> None:
    """Writes figures.json and the charts into `out` and says what came of it."""
    out.mkdir(parents=True, exist_ok=True)
    raw = read(source)
    table, places = locate(features(raw))
    figures = {
        "source": source.name,
        "integrity": integrity(raw),
        "geography": geography.figures(table, places),
        "seasons": seasons.figures(table),
        "domains": domains.figures(table),
    }
    figures["charts"] = draw_all(figures, out)
    (out / "figures.json").write_text(
        json.dumps(figures, indent=1, ensure_ascii=False), encoding="utf-8"
    )
    place, time, net = figures["geography"], figures["seasons"], figures["domains"]
    print(f"rows: {figures['integrity']['rows']}, columns: {figures['integrity']['columns']}")
    print(f"countries: {place['countries']} on {place['continents_known']} continents")
    print(f"period: {time['first']} to {time['last']}")
    print(f"e-mail domains: {net['email_domains']}, equal to the website's: {net['same_domain']}")
    if place["unresolved"]:
        print(f"no continent known for: {', '.join(place['unresolved'])}")
    print(f"charts: {', '.join(figures['charts'])}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
