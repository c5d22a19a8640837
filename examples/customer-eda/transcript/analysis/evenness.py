"""Tests of one question: could these counts have come from chance alone?"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats


def enough(expected: np.ndarray) -> bool:
    """Cochran's rule: the chi-square law holds if no cell expects under 1 and few under 5."""
    return bool(expected.min() >= 1.0 and (expected < 5.0).mean() <= 0.2)


def spread(observed: Sequence[float], weights: Sequence[float] | None = None) -> dict:
    """Chi-square test of counts against shares (equal ones without `weights`)."""
    counts = np.asarray(observed, dtype=float)
    shares = np.ones_like(counts) if weights is None else np.asarray(weights, dtype=float)
    if len(counts) < 2 or counts.sum() == 0:
        return {"usable": False}
    expected = shares / shares.sum() * counts.sum()
    result = stats.chisquare(counts, expected)
    return {
        "usable": enough(expected),
        "chi2": float(result.statistic),
        "df": len(counts) - 1,
        "p": float(result.pvalue),
        "expected": [float(value) for value in expected],
    }


def dispersion(counts: Sequence[float]) -> dict:
    """Variance over mean of counts: 1 when customers fall on places at random with equal chance.

    The statistic (n - 1) * variance / mean follows a chi-square law under that assumption, also
    where single expected counts are small, so it serves where `spread` does not.
    """
    values = np.asarray(counts, dtype=float)
    if len(values) < 2 or values.mean() == 0:
        return {"usable": False}
    index = float(values.var(ddof=1) / values.mean())
    chi2 = index * (len(values) - 1)
    upper = float(stats.chi2.sf(chi2, len(values) - 1))
    return {
        "usable": bool(values.mean() >= 1.0),
        "index": index,
        "chi2": chi2,
        "df": len(values) - 1,
        "p": min(1.0, 2 * min(upper, 1 - upper)),
    }


def association(table: Sequence[Sequence[float]]) -> dict:
    """Chi-square test of independence with Cramér's V; empty rows and columns do not count."""
    grid = np.asarray(table, dtype=float)
    grid = grid[grid.sum(axis=1) > 0][:, grid.sum(axis=0) > 0] if grid.size else grid
    if grid.ndim != 2 or min(grid.shape) < 2:
        return {"usable": False}
    result = stats.chi2_contingency(grid, correction=False)
    return {
        "usable": enough(result.expected_freq),
        "chi2": float(result.statistic),
        "df": int(result.dof),
        "p": float(result.pvalue),
        "cramers_v": math.sqrt(result.statistic / (grid.sum() * (min(grid.shape) - 1))),
    }


def trend(counts: Sequence[float]) -> dict:
    """Linear trend of counts in equal periods: slope per period, tested under a Poisson law."""
    values = np.asarray(counts, dtype=float)
    if len(values) < 4 or values.sum() == 0:
        return {"usable": False}
    at = np.arange(len(values)) - (len(values) - 1) / 2
    weighted = float((at * values).sum())
    z = weighted / math.sqrt(values.mean() * float((at**2).sum()))
    return {
        "usable": True,
        "slope": weighted / float((at**2).sum()),
        "z": z,
        "p": math.erfc(abs(z) / math.sqrt(2)),
    }
