"""Which run broke it."""

from __future__ import annotations

from aaiclick.data.breakage import broken_by
from aaiclick.data.context import data_context


async def test_what_was_written_since_the_last_good_look_is_suspect(ch_url: str) -> None:
    async with data_context(oplog=True) as context:
        source = await context.create_object_from_value({"a": [3]})
        made = await context.create_object_from_value({"a": [1, 2]})
        assert await broken_by(made) is None
        await made.expect(unique="a")
        await made.insert({"a": [4]})
        await made.insert(source)
        await made.insert({"a": [4]})
        await made.expect(unique="a", on_fail="warn")
        await made.insert({"a": [5]})
        await made.expect(unique="a", on_fail="warn")
        found = await broken_by(made)
        assert found is not None
        assert found.unmet.query == "unique a (once each): 2 of 5 rows, such as a=4"
        assert found.passed is not None
        assert [(each.operation, each.sources) for each in found.suspects] == [
            ("insert", ()),
            ("insert", (source.table,)),
            ("insert", ()),
        ]
        await made.expect(not_null="a")
        assert await broken_by(made) is None
