"""What all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "customer-eda"
ANALYSIS = EXAMPLE / "transcript" / "analysis"

sys.path[:0] = [str(EXAMPLE)]
