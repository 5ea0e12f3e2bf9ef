"""Functions of texts, compared with Python's."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.data import Context, col, raw
from aaiclick.errors import DataRefused, InputError

SIGNS = [
    "",
    "a",
    "B",
    "é",
    "ß",
    "👍🏽",
    "日本",
    " ",
    "\t",
    "\u00a0",
    "-",
    "+",
    "7",
    "x",
    "{",
    "}",
    "'",
    "\\",
    "_",
    "%",
    "\n",
    "O'n",
]
CHANCE = random.Random(17)
WORDS = ["".join(CHANCE.choices(SIGNS, k=CHANCE.randrange(6))) for _ in range(120)] + [
    "it's ONE été",
    "-5",
    "+",
    "--7",
    "a-b-c",
]

Case = tuple[str, tuple[Any, ...], Callable[[str], Any]]
CASES: list[Case] = [
    ("title", (), str.title),
    ("capitalize", (), str.capitalize),
    ("strip", (), str.strip),
    ("lstrip", (), str.lstrip),
    ("rstrip", (), str.rstrip),
    ("strip", ("aé-",), lambda s: s.strip("aé-")),
    ("lstrip", ("]^\\a",), lambda s: s.lstrip("]^\\a")),
    ("rstrip", ("👍🏽{}",), lambda s: s.rstrip("👍🏽{}")),
    ("strip", ("",), lambda s: s.strip("")),
    ("zfill", (5,), lambda s: s.zfill(5)),
    ("zfill", (0,), lambda s: s.zfill(0)),
    ("pad", (5,), lambda s: s.rjust(5)),
    ("pad", (5, "right", "é"), lambda s: s.ljust(5, "é")),
    ("pad", (6, "both", "*"), lambda s: s.center(6, "*")),
    ("pad", (7, "both", "{"), lambda s: s.center(7, "{")),
    ("repeat", (3,), lambda s: s * 3),
    ("repeat", (-1,), lambda s: s * -1),
    ("reverse", (), lambda s: s[::-1]),
    ("length", (), len),
    ("find", ("a",), lambda s: s.find("a")),
    ("find", ("",), lambda s: s.find("")),
    ("find", ("👍🏽",), lambda s: s.find("👍🏽")),
    ("occurrences", ("a",), lambda s: s.count("a")),
    ("replace", ("é", "{0}"), lambda s: s.replace("é", "{0}")),
    ("remove_prefix", ("a",), lambda s: s.removeprefix("a")),
    ("remove_suffix", ("é",), lambda s: s.removesuffix("é")),
    ("remove_suffix", ("",), lambda s: s),
    ("split", (), str.split),
    ("split", ("-",), lambda s: s.split("-")),
    ("split", ("-", 1), lambda s: s.split("-", 1)),
    ("split", ("-", 0), lambda s: s.split("-", 0)),
    ("split", ("'",), lambda s: s.split("'")),
    ("contains_any", (["a", "👍🏽"],), lambda s: "a" in s or "👍🏽" in s),
    ("contains_any", ([],), lambda _: False),
    ("contains_any", (["", "z"],), lambda _: True),
    ("encode", ("base64",), lambda s: base64.b64encode(s.encode()).decode()),
    ("encode", ("hex",), lambda s: s.encode().hex()),
]


@pytest.mark.parametrize(("name", "given", "python"), CASES)
async def test_a_function_of_texts_is_pythons(context: Context, name: str, given: Any, python: Any) -> None:
    made = await context.create_object_from_value([*WORDS, None])
    found = await getattr(made, name)(*given).data()
    assert found.pop() == ([] if name == "split" else None)
    wrong = {word: (got, python(word)) for word, got in zip(WORDS, found, strict=True) if got != python(word)}
    assert not wrong


async def test_what_was_encoded_is_decoded_and_anything_else_refused(context: Context) -> None:
    made = await context.create_object_from_value([*WORDS, None])
    for encoding in ("base64", "hex"):
        assert await made.encode(encoding).decode(encoding).data() == [*WORDS, None]
        for wrong in ("zz", "/w==", "c3a", "ff", "a"):
            bad = await context.create_object_from_value([wrong])
            with pytest.raises(DataRefused, match="is not a text in"):
                await bad.decode(encoding).data()
    with pytest.raises(InputError, match="one of base64, hex"):
        made.encode("rot13")


def distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


async def test_distances_count_characters(context: Context) -> None:
    pairs = list(zip(WORDS, reversed(WORDS), strict=True))
    made = await context.create_object_from_value({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    found = await made.select(d=col("a").levenshtein(col("b"))).data()
    assert found["d"] == [distance(a, b) for a, b in pairs]
    alike = await context.create_object_from_value(["martha", None])
    assert await alike.jaro_winkler("marhta").data() == [pytest.approx(0.9611, abs=1e-4), None]
    assert await alike.similarity("martha").data() == [1.0, None]


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda c: c.pad(3, "middle"), lambda c: c.pad(3, fill="ab"), lambda c: c.pad(-1), lambda c: c.zfill("3")),
        *(lambda c: c.split(""), lambda c: c.split(5), lambda c: c.split(None, 1), lambda c: c.contains_any("ab")),
        *(lambda c: c.strip(5), lambda c: c.contains_any(["a"] * 256), lambda c: c.pad(True)),
    ],
)
def test_constants_that_make_no_sense_are_refused_at_once(wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError):
        wrong(col("a"))


async def test_what_lies_under_none_is_not_looked_at(context: Context) -> None:
    made = await context.create_object_from_value(["zz", "c3a9"])
    hidden = await made.select(s=raw("nullIf(value, 'zz')"))
    assert hidden.schema["s"].type == "Nullable(String)"
    assert await hidden["s"].decode("hex").data() == [None, "é"]
    assert await hidden["s"].split("a").data() == [[], ["c3", "9"]]
    for name in ("occurrences", "replace"):
        arguments = ("", "x")[: 1 + (name == "replace")]
        with pytest.raises(DataRefused, match="must not be empty"):
            await getattr(hidden["s"], name)(*arguments).data()


async def test_numbers_of_texts_of_few_kinds_know_both_zeros(context: Context) -> None:
    """What ClickHouse keeps as LowCardinality knows one zero."""
    made = await context.create_object_from_value({"a": ["", "b"]}, fields={"a": "LowCardinality(String)"})
    counted = made.with_columns(length=col("a").length() / -3, place=col("a").find("") / -3)
    found = await counted.with_columns(count=col("a").occurrences("b") / -3).data()
    assert repr([found[name] for name in ("length", "place", "count")]) == repr(
        [[-0.0, 1 / -3], [-0.0] * 2, [-0.0, 1 / -3]]
    )
