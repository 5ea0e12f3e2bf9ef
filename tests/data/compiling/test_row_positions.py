"""Which queries tell the place of each row."""

from __future__ import annotations

from aaiclick.data import Context, col
from aaiclick.data.compiling.row_positions import has_places, with_places
from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.typing.schema import ORDER


async def test_what_has_an_order_or_is_sorted_has_places(context: Context) -> None:
    plain = await context.create_object_from_value({"a": [1, 2], "b": [1, 2]})
    ordered = await context.create_object_from_value({"a": [1, 2], "b": [1, 2]}, order=True)
    have = (ordered, ordered.limit(1), ordered.where("a > 1").offset(1), plain.order_by("a"), plain.order_by("a")["b"])
    assert all(has_places(each._relation) for each in have)
    have_not = (plain, plain.limit(1), plain.where("a > 1"), plain.group_by("a").count(), ordered.unique())
    assert not any(has_places(each._relation) for each in have_not)


async def test_places_are_counted_where_rows_are_sorted(context: Context) -> None:
    rows = await context.create_object_from_value({"a": [2, 1, 3], "b": [1, 2, 3]})
    for query in (
        rows.order_by("a"),
        rows.order_by("a").where("b > 0").limit(3),
        rows.order_by("a").select(b=col("b")),
    ):
        relation = with_places(query._relation)
        assert ORDER in relation.names
        found = await context.client.rows(f"SELECT b FROM ({to_sql(relation)}) ORDER BY {ORDER}")
        assert list(found.columns[0]) == [2, 1, 3]
