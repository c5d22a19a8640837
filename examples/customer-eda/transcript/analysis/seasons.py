"""When the customers subscribed: years, months and weekdays, each against an even pace."""

import pandas as pd

from evenness import association, spread, trend

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
# Customers per year that a continent needs on average to be part of the test of the mix.
FEW = 5


def months(dates: pd.Series) -> pd.Series:
    """Subscriptions per calendar month from the first to the last, months without any included."""
    periods = dates.dt.to_period("M")
    span = pd.period_range(periods.min(), periods.max(), freq="M")
    return periods.value_counts().reindex(span, fill_value=0)


def whole_months(counts: pd.Series, first: pd.Timestamp, last: pd.Timestamp) -> pd.Series:
    """Only the months that the data covers from their first to their last day."""
    inside = [
        month.start_time >= first and month.end_time.normalize() <= last for month in counts.index
    ]
    return counts[inside]


def years(counts: pd.Series, whole: pd.Series) -> list[dict]:
    """Per year: all customers; and of the months covered in full number, mean and extremes."""
    out = []
    for year, part in counts.groupby(counts.index.year):
        full = whole[whole.index.year == year]
        row = {"year": int(year), "customers": int(part.sum()), "whole_months": len(full)}
        if len(full):
            row |= {
                "per_month": float(full.mean()),
                "lowest": int(full.min()),
                "highest": int(full.max()),
            }
        out.append(row)
    return out


def mix(by_year: pd.DataFrame) -> dict:
    """Whether the continents' shares changed over the years; the smallest are left out."""
    enough = by_year.sum(axis=1) >= FEW * len(by_year.columns)
    return {
        **association(by_year[enough].to_numpy().tolist()),
        "left_out": sorted(by_year.index[~enough]),
    }


def weekdays(dates: pd.Series) -> dict:
    """Subscriptions per weekday beside what the number of such days in the period would give."""
    days = (
        pd.date_range(dates.min(), dates.max())
        .dayofweek.value_counts()
        .reindex(range(7), fill_value=0)
    )
    counts = dates.dt.dayofweek.value_counts().reindex(range(7), fill_value=0)
    covered = days > 0
    test = spread(counts[covered].tolist(), days[covered].tolist())
    expected = days / days.sum() * counts.sum()
    return {
        "rows": [
            {
                "weekday": name,
                "customers": int(counts[at]),
                "share": counts[at] / counts.sum(),
                "expected": float(expected[at]),
            }
            for at, name in enumerate(WEEKDAYS)
        ],
        "test": test,
    }


def figures(table: pd.DataFrame) -> dict:
    """All that the report says about time."""
    dated = table.dropna(subset=["date"])
    if dated.empty:
        raise SystemExit(
            "no Subscription Date can be read as YYYY-MM-DD: nothing to say about time"
        )
    dates = dated["date"]
    first, last = dates.min(), dates.max()
    counts = months(dates)
    whole = whole_months(counts, first, last)
    by_year = pd.crosstab(dated["continent"], dates.dt.year)
    return {
        "first": f"{first:%Y-%m-%d}",
        "last": f"{last:%Y-%m-%d}",
        "days": int((last - first).days) + 1,
        "undated": len(table) - len(dated),
        "months": [
            {"month": str(month), "customers": int(count)} for month, count in counts.items()
        ],
        "whole_months": [str(month) for month in whole.index],
        "mean_month": float(whole.mean()) if len(whole) else None,
        "years": years(counts, whole),
        "highest": {"month": str(counts.idxmax()), "customers": int(counts.max())},
        "lowest": {"month": str(whole.idxmin()), "customers": int(whole.min())}
        if len(whole)
        else None,
        "month_test": spread(whole.tolist(), [month.days_in_month for month in whole.index]),
        "trend": trend(whole.tolist()),
        "weekdays": weekdays(dates),
        "continent_by_year": {
            "years": [int(year) for year in by_year.columns],
            "continents": [str(name) for name in by_year.index],
            "customers": by_year.to_numpy().tolist(),
        },
        "continent_year_test": mix(by_year),
    }
