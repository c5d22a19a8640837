"""Where things are in the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "python" / "tests"
EXAMPLE = ROOT / "examples" / "customer-eda"
ANALYSIS = EXAMPLE / "transcript" / "analysis"
