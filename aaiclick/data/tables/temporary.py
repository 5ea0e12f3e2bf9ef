"""Names of Objects that end with their context: known in it alone, so they clash with nobody's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aaiclick.data.tables.lifetimes import Keeper
from aaiclick.data.tables.table_names import check_name
from aaiclick.errors import Conflict, ObjectNotFound

IsThere = Callable[[str], Awaitable[bool]]
"""Whether there is a table of this name."""


class TemporaryNames:
    """Which table of a context has which name. Their keepers are held, so that they live as long as it."""

    def __init__(self) -> None:
        self._keepers: dict[str, Keeper] = {}

    async def take(self, name: str, keeper: Keeper, is_there: IsThere) -> None:
        """Give a table this name; refused while another has it."""
        check_name(name)
        held = self._keepers.setdefault(name, keeper)
        if held is keeper:
            return
        if await is_there(held.table) or self._keepers[name] is not held:
            hint = "open_object(name, scope='temporary') gives it, delete_object(name, scope='temporary') deletes it."
            raise Conflict(
                what=f"An Object called {name}", verb="made", cause="there is one in this context", hint=hint
            )
        self._keepers[name] = keeper

    def keeper_of(self, name: str) -> Keeper:
        """What keeps the table of this name."""
        check_name(name)
        if name not in self._keepers or self._keepers[name].dropped:
            raise ObjectNotFound(name=name, hint="Temporary names are those of the data_context around.")
        return self._keepers[name]

    def clear(self) -> None:
        """Let go of all of them."""
        self._keepers.clear()
