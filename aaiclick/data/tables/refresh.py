"""The options with which `materialize` updates an Object that may exist, and their check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from aaiclick.errors import InputError


class Refresh(NamedTuple):
    """The options of `materialize` for an Object that may exist; see `Evaluation.materialize`."""

    full_refresh: bool = False
    incremental_by: str | None = None
    lookback: Any = None
    partition: Any = None
    key: str | Sequence[str] | None = None
    keep: int | None = None

    @property
    def is_asked(self) -> bool:
        """Whether any option was given."""
        return self != Refresh()

    @property
    def operation(self) -> str:
        """The name of the update in the log of operations and in the list of versions."""
        if self.full_refresh or (self.incremental_by is None and self.key is None):
            return "full refresh"
        if self.partition is not None:
            return "partition"
        return "incremental" if self.incremental_by is not None else "upsert"

    def check(self, name: str | None) -> None:
        """Raise InputError for options that cannot be combined, or that need a `name`."""
        wrong = ""
        if name is None:
            wrong = "it needs an Object with a name"
        elif not (self.full_refresh or self.incremental_by is not None or self.key is not None):
            wrong = "it needs full_refresh, incremental_by or key"
        elif self.incremental_by is None and (self.lookback is not None or self.partition is not None):
            wrong = "lookback and partition need incremental_by, which names their column"
        elif self.partition is not None and (self.lookback is not None or self.key is not None or self.full_refresh):
            wrong = "a partition is replaced as a whole: it can only be combined with incremental_by"
        if wrong:
            given = ", ".join(name for name, value in self._asdict().items() if value not in (None, False))
            raise InputError(field="materialize", value=given, rule=wrong, hint="")
