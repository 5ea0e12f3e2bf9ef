"""What must appear nowhere is masked, however it is written and wherever it is cut."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.data.display import glimpse
from aaiclick.data.sql import quoting
from aaiclick.orchestration.rules.validation import is_storable, shorten
from aaiclick.telemetry import masks
from aaiclick.telemetry.masks import Masking, is_mentioned, mask_bytes, mask_text, remember, remember_passwords
from aaiclick.urls import shown as shown_text

VALUE = "s3cr3t-Canary/1"


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    masks.forget_all()
    yield
    masks.forget_all()
    masks.tell_new_ones(None)


def masked_in(pieces: list[bytes]) -> bytes:
    masking = Masking()
    return b"".join([*(masking.feed(piece) for piece in pieces), masking.end()])


def test_nothing_is_masked_while_nothing_is_known() -> None:
    assert mask_text(VALUE) == VALUE
    assert not is_mentioned(VALUE)
    assert masked_in([b"a", b"b"]) == b"ab"


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        "s3cr3t-Canary%2F1",
        "czNjcjN0LUNhbmFyeS8x",
    ],
)
def test_a_value_is_masked_in_each_of_its_forms(written: str) -> None:
    remember([VALUE])
    assert mask_text(f"<{written}>") == "<***>"
    assert masked_in([f"<{written}>".encode()]) == mask_bytes(f"<{written}>".encode()) == b"<***>"
    assert is_mentioned(f'{{"x":"{written}"}}')


def test_a_value_with_line_ends_and_quotes_is_masked_where_it_is_escaped() -> None:
    value = "-----BEGIN\n\"a'b\\é\n-----END"
    remember([value])
    for shown in (value, repr(value), ascii(value), json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert mask_text(shown).strip("'\"") == "***"


@given(
    value=st.text(min_size=8, max_size=40).filter(is_storable),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
    encode=st.sampled_from((base64.b64encode, base64.urlsafe_b64encode)),
)
def test_a_value_is_masked_inside_of_base64(
    value: str, before: bytes, after: bytes, encode: Callable[[bytes], bytes]
) -> None:
    """As in `Authorization: Basic`, where the user's name stands before it."""
    masks.forget_all()
    remember([value])
    written = encode(before + value.encode() + after).decode()
    left = mask_text(written)
    assert "***" in left
    assert len(left) - 3 <= len(written) - len(value.encode()) * 8 // 6 + 2  # at most a character at each edge is left


AWKWARD = 'it\'s "a" <b>\\c`d/é\n'


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(quoting.text(AWKWARD), id="a text of ClickHouse"),
        pytest.param(quoting.name(AWKWARD), id="a name of ClickHouse"),
        pytest.param("'" + AWKWARD.replace("'", "''") + "'", id="a text of standard SQL"),
        pytest.param(json.dumps(quoting.text(AWKWARD)), id="SQL in JSON"),
        pytest.param(json.dumps(AWKWARD).replace("/", "\\/"), id="JSON with slashes escaped"),
        pytest.param(json.dumps(json.dumps(AWKWARD).replace("/", "\\/")), id="the same in JSON"),
        pytest.param(html.escape(AWKWARD), id="HTML"),
        pytest.param(AWKWARD.encode().hex(), id="hex"),
        pytest.param(f"unhex('{AWKWARD.encode().hex().upper()}')", id="HEX"),
        pytest.param(quote(AWKWARD).lower(), id="an address in lower case"),
    ],
)
def test_a_value_is_masked_as_databases_pages_and_dumps_write_it(written: str) -> None:
    remember([AWKWARD])
    assert is_mentioned(written)
    assert mask_text(written).strip("'\"\\`unhex()") == "***"


def test_what_is_left_of_a_value_that_was_cut_is_masked() -> None:
    long = "-----BEGIN KEY-----" + "MIIEvQ/IBADANBg+" * 100
    remember([long])
    for cut in (
        shown_text(long),
        shorten(long),
        glimpse(long),
        f"{long[:300]}... of",
        f"x…{long[-90:]} y",
        long[:40] + "…",
    ):
        left = mask_text(f"refused: {cut}")
        assert "KEY" not in left
        assert "IBAD" not in left
        assert "***" in left
    assert mask_text("see more... or less… or ---…") == "see more... or less… or ---…"


def test_a_value_is_masked_as_bytes_and_in_a_string_of_json_in_json() -> None:
    value = 'pässwörd\n"x"'
    remember([value])
    for shown in (repr(value.encode()), json.dumps(json.dumps({"a": value})), json.dumps(repr(value))):
        assert "***" in mask_text(shown)
        assert "ssw" not in mask_text(shown)


def test_a_password_is_masked_where_it_stands_in_an_address() -> None:
    remember_passwords(["postgresql+asyncpg://postgres:postgr%40s@host/db", "chdb:///data", "clickhouse://u:abc@h"])
    assert mask_text("postgres at postgresql://postgres:postgr%40s@host/db") == (
        "postgres at postgresql://postgres:***@host/db"
    )
    assert mask_text("x:postgr@s@host") == "x:***@host"
    assert mask_text("u:abc@h, postgr@s") == "u:abc@h, postgr@s"


def test_whoever_keeps_the_output_is_told_before_a_value_is_known() -> None:
    told: list[tuple[list[str], bool]] = []
    masks.tell_new_ones(lambda values: told.append((values, is_mentioned(VALUE))))
    remember([VALUE])
    remember([VALUE, ""])
    assert told == [([VALUE], False)]


def test_a_value_is_not_known_if_nobody_could_be_told() -> None:
    def refuse(values: list[str]) -> None:
        raise ConnectionError("gone")

    masks.tell_new_ones(refuse)
    with pytest.raises(ConnectionError):
        remember([VALUE])
    assert not is_mentioned(VALUE)


@given(data=st.data())
def test_a_stream_is_masked_as_a_whole_is_however_it_is_cut(data: st.DataObject) -> None:
    masks.forget_all()
    values = data.draw(st.lists(st.text("ab*", min_size=3, max_size=6), min_size=1, max_size=3, unique=True))
    masks._add(dict.fromkeys(values, "#"), values)
    text = data.draw(st.text("ab*c", max_size=60)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    known = masks._known
    assert known is not None
    assert masked_in(pieces) == known.data.sub(b"#", text)


def test_what_cannot_be_a_value_is_written_at_once() -> None:
    remember([VALUE])
    masking = Masking()
    assert masking.feed(b"a line\n") == b"a line\n"
    assert masking.feed(b"s3cr3t") == b""
    assert masking.feed(b"!") == b"s3cr3t!"
    assert masking.feed(b"the end is s3") == b"the end is "
    assert masking.end() == b"s3"
