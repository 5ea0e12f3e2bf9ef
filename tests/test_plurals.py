"""Numbers of things, in words."""

import pytest

from aaiclick.plurals import counted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "no entries"), (1, "1 entry"), (2, "2 entries"), (1_000_000, "1000000 entries")]
)
def test_a_number_of_things_has_its_plural(number: int, words: str):
    assert counted(number, "entry", "entries") == words
    assert counted(number, "job") == words.replace("entries", "jobs").replace("entry", "job")
