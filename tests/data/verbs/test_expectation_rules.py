"""What can be expected of rows, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from math import nan

import pytest

from aaiclick.data import Context
from aaiclick.errors import InputError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "name at least one of unique"),
        ({"unique": []}, "a column's name"),
        ({"unique": "x"}, "the columns are"),
        ({"unique": "list"}, "in which equal numbers may be written differently"),
        ({"references": {"price": None}}, "it must be the column of another Object"),
        ({"between": {"price": (2, 1)}}, "the first limit is above the second"),
        ({"between": {"price": (None, None)}}, "two limits"),
        ({"between": {"price": (nan, 1)}}, "NaN cannot be a limit"),
        ({"between": {"price": ("a", 1)}}, "both limits must be of one kind"),
        ({"between": "price"}, "a dict"),
        ({"matches": {"city": 1}}, "it must be a regular expression"),
        ({"rows": -1}, "whole numbers"),
        ({"rows": (0.5, 1)}, "whole numbers"),
        ({"fresh_within": {"at": 5}}, "a timedelta"),
        ({"fresh_within": {"city": timedelta(1)}}, "only times with a zone"),
        ({"not_null": "id", "on_fail": "ignore"}, "it must be fail or warn"),
    ],
)
async def test_what_cannot_be_meant_is_refused(context: Context, given: dict[str, object], said: str) -> None:
    made = await context.create_object({"id": "Int64", "price": "Float64", "city": "String", "list": "Array(Float64)"})
    with pytest.raises(InputError, match=said):
        await made.expect(**given)  # type: ignore[arg-type]
