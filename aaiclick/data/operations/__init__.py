"""The table of operations on values: from the Python name to ClickHouse's SQL.

`{0}`, `{1}` … stand for the arguments. `//`, `%` and rounding follow Python where ClickHouse differs. Otherwise
ClickHouse's rules apply: an operation on None gives None; `/` by zero gives infinity or NaN, for decimals an error;
`//` and `%` by zero are errors. `//` gives whole numbers, `**` floats. Where the types are known, integers and decimals
beyond the range of the result's type are refused (`arithmetic`).
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
