"""A module whose import ends the process that imports it."""

import sys

sys.exit(3)
