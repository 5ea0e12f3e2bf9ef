"""What columns are called while others still mean the old ones."""

from __future__ import annotations

from aaiclick.data.compiling.aliases import called_meanwhile, is_itself, with_others
from aaiclick.data.query.expressions import Column, Raw, Value


def test_a_column_that_hides_another_is_called_otherwise_meanwhile() -> None:
    swapped = {"a": Column("b"), "b": Column("a")}
    assert called_meanwhile(swapped, [], ["a", "b"]) == ("__0", "__1")
    assert called_meanwhile({"a": Value(1)}, [Raw("a > 1")], ["a"]) == ("__0",)


def test_a_column_that_hides_none_keeps_its_name() -> None:
    assert called_meanwhile({"a": Column("a"), "c": Column("a")}, [], ["a", "b"]) == ("a", "c")
    assert is_itself("a", Column("a"))
    assert not is_itself("a", Column("b"))
    assert with_others(("__0", "a"), {"a"}, []) == ("__0", "___1")
