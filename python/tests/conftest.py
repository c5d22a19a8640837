"""What all tests share."""

from __future__ import annotations

import sys

from paths import EXAMPLE

sys.path[:0] = [str(EXAMPLE)]
