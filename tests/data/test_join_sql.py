"""The SQL of joins and exploded lists."""

from __future__ import annotations

from aaiclick.data.compiling import to_sql
from aaiclick.data.expressions import Column
from aaiclick.data.relations import Explode, Join, Table

LEFT = Table("x", (Column("k"), Column("l.t")))
RIGHT = Table("y", (Column("k"), Column("t")))


def test_a_side_is_called_as_no_column_is() -> None:
    joined = Join(LEFT, RIGHT, (("k", "k"),), "left", {"t": "t"})
    wanted = "SELECT l_.`k` AS `k`, l_.`l.t` AS `l.t`, r.`t` AS `t` FROM `x` AS l_ LEFT JOIN `y` AS r ON l_.`k` = r.`k`"
    assert to_sql(joined) == wanted


def test_of_the_nearest_the_last_pair_is_compared() -> None:
    joined = to_sql(Join(LEFT, RIGHT, (("k", "k"), ("l.t", "t")), "forward", {}))
    assert joined.endswith("ASOF LEFT JOIN `y` AS r ON l_.`k` = r.`k` AND l_.`l.t` <= r.`t`")


def test_empty_lists_stay_if_all_of_a_row_are_empty() -> None:
    assert to_sql(Explode(RIGHT, ("k", "t"))) == "SELECT `k`, `t` FROM `y` ARRAY JOIN `k`, `t`"
    kept = to_sql(Explode(RIGHT, ("k", "t"), keep_empty=True))
    assert kept.endswith(
        "if(empty(`k`) AND empty(`t`), [NULL], `k`) AS `k`, if(empty(`k`) AND empty(`t`), [NULL], `t`) AS `t`"
    )
