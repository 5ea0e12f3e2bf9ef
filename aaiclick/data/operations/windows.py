"""Each row's own value, from the rows around it; see `over`."""

from __future__ import annotations

from aaiclick.data import arithmetic
from aaiclick.data.kinds import found
from aaiclick.data.operations.operation import ALL_ROWS, FIRST, window
from aaiclick.data.sameness.nans import poisoned

_LAG, _LEAD = (f"{name}InFrame(toNullable({{0}}){{args}})" for name in ("lag", "lead"))

WINDOWS = {
    "row_number": window("row_number()", 0, 0, frame=""),
    "rank": window("rank()", 0, 0, frame=""),
    "lag": window(_LAG, 1, 3, alike=FIRST, typed=found(_LAG)),
    "lead": window(_LEAD, 1, 3, alike=FIRST, frame=ALL_ROWS, typed=found(_LEAD)),
    "cumsum": window("sum({0})", typed=arithmetic.total_so_far),
    "cummean": window("avg({0})", typed=arithmetic.mean),
    "cummin": window("min({0})", alike=FIRST, typed=poisoned("min({0})")),
    "cummax": window("max({0})", alike=FIRST, typed=poisoned("max({0})")),
}
"""Each row's own value, from the rows around it; see `over`. Where `lag` and `lead` find no row, there is None."""
