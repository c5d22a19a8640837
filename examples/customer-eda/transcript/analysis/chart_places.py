"""Charts of places: continents, the largest countries, and countries by size."""

import math
from pathlib import Path

from matplotlib.patches import Patch

import style
from style import CONTINENT_COLOURS, INK, MAIN, SECOND


def continents(figures: dict, out: Path) -> str:
    """Customers per continent, with a mark where the number of country names would put it."""
    place = figures["geography"]
    rows = place["continents"][::-1]
    total = sum(row["customers"] for row in rows)
    names = sum(row["countries"] for row in rows)
    figure, axes = style.canvas(8.6, 4.8)
    axes.barh(
        [row["continent"] for row in rows],
        [row["customers"] for row in rows],
        color=[CONTINENT_COLOURS[row["continent"]] for row in rows],
        height=0.66,
    )
    even = [total * row["countries"] / max(1, names) for row in rows]
    axes.scatter(even, range(len(rows)), marker="|", s=420, color=INK, linewidths=1.6, zorder=3)
    edge = max(max(row["customers"] for row in rows), max(even))
    for at, row in enumerate(rows):
        # Right of the bar, or right of the mark where the mark would strike the text through.
        struck = row["customers"] < even[at] < row["customers"] + edge * 0.2
        right = (even[at] if struck else row["customers"]) + edge * 0.02
        axes.text(right, at, f"{row['customers']}  ({row['share']:.1%})", va="center", fontsize=10)
    axes.set_xlim(0, edge * 1.17)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("Customers")
    style.title(
        figure,
        "Customers by continent",
        "Black marks: the number if every country name in the file had the same number of "
        "customers.",
    )
    return style.save(figure, out, "01-continents.png")


def top_countries(figures: dict, out: Path) -> str:
    """The largest countries, coloured by continent."""
    top = figures["geography"]["top"]
    rows = top["rows"][::-1]
    colours = [CONTINENT_COLOURS[row["continent"]] for row in rows]
    figure, axes = style.canvas(8.6, 6.0)
    names = [
        row["country"] if len(row["country"]) <= 34 else row["country"][:33] + "…" for row in rows
    ]
    axes.barh(range(len(rows)), [row["customers"] for row in rows], color=colours, height=0.7)
    axes.set_yticks(range(len(rows)), [style.plain(name) for name in names])
    edge = max(row["customers"] for row in rows)
    for at, row in enumerate(rows):
        axes.text(
            row["customers"] + edge * 0.012, at, f"{row['customers']}", va="center", fontsize=10
        )
    axes.set_xlim(0, edge * 1.08)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("Customers")
    shown = sorted({row["continent"] for row in rows})
    axes.legend(
        handles=[Patch(color=CONTINENT_COLOURS[name], label=name) for name in shown],
        frameon=False,
        loc="lower right",
        fontsize=9.5,
    )
    detail = f"Together {top['share_together']:.1%} of all customers."
    if top["tied_below"]:
        plural = "country ties" if top["tied_below"] == 1 else "countries tie"
        detail += (
            f" {top['tied_below']} more {plural} with the last one shown, at {top['last_count']} "
            "each."
        )
    style.title(figure, f"The {len(rows)} countries with most customers", detail)
    return style.save(figure, out, "02-top-countries.png")


def per_country(figures: dict, out: Path) -> str:
    """How many countries have one customer, two, and so on, beside what chance would give."""
    place = figures["geography"]
    rows, mean = place["per_country"], place["mean_per_country"]
    sizes = [row["customers"] for row in rows]
    chance = [
        place["countries"] * math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1))
        for k in sizes
    ]
    figure, axes = style.canvas(8.6, 4.6)
    few = len(rows) <= 30
    axes.bar(
        sizes,
        [row["countries"] for row in rows],
        color=MAIN,
        width=0.78,
        label="Countries in the file",
    )
    axes.plot(
        sizes,
        chance,
        color=SECOND,
        marker="o" if few else None,
        lw=2,
        label="If customers fell at random",
    )
    if few:
        axes.set_xticks(sizes)
        edge = max(max(row["countries"] for row in rows), max(chance))
        for row, line in zip(rows, chance, strict=True):
            inside = row["countries"] > edge * 0.12
            axes.annotate(
                f"{row['countries']}",
                (row["customers"], 0 if inside else max(row["countries"], line)),
                (0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=9.5,
                color="white" if inside else INK,
            )
        axes.margins(y=0.1)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("Customers of a country")
    axes.set_ylabel("Number of countries")
    axes.legend(frameon=False, loc="upper right")
    style.title(
        figure,
        "Countries by number of customers",
        f"{place['countries']} countries, {mean:.2f} customers each on average, "
        f"{place['largest']} at most.",
    )
    return style.save(figure, out, "03-customers-per-country.png")
