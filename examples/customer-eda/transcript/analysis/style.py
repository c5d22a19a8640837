"""One look for all charts: colours, type, grid, and how a figure is titled and saved."""

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

INK = "#22303C"
QUIET = "#6B7A88"
GRID = "#E3E8EC"
MAIN = "#2A6F97"
SECOND = "#E09F3E"
BAND = "#CFE1EC"

CONTINENT_COLOURS = {
    "Africa": "#E09F3E",
    "Antarctica": "#8FA3B0",
    "Asia": "#C8553D",
    "Europe": "#2A6F97",
    "North America": "#5B8E7D",
    "Oceania": "#7B6BA8",
    "South America": "#A7B84C",
    "Unknown": "#B8BFC5",
}


def use() -> None:
    """Sets the look for everything drawn after it."""
    sns.set_theme(
        style="white",
        rc={
            "axes.edgecolor": GRID,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.labelcolor": QUIET,
            "axes.labelsize": 10,
            "figure.facecolor": "white",
            "font.size": 10,
            "grid.color": GRID,
            "grid.linewidth": 0.8,
            "savefig.dpi": 150,
            "text.color": INK,
            "xtick.color": QUIET,
            "ytick.color": INK,
            "xtick.labelsize": 9.5,
            "ytick.labelsize": 10,
        },
    )


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one set of axes and no frame."""
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    sns.despine(ax=axes, left=True, bottom=True)
    return figure, axes


def plain(text: str) -> str:
    """A value from the data as literal text: a dollar sign would start a formula otherwise."""
    return text.replace("$", r"\$")


def title(figure: Figure, headline: str, detail: str) -> None:
    """A bold headline and a quiet line under it, flush left, above everything drawn."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(detail, int(width * 11.5))
    band = (0.52 + 0.21 * len(lines)) / height
    figure.text(
        0.016, 1 - 0.13 / height, headline, fontsize=14, fontweight="bold", va="top", ha="left"
    )
    figure.text(
        0.016,
        1 - 0.45 / height,
        "\n".join(lines),
        fontsize=10,
        color=QUIET,
        va="top",
        linespacing=1.35,
    )
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0.008, 0.008, 0.984, 1 - band - 0.008))


def save(figure: Figure, out: Path, name: str) -> str:
    """Writes the figure as a PNG and returns the file's name."""
    figure.savefig(out / name, metadata={"Software": None})
    plt.close(figure)
    return name
