"""What all methods of the client are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from aaiclick.client.calls import Answered, Calls, is_away, pause
from aaiclick.client.refusals import data_of
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.errors import AaiclickError

OUTAGE_S_MAX = 300.0
"""Whoever waits or follows goes on trying for so long while the server is away."""

T = TypeVar("T")

Id = int | str
"""Ids are texts in JSON; methods take numbers too."""


class Asking:
    """Asks the server."""

    _calls: Calls

    async def _get(self, path: str, **query: object) -> Any:
        return self._data_of(await self._calls.ask("GET", path, query))

    async def _post(self, path: str, body: object = None, *, repeatable: bool = False) -> Any:
        return self._data_of(await self._calls.ask("POST", path, None, body, repeatable=repeatable))

    async def _put(self, path: str, body: object) -> Any:
        return self._data_of(await self._calls.ask("PUT", path, None, body))

    def _data_of(self, found: Answered) -> dict[str, Any]:
        return data_of(found.status, found.body, self._calls.address.url)

    async def _patiently(self, ask: Callable[[], Awaitable[T]], ends_at: float = float("inf")) -> T:
        """Ask again and again while the server is away, for OUTAGE_S_MAX or until `ends_at`."""
        gives_up_at = min(SYSTEM_CLOCK.monotonic() + OUTAGE_S_MAX, ends_at)
        failures = 0
        while True:
            try:
                return await ask()
            except AaiclickError as error:
                if not is_away(error) or SYSTEM_CLOCK.monotonic() >= gives_up_at:
                    raise
            await self._calls.network.sleep(pause(failures))
            failures += 1


def given(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that were given: what is None is left to the server."""
    return {name: value for name, value in fields.items() if value is not None}
