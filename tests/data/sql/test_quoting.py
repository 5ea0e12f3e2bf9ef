"""Names and values in a statement mean to ClickHouse what they mean in Python."""

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import clickhouse_connect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aaiclick.data.sql import quoting
from aaiclick.errors import InputError


class Engine:
    def __init__(self, client: Any) -> None:
        self.client = client

    def read(self, *values: object) -> list[Any]:
        """What ClickHouse makes of these values in one query."""
        expressions = [f"{quoting.literal(value)} AS c{number}" for number, value in enumerate(values)]
        table = self.client.query_arrow(f"SELECT {', '.join(expressions)}", use_strings=True)
        return [column[0].as_py() for column in table.columns]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("chdb")
    client = clickhouse_connect.get_client(dsn=f"chdb://{folder}")
    yield Engine(client)
    client.close()


EXACT: list[Any] = [
    *(
        "",
        "it's",
        'a "b"',
        "back\\slash",
        "\\'",
        "\0",
        "a\nb\rc\td\be\ff",
        "😀",
        "%s {x:Int8} -- /* ; */ # `",
        "\\0\\n",
    ),
    *(0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1, 255, -256),
    *(0.1, -0.1, 1e308, -1e308, 5e-324, 1e22, 123456.0, 2.2250738585072011e-308, float("inf"), float("-inf")),
    *(True, False, None),
    *(date(1900, 1, 1), date(2299, 12, 31), date(2024, 2, 29)),
    *(datetime(1900, 1, 1, microsecond=1, tzinfo=UTC), datetime(2299, 12, 31, 23, 59, 59, 999999, UTC)),
    *(Decimal("1.50"), Decimal("-0.0000001"), Decimal("1E+37"), Decimal("1E+40"), Decimal("9" * 76), Decimal("0")),
    UUID("00112233-4455-6677-8899-aabbccddeeff"),
    *([1, 2], ["a'", "\\", "\0"], [[1], [], [2, 3]], [1.5, None], [[["x"]]], []),
]


def test_values_mean_the_same_in_clickhouse(engine: Engine) -> None:
    assert engine.read(*EXACT) == EXACT
    types = [type(value) for value in EXACT]
    assert [type(value) for value in engine.read(*EXACT)] == types


def test_a_zero_keeps_its_sign_and_nan_is_nan(engine: Engine) -> None:
    zero, nan = engine.read(-0.0, float("nan"))
    assert math.copysign(1, zero) == -1
    assert math.isnan(nan)


def test_huge_integers_bytes_and_maps_are_kept(engine: Engine) -> None:
    huge, tiny, data, pairs = engine.read(2**255 - 1, -(2**255), b"x'\\y", {"a'": 1, "b": 2})
    assert int.from_bytes(huge, "little", signed=True) == 2**255 - 1
    assert int.from_bytes(tiny, "little", signed=True) == -(2**255)
    assert data == "x'\\y"
    assert dict(pairs) == {"a'": 1, "b": 2}


def test_bytes_that_are_no_text_are_kept(engine: Engine) -> None:
    assert engine.client.command(f"SELECT hex({quoting.literal(bytes(range(256)))})") == bytes(range(256)).hex().upper()


def test_a_moment_is_the_same_from_any_zone(engine: Engine) -> None:
    late = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    odd = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, seconds=7)))
    assert engine.read(late, odd) == [late.astimezone(UTC), odd]


def test_a_negative_number_can_follow_a_minus(engine: Engine) -> None:
    assert engine.client.command(f"SELECT 1-{quoting.literal(-1)}-{quoting.literal(-0.5)}") == "2.5"


TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
ANY = st.one_of(
    TEXTS,
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.dates(date(1900, 1, 1), date(2299, 12, 31)),
    st.datetimes(datetime(1900, 1, 2), datetime(2299, 12, 30), timezones=st.just(UTC)),  # noqa: DTZ001
    st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**60), max_value=10**60),
    st.uuids(),
    st.lists(TEXTS, max_size=5),
    st.lists(st.lists(st.floats(allow_nan=False), max_size=3), max_size=3),
)


@settings(max_examples=40)
@given(st.lists(ANY, min_size=1, max_size=30))
def test_any_values_mean_the_same_in_clickhouse(engine: Engine, values: list[Any]) -> None:
    assert engine.read(*values) == values


NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"], min_codepoint=32), min_size=1, max_size=40)
HARD_NAMES = ["a`b", "a``", "\\", "\\`", "a.b", "a b", "select", "'", '"', "ä😀", "_part", "%s", "{x:Int8}", "--", "/*"]


def check_names(engine: Engine, names: list[str]) -> None:
    columns = ", ".join(f"{quoting.name(quoting.check_column(name))} Int64" for name in names)
    engine.client.command(f"CREATE OR REPLACE TABLE {quoting.name('t`able')} ({columns}) ENGINE = Memory")
    found = engine.client.query_arrow(f"SELECT * FROM {quoting.name('t`able')}")
    assert found.column_names == names
    listed = ", ".join(map(quoting.name, names))
    assert engine.client.query_arrow(f"SELECT {listed} FROM {quoting.name('t`able')}").column_names == names


def test_hard_names_are_kept(engine: Engine) -> None:
    check_names(engine, HARD_NAMES)


@settings(max_examples=30)
@given(st.lists(NAMES, min_size=1, max_size=20, unique=True))
def test_any_names_are_kept(engine: Engine, names: list[str]) -> None:
    check_names(engine, names)


@pytest.mark.parametrize("name", ["", "a\n", "a\0", "\x1f", "x" * 201, "é" * 101, "\ud800", None, 5, b"a"])
def test_a_name_that_cannot_be_stored_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="column"):
        quoting.check_column(name)


class Colour(IntEnum):
    RED = 1


ITSELF: list[Any] = []
ITSELF.append(ITSELF)
STRANGE = [
    *(object(), {1, 2}, iter([1]), Colour.RED, 1j, range(3), [object()], ITSELF, lambda: 1),
    *(2**255, -(2**255) - 1, 10**5000, "\ud800", ["\ud800"], {"a": "\udfff"}),
    *(Decimal("NaN"), Decimal("Infinity"), Decimal("1E+80"), Decimal("1E-80"), Decimal("1E+1000000")),
    *(date(1899, 12, 31), date(2300, 1, 1), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)),
    datetime(2024, 3, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_what_is_no_value_of_a_query_is_refused(value: object) -> None:
    with pytest.raises(InputError) as refusal:
        quoting.literal(value)
    assert len(str(refusal.value)) < 500
