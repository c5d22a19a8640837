"""Charts of time: months, the calendar, weekdays, and continents over the years."""

import math
from pathlib import Path

import matplotlib.dates as mdates
import pandas as pd
import seaborn as sns
from matplotlib.patches import Patch

import style
from style import BAND, CONTINENT_COLOURS, INK, MAIN, QUIET, SECOND

MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def months(figures: dict, out: Path) -> str:
    """Subscriptions per month with the mean and the band that chance alone would fill."""
    time = figures["seasons"]
    counts = pd.Series(
        [row["customers"] for row in time["months"]],
        index=pd.PeriodIndex([row["month"] for row in time["months"]], freq="M").to_timestamp(),
    )
    figure, axes = style.canvas(9.4, 4.6)
    mean = time["mean_month"]
    if mean:
        half = 2 * math.sqrt(mean)
        axes.axhspan(
            max(0.0, mean - half), mean + half, color=BAND, alpha=0.55, lw=0, label="Mean ± 2 √mean"
        )
        axes.axhline(mean, color=MAIN, lw=1.2, ls=(0, (5, 3)), label=f"Mean {mean:.1f} a month")
    axes.plot(counts.index, counts, color=MAIN, lw=2, marker="o", ms=4.5, label="Subscriptions")
    partial = [
        at
        for at, row in zip(counts.index, time["months"], strict=True)
        if row["month"] not in time["whole_months"]
    ]
    if partial:
        axes.scatter(
            partial,
            counts[partial],
            s=62,
            facecolor="white",
            edgecolor=SECOND,
            linewidths=1.8,
            zorder=4,
            label="Month not covered in full",
        )
    locator = mdates.AutoDateLocator(minticks=3, maxticks=12)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator, show_offset=False))
    axes.set_ylim(0, float(counts.max()) * 1.32)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("New customers")
    axes.legend(frameon=False, ncols=2, loc="upper right", fontsize=9.5)
    style.title(
        figure,
        "New customers per month",
        "Months inside the band differ from the mean by no more than chance would make them.",
    )
    return style.save(figure, out, "04-months.png")


def calendar(figures: dict, out: Path) -> str:
    """A grid of years and months, darker where more customers came."""
    rows = figures["seasons"]["months"]
    grid = pd.DataFrame(
        {
            "year": [int(row["month"][:4]) for row in rows],
            "month": [int(row["month"][5:]) for row in rows],
            "customers": [row["customers"] for row in rows],
        }
    ).pivot(index="year", columns="month", values="customers")
    grid = grid.reindex(columns=range(1, 13))
    figure, axes = style.canvas(9.4, 1.9 + 0.55 * len(grid))
    sns.heatmap(
        grid,
        ax=axes,
        cmap=sns.light_palette(MAIN, as_cmap=True),
        annot=True,
        fmt=".0f",
        linewidths=3,
        cbar=False,
        annot_kws={"fontsize": 10},
    )
    axes.set_xticklabels(MONTH_NAMES, rotation=0)
    axes.set_yticklabels(axes.get_yticklabels(), rotation=0)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    style.title(
        figure, "The calendar", "New customers in each month; blank where the file has no data."
    )
    return style.save(figure, out, "05-calendar.png")


def weekdays(figures: dict, out: Path) -> str:
    """Subscriptions per weekday, with a mark where an even pace would put each."""
    rows = figures["seasons"]["weekdays"]["rows"]
    figure, axes = style.canvas(8.6, 4.4)
    at = range(len(rows))
    axes.bar(at, [row["customers"] for row in rows], width=0.66, color=MAIN)
    axes.scatter(
        at,
        [row["expected"] for row in rows],
        marker="_",
        s=1500,
        color=SECOND,
        linewidths=2.4,
        zorder=3,
    )
    for x, row in zip(at, rows, strict=True):
        look = {"ha": "center", "color": "white", "fontsize": 11, "fontweight": "bold"}
        axes.annotate(f"{row['customers']}", (x, 0), (0, 7), textcoords="offset points", **look)
    axes.set_xticks(at, [row["weekday"] for row in rows])
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("New customers")
    axes.margins(y=0.08)
    style.title(
        figure,
        "New customers by weekday",
        "Orange marks: an even pace over all days of the period.",
    )
    return style.save(figure, out, "06-weekdays.png")


def continent_years(figures: dict, out: Path) -> str:
    """Each year's customers split by continent."""
    table = figures["seasons"]["continent_by_year"]
    frame = pd.DataFrame(table["customers"], index=table["continents"], columns=table["years"])
    frame = frame.loc[frame.sum(axis=1).sort_values(ascending=False).index]
    shares = frame / frame.sum() * 100
    figure, axes = style.canvas(9.4, 2.3 + 0.62 * len(table["years"]))
    left = pd.Series(0.0, index=shares.columns)
    ticks = [str(year) for year in shares.columns]
    for name, row in shares.iterrows():
        axes.barh(
            ticks, row, left=left, color=CONTINENT_COLOURS[name], edgecolor="white", height=0.72
        )
        for at, year in enumerate(shares.columns):
            if row[year] >= 4.5:
                look = {"ha": "center", "va": "center", "color": "white", "fontweight": "bold"}
                axes.text(left[year] + row[year] / 2, at, f"{row[year]:.0f}", fontsize=9.5, **look)
        left = left + row
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.grid(visible=False)
    axes.set_xlabel("Share of the year's new customers, %", color=QUIET)
    axes.tick_params(axis="y", labelsize=11, labelcolor=INK)
    figure.legend(
        handles=[Patch(color=CONTINENT_COLOURS[name], label=name) for name in frame.index],
        frameon=False,
        ncols=len(frame),
        loc="outside lower center",
        fontsize=9,
        columnspacing=1.2,
        handlelength=1.2,
    )
    style.title(
        figure,
        "Continents over the years",
        "Shares of each year's new customers; labels from 4.5% up.",
    )
    return style.save(figure, out, "07-continent-years.png")
