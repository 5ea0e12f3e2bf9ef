"""Methods of a column, row by row: its values are the first argument. One table, from all subjects."""

from __future__ import annotations

from aaiclick.data.operations.operation import Operation
from aaiclick.data.operations.row_functions.choices import CHOICES
from aaiclick.data.operations.row_functions.elements import ELEMENTS
from aaiclick.data.operations.row_functions.geography import GEOGRAPHY
from aaiclick.data.operations.row_functions.lists import LISTS
from aaiclick.data.operations.row_functions.numbers import NUMBERS
from aaiclick.data.operations.row_functions.patterns import PATTERNS
from aaiclick.data.operations.row_functions.records import RECORDS
from aaiclick.data.operations.row_functions.texts import TEXTS
from aaiclick.data.operations.row_functions.times import TIMES

SUBJECTS: dict[str, dict[str, Operation]] = {
    "Numbers": NUMBERS,
    "Texts": TEXTS,
    "Patterns": PATTERNS,
    "Days and times": TIMES,
    "Lists, and places in lists, texts, maps and records": LISTS,
    "Elements of lists": ELEMENTS,
    "Maps, and texts in JSON": RECORDS,
    "None and choices": CHOICES,
    "Places on the globe": GEOGRAPHY,
}
"""The chapters of the page of functions."""

FUNCTIONS = {name: operation for table in SUBJECTS.values() for name, operation in table.items()}
"""Methods of a column: its values are the first argument."""
