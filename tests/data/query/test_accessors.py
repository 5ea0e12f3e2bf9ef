"""`col("a").str` and its like are answered with the functions of the column itself."""

from __future__ import annotations

import re

import pytest

from aaiclick.data import Query, Term, col
from aaiclick.data.query.accessors import ACCESSORS


@pytest.mark.parametrize("accessor", ACCESSORS)
def test_each_name_of_an_accessor_is_answered_with_ours(accessor: str) -> None:
    for name, ours in ACCESSORS[accessor].items():
        with pytest.raises(AttributeError, match=re.escape(f"Use {ours}.")):
            getattr(getattr(col("a"), accessor), name)


def test_what_is_answered_with_a_function_has_one() -> None:
    known = {*dir(Query), *dir(Term), *dir(col("a"))}
    for names in ACCESSORS.values():
        for ours in names.values():
            verb = re.match(r"\w+", ours)
            assert verb is not None
            assert verb[0] in known or ours.startswith("the "), ours


def test_a_function_that_has_the_same_name_is_told_without_the_accessor() -> None:
    with pytest.raises(AttributeError, match=re.escape("Use upper(…).")):
        _ = col("a").str.upper  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Did you mean"):
        _ = col("a").str.uper  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=re.escape("without .str")):
        _ = col("a").str[0]  # type: ignore[attr-defined]
