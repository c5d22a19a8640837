"""How numbers and verdicts are put into words, the same way all over the report."""

import re
from collections.abc import Sequence

SIGNIFICANT = 0.05


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{share * 100:.1f}%"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 country`, `1,200 countries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listing(names: Sequence[str]) -> str:
    """Names joined as in a sentence: `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def probability(p: float) -> str:
    """A p-value, never as a bare zero."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def chi_square(test: dict) -> str:
    """The result of a chi-square test in brackets' form."""
    return f"χ² = {test['chi2']:.1f}, {test['df']} df, {probability(test['p'])}"


def significant(test: dict) -> bool:
    """Whether a usable test speaks against chance."""
    return bool(test["usable"]) and test["p"] < SIGNIFICANT


def verdict(test: dict, differs: str, even: str, thin: str) -> str:
    """The sentence that a test's outcome calls for, with its result; `thin` for too few data."""
    if not test["usable"]:
        return thin
    return f"{differs if significant(test) else even} ({chi_square(test)})."


def cell(text: object) -> str:
    """A value as it stands in a Markdown table: numbers grouped, texts made safe."""
    if isinstance(text, int):
        return f"{text:,}"
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def numeric(text: str) -> bool:
    """Whether a cell reads as a number or a share, or is empty."""
    return bool(re.fullmatch(r"([-+]?[\d,]+(\.\d+)?%?)?", text))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table: columns of numbers flush right, all others flush left."""
    cells = [[cell(value) for value in row] for row in rows]
    rule = ["---:" if all(map(numeric, column)) else ":---" for column in zip(*cells, strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *cells])


def month_name(month: str) -> str:
    """`2020-04` as `April 2020`."""
    names = [
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    ]  # fmt: skip
    return f"{names[int(month[5:7]) - 1]} {month[:4]}"
