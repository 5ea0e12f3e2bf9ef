"""Types as texts: one spelling for what ClickHouse knows, a refusal for everything else."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.data.typing.grammar import INTEGERS, parse
from aaiclick.errors import AaiclickError, InputError


@pytest.mark.parametrize("name", [*INTEGERS, "Bool", "Float32", "Float64", "String", "Date", "Date32", "UUID", "IPv4"])
def test_a_plain_type_is_read_in_any_case(name: str) -> None:
    assert {str(parse(name)), str(parse(name.lower())), str(parse(f"  {name.upper()} "))} == {name}


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("nullable(string)", "Nullable(String)"),
        ("Array( array(int8) )", "Array(Array(Int8))"),
        ("fixedstring(3)", "FixedString(3)"),
        ("DATETIME", "DateTime"),
        ("datetime('Europe/Berlin')", "DateTime('Europe/Berlin')"),
        ("DateTime64", "DateTime64(3)"),
        ("DateTime64(6,'UTC')", "DateTime64(6, 'UTC')"),
        ("decimal(10)", "Decimal(10, 0)"),
        ("Decimal(76,76)", "Decimal(76, 76)"),
        ("Decimal64(4)", "Decimal(18, 4)"),
        ("Enum8('b' = 2, 'a'=-1)", "Enum8('a' = -1, 'b' = 2)"),
        ("enum('a', 'b')", "Enum8('a' = 1, 'b' = 2)"),
        ("Enum('a' = 1, 'b' = 500)", "Enum16('a' = 1, 'b' = 500)"),
        (r"Enum8('it\'s' = 1, 'back\\' = 2, 'two''s' = 3)", r"Enum8('it\'s' = 1, 'back\\' = 2, 'two\'s' = 3)"),
        ("lowcardinality(nullable(String))", "LowCardinality(Nullable(String))"),
        ("map(string,array(uint64))", "Map(String, Array(UInt64))"),
        ("Tuple(int64,string)", "Tuple(Int64, String)"),
        ("tuple(a Int64, `b c` Array(String))", "Tuple(a Int64, `b c` Array(String))"),
        (r"Tuple(`a``b` Int8, `select` Int8)", r"Tuple(`a\`b` Int8, `select` Int8)"),
    ],
)
def test_a_type_has_one_spelling(given: str, canonical: str) -> None:
    assert str(parse(given)) == canonical
    assert str(parse(canonical)) == canonical


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "name of a type"),
        ("Int65", "Did you mean Int6"),
        ("Strin", "Did you mean String"),
        ("JSON", "no type JSON"),
        ("text", "no type text"),
        ("Int64)", "something after"),
        ("Int64; DROP TABLE x", "cannot be read"),
        ("Int64 DEFAULT 1", "something after"),
        ("Int64 -- x", "cannot be read"),
        ("Array(Int64", "«)» is missing"),
        ("Array", "«(» is missing"),
        ("Array()", "name of a type"),
        ("Nullable(Array(Int8))", "Array cannot be Nullable"),
        ("Nullable(Map(String, Int8))", "Map cannot be Nullable"),
        ("Nullable(Nullable(Int8))", "Nullable cannot be Nullable"),
        ("Nullable(LowCardinality(String))", "LowCardinality(Nullable("),
        ("LowCardinality(Array(String))", "Array cannot be LowCardinality"),
        ("LowCardinality(Decimal(9, 2))", "Decimal cannot be LowCardinality"),
        ("Map(Nullable(String), Int8)", "cannot be Nullable"),
        ("FixedString(0)", "1 to"),
        ("FixedString(-1)", "1 to"),
        ("FixedString(99999999)", "1 to"),
        ("DateTime64(10)", "0 to 9"),
        ("DateTime64(6, UTC)", "in quotes"),
        ("DateTime('Mars/Olympus')", "no time zone"),
        ("DateTime('../../etc/passwd')", "no time zone"),
        ("DateTime('utc ')", "no time zone"),
        ("Decimal(77, 1)", "1 to 76"),
        ("Decimal(0, 0)", "1 to 76"),
        ("Decimal(5, 6)", "0 to 5"),
        ("Decimal(٣, 1)", "cannot be read"),
        ("Enum8('a' = 200)", "do not fit"),
        ("Enum8('a' = 1, 'a' = 2)", "twice"),
        ("Enum8('a' = 1, 'b' = 1)", "twice"),
        ("Enum8()", "in quotes"),
        ("Enum8('a' = )", "number of a member"),
        ("Tuple()", "name of a type"),
        ("Tuple(a Int8, String)", "either all"),
        ("Tuple(a Int8, a Int8)", "all different"),
        ("Tuple(`null` Int8)", "null"),
        ("Array(" * 30 + "Int8" + ")" * 30, "deeper"),
        ("x" * 1_000_001, "longer"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_what_is_no_type_is_refused(given: str, words: str) -> None:
    with pytest.raises(InputError, match="type") as refusal:
        parse(given)
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 800


@given(st.text(alphabet=string.ascii_letters + string.digits + "()', `=\\-\n\0é", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        canonical = str(parse(text))
    except AaiclickError:
        return
    assert str(parse(canonical)) == canonical


@given(st.text(min_size=1, max_size=20))
def test_labels_and_members_survive_any_text(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    try:
        kind = parse(f"Enum8('{quoted}' = 7)")
        assert kind.members == ((text, 7),)
        assert parse(str(kind)) == kind
    except InputError:  # half of a surrogate pair cannot be written
        assert not text.isprintable()
