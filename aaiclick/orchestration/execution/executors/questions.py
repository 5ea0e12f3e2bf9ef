"""What a run asks of its worker while its body goes on, and what it is told: plain data, over any transport."""

from __future__ import annotations

import msgspec


class EngineWanted(msgspec.Struct, tag=9, array_like=True):
    """Someone must serve the embedded engine; whatever runs bodies cannot, since it may be killed at any time."""


class IdsWanted(msgspec.Struct, tag=10, array_like=True):
    """So many ids, please."""

    serial: int
    count: int


class Ids(msgspec.Struct, tag=11, array_like=True):
    """The ids that were asked for."""

    serial: int
    ids: list[int]


class TablesWanted(msgspec.Struct, tag=12, array_like=True):
    """The run may make these tables."""

    serial: int
    tables: list[str]


class TablesHeld(msgspec.Struct, tag=13, array_like=True):
    """They are held; or they are not, and why."""

    serial: int
    installation: str
    refusal: str = ""


class SecretsFound(msgspec.Struct, tag=14, array_like=True):
    """The body will be given these values; they must be masked in what comes from it."""

    serial: int
    values: list[str]


class SecretsMasked(msgspec.Struct, tag=15, array_like=True):
    """They are."""

    serial: int


class SlotsWanted(msgspec.Struct, tag=16, array_like=True):
    """How many bodies run at a time, in all workers?"""

    serial: int


class Slots(msgspec.Struct, tag=17, array_like=True):
    """So many."""

    serial: int
    count: int


Question = IdsWanted | TablesWanted | SecretsFound | SlotsWanted
"""What waits for an answer."""

Answer = Ids | TablesHeld | SecretsMasked | Slots
"""What it is told; the serial is that of its question."""
