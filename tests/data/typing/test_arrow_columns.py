"""Every type into ClickHouse and back, exactly; what does not fit is refused, with its row."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import clickhouse_connect
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aaiclick.data.clocks import is_left_out
from aaiclick.data.typing.arrow_columns import build
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.inference import Unfit
from aaiclick.data.typing.tabulation import Tabulated, conform, tabulate
from aaiclick.errors import InputError

NUMBERS = count()
BERLIN = ZoneInfo("Europe/Berlin")
SOME_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")


class Engine:
    def __init__(self, client: Any) -> None:
        self.client = client

    def store(self, found: Tabulated) -> str:
        table = f"t{next(NUMBERS)}"
        definitions = found.schema.column_definitions()
        self.client.command(f"CREATE TABLE {table} ({definitions}) ENGINE = Memory")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found.data.schema) as writer:
            writer.write_table(found.data)
        names, data = found.data.column_names, memoryview(sink.getvalue())
        self.client.raw_insert(table, names, data, fmt="ArrowStream", compression=None)
        return table

    def rows(self, sql: str) -> list[Any]:
        return [row[0] for row in self.client.query(sql).result_rows]

    def arrow(self, table: str) -> pa.Table:
        return self.client.query_arrow(f"SELECT * FROM {table}", use_strings=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("chdb")
    client = clickhouse_connect.get_client(dsn=f"chdb://{folder}")
    yield Engine(client)
    client.close()


def ends(bits: int, *, signed: bool) -> list[int]:
    return [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1] if signed else [0, 1, 2**bits - 1]


INTEGERS: list[tuple[str, list[Any], list[str | None]]] = [
    (f"{'' if signed else 'U'}Int{bits}", ends(bits, signed=signed), list(map(str, ends(bits, signed=signed))))
    for bits in (8, 16, 32, 64, 128, 256)
    for signed in (True, False)
]
MOMENT = datetime(2024, 7, 1, 12, 30, 15, 123456, UTC)
WHOLE = MOMENT.replace(microsecond=0)
KEPT: list[tuple[str, list[Any], list[str | None]]] = [
    *INTEGERS,
    ("Bool", [True, False], ["true", "false"]),
    ("Float32", [1.5, -0.0, float("inf")], ["1.5", "-0", "inf"]),
    ("Float64", [1e308, 5e-324, float("nan")], ["1e308", "5e-324", "nan"]),
    ("String", ["", "a\0'\\\n", "😀"], ["", "a\0'\\\n", "😀"]),
    ("LowCardinality(Nullable(String))", ["a", None, "a"], ["a", None, "a"]),
    ("FixedString(3)", ["abc", b"xyz"], ["abc", "xyz"]),
    ("Date", [date(1970, 1, 1), date(2149, 6, 6)], ["1970-01-01", "2149-06-06"]),
    ("Date32", [date(1900, 1, 1), date(2299, 12, 31)], ["1900-01-01", "2299-12-31"]),
    ("DateTime('UTC')", [datetime(1970, 1, 1, tzinfo=UTC), WHOLE], ["1970-01-01 00:00:00", "2024-07-01 12:30:15"]),
    ("DateTime('Europe/Berlin')", [WHOLE], ["2024-07-01 14:30:15"]),
    ("DateTime64(0, 'UTC')", [WHOLE], ["2024-07-01 12:30:15"]),
    ("DateTime64(1, 'UTC')", [MOMENT.replace(microsecond=300000)], ["2024-07-01 12:30:15.3"]),
    ("DateTime64(3, 'UTC')", [MOMENT.replace(microsecond=123000)], ["2024-07-01 12:30:15.123"]),
    ("DateTime64(4, 'UTC')", [MOMENT.replace(microsecond=123400)], ["2024-07-01 12:30:15.1234"]),
    (
        "DateTime64(6, 'UTC')",
        [datetime(1900, 1, 1, microsecond=1, tzinfo=UTC), datetime(2299, 12, 31, 23, 59, 59, 999999, UTC)],
        ["1900-01-01 00:00:00.000001", "2299-12-31 23:59:59.999999"],
    ),
    ("DateTime64(6, 'Europe/Berlin')", [MOMENT], ["2024-07-01 14:30:15.123456"]),
    ("DateTime64(9, 'UTC')", [MOMENT], ["2024-07-01 12:30:15.123456000"]),
    ("Decimal(9, 2)", [Decimal("-1234567.89"), Decimal("1.50"), 7], ["-1234567.89", "1.5", "7"]),
    ("Decimal(38, 10)", [Decimal("9" * 28 + "." + "9" * 10)], ["9" * 28 + "." + "9" * 10]),
    ("Decimal(76, 76)", [Decimal("0." + "7" * 76)], ["0." + "7" * 76]),
    ("Decimal(76, 0)", [Decimal("9" * 76), Decimal("-1E+75")], ["9" * 76, "-1" + "0" * 75]),
    ("UUID", [SOME_ID, str(SOME_ID)], [str(SOME_ID), str(SOME_ID)]),
    ("IPv4", [IPv4Address("1.2.3.4"), "255.0.0.1"], ["1.2.3.4", "255.0.0.1"]),
    ("IPv6", [IPv6Address("2001:db8::1"), "2001:db8::12:345"], ["2001:db8::1", "2001:db8::12:345"]),
    ("Enum8('a' = -2, 'it\\'s' = 5)", ["a", "it's", 5], ["a", "it's", "it's"]),
    ("Enum16('x' = 1000)", ["x"], ["x"]),
    ("Nullable(Int128)", [2**100, None], [str(2**100), None]),
    ("Nullable(DateTime64(6, 'UTC'))", [MOMENT, None], ["2024-07-01 12:30:15.123456", None]),
    ("Nullable(Decimal(5, 1))", [Decimal("1.5"), None], ["1.5", None]),
    ("Nullable(UUID)", [SOME_ID, None], [str(SOME_ID), None]),
    ("Nullable(IPv6)", ["::1", None], ["::1", None]),
    ("Nullable(Enum8('a' = 1))", ["a", None], ["a", None]),
    ("Nullable(FixedString(2))", ["ab", None], ["ab", None]),
    ("Nullable(Bool)", [True, None], ["true", None]),
    ("Array(Int64)", [[1, 2], [], [3]], ["[1,2]", "[]", "[3]"]),
    ("Array(Array(Nullable(String)))", [[["a", None], []], []], ["[['a',NULL],[]]", "[]"]),
    ("Array(UUID)", [[SOME_ID]], [f"['{SOME_ID}']"]),
    ("Array(Decimal(4, 2))", [[Decimal("1.25")]], ["[1.25]"]),
    ("Array(UInt256)", [[2**256 - 1]], [f"[{2**256 - 1}]"]),
    ("Map(String, Nullable(Int8))", [{"a": 1, "b": None}, {}], ["{'a':1,'b':NULL}", "{}"]),
    ("Map(Date32, Array(Bool))", [{date(2024, 1, 2): [True]}], ["{'2024-01-02':[true]}"]),
    ("Tuple(Int8, Nullable(String))", [(1, None), [2, "x"]], ["(1,NULL)", "(2,'x')"]),
    ("Tuple(a Int8, `b c` Array(Int8))", [{"b c": [2], "a": 1}, (3, [])], ["(1,[2])", "(3,[])"]),
    ("Array(Tuple(a Int8, b UUID))", [[(1, SOME_ID)]], [f"[(1,'{SOME_ID}')]"]),
]


@pytest.mark.parametrize(("type_", "values", "texts"), KEPT, ids=[case[0] for case in KEPT])
def test_a_type_keeps_its_values(engine: Engine, type_: str, values: list[Any], texts: list[str | None]) -> None:
    found = tabulate({"value": values}, {"value": type_})
    table = engine.store(found)
    assert engine.rows(f"SELECT toString(value) FROM {table}") == texts
    stored = engine.rows(f"SELECT type FROM system.columns WHERE table = '{table}' AND name = 'value'")
    assert stored == [found.schema["value"].type]


@pytest.mark.parametrize(("type_", "values"), [case[:2] for case in KEPT], ids=[case[0] for case in KEPT])
def test_what_clickhouse_sends_can_be_inserted_again(engine: Engine, type_: str, values: list[Any]) -> None:
    found = tabulate({"value": values}, {"value": type_})
    received = engine.arrow(engine.store(found))
    again = engine.store(Tabulated(found.schema, conform(received, found.schema)))
    assert str(engine.arrow(again).to_pylist()) == str(received.to_pylist())  # as texts: NaN is not equal to itself


def test_bytes_that_are_a_text_come_back_as_one(engine: Engine) -> None:
    table = engine.store(tabulate([b"a\0", "ä".encode(), b""]))
    assert engine.rows(f"SELECT value FROM {table}") == ["a\0", "ä", ""]


@pytest.mark.parametrize("values", [[b"fine", b"\xff\0"], [None, b"\xff"], [[b"fine"], [b"\xff"]]])
def test_bytes_that_are_no_text_are_refused_and_not_changed(values: list[Any]) -> None:
    with pytest.raises(InputError, match=r"row 1.*not a text in UTF-8.*FixedString"):
        tabulate({"value": values})


def test_bytes_of_one_length_are_kept(engine: Engine) -> None:
    table = engine.store(tabulate({"value": [b"\xff\0", b"ab"]}, {"value": "FixedString(2)"}))
    assert engine.rows(f"SELECT hex(value) FROM {table} ORDER BY 1") == ["6162", "FF00"]


ZONES = st.sampled_from([UTC, BERLIN, timezone(timedelta(hours=-3, seconds=7)), ZoneInfo("Asia/Kathmandu")])
YEARS = (datetime(1900, 1, 2), datetime(2299, 12, 30))  # noqa: DTZ001
MOMENTS = st.datetimes(*YEARS, timezones=ZONES).filter(lambda moment: not is_left_out(moment))
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**25), max_value=10**25)
RECORDS = st.fixed_dictionaries(
    {
        "int": st.integers(-(2**63), 2**63 - 1),
        "big": st.integers(-(2**255), 2**255 - 1),
        "float": st.floats(allow_nan=False),
        "text": st.text(),
        "flag": st.booleans(),
        "day": st.dates(date(1900, 1, 1), date(2299, 12, 31)),
        "moment": MOMENTS,
        "clock": st.datetimes(*YEARS),
        "decimal": DECIMALS,
        "id": st.uuids(),
        "list": st.lists(st.one_of(st.none(), st.floats(allow_nan=False))),
        "map": st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)),
        "maybe": st.one_of(st.none(), st.text()),
    }
)
FIELDS = {
    "int": int,
    "big": "Int256",
    "float": float,
    "text": str,
    "flag": bool,
    "day": date,
    "id": UUID,
    "moment": "DateTime64(6, 'Europe/Berlin')",
    "clock": "DateTime64(6)",
    "decimal": "Decimal(50, 9)",
    "maybe": "Nullable(String)",
    "list": "Array(Nullable(Float64))",
    "map": "Map(String, Int64)",
}


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORDS, min_size=1, max_size=20))
def test_any_rows_come_back_as_they_were(engine: Engine, rows: list[dict[str, Any]]) -> None:
    received = engine.arrow(engine.store(tabulate(rows, FIELDS))).to_pylist()
    for row in received:
        row["big"] = int.from_bytes(row["big"], "little", signed=True)
        row["map"] = dict(row["map"])
        row["clock"] = row["clock"].astimezone(UTC).replace(tzinfo=None)  # Arrow of ClickHouse's gives it a zone
    for row in (*received, *rows):  # where clocks are changed, Python compares their hands and not the moments
        row["moment"] = row["moment"].astimezone(UTC)
    assert received == rows
    assert [row["float"].hex() for row in received] == [row["float"].hex() for row in rows]  # -0.0 too


REFUSED: list[tuple[str, list[Any], int]] = [
    ("Int8", [1, 300], 1),
    ("Int8", [-129], 0),
    ("UInt8", [0, -1], 1),
    ("UInt64", [2**64], 0),
    ("Int128", [2**127], 0),
    ("UInt256", [-1], 0),
    ("Int64", [1, "x"], 1),
    ("Int64", [1, 1.5], 1),
    ("Int64", [float("nan")], 0),
    ("Int64", [float("inf")], 0),
    ("Int64", [Decimal("NaN")], 0),
    ("Int64", [1, None], 1),
    ("Bool", [True, 1], 1),
    ("Float64", [1.0, 2**53 + 1], 1),
    ("Float64", [10**400], 0),
    ("Float64", [True], 0),
    ("Float64", [Decimal("0.1")], 0),
    ("Float32", [1.0, 1e39], 1),
    ("String", ["a", 5], 1),
    ("String", ["a", "\ud800"], 1),
    ("FixedString(3)", ["abc", "abcd"], 1),
    ("FixedString(3)", ["éé"], 0),
    ("FixedString(3)", ["\ud800"], 0),
    ("Date", [date(1969, 12, 31)], 0),
    ("Date", [date(2024, 1, 1), date(2149, 6, 7)], 1),
    ("Date32", [date(1899, 12, 31)], 0),
    ("Date32", [date(2300, 1, 1)], 0),
    ("Date32", [datetime(2024, 1, 1, tzinfo=UTC)], 0),
    ("Date32", ["2024-01-01"], 0),
    ("DateTime('UTC')", [datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC)], 0),
    ("DateTime", [datetime(1969, 12, 31)], 0),  # noqa: DTZ001
    ("DateTime", [WHOLE], 0),
    ("DateTime", [MOMENT], 0),
    ("DateTime", [date(2024, 1, 1)], 0),
    ("DateTime64(3, 'UTC')", [WHOLE, MOMENT], 1),
    ("DateTime64(4)", [MOMENT.replace(tzinfo=None)], 0),
    ("DateTime64(6)", [datetime(2024, 1, 1), WHOLE], 1),  # noqa: DTZ001
    ("DateTime64(6, 'UTC')", [WHOLE, datetime(2024, 1, 1)], 1),  # noqa: DTZ001
    ("DateTime64(6, 'UTC')", [WHOLE, datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN)], 1),
    ("DateTime64(6, 'UTC')", [datetime(1899, 12, 31, tzinfo=UTC)], 0),
    ("DateTime64(6)", [datetime(2300, 1, 1)], 0),  # noqa: DTZ001
    ("DateTime64(9)", [datetime(2270, 1, 1)], 0),  # noqa: DTZ001
    ("Decimal(5, 2)", [Decimal("1.25"), Decimal("1.255")], 1),
    ("Decimal(5, 2)", [Decimal("1000")], 0),
    ("Decimal(5, 2)", [1000], 0),
    ("Decimal(5, 2)", [Decimal("NaN")], 0),
    ("Decimal(5, 2)", [Decimal("-Infinity")], 0),
    ("Decimal(5, 2)", [0.5], 0),
    ("Decimal(76, 2)", [10**100], 0),
    ("UUID", ["x"], 0),
    ("IPv4", ["1.2.3.256"], 0),
    ("IPv6", ["fe80::1%eth0"], 0),
    ("Enum8('a' = 1)", ["a", "b"], 1),
    ("Enum8('a' = 1)", [2], 0),
    ("Array(Int8)", [[1], [2, 300]], 1),
    ("Array(Int8)", [[1], None], 1),
    ("Array(Int8)", [[1], [2, None]], 1),
    ("Array(Int8)", [[1], 5], 1),
    ("Array(Array(Int8))", [[], [[], [1]], [[], [2, 999]]], 2),
    ("Map(String, Int8)", [{"a": 1}, {"a": 1, "b": 300}], 1),
    ("Map(String, Int8)", [{5: 1}], 0),
    ("Map(String, Int8)", [[("a", 1, 2)]], 0),
    ("Tuple(Int8, Int8)", [(1, 2), (1, 300)], 1),
    ("Tuple(Int8, Int8)", [(1, 2), (1,)], 1),
    ("Tuple(a Int8, b Int8)", [{"a": 1, "c": 2}], 0),
]


@pytest.mark.parametrize(("type_", "values", "row"), REFUSED, ids=lambda part: ascii(part)[:40])
def test_what_does_not_fit_is_refused_with_its_row(type_: str, values: list[Any], row: int) -> None:
    with pytest.raises(Unfit) as refusal:
        build(values, parse(type_))
    assert refusal.value.row == row


EXPONENTS = st.integers(-400, 100)
DIGITS = st.lists(st.integers(0, 9), min_size=1, max_size=80)


@settings(max_examples=300)
@given(
    st.lists(
        st.builds(
            lambda sign, digits, exponent: Decimal((sign, digits, exponent)), st.integers(0, 1), DIGITS, EXPONENTS
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["Decimal(9, 2)", "Decimal(38, 30)", "Decimal(76, 40)", "Decimal(76, 76)"]),
)
def test_a_decimal_is_exact_or_refused(values: list[Decimal], type_: str) -> None:
    try:
        built = build(values, parse(type_)).to_pylist()
    except Unfit as unfit:
        precision, scale = parse(type_).numbers
        ratio = unfit.value.as_integer_ratio()
        scaled, rest = divmod(ratio[0] * 10**scale, ratio[1])
        assert rest or abs(scaled) >= 10**precision
        return
    assert built == values


def test_a_zone_with_odd_offsets_is_exact() -> None:
    odd = timezone(timedelta(microseconds=5))
    found = build([datetime(2024, 1, 1, microsecond=7, tzinfo=odd)], parse("DateTime64(6, 'UTC')"))
    assert found.cast(pa.int64()).to_pylist() == [1704067200000002]


def test_a_whole_number_fits_whatever_it_was() -> None:
    assert build([1, True, 2.0, Decimal("3.0"), 1e15], parse("Int64")).to_pylist() == [1, 1, 2, 3, 10**15]
