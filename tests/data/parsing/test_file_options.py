"""How a file is written: what can be said, and what it does."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, create_object_from_file
from aaiclick.errors import InputError
from tests.data.files.test_loading import records, write

__all__ = ["write"]


async def test_options_are_checked(context: Context, write: Any) -> None:
    path = write("x.csv", b'a,b\n1,"1.234,5"\n')
    for options, rule in (
        ({"delimeter": ";"}, "delimiter"),
        ({"delimiter": ";;"}, "one character"),
        ({"encoding": "utf-16"}, "one of"),
        ({"encoding": []}, "one of"),
        ({"header": 1}, "True or False"),
        ({"date_format": "%Q"}, "form"),
        ({"skip_rows": -1}, "number of lines"),
        ({"null": "a\0"}, "a text"),
    ):
        with pytest.raises(InputError, match=rule):
            await create_object_from_file(path, fields={"a": "Int8"}, options=options)
    with pytest.raises(InputError, match="refuse, null, skip, collect"):
        await create_object_from_file(path, fields={"a": "Int8"}, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fields"):
        await create_object_from_file(path, on_error="skip")
    with pytest.raises(InputError, match="cannot be read from texts"):
        await create_object_from_file(path, fields={"a": "Array(Int8)"})


async def test_dates_and_numbers_as_others_write_them(context: Context, write: Any) -> None:
    path = write("x.csv", b"d;n;p\n31.12.2024;1,5;2,50\n30.02.2024;1.5;1\n1.1.2024;1;1\n")
    options = {"delimiter": ";", "decimal": ",", "date_format": "%d.%m.%Y"}
    fields = {"d": "Date", "n": "Float64", "p": "Decimal(9, 2)"}
    made = await create_object_from_file(path, fields=fields, options=options, on_error="collect")
    assert await records(made) == [{"d": date(2024, 12, 31), "n": 1.5, "p": Decimal("2.5")}]
    assert [each["value"] for each in await records(made.rejected)] == ["30.02.2024", "1.1.2024"]
