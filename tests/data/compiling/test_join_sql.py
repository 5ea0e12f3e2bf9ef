"""The SQL of joins and exploded lists."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, col
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.query.expressions import Column
from aaiclick.data.query.relations import Explode, Join, Table

LEFT = Table("x", (Column("k"), Column("l.t")))
RIGHT = Table("y", (Column("k"), Column("t")))


def test_a_side_is_called_as_no_column_is() -> None:
    joined = Join(LEFT, RIGHT, (("k", "k"),), "left", {"t": "t"})
    wanted = "SELECT l_.`k` AS `k`, l_.`l.t` AS `l.t`, r.`t` AS `t` FROM `x` AS l_ LEFT JOIN `y` AS r ON l_.`k` = r.`k`"
    assert to_sql(joined) == wanted


def test_of_the_nearest_the_last_pair_is_compared() -> None:
    joined = to_sql(Join(LEFT, RIGHT, (("k", "k"), ("l.t", "t")), "forward", {}))
    assert joined.endswith("ASOF LEFT JOIN `y` AS r ON l_.`k` = r.`k` AND l_.`l.t` <= r.`t`")


@pytest.mark.parametrize("kind", ["Int64", "Nullable(Int64)", "Float64", "String"])
@pytest.mark.parametrize("ordered", [False, True])
async def test_semi_and_anti_joins_part_the_rows(context: Context, kind: str, ordered: bool) -> None:
    text, null = kind == "String", kind.startswith("Nullable")
    values = [str(each) if text else each for each in (1, 2, 2, 3)] + [None] * null
    left = await context.create_object_from_value(
        {"k": values, "n": list(range(len(values)))}, fields={"k": kind, "n": "Int64"}, order=ordered
    )
    others = [str(each) if text else each for each in (2, 2, 9)] + [None] * null
    right = await context.create_object_from_value({"k": others}, fields={"k": kind})
    assert sorted(await left.join(right, on="k", how="semi")["n"].data()) == [1, 2]
    assert sorted(await left.join(right, on="k", how="anti")["n"].data()) == [0, 3, *[4] * null]
    nobody = right.where(col("k") == ("5" if text else 5))
    assert await left.join(nobody, on="k", how="semi").count() == 0
    assert await left.join(nobody, on="k", how="anti").count() == len(values)


def test_empty_lists_stay_if_all_of_a_row_are_empty() -> None:
    assert to_sql(Explode(RIGHT, ("k", "t"))) == "SELECT `k`, `t` FROM `y` ARRAY JOIN `k`, `t`"
    kept = to_sql(Explode(RIGHT, ("k", "t"), keep_empty=True))
    assert kept.endswith(
        "if(empty(`k`) AND empty(`t`), [NULL], `k`) AS `k`, if(empty(`k`) AND empty(`t`), [NULL], `t`) AS `t`"
    )
