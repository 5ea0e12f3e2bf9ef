"""Ids that are found by their last digits."""

from __future__ import annotations

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id


class FoundId(TypedDict):
    """The only id with these last digits."""

    id: Id
