"""Names of temporary Objects: each context has its own, so they do not clash with other contexts' names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aaiclick.data.tables.lifetimes import Keeper
from aaiclick.data.tables.table_names import check_name
from aaiclick.errors import Conflict, ObjectNotFound

IsThere = Callable[[str], Awaitable[bool]]
"""Returns whether a table of this name exists."""


class TemporaryNames:
    """The names of one context's tables. Holds the keepers, so that the tables live as long as the context."""

    def __init__(self) -> None:
        self._keepers: dict[str, Keeper] = {}

    async def take(self, name: str, keeper: Keeper, is_there: IsThere) -> None:
        """Give a table this name; raise Conflict if another existing table has it.

        The name is checked again after `is_there`, since another task may have taken it meanwhile.
        """
        check_name(name)
        held = self._keepers.setdefault(name, keeper)
        if held is keeper:
            return
        if await is_there(held.table) or self._keepers[name] is not held:
            hint = "open_object(name, scope='temporary') gives it, delete_object(name, scope='temporary') deletes it."
            raise Conflict(
                what=f"An Object called {name}", verb="made", cause="this context has one already", hint=hint
            )
        self._keepers[name] = keeper

    def keeper_of(self, name: str) -> Keeper:
        """Return the keeper of the table of this name; raise ObjectNotFound if there is none, or if it was dropped."""
        check_name(name)
        if name not in self._keepers or self._keepers[name].dropped:
            raise ObjectNotFound(name=name, hint="Temporary names belong to the enclosing data_context.")
        return self._keepers[name]

    def clear(self) -> None:
        """Release all keepers, so that their tables may be dropped."""
        self._keepers.clear()
