"""Print the manual's page of column functions, from the table of operations.

Write the page anew with: python -m aaiclick.data.function_page > docs/reference/functions.md
"""

from __future__ import annotations

import inspect
import sys

from aaiclick.data.operations import SUBJECTS, Operation

_HEAD = """# Functions of columns

Generated from the table of operations by `python -m aaiclick.data.function_page`; every example is run by a test. Each
function is a method of
a column, `col("a")` in a term or `obj["a"]`, and is computed row by row. Where values are given without a name, the
call is a method of their column:
`(await create_object_from_value(["été"])).upper()`; where a table is given, the call is a term, as in
`obj.select(x=col("a").get(0))`.

- The result for None is None, unless the function is about None. Lists and maps cannot be None: for None,
  functions that make lists return an empty list.
- A value that a function cannot handle is refused with a reason; no value is changed silently.
- Lengths and places count characters, as in Python; places begin with 0, and are counted from the end if they
  are negative.
- Where the types of the columns are known, types are checked before a query runs: a list function on a number is
  refused at once.
- `+` concatenates texts and lists; a text and a number are refused, `join_with` accepts both.
- A span of time is its number of seconds, a Decimal with six digits after the point: what the difference of two times
  or days gives, and what a `timedelta` is in a query.
  `t + timedelta(days=1)` is 24 hours later, also where clocks are changed; `add_days(1)` is the next day at the same
time of the clock.
- A number added to a time means seconds, added to a day it means days. A day is moved by whole days only.
- `when(condition).then(value).otherwise(other)`, from `aaiclick.data`, has any number of cases.
- `parse(type)` reads texts as files are read, and gives None where a text is not such a value; `cast(type)` refuses it.
- Regular expressions are those of [RE2](https://github.com/google/re2/wiki/Syntax); here `.` stands for the end of a
  line too.
"""


def _row(name: str, operation: Operation) -> str:
    told = operation.told
    assert told is not None, f"describe {name} in its table"
    cells = (
        _code(f"{name}{_parameters(operation)}"),
        told.what,
        _code(told.given),
        _code(told.call),
        _code(told.gives),
    )
    return f"| {' | '.join(cells)} |"


def _parameters(operation: Operation) -> str:
    """Return the parameters in parentheses; an empty text if they have no names."""
    if operation.make is None:
        return ""
    given = inspect.signature(operation.make).parameters.values()
    return f"({', '.join(str(each.replace(annotation=each.empty)) for each in given)})"


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`"


def functions_markdown() -> str:
    lines = [_HEAD]
    for subject, table in SUBJECTS.items():
        lines += [f"## {subject}", "", "| function | what | of | call | gives |", "|---|---|---|---|---|"]
        lines += [*(_row(name, operation) for name, operation in table.items()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(functions_markdown())
