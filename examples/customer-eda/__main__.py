"""`python examples/customer-eda` runs the demo."""

import sys

from demo import main

sys.exit(main())
