"""Every figure of the report, against a count of our own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import generate
from paths import ANALYSIS
from recount import Recount, chi_p

NUMBER = re.compile(r"\d{4}-\d{2}-\d{2}|[-+]?\d[\d,]*(?:\.\d+)?%?")


def numbers_by_section(report: str) -> dict[str, list[str]]:
    """All numbers of each section, in order; file names, captions and code are no figures."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in report.splitlines():
        if line.startswith("## "):
            heading = line[3:]
            found[heading] = []
        elif heading and not line.startswith(("![", "*Chart", "#")):
            plain = re.sub(r"`[^`]*`", "", re.sub(r"^\d+\. ", "", line))
            found[heading] += [one.rstrip(",") for one in NUMBER.findall(plain)]
    return found


def check(report: str, csv_text: str) -> None:
    expected = Recount(csv_text).sections()
    found = numbers_by_section(report)
    assert list(found) == list(expected)
    for heading, numbers in expected.items():
        assert found[heading] == numbers, heading


def analysed(text: str, directory: Path) -> str:
    """The report that the analysis writes about a file."""
    source, out = directory / "customers-1000.csv", directory / "out"
    source.write_text(text)
    for command in ([ANALYSIS / "main.py", source, out], [ANALYSIS / "report.py", out]):
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
    return (out / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("rows", "seed"), [(1000, 2024), (1000, 7), (3000, 3)])
def test_every_figure_of_the_report_is_right(rows: int, seed: int, tmp_path: Path) -> None:
    text = generate.customers(rows, seed)
    report = analysed(text, tmp_path)
    check(report, text)
    assert len(set(re.findall(r"\((\d\d-[a-z-]+\.png)\)", report))) == 8


def test_a_wrong_figure_would_be_noticed(tmp_path: Path) -> None:
    text = generate.customers(300, 5)
    report = analysed(text, tmp_path)
    check(report, text)
    lines = report.splitlines()
    for at, line in enumerate(lines):
        figures = [
            one
            for one in NUMBER.finditer(line)
            if at > 4 and one.start() and line[: one.start()].count("`") % 2 == 0
        ]
        if not figures or line.startswith(("![", "*Chart", "#")):
            continue
        wrong = f"{line[: figures[-1].start()]}77777{line[figures[-1].end() :]}"
        with pytest.raises(AssertionError):
            check("\n".join([*lines[:at], wrong, *lines[at + 1 :]]), text)


@pytest.mark.parametrize(
    ("chi2", "df", "p"),
    [
        (3.841, 1, 0.05),
        (11.07, 5, 0.05),
        (18.307, 10, 0.05),
        (124.342, 100, 0.05),
        (1.0, 3, 0.8013),
    ],
)
def test_our_own_chi_square_agrees_with_printed_tables(chi2: float, df: int, p: float) -> None:
    assert chi_p(chi2, df) == pytest.approx(p, abs=1e-4)


def test_the_generator_is_a_function_of_its_seed() -> None:
    assert generate.customers(50, 1) == generate.customers(50, 1)
    assert generate.customers(50, 1) != generate.customers(50, 2)
    lines = generate.customers(50, 1).splitlines()
    assert lines[0].split(",") == generate.COLUMNS
    assert len(lines) == 51
