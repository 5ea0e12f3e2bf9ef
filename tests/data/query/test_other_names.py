"""Names of other libraries lead to ours."""

from __future__ import annotations

import re

import pytest

from aaiclick.data import Object, Query, Term, col
from aaiclick.data.groups import Groups
from aaiclick.data.query.other_names import OTHER_NAMES, hint


@pytest.mark.parametrize("name", ["groupby", "sort_values", "merge", "drop_duplicates", "nlargest", "filter", "apply"])
def test_a_name_of_another_library_is_answered_with_ours(sales: Object, name: str) -> None:
    for thing in (sales, sales["price"] + 1, col("a")):
        with pytest.raises(AttributeError, match=re.escape(OTHER_NAMES[name])):
            getattr(thing, name)


def test_a_slip_of_the_pen_is_answered_with_the_nearest_name(sales: Object) -> None:
    for thing, wrong, right in ((sales, "selct", "select"), (col("a"), "uper", "upper"), (sales, "pivott", "pivot")):
        with pytest.raises(AttributeError, match=f"Did you mean {right}"):
            getattr(thing, wrong)
    with pytest.raises(AttributeError, match="Did you mean median"):
        _ = sales.group_by("city").medain  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Use nunique"):
        _ = sales.group_by("city").n_unique  # type: ignore[attr-defined]
    assert hint("qqqqqqqq", ["select"]) == ""


def test_what_is_named_is_there_and_what_is_answered_is_not(sales: Object) -> None:
    """Each hint begins with a method of ours; no name that we have is answered with another."""
    known = {*dir(Query), *dir(Object), *dir(Term), *dir(Groups), *dir(sales), *dir(col("a"))}
    for name, ours in OTHER_NAMES.items():
        verb = re.match(r"(?:await obj\.)?(\w+)", ours)
        assert verb is not None
        assert verb[1] in known or ours.startswith(("the ", "a keyword", "obj[", "schema")), ours
        assert not hasattr(Query, name), name
        assert not hasattr(Object, name), name
