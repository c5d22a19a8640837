"""The charts of the report. Each takes the figures, draws one picture and returns its file name."""

from pathlib import Path

import chart_places
import chart_seasons
import style
from style import MAIN, SECOND


def endings(figures: dict, out: Path) -> str:
    """Top-level domains of e-mail addresses and websites, side by side."""
    rows = figures["domains"]["endings"][:10]
    figure, axes = style.canvas(8.6, 4.6)
    width = 0.38
    for shift, side, label, colour in (
        (-0.5, "email", "E-mail addresses", MAIN),
        (0.5, "website", "Websites", SECOND),
    ):
        at = [index + shift * width for index in range(len(rows))]
        shares = [row[f"{side}_share"] * 100 for row in rows]
        axes.bar(at, shares, width * 0.94, color=colour, label=label)
        for x, share in zip(at, shares, strict=True):
            axes.text(x, share + 0.8, f"{share:.1f}", ha="center", va="bottom", fontsize=9)
    axes.set_xticks(range(len(rows)), [style.plain(row["tld"]) for row in rows], fontsize=11)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("Share of customers, %")
    axes.margins(y=0.12)
    axes.legend(frameon=False, loc="upper right")
    style.title(
        figure,
        "Top-level domains",
        "Share of the customers' e-mail addresses and websites that end so.",
    )
    return style.save(figure, out, "08-top-level-domains.png")


def draw_all(figures: dict, out: Path) -> list[str]:
    """Draws every chart and returns the file names in the order of the report."""
    style.use()
    return [
        chart_places.continents(figures, out),
        chart_places.top_countries(figures, out),
        chart_places.per_country(figures, out),
        chart_seasons.months(figures, out),
        chart_seasons.calendar(figures, out),
        chart_seasons.weekdays(figures, out),
        chart_seasons.continent_years(figures, out),
        endings(figures, out),
    ]
