"""The table of functions: methods of a column that are computed row by row, collected from all subjects."""

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
"""The functions by subject; the keys are the chapters of the reference page."""

FUNCTIONS = {name: operation for table in SUBJECTS.values() for name, operation in table.items()}
"""All functions by name. The values of the column are the first argument."""
