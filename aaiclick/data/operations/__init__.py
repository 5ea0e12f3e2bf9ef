"""What can be done to values: one table, from the Python name to ClickHouse's words.

`{0}`, `{1}` … are the arguments. `//`, `%` and rounding are Python's, where ClickHouse's differ. The rest is
ClickHouse's: what is computed with None is None; `/` by zero gives infinity or NaN, of decimals it is refused; `//` and
`%` by zero are refused. `//` gives whole numbers, `**` floats. Whole numbers and decimals beyond the range of the type
of the answer are refused (`arithmetic`), where the types are known.
"""

from aaiclick.data.operations.functions import FUNCTIONS, SUBJECTS
from aaiclick.data.operations.operation import ALL_ROWS, SO_FAR, Applied, Body, Operation
from aaiclick.data.operations.row_functions.elements import NESTED
from aaiclick.data.operations.signs import OPERATORS
from aaiclick.data.operations.totals import AGGREGATES
from aaiclick.data.operations.windows import WINDOWS

__all__ = [
    "AGGREGATES",
    "ALL_ROWS",
    "FUNCTIONS",
    "NESTED",
    "OPERATORS",
    "SO_FAR",
    "SUBJECTS",
    "WINDOWS",
    "Applied",
    "Body",
    "Operation",
]
