"""The messages between a running body's process and its worker: questions and answers, as plain data."""

from __future__ import annotations

import msgspec

from aaiclick.orchestration.models import CacheAnswer, CacheKey


class EngineWanted(msgspec.Struct, tag=9, array_like=True):
    """Asks for a process that serves the embedded engine. A child must not, since it may be killed at any time."""


class IdsWanted(msgspec.Struct, tag=10, array_like=True):
    """Asks for `count` unique ids."""

    serial: int
    count: int


class Ids(msgspec.Struct, tag=11, array_like=True):
    """Answers IdsWanted. At most `BLOCK_MAX` ids are given."""

    serial: int
    ids: list[int]


class TablesWanted(msgspec.Struct, tag=12, array_like=True):
    """Asks to register tables that the run may create."""

    serial: int
    tables: list[str]


class TablesHeld(msgspec.Struct, tag=13, array_like=True):
    """Answers TablesWanted. `refusal` is why the tables were refused; empty if they are registered."""

    serial: int
    installation: str
    refusal: str = ""


class SecretsFound(msgspec.Struct, tag=14, array_like=True):
    """Asks the worker to mask these values, which the body will be given, in its output."""

    serial: int
    values: list[str]


class SecretsMasked(msgspec.Struct, tag=15, array_like=True):
    """Answers SecretsFound: the values are masked from now on."""

    serial: int


class SlotsWanted(msgspec.Struct, tag=16, array_like=True):
    """Asks how many bodies all live workers together can run at a time."""

    serial: int


class Slots(msgspec.Struct, tag=17, array_like=True):
    """Answers SlotsWanted. 0 if the worker has no services."""

    serial: int
    count: int


class CallbackWanted(msgspec.Struct, tag=19, array_like=True):
    """Asks to accept callbacks with the token of this digest, if there is one, and for what has been called back."""

    serial: int
    digest: str


class CallbackFound(msgspec.Struct, tag=20, array_like=True):
    """Answers CallbackWanted. `refusal` is why nothing can be called back; empty if it can."""

    serial: int
    body: str | None
    refusal: str = ""


class ResultWanted(msgspec.Struct, tag=40, array_like=True):
    """Asks for the result that is remembered under a key."""

    serial: int
    key: CacheKey


class ResultFound(msgspec.Struct, tag=41, array_like=True):
    """Answers ResultWanted. `refusal` is set if the run's claim is no longer live."""

    serial: int
    answer: CacheAnswer
    refusal: str = ""


Question = IdsWanted | TablesWanted | SecretsFound | SlotsWanted | CallbackWanted | ResultWanted
"""The messages that get an answer."""

Answer = Ids | TablesHeld | SecretsMasked | Slots | CallbackFound | ResultFound
"""The answers. `serial` is that of the question."""
