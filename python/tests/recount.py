"""The figures of the report once more, with nothing but csv, collections and arithmetic.

Gives for each section the numbers that its text must hold, in their order.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from statistics import median, variance
from urllib.parse import urlsplit

import pycountry
from pycountry_convert import country_alpha2_to_continent_code

import words

SIGNIFICANT = 0.05


def upper_gamma(a: float, x: float) -> float:
    """The regularized upper incomplete gamma function, by series or by continued fraction."""
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a)) if x > 0 else 0.0
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > abs(total) * 1e-15:
            n += 1
            term *= x / n
            total += term
        return 1 - total * scale
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for n in range(1, 10_000):
        an = -n * (n - a)
        b += 2
        d = 1 / (an * d + b or 1e-300)
        c = b + an / c or 1e-300
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return h * scale


def chi_p(chi2: float, df: int) -> float:
    return upper_gamma(df / 2, chi2 / 2)


class Test:
    """A test's outcome with the numbers it shows in a text."""

    __test__ = False

    def __init__(self, chi2: float, df: int, p: float, usable: bool) -> None:
        self.chi2, self.df, self.p, self.usable = chi2, df, p, usable

    @property
    def telling(self) -> bool:
        return self.usable and self.p < SIGNIFICANT

    def shown(self) -> list[str]:
        return [f"{self.chi2:.1f}", str(self.df), p_shown(self.p)] if self.usable else []


def p_shown(p: float) -> str:
    return "0.001" if p < 0.001 else f"{p:.3f}"


def enough(expected: Sequence[float]) -> bool:
    return min(expected) >= 1 and sum(one < 5 for one in expected) <= 0.2 * len(expected)


def spread(counts: Sequence[int], weights: Sequence[float]) -> Test:
    total = sum(counts)
    expected = [total * weight / sum(weights) for weight in weights]
    chi2 = sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True))
    return Test(chi2, len(counts) - 1, chi_p(chi2, len(counts) - 1), enough(expected))


def association(grid: Sequence[Sequence[int]]) -> Test:
    rows = [sum(row) for row in grid]
    columns = [sum(row[at] for row in grid) for at in range(len(grid[0]))]
    expected = [[r * c / sum(rows) for c in columns] for r in rows]
    chi2 = sum(
        (n - e) ** 2 / e
        for row, line in zip(grid, expected, strict=True)
        for n, e in zip(row, line, strict=True)
    )
    df = (len(rows) - 1) * (len(columns) - 1)
    return Test(chi2, df, chi_p(chi2, df), enough([e for line in expected for e in line]))


def grouped(number: int) -> str:
    return f"{number:,}"


def share(part: float, whole: float) -> str:
    return f"{part / whole * 100:.1f}%"


class Recount:
    """One file, counted."""

    def __init__(self, text: str) -> None:
        self.rows = list(csv.DictReader(io.StringIO(text)))
        self.n = len(self.rows)
        self.columns = list(self.rows[0])
        self.countries = Counter(row["Country"] for row in self.rows)
        self.home = words.countries()
        self.continents = Counter(self.home[row["Country"]] for row in self.rows)
        self.names = Counter(self.home[name] for name in self.countries)
        self.dates = [date.fromisoformat(row["Subscription Date"]) for row in self.rows]
        self.first, self.last = min(self.dates), max(self.dates)
        self.mail = [row["Email"].split("@")[1] for row in self.rows]
        hosts = [urlsplit(row["Website"]).hostname or "" for row in self.rows]
        self.web = [host.removeprefix("www.") for host in hosts]
        self._months()
        self._tests()

    def _months(self) -> None:
        by_month = Counter((day.year, day.month) for day in self.dates)
        self.months: dict[tuple[int, int], int] = {}
        day = self.first.replace(day=1)
        while day <= self.last:
            self.months[day.year, day.month] = by_month[day.year, day.month]
            day = (day + timedelta(days=31)).replace(day=1)
        self.whole = {
            month: n
            for month, n in self.months.items()
            if self.first <= date(*month, 1)
            and date(*month, 1) + timedelta(days=self.days_in(month) - 1) <= self.last
        }

    @staticmethod
    def days_in(month: tuple[int, int]) -> int:
        first = date(*month, 1)
        return ((first + timedelta(days=31)).replace(day=1) - first).days

    def _tests(self) -> None:
        counts = list(self.countries.values())
        self.index = variance(counts) / (self.n / len(counts))
        chi2 = self.index * (len(counts) - 1)
        upper = chi_p(chi2, len(counts) - 1)
        two_sided = min(1.0, 2 * min(upper, 1 - upper))
        self.dispersion = Test(chi2, len(counts) - 1, two_sided, self.n >= len(counts))
        places = list(self.continents)
        self.by_names = spread(
            [self.continents[one] for one in places], [self.names[one] for one in places]
        )
        whole = list(self.whole)
        self.month_test = spread(
            [self.whole[one] for one in whole], [self.days_in(one) for one in whole]
        )
        span = [self.first + timedelta(days=at) for at in range((self.last - self.first).days + 1)]
        self.days = [sum(day.weekday() == at for day in span) for at in range(7)]
        self.week = [sum(day.weekday() == at for day in self.dates) for at in range(7)]
        self.week_test = spread(self.week, self.days)
        years = sorted({day.year for day in self.dates})
        grid = {
            one: [
                sum(
                    self.home[row["Country"]] == one and day.year == year
                    for row, day in zip(self.rows, self.dates, strict=True)
                )
                for year in years
            ]
            for one in sorted(self.continents)
        }
        kept = [line for line in grid.values() if sum(line) >= 5 * len(years)]
        self.mix_test = association(kept)
        values = list(self.whole.values())
        at = [one - (len(values) - 1) / 2 for one in range(len(values))]
        weighted = sum(a * v for a, v in zip(at, values, strict=True))
        squares = sum(a * a for a in at)
        self.slope = weighted / squares
        self.slope_p = math.erfc(abs(weighted) / math.sqrt(sum(values) / len(values) * squares * 2))

    def top(self) -> list[tuple[str, int]]:
        return sorted(self.countries.items(), key=lambda item: (-item[1], item[0]))[:15]

    def endings(self) -> list[tuple[str, int, int]]:
        mail = Counter(one.rpartition(".")[2] for one in self.mail)
        web = Counter(one.rpartition(".")[2] for one in self.web)
        names = sorted(set(mail) | set(web), key=lambda one: (-mail[one] - web[one], "." + one))
        return [(one, mail[one], web[one]) for one in names]

    def same(self) -> int:
        return sum(one == other for one, other in zip(self.mail, self.web, strict=True))

    def summary(self) -> list[str]:
        leaders = sorted(self.continents.items(), key=lambda item: (-item[1], item[0]))[:3]
        mean = sum(self.whole.values()) / len(self.whole)
        tests = [self.dispersion, self.month_test, self.week_test, self.mix_test]
        found = [one for one in tests if one.usable]
        telling = [one for one in found if one.telling]
        (year, _), peak = max(self.months.items(), key=lambda item: item[1])
        _, mail, web = self.endings()[0]
        advice = [str(len(telling)), str(len(found)), str(year), grouped(peak)] if telling else []
        return [
            *[f"{self.n:,}", str(len(self.columns))],
            *[str(len(self.countries)), str(len(self.continents))],
            share(self.top()[0][1], self.n),
            *[share(count, self.n) for _, count in leaders],
            *[f"{mean:,.1f}", f"{self.slope:+.2f}", p_shown(self.slope_p)],
            *[grouped(min(self.week)), grouped(max(self.week)), *self.week_test.shown()],
            *[share(mail, self.n), share(web, self.n)],
            *[grouped(len(set(self.mail))), share(self.same(), self.n)],
            *advice,
        ]

    def structure(self) -> list[str]:
        table = [["0", f"{len({row[one] for row in self.rows}):,}"] for one in self.columns]
        ids = len({row["Customer Id"] for row in self.rows})
        head = [f"{self.n:,}", str(len(self.columns)), f"{ids:,}"]
        return head + [cell for line in table for cell in line]

    def geography(self) -> list[str]:
        ranked = sorted(self.continents.items(), key=lambda item: (-item[1], item[0]))
        by_library = sum(map(known_to_library, self.countries))
        top = self.top()
        last = top[-1][1]
        tied = sum(count == last for count in self.countries.values())
        tied -= sum(count == last for _, count in top)
        sizes = self.countries.values()
        return [
            *[
                cell
                for one, count in ranked
                for cell in (grouped(self.names[one]), grouped(count), share(count, self.n))
            ],
            *self.by_names.shown(),
            *[str(by_library), str(len(self.countries) - by_library)],
            *[str(len(sizes)), f"{self.n / len(sizes):,.2f}", f"{median(sizes):g}"],
            *[str(len(top)), share(sum(count for _, count in top), self.n)],
            *([grouped(tied), grouped(last)] if tied else []),
            *[
                cell
                for at, (_, count) in enumerate(top, 1)
                for cell in (str(at), grouped(count), share(count, self.n))
            ],
            *[f"{self.index:.2f}", "1", *self.dispersion.shown()],
        ]

    def time(self) -> list[str]:
        years: list[str] = []
        for year in sorted({day.year for day in self.dates}):
            full = [n for (one, _), n in self.whole.items() if one == year]
            count = sum(day.year == year for day in self.dates)
            years += [str(year), f"{count:,}", str(len(full))]
            years += [f"{sum(full) / len(full):,.1f}", grouped(min(full)), grouped(max(full))]
        (high_year, _), high = max(self.months.items(), key=lambda item: item[1])
        (low_year, _), low = min(self.whole.items(), key=lambda item: item[1])
        even = [self.n * days / sum(self.days) for days in self.days]
        return [
            *[str(self.first), str(self.last), grouped((self.last - self.first).days + 1)],
            *years,
            *[str(high_year), grouped(high), str(low_year), grouped(low)],
            *self.month_test.shown(),
            *[f"{self.slope:+.2f}", p_shown(self.slope_p)],
            *[
                cell
                for count, expected in zip(self.week, even, strict=True)
                for cell in (grouped(count), share(count, self.n), f"{expected:,.1f}")
            ],
            *self.week_test.shown(),
            *self.mix_test.shown(),
        ]

    def domains(self) -> list[str]:
        rows = self.endings()
        pairs = Counter(
            (one.rpartition(".")[2], other.rpartition(".")[2])
            for one, other in zip(self.mail, self.web, strict=True)
        )
        mails = sorted({one for one, _ in pairs})
        webs = sorted({other for _, other in pairs})
        alike = association([[mail for _, mail, _ in rows], [web for _, _, web in rows]])
        together = association([[pairs[one, other] for other in webs] for one in mails])
        companies = Counter(row["Company"] for row in self.rows)
        secure = sum(row["Website"].startswith("https://") for row in self.rows)
        full = {(row["First Name"], row["Last Name"]) for row in self.rows}
        return [
            *[
                cell
                for _, mail, web in rows
                for cell in (grouped(mail), share(mail, self.n), grouped(web), share(web, self.n))
            ],
            *alike.shown(),
            *together.shown(),
            *[f"{len(set(self.mail)):,}", f"{self.n:,}", f"{len(set(self.web)):,}", f"{self.n:,}"],
            *[f"{self.same():,}", f"{self.n:,}", f"{len(set(self.mail) & set(self.web)):,}"],
            *most_repeated(Counter(self.mail)),
            *[f"{len(companies):,}", f"{self.n:,}", f"{len(full):,}"],
            f"{len({row['First Name'] for row in self.rows}):,}",
            f"{len({row['Last Name'] for row in self.rows}):,}",
            *[f"{self.n:,}", f"{len({row['City'] for row in self.rows}):,}"],
            share(secure, self.n),
            *most_repeated(companies),
        ]

    def method(self) -> list[str]:
        covered = list(self.whole)
        return ["0.05", "1", "5", str(covered[0][0]), str(covered[-1][0])]

    def sections(self) -> dict[str, list[str]]:
        """The numbers of each numbered section, in their order."""
        return {
            "1. Summary": self.summary(),
            "2. Structure and integrity": self.structure(),
            "3. Geography": self.geography(),
            "4. Time": self.time(),
            "5. Domains, companies and people": self.domains(),
            "6. How to read this report": self.method(),
        }


def most_repeated(counts: Counter[str]) -> list[str]:
    repeated = sorted((n for n in counts.values() if n > 1), reverse=True)
    return [str(n) for n in repeated[:5]]


def known_to_library(name: str) -> bool:
    try:
        country_alpha2_to_continent_code(pycountry.countries.lookup(name).alpha_2)
    except (LookupError, KeyError):
        return False
    return True
