"""`strptime`, compared with Python's."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from aaiclick.data import Context
from aaiclick.errors import DataRefused, InputError

FORMS = [
    "%Y-%m-%d %H:%M:%S.%f",
    "%d.%m.%Y %H:%M",
    "%d %b %Y",
    "%A, %d. %B %Y %I:%M:%S %p",
    "%j/%Y",
    "%m/%d/%y",
    "%Y%m%d",
    "%Y%m%dT%H%M%S",
    "100%% {x} (%Y)",
    "%a %b %d %H:%M:%S %Y",
]


@pytest.mark.parametrize("form", FORMS)
async def test_what_python_wrote_is_read_as_python_reads_it(context: Context, form: str) -> None:
    chance, first = random.Random(form), datetime(1969, 1, 1)  # noqa: DTZ001
    times = [first + timedelta(microseconds=chance.randrange(99 * 365 * 86_400 * 10**6)) for _ in range(60)]
    texts = [time.strftime(form) for time in times]
    made = await context.create_object_from_value([*texts, None])
    assert await made.strptime(form).data() == [*(datetime.strptime(text, form) for text in texts), None]  # noqa: DTZ007


@pytest.mark.parametrize(
    ("text", "form"),
    [
        *(("2024-02-30", "%Y-%m-%d"), ("2023-02-29", "%Y-%m-%d"), ("2024-13-01", "%Y-%m-%d"), ("", "%Y")),
        *(("2024-01-01x", "%Y-%m-%d"), ("24:00", "%H:%M"), ("12:60", "%H:%M"), ("13 pm", "%I %p"), ("0 am", "%I %p")),
        *(("2024-1-2", "%Y-%m-%d"), ("2024-1- 2", "%Y-%m-%d"), ("5 MAR 2024", "%d %b %Y")),
        *(("12 am", "%I %p"), ("12 PM", "%I %p"), ("68", "%y"), ("69", "%y"), ("2024  1", "%Y %m"), ("1:2:3", "%T")),
        *(("1.5", "%S.%f"), ("1.1234567", "%S.%f"), ("00", "%d"), ("é2024", "é%Y"), ("2024\n1", "%Y %m")),
    ],
)
async def test_what_python_reads_is_read_and_what_it_refuses_is_refused(context: Context, text: str, form: str) -> None:
    made = await context.create_object_from_value([text])
    try:
        wanted = datetime.strptime(text, form.replace("%T", "%H:%M:%S"))  # noqa: DTZ007
    except ValueError:
        assert await made.strptime(form, strict=False).data() == [None]
        with pytest.raises(DataRefused, match="not a time of the form"):
            await made.strptime(form).data()
    else:
        assert await made.strptime(form).data() == [wanted]


async def test_with_an_offset_it_is_a_moment(context: Context) -> None:
    texts = ["2024-01-01 00:30 +0100", "2024-01-01 00:30 -05:30", "2024-01-01 00:30 Z"]
    made = await context.create_object_from_value(texts)
    found = await made.strptime("%Y-%m-%d %H:%M %z").data()
    assert found == [datetime.strptime(text, "%Y-%m-%d %H:%M %z") for text in texts]
    assert {each.tzinfo for each in found} == {UTC}


@pytest.mark.parametrize("form", ["%Y-%q", "%", "", "no code", "%Y %Y", "%H %I", "%m %b", "%j %d", 5])
def test_a_form_that_cannot_be_read_is_refused_at_once(numbers: object, form: str) -> None:
    with pytest.raises(InputError, match="strptime"):
        numbers.strptime(form)  # type: ignore[attr-defined]


async def test_a_day_that_a_year_has_not_is_refused_though_python_takes_it_for_the_next_year(context: Context) -> None:
    made = await context.create_object_from_value(["366/2023", "366/2024"])
    assert await made.strptime("%j/%Y", strict=False).data() == [None, datetime(2024, 12, 31)]  # noqa: DTZ001
