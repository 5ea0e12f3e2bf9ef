"""`sessionize`: numbers sessions, runs of rows that follow each other without a long gap."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from aaiclick.data.operations import sequences
from aaiclick.data.query.expressions import Column, Key, call, over
from aaiclick.data.query.relations import Project, column_of, free_prefix, own_columns
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.verbs.operands import check_columns, flat, new_name
from aaiclick.errors import InputError

if TYPE_CHECKING:
    from aaiclick.data.frames import Query


class Sessionizing(Evaluation):
    """The `sessionize` method of a frame."""

    __slots__ = ()

    def sessionize(
        self, order_by: str, *, gap: timedelta | int, by: str | Sequence[str] = (), name: str = "session"
    ) -> Query:
        """Add a column with the number of each row's session, from 1; a new one begins after a pause longer than `gap`.

        With `by` (for example a user), each value has sessions of its own. A row whose time is None has no session.
        """
        keys = flat((by,))
        check_columns(self.columns, (order_by, *keys))
        if new_name(name) in self.columns:
            raise InputError(
                field="name", value=name, rule="a column has this name already", hint="Choose another name."
            )
        relation = self._relation
        begun = f"{free_prefix((*relation.names, name))}begun"
        partition = tuple(column_of(relation, key) for key in keys)
        time = column_of(relation, order_by)
        begins = over(call("sessionize", sequences.begins(gap), time), partition, (Key(time),))
        flagged = Project(relation, {**own_columns(relation), begun: begins})
        number = over(call("sessionize", sequences.SESSION, Column(begun), time), partition, (Key(time),))
        columns = {each: column_of(flagged, each) for each in self.columns}
        return self._query(Project(flagged, {**columns, name: number}), "table")
