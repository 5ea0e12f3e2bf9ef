"""Types of Python columns; most of it is seen in test_values.py, here are the corners."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aaiclick.data.typing.arrow_columns import build
from aaiclick.data.typing.inference import Unfit, kind_of, outer, plain


class Text(str):
    def __str__(self) -> str:
        return "a lie"


class Moment(datetime):
    pass


class Day(date):
    pass


class Id(UUID):
    pass


class Money(Decimal):
    pass


RICH: list[tuple[Any, Any]] = [
    (Text("true"), "true"),
    (Moment(2024, 10, 27, 2, 30, fold=1, tzinfo=UTC), datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=UTC)),
    (Day(2024, 1, 1), date(2024, 1, 1)),
    (Id(int=5), UUID(int=5)),
    (Money("1.5"), Decimal("1.5")),
    (memoryview(b"x"), b"x"),
    (range(2), [0, 1]),
    (pa.scalar(5), 5),
]


@pytest.mark.parametrize(("rich", "simple"), RICH, ids=lambda part: type(part).__name__)
def test_a_richer_value_becomes_a_plain_one(rich: object, simple: object) -> None:
    column, kinds = plain([rich, None])
    assert column == [simple, None]
    assert kinds == {type(simple), type(None)}


def test_a_plain_column_is_not_copied() -> None:
    column = [1, None, "x"]
    assert plain(column)[0] is column


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
        st.binary(),
        st.dates(),
        st.datetimes(timezones=st.one_of(st.none(), st.timezones())),
        st.decimals(),
        st.uuids(),
        st.ip_addresses(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=5,
)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, Mapping) and isinstance(right, Mapping):  # a record; what a row lacks is None
        return set(right) <= set(left) and all(same(left[name], right.get(name)) for name in left)
    if isinstance(right, Mapping):  # a map
        return same([list(pair) for pair in left], [list(pair) for pair in right.items()])
    if isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(right, datetime):  # where clocks are changed, Python compares their hands and not the moments
        return bool(left.astimezone(UTC) == right.astimezone(UTC))
    return bool(left == right) or (left != left and right != right)


@given(st.lists(VALUES, min_size=1, max_size=4))
@example([{"0": False, "00": 0}])
@example([{"a": False, "b": 0}, {"b": 1}])
def test_any_column_is_kept_or_refused(column: list[Any]) -> None:
    try:
        kind = kind_of(column)
        built = build(column, kind).to_pylist()
    except Unfit as unfit:
        found = unfit.row
        assert found in range(len(column))
        return
    if all(word not in str(kind) for word in ("UUID", "IPv", "256")):  # these travel in another form
        assert same(built, column)


def test_the_row_of_an_inner_value_is_that_of_its_list() -> None:
    offsets = [0, 2, 2, 2, 5]
    assert [outer(Unfit(at, None, ""), offsets).row for at in range(5)] == [0, 0, 3, 3, 3]
