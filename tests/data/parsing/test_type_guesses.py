"""Files without fields: what all their texts say plainly is a type, everything else stays a text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import Context, create_object_from_file
from aaiclick.data.parsing.type_guesses import SAMPLE_ROWS
from aaiclick.errors import InputError

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return written


TEXTS = [
    *("2024-02-30", "2023-02-29", "2024-13-01", "2024-00-10", "0000-00-00", "1899-12-31", "2300-01-01", "9999-12-31"),
    *("2024-1-2", "2024/01/02", "02/01/2024", "01.02.2024", "2024-01", "Jan 2 2024", "2 January 2024"),
    *("2024-02-30 10:00:00", "2024-01-02 25:00:00", "2024-01-02 23:60:00", "2024-01-02 23:59:60", "2024-01-02 03:04"),
    *("2024-01-02 03:04:05 PM", "2024-01-02 03:04:05 UTC", "2024-01-02 03:04:05 EST", "2024-01-02 03:04:05."),
    *("2024-01-02 03:04:05.1234567891", "1850-01-01 00:00:00", "0000-00-00 00:00:00", "25:00:00", "12:30:00"),
    *("1e3", "1E3", "1e400", "1e-400", "007", "+5", "0x10", "1_000", "1.", "18446744073709551616", "--1"),
    *("-9223372036854775809", "12345678901234567890.5", "0.12345678901234567890", "True", "yes", "NULL", "N/A"),
]


async def test_what_is_not_plainly_another_type_stays_a_text(context: Context, write: Write) -> None:
    lines = ["\t".join(f"c{number}" for number in range(len(TEXTS))), "\t".join(TEXTS)]
    row = {f"c{number}": text for number, text in enumerate(TEXTS)}
    csv = "\n".join(",".join(f'"{text}"' for text in line.split("\t")) for line in lines)
    for name, data in (("t.tsv", "\n".join(lines)), ("t.csv", csv), ("t.jsonl", json.dumps(row))):
        made = await create_object_from_file(write(name, data + "\n"))
        assert set(made.schema.types.values()) == {"Nullable(String)"}
        assert (await made.data("records")) == [row]


TOLD: list[tuple[str, list[str], str, list[Any]]] = [
    ("days", ["2024-02-29", "", "1900-01-01"], "Date32", [date(2024, 2, 29), None, date(1900, 1, 1)]),
    ("times", ["2024-01-02 03:04:05", "2024-01-02T03:04:05.5"], "DateTime64(6)", [5, 5.5]),
    ("fine times", ["2024-01-02 03:04:05", "2024-01-02 03:04:05.000000000"], "DateTime64(6)", [5, 5]),
    ("moments", ["2024-01-02T03:04:05Z", "2024-01-02 08:34:05.500+05:30"], "DateTime64(6, 'UTC')", [5, 5.5]),
    ("whole", ["0", "-1", "9223372036854775807"], "Int64", [0, -1, 2**63 - 1]),
    ("large", ["0", "18446744073709551615"], "UInt64", [0, 2**64 - 1]),
    ("numbers", ["1", "2.50", "1e-05", "1.5e3", ".5"], "Float64", [1.0, 2.5, 1e-05, 1500.0, 0.5]),
    ("no numbers", ["1.5", "inf", "-inf"], "Float64", [1.5, math.inf, -math.inf]),
    ("truths", ["true", "false", "\\N"], "Bool", [True, False, None]),
    ("blanks", [" 5", "6 "], "Int64", [5, 6]),
    ("texts", ["", "a", "\\N"], "String", ["", "a", None]),
    ("nothing", ["\\N", "\\N"], "String", [None, None]),
    ("both", ["2024-01-02 03:04:05", "2024-01-02 03:04:05Z"], "String", []),
    ("days and times", ["2024-01-02", "2024-01-02 03:04:05"], "String", []),
    ("one is not", ["2024-02-29", "2024-02-30"], "String", []),
    ("too large together", ["9223372036854775808", "-1"], "String", []),
    ("digits would be lost", ["9007199254740993", "0.5"], "String", []),
    ("numbers and a text", ["5", "x"], "String", []),
]


@pytest.mark.parametrize(("texts", "kind", "values"), [each[1:] for each in TOLD], ids=[each[0] for each in TOLD])
async def test_what_all_texts_say_is_their_type(
    context: Context, write: Write, texts: list[str], kind: str, values: list[Any]
) -> None:
    path = write("t.csv", "v,n\n" + "".join(f"{text},x\n" for text in texts))
    made = await create_object_from_file(path)
    context.reads_files = False  # as if the engine was elsewhere
    sent = await create_object_from_file(path)
    found = (await made.data())["v"]
    assert made.schema.types == sent.schema.types == {"v": f"Nullable({kind})", "n": "Nullable(String)"}
    assert (await sent.data())["v"] == found
    if kind.startswith("DateTime"):
        zone = UTC if "UTC" in kind else None
        whole = datetime(2024, 1, 2, 3, 4, 5, tzinfo=zone)
        assert found == [whole.replace(microsecond=int(value % 1 * 1_000_000)) for value in values]
    else:
        assert found == (values or texts)


async def test_the_last_row_counts_as_much_as_the_first(context: Context, write: Write) -> None:
    days = ["2024-01-01"] * (SAMPLE_ROWS + 10)
    sparse = [""] * (SAMPLE_ROWS + 10) + ["5"]
    rows = "".join(f"{day},{number},{few}\n" for number, (day, few) in enumerate(zip(days, sparse, strict=False)))
    made = await create_object_from_file(write("t.csv", f"d,n,s\n{rows}2024-02-30,99999999999999999999,5\n"))
    assert list(made.schema.types.values()) == ["Nullable(String)", "Nullable(String)", "Nullable(Int64)"]
    assert (await made.data("records"))[-1] == {"d": "2024-02-30", "n": "99999999999999999999", "s": 5}


async def test_names_may_be_any_and_rows_are_of_one_width(context: Context, write: Write) -> None:
    made = await create_object_from_file(write("t.csv", "c2,c1,row,s\n1,2,3,4\n"))
    assert await made.data("records") == [{"c2": 1, "c1": 2, "row": 3, "s": 4}]
    made = await create_object_from_file(write("t.jsonl", '{"v2": 1, "v1": "a", "row": 3}\n'))
    assert await made.data("records") == [{"v2": 1, "v1": "a", "row": 3}]
    made = await create_object_from_file(write("bare.csv", "1,x\n"), format="CSV")
    assert await made.data("records") == [{"c1": 1, "c2": "x"}]
    made = await create_object_from_file(write("head.csv", "a,b\n"))
    assert (made.schema.types, await made.count()) == ({"a": "Nullable(String)", "b": "Nullable(String)"}, 0)
    with pytest.raises(InputError, match=r"wide\.csv, row 2: it .*too many"):
        await create_object_from_file(write("wide.csv", "a,b\n1,2\n1,2,3\n"))
    with pytest.raises(InputError, match="two columns have this name"):
        await create_object_from_file(write("twice.csv", "a,a\n1,2\n"))


JSON: list[tuple[str, str, str, Any]] = [
    ("a text", '"5"', "Nullable(String)", "5"),
    ("a day", '"2024-02-29"', "Nullable(Date32)", date(2024, 2, 29)),
    ("a whole number", "5", "Nullable(Int64)", 5),
    ("an exponent", "1e3", "Nullable(Float64)", 1000.0),
    ("a truth", "true", "Nullable(Bool)", True),
    ("too many digits", "18446744073709551616", "Nullable(String)", "18446744073709551616"),
    ("too large", "1e400", "Nullable(String)", "1e400"),
    ("a list", "[1, 2]", "Array(Nullable(Int64))", [1, 2]),
    ("texts in a list", '["2024-02-30", "2024-01-01"]', "Array(Nullable(String))", ["2024-02-30", "2024-01-01"]),
]


@pytest.mark.parametrize(("text", "kind", "value"), [each[1:] for each in JSON], ids=[each[0] for each in JSON])
async def test_json_tells_texts_from_numbers(context: Context, write: Write, text: str, kind: str, value: Any) -> None:
    made = await create_object_from_file(write("t.jsonl", f'{{"v": {text}}}\n'))
    assert (made.schema.types, await made.data("records")) == ({"v": kind}, [{"v": value}])
